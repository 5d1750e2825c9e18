"""The places of a record in its index: the fold of its changes, the same for updates and rebuilds. Pure.

A position is the record's placements, the one written last at the end. With `on_update="move"` there is at
most one. With `keep`, an update leaves the placements that other windows still show; a placement without a
score hides the earlier ones in its own windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from laurels.boards.keys import WHOLE, Cut
from laurels.moments import EARLIEST, LATEST, Moment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laurels.boards.board import Board, Target, WindowAddress

OnUpdate = Literal["move", "keep"]


class Placement(NamedTuple):
    """One placement of a record."""

    moment: Moment
    score: int | None
    groups: tuple[str, ...]
    member: str = ""
    """As PostgreSQL writes it, in an index of members."""


Position = tuple[Placement, ...]
NOWHERE: Position = ()


class Placed(NamedTuple):
    """A record in one window or group."""

    target: Target
    placement: Placement


class RecordChange(NamedTuple):
    """What a commit did to one record."""

    op: Literal["put", "nil", "gone"]
    """`put`: the record has this score. `nil`: it has no score or group. `gone`: it was deleted."""
    moment: Moment
    score: int | None = None
    groups: tuple[str, ...] = ()
    member: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class PositionRule:
    """How an index turns changes into positions, and positions into entries."""

    board: Board
    """Finds the windows of a moment."""
    on_update: OnUpdate

    def after(self, position: Position, change: RecordChange, now: Moment) -> Position:
        """The position after a change. A moment outside of all windows counts as no score."""
        if change.op == "gone":
            return NOWHERE
        is_inside = EARLIEST <= change.moment < LATEST
        score = change.score if change.op == "put" and is_inside else None
        placed = Placement(change.moment, score, change.groups if score is not None else (), change.member)
        if self.on_update == "move":
            return (placed,) if score is not None else NOWHERE
        return self._pruned((*position, placed), now) if is_inside else position

    def settled(self, position: Position, row: Placement | None, now: Moment) -> Position:
        """The position of a record by its row, because captured changes may be incomplete."""
        if row is None:
            return NOWHERE if self.on_update == "move" else self._pruned(position, now)
        if position and position[-1] == row:
            return self._pruned(position, now)
        change = RecordChange("put", row.moment, row.score, row.groups, row.member)
        return self.after(position, change, now)

    def windows(self, position: Position, now: Moment) -> dict[WindowAddress, Placed]:
        """The entries of a record in the windows that are kept."""
        found: dict[WindowAddress, Placed] = {}
        for placement in position:
            if self.on_update == "keep":
                hidden = {target.address.token for target in self._targets(placement, 0, now)}
                found = {address: each for address, each in found.items() if address.token not in hidden}
            if placement.score is not None:
                for depth in range(len(placement.groups) + 1):
                    for target in self._targets(placement, depth, now):
                        found[target.address] = Placed(target, placement)
        return found

    def _targets(self, placement: Placement, depth: int, now: Moment) -> tuple[Target, ...]:
        if not EARLIEST <= placement.moment < LATEST:
            return ()
        cut = WHOLE
        if depth:
            cut = Cut(self.board.definition.groups[depth - 1], placement.groups[:depth])
        return self.board.targets(placement.moment, now, cut).windows

    def _pruned(self, position: Position, now: Moment) -> Position:
        """Without what no window shows any more. The last score stays: it tells a rebuild that the record had
        its window.
        """
        if self.on_update == "move":
            return position
        kept: list[Placement] = []
        seen: set[str] = set()
        for placement in reversed(position):
            own = {target.address.token for target in self._targets(placement, 0, now)}
            if own - seen or (not kept and placement.score is not None):
                kept.append(placement)
            seen |= own
        while kept and kept[-1].score is None:  # hides nothing
            kept.pop()
        return tuple(reversed(kept))


def folded(rule: PositionRule, position: Position, changes: Iterable[RecordChange], now: Moment) -> Position:
    for change in changes:
        position = rule.after(position, change, now)
    return position


class RecordMove(NamedTuple):
    """What a round does to one record."""

    before: tuple[Position, ...]
    """Every position that its changes say it had: Valkey may hold the entries of any of them."""
    after: Position


_decoder = msgspec.msgpack.Decoder(tuple[Placement, ...])


def write_position(position: Position) -> bytes:
    return msgspec.msgpack.encode(position)


def read_position(stored: bytes | None) -> Position:
    return _decoder.decode(stored) if stored else NOWHERE
