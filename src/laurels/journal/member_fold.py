"""What a member's submissions make of its entry in a window: the rules of `valkey/lua/submit.lua`, one at a
time. Pure. `tests/journal/test_member_fold.py` compares the two.

A window is recounted by what the journal tells in the order in which it happened: each submission as long as
the window took any, each entry that was placed in it or in what it is made of, each removal as long as the
window was there to be removed from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from laurels.journal.entry import ERASE, PLACE, REMOVE

if TYPE_CHECKING:
    from laurels.boards.board import Board, ZonedWindow
    from laurels.boards.keys import Cut
    from laurels.boards.ordering import Score
    from laurels.boards.windows import Slot
    from laurels.journal.entry import JournalRow
    from laurels.moments import Moment


class FoldedEntry(NamedTuple):
    """An entry: its score, and when it was reached."""

    score: Score
    moment: Moment


@dataclass(slots=True)
class _Tally:
    """A member on its way through its rows."""

    parts: dict[str, FoldedEntry] = field(default_factory=dict[str, FoldedEntry])
    """By the slot of the window that is written: this one, or those that it is made of."""
    total: FoldedEntry | None = None
    """What a sum has moved to, or what was placed in a window that is made of others."""
    is_final: bool = False
    """Whether a rolling window stays as it was placed."""


class Fold:
    """One window, whole or of a group, as it is recounted member by member."""

    def __init__(self, board: Board, zoned: ZonedWindow, slot: Slot, cut: Cut) -> None:
        self._board = board
        self._zoned = zoned
        self._slot = slot
        self._cut = cut.named
        self._until = zoned.held_until(slot)
        self._days = frozenset(zoned.calendar.days(slot)) if zoned.how == "fold" else frozenset[str]()
        self._calendar = (zoned.base or zoned).calendar
        self._own = f"{zoned.label}|{slot.text}"
        self._base = f"{zoned.base.label}|" if zoned.base else None
        self._days_gone = self._end_of_days()

    def places(self) -> tuple[set[str], str | None]:
        """Where entries are placed that matter here: windows by name, and by how the name begins."""
        if self._zoned.how == "fold":
            return {self._own, *(f"{self._base}{day}" for day in self._days)}, None
        return {self._own}, self._base

    def entry(self, rows: list[JournalRow]) -> FoldedEntry | None:
        """The entry that all this leaves; None when there is none."""
        tally = _Tally()
        exact = int if self._board.ordering.int64 else float
        for row in rows:
            if self._until is not None and row.now >= self._until:
                continue
            if row.score is None:
                if self._leaves(row):
                    tally = _Tally()
            elif row.kind == PLACE:
                self._place(tally, row, exact(row.score))
            elif self._concerns(row):
                self._submit(tally, row, exact(row.score))
        parts = tally.parts
        if self._zoned.how == "sum" or not parts or tally.is_final:
            return tally.total
        if self._zoned.how == "fold":
            return self._folded([parts[day] for day in sorted(parts)])
        return next(iter(parts.values()))

    def _submit(self, tally: _Tally, row: JournalRow, score: Score) -> None:
        part = self._calendar.at(row.at).text
        before = tally.parts.get(part)
        after = tally.parts[part] = self._aggregated(before, row, score)
        if self._zoned.how == "sum" and after != before:
            tally.total = self._moved(tally.total, before, after, row.at)

    def _place(self, tally: _Tally, row: JournalRow, score: Score) -> None:
        """Entries are given to one window as they are; no other window moves with it but a rolling one."""
        if (row.groups or {}) != self._cut:
            return
        placed = FoldedEntry(score, row.at)
        if row.op != self._own:
            tally.parts[row.op.partition("|")[2]] = placed
        elif self._zoned.how == "direct":
            tally.parts[self._slot.text] = placed
        else:
            tally.total = placed
            tally.is_final = self._days_gone is not None and row.now >= self._days_gone

    def _leaves(self, row: JournalRow) -> bool:
        """Whether it goes from this window: who is removed does, who is erased only if the window goes on."""
        return row.kind == REMOVE or (
            row.kind == ERASE and goes_on_without(self._board, self._zoned, self._slot, row.now)
        )

    def _end_of_days(self) -> Moment | None:
        """From when on a rolling window stays as it is placed, because its days are gone."""
        base = self._zoned.base
        if not self._days or base is None:
            return None
        return base.held_until(base.calendar.parse(min(self._days)))

    def _concerns(self, row: JournalRow) -> bool:
        given = row.groups or {}
        if any(given.get(name) != value for name, value in self._cut.items()):
            return False
        if self._days:
            return self._calendar.at(row.at).text in self._days
        return self._zoned.calendar.at(row.at) == self._slot

    def _aggregated(self, old: FoldedEntry | None, row: JournalRow, score: Score) -> FoldedEntry:
        op = row.op or self._board.definition.aggregate
        if old is None:
            return FoldedEntry(score, row.at)
        if op == "sum":
            total = self._sum(old.score, 0, score)
            return old if total == old.score else FoldedEntry(total, row.at)
        if op == "first" or score == old.score or (op == "best" and not self._is_better(score, old.score)):
            return old
        return FoldedEntry(score, row.at)

    def _moved(
        self, total: FoldedEntry | None, before: FoldedEntry | None, after: FoldedEntry, at: Moment
    ) -> FoldedEntry:
        moved = self._sum(total.score if total else 0, before.score if before else 0, after.score)
        return total if total and total.score == moved else FoldedEntry(moved, at)

    def _folded(self, days: list[FoldedEntry]) -> FoldedEntry:
        """A rolling window's entry, of its days' entries from the oldest."""
        op = self._board.fold_op(self._zoned)
        result = days[0]
        for day in days[1:]:
            if op == "sum":
                result = FoldedEntry(self._sum(result.score, 0, day.score), max(result.moment, day.moment))
            elif op == "last":
                result = day
            elif op == "best" and day.score == result.score:
                result = min(result, day, key=lambda each: each.moment)
            elif op == "best" and self._is_better(day.score, result.score):
                result = day
        return result

    def _sum(self, total: Score, old: Score, new: Score) -> Score:
        return (total - old) + new

    def _is_better(self, left: Score, right: Score) -> bool:
        return left > right if self._board.ordering.descending else left < right


def goes_on_without(board: Board, zoned: ZonedWindow, slot: Slot, now: Moment) -> bool:
    """Whether who is erased leaves this window: one that goes on, unless a rolling window is made of it."""
    is_rolling = zoned.how == "fold" or any(
        other.how == "fold" and other.base is zoned for other in board.zoned_windows(zoned.zone)
    )
    return not is_rolling and (slot.ends is None or slot.ends > now)
