"""The boards of a campus: one for each scope, with days and rolling sums of the last 7 and 30 days.

A daily entry is the present score of the day, so placing it again changes nothing. The sums move with it.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal

from laurels.activity.scoring import SCOPES
from laurels.activity.store.application_table import is_uuid
from laurels.boards.board import WindowAddress
from laurels.boards.definition import BoardDefinition
from laurels.boards.keys import WHOLE, BoardRef
from laurels.boards.timezones import zone_names
from laurels.errors import Conflict, LaurelsError, NotFound
from laurels.moments import MICROSECOND, datetime_of
from laurels.scores.submission import Submission
from laurels.valkey import sorted_sets
from laurels.valkey.names import CAMPUS_WINDOW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laurels.activity.days import Day
    from laurels.activity.scoring import Scope, Scores
    from laurels.activity.store.people import Campus
    from laurels.boards.board import Board
    from laurels.boards.catalog import Catalog
    from laurels.boards.define import Definer
    from laurels.clock import Clock
    from laurels.scores.submit import Submitter
    from laurels.valkey.client import Valkey

PROJECT: Final = "campus"

Period = Literal["daily", "weekly", "monthly"]
PERIODS: Final[dict[Period, str]] = {"daily": "daily", "weekly": "rolling_7d", "monthly": "rolling_30d"}
"""The window of each documented period."""
DAYS: Final[dict[Period, int]] = {"daily": 1, "weekly": 7, "monthly": 30}

# Days are corrected within 48 hours of their end; this leaves time for workers that were down.
LATENESS: Final = timedelta(days=4)
# The most days that six months can have.
SIX_MONTHS: Final = timedelta(days=184)

MEMBERS_A_COMMAND: Final = 500
DEFINE_ATTEMPTS: Final = 4


def board_of(scope: Scope, campus_id: str) -> BoardRef:
    return BoardRef(PROJECT, f"{scope}.{campus_id}")


def definition_of(scope: Scope, campus: Campus, *, cluster: bool) -> BoardDefinition:
    """On one node the keys have their documented names; a cluster needs names that carry the board's tag."""
    keys = {
        window: f"{CAMPUS_WINDOW}{scope}:{period}:{campus.id}:{{yyyymmdd}}"
        for period, window in PERIODS.items()
    }
    return BoardDefinition.model_validate(
        {
            "aggregate": "last",
            "timezone": campus.timezone,
            "windows": [
                {"period": "daily", "keep": 30},
                {"period": "rolling", "days": 7, "sum_of": "daily", "keep": timedelta(weeks=12)},
                {"period": "rolling", "days": 30, "sum_of": "daily", "keep": SIX_MONTHS},
            ],
            "lateness": LATENESS,
            "archive": {"journal": False},
            "keys": None if cluster else keys,
        }
    )


def is_sound(campus: Campus) -> bool:
    """Whether its timezone is known and its id is a UUID. Other programs write the table of campuses."""
    return campus.timezone in zone_names() and is_uuid(campus.id)


def slot_of(ymd: int) -> str:
    return f"{ymd // 10_000:04}-{ymd // 100 % 100:02}-{ymd % 100:02}"


class Rankings:
    def __init__(
        self, valkey: Valkey, catalog: Catalog, definer: Definer, submitter: Submitter, clock: Clock
    ) -> None:
        self._valkey = valkey
        self._catalog = catalog
        self._definer = definer
        self._submitter = submitter
        self._clock = clock

    async def ensure(self, campus: Campus) -> None:
        """Defines the boards of a campus, or updates their definitions."""
        for scope in SCOPES:
            await self.board(scope, campus)

    async def board(self, scope: Scope, campus: Campus) -> Board:
        """The board of a scope, defined as the campus is now. A board in use costs no query."""
        ref = board_of(scope, campus.id)
        wanted = definition_of(scope, campus, cluster=self._valkey.is_cluster)
        for _ in range(DEFINE_ATTEMPTS):
            try:
                board = await self._catalog.board(ref)
                if board.definition == wanted and board.owner == "campus":
                    return board
            except NotFound:
                pass
            try:
                await self._definer.define(ref, wanted)
            except Conflict:  # another process defines it at this moment
                await self._catalog.refresh(ref)
        raise Conflict(f"the board {ref} exists with a definition that cannot become a campus's: drop it")

    async def place(self, campus: Campus, day: Day, scores: Mapping[str, Scores]) -> int:
        """Updates the day's entries of these users in every scope; returns how many changed."""
        now = self._clock()
        if now < day.begins or now - day.ends >= LATENESS // MICROSECOND:
            return 0
        changed = await asyncio.gather(*(self._place(scope, campus, day, scores) for scope in SCOPES))
        return sum(changed)

    async def _place(self, scope: Scope, campus: Campus, day: Day, scores: Mapping[str, Scores]) -> int:
        board = await self.board(scope, campus)
        wanted = {user: getattr(each, scope) for user, each in scores.items()}
        present = await self._present(board, day, list(wanted))
        at = datetime_of(min(self._clock(), day.ends - 1))
        changed = [Submission(user, score, at=at) for user, score in wanted.items() if present[user] != score]
        durability = self._valkey.durability
        done = await self._submitter.submit_many(board.ref, changed, durability=durability)
        if durability != "fast" and len(changed) < len(wanted):
            # An earlier run may have written the others with less durability.
            await self._submitter.confirm(board.ref, durability)
        if done.rejected:
            raise LaurelsError(f"{board.ref} refused a score of {day.ymd}: {done.rejected[0].detail}")
        return len(changed)

    async def _present(self, board: Board, day: Day, users: list[str]) -> dict[str, float | None]:
        key = board.window_key(0, WindowAddress("daily", slot_of(day.ymd), WHOLE))
        present: dict[str, float | None] = {}
        for first in range(0, len(users), MEMBERS_A_COMMAND):
            chunk = users[first : first + MEMBERS_A_COMMAND]
            present |= zip(chunk, await self._valkey.run(sorted_sets.scores(key, chunk)), strict=True)
        return present
