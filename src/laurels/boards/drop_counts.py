"""Counts what a change would drop, window by window, without reading an entry."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from laurels.boards.board import WindowAddress
from laurels.boards.consent import RATINGS, windows_at_risk
from laurels.boards.keys import WHOLE
from laurels.boards.retention import target_at
from laurels.errors import Drop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from laurels.boards.board import Board
    from laurels.boards.retention import Retention
    from laurels.clock import Clock
    from laurels.moments import Moment

COUNTED_AT_ONCE: Final = 200


class SnapshotCount(NamedTuple):
    """The number of snapshots of a window, whole or by these group dimensions."""

    period: str
    dimensions: tuple[str, ...]
    number: int


@dataclass(frozen=True)
class DropCounter:
    retention: Retention
    snapshot_counts: Callable[[int], Awaitable[Iterable[SnapshotCount]]]
    """Counts the snapshots of a board, by its id in PostgreSQL."""
    clock: Clock

    async def of_change(self, old: Board, board_id: int, new: Board) -> tuple[Drop, ...]:
        """What queries can read now, and could not once `new` is in force."""
        risky = windows_at_risk(old.definition, new.definition)
        if not risky:
            return ()
        now = self.clock()
        addresses = (
            (shard, address)
            async for shard, address in self._readable(old, risky, now)
            if not is_readable(new, address, now)
        )
        entries = await self._entries(old, addresses)
        snapshots = Counter[str]()
        for counted in await self.snapshot_counts(board_id):
            if _has_table(old, counted) and not _has_table(new, counted):
                snapshots[counted.period] += counted.number
        return _drops(old, entries, snapshots)

    async def of_board(self, old: Board, board_id: int) -> tuple[Drop, ...]:
        """What a drop of the board would delete: all entries, ratings and snapshots that can be read."""
        every = frozenset(window.label for window in old.definition.windows)
        entries = await self._entries(old, self._readable(old, every, self.clock()))
        if old.is_rated:
            entries[RATINGS] += await self.retention.ratings(old)
        snapshots = Counter[str]()
        for counted in await self.snapshot_counts(board_id):
            snapshots[counted.period] += counted.number
        return _drops(old, entries, snapshots)

    async def _readable(
        self, board: Board, labels: frozenset[str], now: Moment
    ) -> AsyncIterator[tuple[int, WindowAddress]]:
        """The windows of these names that can be read, whole and by group, in each shard."""
        current = {
            WindowAddress(zoned.label, zoned.calendar.at(now).text, WHOLE)
            for zoned in board.zoned_windows(board.definition.timezone)
            if zoned.label in labels
        }
        for shard in range(board.keys.shards):
            for address in current:  # even if Valkey lost the list of windows
                if is_readable(board, address, now):
                    yield shard, address
            async for address in self.retention.addresses(board, shard, labels):
                is_new = address not in current
                if is_new and is_readable(board, address, now) and not _is_ahead(board, address, now):
                    yield shard, address

    async def _entries(self, board: Board, found: AsyncIterator[tuple[int, WindowAddress]]) -> Counter[str]:
        entries, chunk = Counter[str](), list[tuple[int, WindowAddress]]()
        async for each in found:
            chunk.append(each)
            if len(chunk) == COUNTED_AT_ONCE:
                entries += await self._counted(board, chunk)
                chunk.clear()
        return entries + await self._counted(board, chunk)

    async def _counted(self, board: Board, chunk: Iterable[tuple[int, WindowAddress]]) -> Counter[str]:
        chunk = list(chunk)
        counts = await asyncio.gather(*(self.retention.size(board, *each) for each in chunk))
        entries = Counter[str]()
        for (_, address), count in zip(chunk, counts, strict=True):
            entries[address.label] += count
        return entries


def is_readable(board: Board, address: WindowAddress, now: Moment) -> bool:
    """Whether the window can be read, now or once it has begun."""
    target = target_at(board, address)
    if target is None or target.zoned.is_hidden:
        return False
    until = target.zoned.calendar.kept_until(target.slot)
    return until is None or now < until


def _is_ahead(board: Board, address: WindowAddress, now: Moment) -> bool:
    """Whether this is a rolling window of tomorrow, computed ahead from the same days."""
    target = target_at(board, address)
    if target is None or target.zoned.how != "fold" or target.slot.ends is None:
        return False
    current = target.zoned.calendar.at(now).ends
    return current is not None and target.slot.ends > current


def _has_table(board: Board, counted: SnapshotCount) -> bool:
    """Whether reads find such snapshots, by the board's windows and groups."""
    if board.definition.window(counted.period) is None:
        return False
    return not counted.dimensions or counted.dimensions in board.definition.groups


def _drops(board: Board, entries: Counter[str], snapshots: Counter[str]) -> tuple[Drop, ...]:
    """The drops in the order of the definition, followed by those of windows that it no longer has."""
    labels = dict.fromkeys(
        [*(window.label for window in board.definition.windows), *entries, *sorted(snapshots)]
    )
    return tuple(
        Drop(label, entries[label], snapshots[label])
        for label in labels
        if entries[label] or snapshots[label]
    )
