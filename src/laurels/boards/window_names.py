"""Finds the window of a key that a template made: templates read backwards. Pure."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from laurels.boards.board import WindowAddress
from laurels.boards.keys import Cut
from laurels.boards.templates import PLACEHOLDER
from laurels.boards.windows import PARTS
from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laurels.boards.board import Board
    from laurels.boards.definition import Period

_SLOTS: Final[dict[Period, str]] = {
    "hourly": r"\d{4}-\d\d-\d\dT\d\db?",
    "daily": r"\d{4}-\d\d-\d\d",
    "rolling": r"\d{4}-\d\d-\d\d",
    "weekly": r"\d{4}-w\d\d",
    "monthly": r"\d{4}-\d\d",
    "yearly": r"\d{4}",
    "every": r"-?\d+",
}
_GROUP_VALUE: Final = "[^:=,{}|]*"


class _Form(NamedTuple):
    """The form of the keys of one window, whole or of one group."""

    label: str
    period: Period
    dimensions: tuple[str, ...]
    key: re.Pattern[str]
    placeholders: tuple[str, ...]
    """The placeholder of each group of the expression."""


class WindowNames:
    """Finds windows of one board by key."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._forms = list(_forms(board))

    def address(self, key: str) -> WindowAddress | None:
        """The window with this key; None for a key that is not the board's."""
        bare = self._board.keys.bare(key)
        for form in self._forms if bare is not None else ():
            found = form.key.fullmatch(bare or "")
            address = (
                _address(form, dict(zip(form.placeholders, found.groups(), strict=True))) if found else None
            )
            if address and self._is_key_of(key, address):
                return address
        return None

    def _is_key_of(self, key: str, address: WindowAddress) -> bool:
        try:
            return self._board.window_key(0, address) == key
        except InvalidInput:  # no such slot exists
            return False


def _forms(board: Board) -> Iterator[_Form]:
    definition = board.definition
    cuts = {",".join(group): group for group in definition.groups}
    for target, template in board.keys.templates.items():
        label, _, named = target.partition(":")
        window = definition.window(label)
        if window is None:
            continue
        pattern, placeholders = _expression(template, window.period)
        yield _Form(label, window.period, cuts.get(named, ()), re.compile(pattern, re.DOTALL), placeholders)
        for cut, group in cuts.items() if not named else ():
            if f"{label}:{cut}" in board.keys.templates:
                continue
            values = ",".join(f"{re.escape(name)}=({_GROUP_VALUE})" for name in group)
            key = re.compile(f"{pattern}:{values}", re.DOTALL)
            yield _Form(
                label, window.period, group, key, (*placeholders, *(f"group.{name}" for name in group))
            )


def _expression(template: str, period: Period) -> tuple[str, tuple[str, ...]]:
    pieces = PLACEHOLDER.split(template)
    placeholders = tuple(pieces[1::2])
    pieces[::2] = map(re.escape, pieces[::2])
    for number, name in enumerate(placeholders):
        if name == "slot":
            expression = _SLOTS[period]
        elif name.startswith("group."):
            expression = _GROUP_VALUE
        else:
            expression = rf"\d{{{len(name)}}}"
        pieces[2 * number + 1] = f"({expression})"
    return "".join(pieces), placeholders


def _address(form: _Form, placeholders: dict[str, str]) -> WindowAddress | None:
    try:
        values = tuple(unquote_to_bytes(placeholders[f"group.{name}"]).decode() for name in form.dimensions)
    except UnicodeDecodeError:
        return None
    return WindowAddress(form.label, _slot(form.period, placeholders), Cut(form.dimensions, values))


def _slot(period: Period, placeholders: dict[str, str]) -> str:
    """The text of a slot from its placeholders, such as `yyyymm` and `dd`."""
    if "slot" in placeholders or period == "all_time":
        return placeholders.get("slot", "")
    names = PARTS[period]
    numbers = {name: placeholders[name] for name in names if name in placeholders}
    for count, joined in enumerate(accumulate(names), 1):
        ends = list(accumulate(map(len, names[:count])))
        if joined in placeholders:
            for name, end in zip(names, ends, strict=False):
                numbers[name] = placeholders[joined][end - len(name) : end]
    return ("-w" if period == "weekly" else "-").join(numbers[name] for name in names)
