"""Rebuilds an index from its table, beside the one in use, while records change.

The rebuild reads the table and the outbox in one snapshot of the database. It first folds the changes that
are not applied yet into the positions, so that every record has its moment. Later commits wait in the outbox
for the next round. The windows are filled under temporary names and then replace the old ones while readers
go on. An interrupted rebuild changes nothing, or leaves an index without a cursor, which is rebuilt again.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from laurels.boards.board import Board, WindowAddress
from laurels.boards.retention import PARTS
from laurels.errors import Unavailable
from laurels.index.outbox import LONG_SECONDS
from laurels.index.positions import RecordMove
from laurels.index.writes import (
    BoardWrites,
    CursorMove,
    IndexWriter,
    changes_of,
    entry_changes,
    records_a_call,
    wants_of,
)
from laurels.valkey import functions, hashes, keyspace
from laurels.valkey.functions import FenceLapsed
from laurels.valkey.messages import Fence
from laurels.valkey.names import REBUILD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.boards.board import Target
    from laurels.index.apply import Applier
    from laurels.index.positions import Position
    from laurels.index.rows import Want
    from laurels.moments import Moment
    from laurels.valkey.client import Value

# When the temporary windows of a killed rebuild expire.
ABANDONED_SECONDS: Final = 86_400
FENCE_MILLISECONDS: Final = 10_000
WINDOWS_A_SWITCH: Final = 50


class IndexRebuild:
    """One rebuild of an index."""

    def __init__(self, applier: Applier, progress: Callable[[int], None] = lambda _: None) -> None:
        """`progress` is called with the number of records that are done."""
        self._applier = applier
        self._progress = progress
        self._index = applier.index
        self._valkey = applier.valkey
        self._clock = applier.clock
        self._outbox = applier.outbox
        self._token = secrets.token_hex(8)
        self._made: dict[WindowAddress, Target] = {}
        self._done: set[Want] = set()
        self._steps = 0

    async def run(self) -> int:
        """Returns how many records have an entry."""
        engine = self._applier.engine
        board = await self._applier.catalog.in_force(self._applier.ref)
        prefix = f"{REBUILD}{self._token}:"
        beside = Board(
            board.ref, board.definition, board.version, cluster=self._valkey.is_cluster, prefix=prefix
        )
        self._placer = IndexWriter(self._valkey, beside)
        repeatable = engine.execution_options(isolation_level="REPEATABLE READ")
        async with engine.begin() as turn:
            await self._outbox.take_turn(turn, idle=LONG_SECONDS)
            try:
                async with repeatable.begin() as connection:
                    state = await self._outbox.state(connection)
                    entries = await self._fill(connection, turn)
                    await self._put_in_force(board)
                    await self._outbox.reached(connection, state.calls + 1, self._index.fingerprint)
                cursor: dict[str, Value] = {"cursor": state.calls + 1, "rows": b""}
                await self._valkey.run(hashes.put(board.keys.of_board(0, "index"), cursor))
            finally:
                await self._abandon()
        return entries

    async def _fill(self, connection: AsyncConnection, turn: AsyncConnection) -> int:
        now, rule = self._clock(), self._index.rule
        await self._outbox.fold_all(connection, now)
        names = self._temporary_names()
        await functions.adopt(self._valkey, names[:1], self._placer.board.version)
        entries = 0
        async for records in self._applier.rows.all(connection, now):
            positions = {each.key: rule.settled(each.position, each.row, now) for each in records}
            if not self._index.is_computed:
                changed = {
                    each.key: positions[each.key]
                    for each in records
                    if not self._index.is_stored(each.position, positions[each.key])
                }
                if changed:
                    await self._outbox.store(connection, changed)
            entries += sum(1 for position in positions.values() if rule.windows(position, now))
            await self._write(connection, positions)
            await turn.execute(text("SELECT 1"))  # keeps the turn from being idle, and fails if it is lost
            self._progress(entries)
        for name in names:
            await self._valkey.run(keyspace.expire(name, ABANDONED_SECONDS))
        await self._applier.rows.forget_absent(connection)
        return entries

    async def _write(self, connection: AsyncConnection, positions: dict[str, Position]) -> None:
        now, size = self._clock(), records_a_call(self._index)
        moved = [(key, RecordMove((), position)) for key, position in positions.items()]
        for first in range(0, len(moved), size):
            chunk = moved[first : first + size]
            if self._index.member is None:
                await self._place(changes_of(self._index, chunk, now), now)
            else:
                await self._place(await self._of_members(connection, chunk, now), now)

    async def _of_members(
        self, connection: AsyncConnection, chunk: list[tuple[str, RecordMove]], now: Moment
    ) -> BoardWrites:
        """The entries of the members of these records. Those of one member come together, so its entries are
        remembered until the next member.
        """
        wants: dict[Want, Target] = {}
        for _, move in chunk:
            wants |= wants_of(self._index, move, now)
        wants = {want: target for want, target in wants.items() if want not in self._done}
        last = next((move.after[-1].member for _, move in reversed(chunk) if move.after), None)
        self._done = {want for want in (*self._done, *wants) if want.member == last}
        return entry_changes(self._index, wants, await self._applier.rows.entries(connection, wants))

    async def _place(self, changes: BoardWrites, now: Moment) -> None:
        if not changes.targets:
            return
        self._made |= changes.targets
        step = CursorMove(str(self._steps or ""), str(self._steps + 1))
        self._steps += 1
        await self._placer.place(changes, now, step)
        await self._limit_life(changes.targets.values())

    async def _limit_life(self, targets: Iterable[Target]) -> None:
        """Lets temporary windows expire whose final ones never do."""
        lasting = [target for target in targets if not target.seconds_to_live(self._clock())]
        await self._valkey.run_all(
            keyspace.expire(f"{self._key(target.address)}{part}", ABANDONED_SECONDS, if_persistent=True)
            for target in lasting
            for part in PARTS
        )

    def _key(self, address: WindowAddress) -> str:
        return self._placer.board.window_key(0, address)

    async def _put_in_force(self, board: Board) -> None:
        await self._applier.catalog.register(board, 0, self._made.values(), self._clock())
        addresses = dict.fromkeys(self._made)
        async for address in self._applier.retention.addresses(board, 0):
            addresses[address] = None
        names = board.keys.of_board(0, "board"), board.keys.of_board(0, "journal")
        await functions.fence(self._valkey, names, board.version, Fence(self._token, FENCE_MILLISECONDS))
        try:
            await self._valkey.run(keyspace.unlink(board.keys.of_board(0, "index")))
            listed = list(addresses)
            for first in range(0, len(listed), WINDOWS_A_SWITCH):
                await self._switch(board, listed[first : first + WINDOWS_A_SWITCH])
        except FenceLapsed:
            raise Unavailable(
                f"{board.ref}: Valkey was too slow to switch windows; rebuild it again"
            ) from None
        finally:
            with suppress(FenceLapsed):
                await functions.unfence(self._valkey, names[0], self._token)

    async def _switch(self, board: Board, addresses: list[WindowAddress]) -> None:
        now = self._clock()
        keys, seconds = [board.keys.of_board(0, "board")], list[int]()
        for address in addresses:
            target = self._made.get(address)
            for part in PARTS:
                keys += (f"{self._key(address)}{part}", f"{board.window_key(0, address)}{part}")
                seconds.append(target.seconds_to_live(now) if target else 0)
        await functions.switch(self._valkey, keys, (self._token, FENCE_MILLISECONDS), seconds)

    async def _abandon(self) -> None:
        """Deletes the temporary keys that are left."""
        left = [keyspace.unlink(*self._temporary_names())]
        left += [
            keyspace.unlink(*(f"{self._key(address)}{part}" for part in PARTS)) for address in self._made
        ]
        await self._valkey.run_all(left)

    def _temporary_names(self) -> list[str]:
        return [self._placer.board.keys.of_board(0, name) for name in ("board", "index", "journal")]
