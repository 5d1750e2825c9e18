"""Recounts ended windows from the journal, for members that no snapshot has."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from laurels.boards.board import WindowAddress
from laurels.boards.ordering import whole
from laurels.history.store.window_journal import WindowSpan
from laurels.journal.member_fold import Fold, FoldedEntry
from laurels.moments import EARLIEST, LATEST
from laurels.scores.submission import AHEAD

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from laurels.boards.board import Board, ZonedWindow
    from laurels.boards.keys import Cut
    from laurels.boards.ordering import Score
    from laurels.boards.windows import Slot
    from laurels.history.store.window_journal import WindowJournal

_Key = tuple["Score", int, bytes]
_NOBODY: Final = b""


@dataclass(frozen=True)
class EndedWindow:
    """A window that has ended."""

    board: Board
    board_id: int
    zoned: ZonedWindow
    slot: Slot
    cut: Cut

    @property
    def address(self) -> WindowAddress:
        return WindowAddress(self.zoned.label, self.slot.text, self.cut)

    def __str__(self) -> str:
        return f"{self.board.ref}: the {self.zoned.label} window {self.slot.text}"


@dataclass(frozen=True)
class RecountedStanding:
    """Where a member stood in an ended window. Ranks count from 1."""

    score: Score
    rank: int
    ordinal: int
    dense_rank: int
    total: int


class Recount:
    """Computes standings from the journal: first the entries of the given members, then those of all members,
    one at a time, to count the better ones. It holds only the given members in memory.
    """

    def __init__(self, journal: WindowJournal) -> None:
        self._journal = journal

    async def standings(
        self, window: EndedWindow, members: Sequence[bytes]
    ) -> dict[bytes, RecountedStanding]:
        """Where these members stood; without those that had no entry."""
        if not window.board.definition.archive.journal:
            return {}
        asked = {member: held async for member, held in self._entries(window, members)}
        if not asked:
            return {}
        count = _RankCount(window.board, asked)
        async for member, held in self._entries(window):
            count.add(member, held)
        return count.standings()

    async def _entries(
        self, window: EndedWindow, members: Sequence[bytes] | None = None
    ) -> AsyncIterator[tuple[bytes, FoldedEntry]]:
        zoned, slot = window.zoned, window.slot
        fold = Fold(window.board, zoned, slot, window.cut)
        # A removal may come before the window starts if its clock was slow, at most by AHEAD.
        starts = EARLIEST if slot.starts is None else slot.starts - AHEAD
        ends = LATEST if slot.ends is None else slot.ends
        span = WindowSpan(starts, ends, zoned.held_until(slot), *fold.places())
        rows = self._journal.of_members(window.board_id, span, members)
        async for together in rows:
            held = fold.entry(together)
            if held is not None:
                yield together[0].member, held


class _RankCount:
    """Counts how many entries are better than each of the given ones."""

    def __init__(self, board: Board, asked: dict[bytes, FoldedEntry]) -> None:
        self._ordering = board.ordering
        self._asked = asked
        self._members = sorted(asked, key=lambda member: self._key(member, asked[member]))
        self._keys = [self._key(member, asked[member]) for member in self._members]
        self._better = [0] * (len(self._keys) + 1)
        self._equals: dict[Score, list[bytes]] = {}
        self._before = dict.fromkeys(asked, 0)
        self._scores: set[Score] | None = set() if board.definition.dense else None
        for member, held in asked.items():
            self._equals.setdefault(held.score, []).append(member)
        self._total = 0

    def add(self, member: bytes, held: FoldedEntry) -> None:
        self._total += 1
        self._better[bisect_right(self._keys, self._key(member, held))] += 1
        if self._scores is not None:
            self._scores.add(held.score)
        if not self._ordering.unique:
            for other in self._equals.get(held.score, ()):
                self._before[other] += member > other if self._ordering.descending else member < other

    def standings(self) -> dict[bytes, RecountedStanding]:
        better = dict(zip(self._members, accumulate(self._better), strict=False))
        return {
            member: RecountedStanding(
                held.score if self._ordering.int64 else whole(held.score),
                rank=better[member] + 1,
                ordinal=better[member] + self._before[member] + 1,
                dense_rank=self._dense_rank(held.score),
                total=self._total,
            )
            for member, held in self._asked.items()
        }

    def _dense_rank(self, score: Score) -> int:
        own = self._rising(score)
        return 1 + sum(self._rising(other) < own for other in self._scores or ())

    def _rising(self, score: Score) -> Score:
        return -score if self._ordering.descending else score

    def _key(self, member: bytes, held: FoldedEntry) -> _Key:
        """A smaller key is better; entries that share a rank have the same key."""
        if not self._ordering.unique:
            return self._rising(held.score), 0, _NOBODY
        return self._rising(held.score), held.moment if self._ordering.timed else 0, member
