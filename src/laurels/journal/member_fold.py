"""Folds the journal rows of one member into its entry in one window. Pure.

The rules are those of `valkey/lua/submit.lua`; `tests/journal/test_member_fold.py` compares the two.

The rows come in the order in which they were applied. A submission or a removal counts until the window no
longer takes any; a placed entry counts in its own window, and in a rolling window that is computed from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from laurels.boards.ordering import INT64_MAX, INT64_MIN
from laurels.journal.entry import ERASE, PLACE, REMOVE

if TYPE_CHECKING:
    from laurels.boards.board import Board, ZonedWindow
    from laurels.boards.keys import Cut
    from laurels.boards.ordering import Score
    from laurels.boards.windows import Slot
    from laurels.journal.entry import JournalRow
    from laurels.moments import Moment


class FoldedEntry(NamedTuple):
    """A member's score in a window, and the moment at which it was reached."""

    score: Score
    moment: Moment


@dataclass(slots=True)
class _Tally:
    """A member's state between two rows."""

    parts: dict[str, FoldedEntry] = field(default_factory=dict[str, FoldedEntry])
    """By slot: of this window, or of the windows that it is computed from."""
    total: FoldedEntry | None = None
    """The entry of a sum, or an entry placed in a derived window."""
    is_final: bool = False
    """Whether a placed entry of a rolling window stays as it is."""


class Fold:
    """Computes the entries of one ranked list, member by member."""

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
        """The windows whose placed entries matter here: by name, and by the beginning of the name."""
        if self._zoned.how == "fold":
            return {self._own, *(f"{self._base}{day}" for day in self._days)}, None
        return {self._own}, self._base

    def entry(self, rows: list[JournalRow]) -> FoldedEntry | None:
        """The entry that these rows of one member leave; None when there is none."""
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
        """A placed entry changes no other window, except a rolling window of the day it was placed in."""
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
        """Whether the row takes the member out: a removal does, an erasure only if the window goes on."""
        return row.kind == REMOVE or (
            row.kind == ERASE and goes_on_without(self._board, self._zoned, self._slot, row.now)
        )

    def _end_of_days(self) -> Moment | None:
        """When the first day of a rolling window is deleted. An entry placed later is final."""
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

    def _folded(self, days: list[FoldedEntry]) -> FoldedEntry | None:
        """The entry of a rolling window. `days`: the entries of its days, oldest first. None if no entry can
        have their sum.
        """
        op = self._board.fold_op(self._zoned)
        if op == "sum":
            total: Score = 0
            for day in days:  # since Python 3.12, `sum` rounds differently from Lua
                total += day.score
            return FoldedEntry(total, max(day.moment for day in days)) if self._is_score(total) else None
        result = days[0]
        for day in days[1:]:
            if op == "last":
                result = day
            elif op == "best" and day.score == result.score:
                result = min(result, day, key=lambda each: each.moment)
            elif op == "best" and self._is_better(day.score, result.score):
                result = day
        return result

    def _is_score(self, total: Score) -> bool:
        return INT64_MIN <= total <= INT64_MAX if self._board.ordering.int64 else isfinite(total)

    def _sum(self, total: Score, old: Score, new: Score) -> Score:
        return (total - old) + new

    def _is_better(self, left: Score, right: Score) -> bool:
        return left > right if self._board.ordering.descending else left < right


def goes_on_without(board: Board, zoned: ZonedWindow, slot: Slot, now: Moment) -> bool:
    """Whether an erased member leaves this window: it goes on, and no rolling window is computed from it."""
    is_rolling = zoned.how == "fold" or any(
        other.how == "fold" and other.base is zoned for other in board.zoned_windows(zoned.zone)
    )
    return not is_rolling and (slot.ends is None or slot.ends > now)
