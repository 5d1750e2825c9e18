"""Maps the boards of the Leaders service to boards of the engine. Pure.

A game is a project. A Leaders board is up to four boards, one for each range that was posted to: `highscore`
has `highscore.d`, `highscore.w`, `highscore.m` and `highscore.a`, each with one window. Their entries are
sorted sets called `/leaders/{game}/{board}/{range}/{slot}`, user -> value.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from laurels.boards import timezones
from laurels.boards.definition import BoardDefinition, Window
from laurels.boards.windows import PARTS, RANGE_CODES, Calendar, leaders_slot
from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from laurels.boards.windows import Slot
    from laurels.moments import Moment

# At most 62 characters: `.d` is added, and a board's name has up to 64.
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,62}")
_OWN: Final = re.compile(r"(.+)\.([dwma])", re.DOTALL)

# The aggregate of each `type`.
OPERATIONS: Final = {"set": "best", "inc": "sum"}
# Fields that a Leaders board must have as defined; the others may be edited.
_SHAPE: Final = (
    "aggregate", "allow_op", "order", "score", "ties", "timezone", "timezone_by", "keys", "rating",
)  # fmt: skip

_CALENDARS: Final = {
    code: Calendar(Window(period=period), timezones.zone("UTC")) for code, period in RANGE_CODES.items()
}


class LeadersBoard(NamedTuple):
    """One range of a Leaders board."""

    board: str
    code: str

    @classmethod
    def of(cls, board: str, code: str) -> LeadersBoard:
        """Raises `InvalidInput` for an invalid name or range."""
        if not _NAME.fullmatch(board):
            raise InvalidInput.at("board", "must be 1 to 62 of A-Z a-z 0-9 - _ .")
        if code not in RANGE_CODES:
            raise InvalidInput.at("range", f"must be d, w, m or a, not {code[:40]!r}")
        return cls(board, code)

    @classmethod
    def named(cls, name: str, definition: BoardDefinition) -> LeadersBoard | None:
        """The range of a Leaders board that this board is; None for any other board."""
        found = _OWN.fullmatch(name)
        own = cls(found[1], found[2]) if found and _NAME.fullmatch(found[1]) else None
        return own if own and own.is_like(definition) else None

    @property
    def name(self) -> str:
        """The name of the board in the engine."""
        return f"{self.board}.{self.code}"

    @property
    def definition(self) -> BoardDefinition:
        """The definition that the first POST creates."""
        return _definition(self)

    def is_like(self, definition: BoardDefinition) -> bool:
        """Whether a board with this definition can be this range."""
        own = self.definition
        return all(getattr(own, field) == getattr(definition, field) for field in _SHAPE) and [
            window.period for window in definition.windows
        ] == [RANGE_CODES[self.code]]

    def current(self, now: Moment) -> Slot:
        return _CALENDARS[self.code].at(now)

    def last(self, now: Moment) -> Slot | None:
        """The period before the current one; None for all time."""
        return _CALENDARS[self.code].previous(self.current(now))

    def spelled(self, slot: Slot) -> str:
        """The slot as it is spelled in keys."""
        return leaders_slot(self.code, slot)


@lru_cache(maxsize=1024)
def _definition(of: LeadersBoard) -> BoardDefinition:
    period = RANGE_CODES[of.code]
    slot = "{" + "".join(PARTS[period]) + "}" if period in PARTS else "a"
    return BoardDefinition(
        allow_op=True,
        windows=(Window(period=period),),
        keys={period: f"/leaders/{{project}}/{of.board}/{of.code}/{slot}"},
    )
