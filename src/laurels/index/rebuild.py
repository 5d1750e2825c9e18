"""An index made anew from its table, beside the one in use, while records go on changing.

One snapshot of the database has the table, and the changes that are not applied yet: these are folded into
the positions first, so that every record has its moment. What is committed after the snapshot waits in the
outbox for the next round. The windows are filled under names of their own, and take the place of the old ones
while readers go on; whoever is interrupted has changed nothing, or leaves an index without a cursor, which
the next one makes anew.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from laurels.boards.board import Board, WindowAddress
from laurels.boards.retention import PARTS
from laurels.errors import Unavailable
from laurels.index.outbox import LONG_SECONDS, Outbox, PositionChange
from laurels.index.positions import NOWHERE
from laurels.index.writes import CursorMove, Placer, changes_of, records_a_call
from laurels.valkey import functions, hashes, keyspace
from laurels.valkey.functions import FenceLapsed
from laurels.valkey.messages import Fence
from laurels.valkey.names import REBUILD

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from laurels.boards.board import Target
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.boards.retention import Retention
    from laurels.clock import Clock
    from laurels.index.declare import DeclaredIndex
    from laurels.index.positions import Position
    from laurels.valkey.client import Valkey, Value

# How long what is made beside may lie around when its maker was killed; in seconds.
ABANDONED_SECONDS: Final = 86_400
FENCE_MILLISECONDS: Final = 10_000
WINDOWS_A_SWITCH: Final = 50


@dataclass(eq=False)
class Rebuild:
    """One run."""

    index: DeclaredIndex[Any]
    ref: BoardRef
    engine: AsyncEngine
    valkey: Valkey
    catalog: Catalog
    retention: Retention
    clock: Clock

    async def run(self) -> int:
        """How many records have an entry."""
        self._token = secrets.token_hex(8)
        self._outbox = Outbox(self.index)
        self._made: dict[WindowAddress, Target] = {}
        self._steps = 0
        board = await self.catalog.in_force(self.ref)
        prefix = f"{REBUILD}{self._token}:"
        beside = Board(
            self.ref, board.definition, board.version, cluster=self.valkey.is_cluster, prefix=prefix
        )
        self._placer = Placer(self.valkey, beside, self.index)
        repeatable = self.engine.execution_options(isolation_level="REPEATABLE READ")
        async with self.engine.begin() as turn:
            await self._outbox.take_turn(turn, idle=LONG_SECONDS)
            try:
                async with repeatable.begin() as connection:
                    state = await self._outbox.state(connection)
                    entries = await self._fill(connection, turn)
                    await self._put_in_force(board)
                    await self._outbox.reached(connection, state.calls + 1, self.index.fingerprint)
                cursor: dict[str, Value] = {"cursor": state.calls + 1, "rows": b""}
                await self.valkey.run(hashes.put(board.keys.of_board(0, "index"), cursor))
            finally:
                await self._abandon()
        return entries

    async def _fill(self, connection: AsyncConnection, turn: AsyncConnection) -> int:
        now = self.clock()
        await self._outbox.fold_all(connection, now)
        names = [self._placer.board.keys.of_board(0, name) for name in ("board", "index", "journal")]
        await functions.adopt(self.valkey, names[:1], self._placer.board.version)
        entries = 0
        async for records in self._outbox.records(connection, now):
            positions = {each.key: self.index.rule.settled(each.position, each.row, now) for each in records}
            changed = {
                each.key: positions[each.key] for each in records if positions[each.key] != each.position
            }
            if changed:
                await self._outbox.place(connection, changed)
            entries += sum(1 for position in positions.values() if self.index.rule.windows(position, now))
            await self._write(positions)
            await turn.execute(text("SELECT 1"))  # still there
        for name in names:
            await self.valkey.run(keyspace.expire(name, ABANDONED_SECONDS))
        await self._outbox.forget_absent(connection)
        return entries

    async def _write(self, positions: dict[str, Position]) -> None:
        now = self.clock()
        of_text, size = self.index.members.of_text, records_a_call(self.index)
        moved = [(of_text(key), PositionChange(NOWHERE, position)) for key, position in positions.items()]
        for first in range(0, len(moved), size):
            changes = changes_of(self.index, moved[first : first + size], now)
            targets = self._placer.targets(changes, now)
            self._made |= {target.address: target for target in targets}
            step = CursorMove(str(self._steps or ""), str(self._steps + 1))
            self._steps += 1
            await self._placer.place(targets, now, step)
            await self._limit_life(targets)

    async def _limit_life(self, targets: dict[Target, dict[bytes, bytes]]) -> None:
        """Of windows that would stay for ever."""
        lasting = [target for target in targets if not target.seconds_to_live(self.clock())]
        await self.valkey.run_all(
            keyspace.expire(f"{self._key(target.address)}{part}", ABANDONED_SECONDS, if_persistent=True)
            for target in lasting
            for part in PARTS
        )

    def _key(self, address: WindowAddress) -> str:
        return self._placer.board.window_key(0, address)

    async def _put_in_force(self, board: Board) -> None:
        now = self.clock()
        await self.catalog.register(board, 0, self._made.values(), now)
        addresses = dict.fromkeys(self._made)
        async for address in self.retention.addresses(board, 0):
            addresses[address] = None
        names = board.keys.of_board(0, "board"), board.keys.of_board(0, "journal")
        await functions.fence(self.valkey, names, board.version, Fence(self._token, FENCE_MILLISECONDS))
        try:
            await self.valkey.run(keyspace.unlink(board.keys.of_board(0, "index")))
            listed = list(addresses)
            for first in range(0, len(listed), WINDOWS_A_SWITCH):
                await self._switch(board, listed[first : first + WINDOWS_A_SWITCH])
        except FenceLapsed:
            raise Unavailable(f"{self.ref}: Valkey was too slow to switch; it is made anew again") from None
        finally:
            with suppress(FenceLapsed):
                await functions.unfence(self.valkey, names[0], self._token)

    async def _switch(self, board: Board, addresses: list[WindowAddress]) -> None:
        now = self.clock()
        keys, seconds = [board.keys.of_board(0, "board")], list[int]()
        for address in addresses:
            target = self._made.get(address)
            for part in PARTS:
                keys += (f"{self._key(address)}{part}", f"{board.window_key(0, address)}{part}")
                seconds.append(target.seconds_to_live(now) if target else 0)
        await functions.switch(self.valkey, keys, (self._token, FENCE_MILLISECONDS), seconds)

    async def _abandon(self) -> None:
        """Takes away what was made and not put in force."""
        names = [self._placer.board.keys.of_board(0, name) for name in ("board", "index", "journal")]
        left = [keyspace.unlink(*names)]
        left += [
            keyspace.unlink(*(f"{self._key(address)}{part}" for part in PARTS)) for address in self._made
        ]
        await self.valkey.run_all(left)
