"""The drops that `--allow-drop` allows, board by board. Pure.

`weekly` refers to the only board of the file that would drop this window; `arcade/score:weekly` names the
board.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from laurels.cli.boards_file import BoardChange

OPTION = "--allow-drop"


class NamedDrop(NamedTuple):
    board: str | None
    window: str


def parse_words(words: Iterable[str]) -> list[NamedDrop]:
    """Parses the values of a repeated option; each value may list several windows between commas."""
    found: list[NamedDrop] = []
    for word in (part.strip() for each in words for part in each.split(",")):
        board, colon, window = word.rpartition(":")
        if not window or (colon and "/" not in board) or "/" in window:
            raise InvalidInput.at(OPTION, f"write it as WINDOW or PROJECT/BOARD:WINDOW, not {word!r}")
        found.append(NamedDrop(board or None, window))
    return found


def allowed_by(
    named: Sequence[NamedDrop], changes: Sequence[BoardChange], windows: Mapping[str, Iterable[str]]
) -> dict[str, frozenset[str]]:
    """The windows that each board may drop.

    `windows`: for each board that changes, its windows now and in the file.
    """
    allowed: dict[str, set[str]] = {change.board: set() for change in changes}
    for each in named:
        for board in _boards_of(each, changes, windows):
            allowed[board].add(each.window)
    return {board: frozenset(names) for board, names in allowed.items()}


def words_for(changes: Iterable[BoardChange]) -> str:
    """The options that allow everything that these changes drop."""
    dropping = [change for change in changes if change.drops]
    return " ".join(
        f"{OPTION} {drop.window if len(dropping) == 1 else f'{change.board}:{drop.window}'}"
        for change in dropping
        for drop in change.drops
    )


def _boards_of(
    named: NamedDrop, changes: Sequence[BoardChange], windows: Mapping[str, Iterable[str]]
) -> list[str]:
    board, window = named
    if board is not None and board not in [change.board for change in changes]:
        raise InvalidInput.at(OPTION, f"the file has no board {board}")
    known = dict.fromkeys(
        label for name, labels in windows.items() if board in (None, name) for label in labels
    )
    if known and window not in known:  # if nothing changes, an earlier run may have dropped it
        where = board or "no board that changes"
        raise InvalidInput.at(
            OPTION, f"{where} has {'no' if board else 'a'} window {window!r}; there are: {', '.join(known)}"
        )
    dropping = [change.board for change in changes if window in (drop.window for drop in change.drops)]
    if board is not None:
        return [board]
    if len(dropping) > 1:
        full = " ".join(f"{OPTION} {name}:{window}" for name in dropping)
        raise InvalidInput.at(
            OPTION, f"{' and '.join(dropping)} would drop {window}; name the boards: {full}"
        )
    return dropping
