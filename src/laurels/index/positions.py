"""The position of a record in its index: the fold of its changes, the same for updates and rebuilds. Pure.

A position is the record's places, at most one in each window, the one written last at the end. With
`on_update="move"` there is at most one in all. A window's number is floor(moment / length).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from laurels.moments import EARLIEST, LATEST, Moment

if TYPE_CHECKING:
    from collections.abc import Iterable

OnUpdate = Literal["move", "keep"]


class Placement(NamedTuple):
    """One place of a record."""

    moment: Moment
    score: int
    groups: tuple[str, ...]


Position = tuple[Placement, ...]
NOWHERE: Position = ()

Window = tuple[int, tuple[str, ...]]
"""Its number and group: (), ("asia",) or ("asia", "tokyo")."""


class RecordChange(NamedTuple):
    """What a commit did to one record."""

    op: Literal["put", "nil", "gone"]
    """`put`: the record has this score. `nil`: it has no score or group. `gone`: it was deleted."""
    moment: Moment
    score: int | None = None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PositionRule:
    """How an index turns changes into positions."""

    length: int
    """The length of a window, in microseconds."""
    keep: int | None
    """How many windows can be asked for, the current one included."""
    on_update: OnUpdate

    def number(self, moment: Moment) -> int:
        return moment // self.length

    def oldest(self, now: Moment) -> int | None:
        """The oldest window that can be asked for."""
        return None if self.keep is None else self.number(now) - self.keep + 1

    def after(self, position: Position, change: RecordChange, now: Moment) -> Position:
        """The position after a change. A moment outside of all windows counts as no score."""
        if change.op == "gone":
            return NOWHERE
        placed = None
        if change.op == "put" and change.score is not None and EARLIEST <= change.moment < LATEST:
            placed = Placement(change.moment, change.score, change.groups)
        others = NOWHERE
        if self.on_update == "keep":
            number = self.number(change.moment)
            others = tuple(each for each in position if self.number(each.moment) != number)
        return self._pruned((*others, placed) if placed else others, now)

    def settled(self, position: Position, row: Placement | None, now: Moment) -> Position:
        """The position of a record by its row, because captured changes may be incomplete."""
        if row is None:
            return NOWHERE if self.on_update == "move" else self._pruned(position, now)
        if position and position[-1] == row:
            return self._pruned(position, now)
        change = RecordChange("put", row.moment, row.score, row.groups)
        return self.after(position, change, now)

    def windows(self, position: Position, now: Moment) -> dict[Window, int]:
        """The record's score in each of its windows that can be asked for now or later."""
        oldest = self.oldest(now)
        return {
            (number, placed.groups[:depth]): placed.score
            for placed in position
            if (number := self.number(placed.moment)) >= (number if oldest is None else oldest)
            for depth in range(len(placed.groups) + 1)
        }

    def _pruned(self, position: Position, now: Moment) -> Position:
        """Without past windows. The last place stays: it tells a rebuild that the record had its window."""
        oldest = self.oldest(now)
        if oldest is None or len(position) < 2:
            return position
        kept = tuple(each for each in position[:-1] if self.number(each.moment) >= oldest)
        return (*kept, position[-1])


def folded(rule: PositionRule, position: Position, changes: Iterable[RecordChange], now: Moment) -> Position:
    for change in changes:
        position = rule.after(position, change, now)
    return position


_decoder = msgspec.msgpack.Decoder(tuple[Placement, ...])


def write_position(position: Position) -> bytes:
    return msgspec.msgpack.encode(position)


def read_position(stored: bytes | None) -> Position:
    return _decoder.decode(stored) if stored else NOWHERE
