"""Applies the outbox to Valkey, one round at a time.

A round is a transaction of the database that holds the records. It takes the index's turn, reads the visible
changes, calls Valkey, and deletes the applied changes from the outbox. Callers continue as soon as Valkey has
all changes; the outbox is cleaned up in the background, before the turn ends.

The cursor in Valkey counts calls and moves with their effects. The database has a count of its own, written
in the transaction that deletes the changes. So either the two are equal, or the cursor is ahead and names the
rows that were applied since, and the next round deletes them. Any other difference means that one of the
stores has lost data, and the index is rebuilt.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from laurels.index.outbox import IndexState, Outbox
from laurels.index.rebuild import IndexRebuild
from laurels.index.writes import CursorMove, IndexWriter, changes_of, records_a_call
from laurels.logs import get_logger
from laurels.valkey import hashes
from laurels.valkey.functions import CursorMoved, DefinitionChanged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from laurels.boards.board import Board
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.boards.retention import Retention
    from laurels.clock import Clock
    from laurels.index.declare import DeclaredIndex
    from laurels.index.outbox import CapturedChange, PositionChange
    from laurels.moments import Moment
    from laurels.valkey.client import Valkey

# Changes that a round takes. More of them mean fewer scans over rows that are deleted already.
ROWS_A_ROUND: Final = 2000

log = get_logger("laurels.index")


class AppliedRows(msgspec.Struct, array_like=True):
    """The changes of a round that Valkey has applied."""

    since: int
    """The cursor before it."""
    rows: list[int]


class IndexCursor(NamedTuple):
    """How far Valkey has applied the index."""

    calls: int
    applied: AppliedRows


@dataclass(frozen=True, eq=False)
class Applier:
    """Keeps one index in step with its table."""

    index: DeclaredIndex[Any]
    ref: BoardRef
    engine: AsyncEngine
    valkey: Valkey
    catalog: Catalog
    retention: Retention
    clock: Clock
    _consuming: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]], init=False)

    @property
    def outbox(self) -> Outbox:
        return Outbox(self.index)

    async def catch_up(self) -> int:
        """Applies everything that was committed before the call, at least; returns the number of changes."""
        applied = 0
        while rows := await self.apply():
            applied += len(rows)
            if len(rows) < ROWS_A_ROUND:
                break
        return applied

    async def apply(self) -> list[CapturedChange]:
        """Runs one round; returns the changes that it applied, oldest first."""
        while True:
            try:
                return await self._round()
            except CursorMoved:
                await self._mend()

    async def settled(self) -> None:
        """Waits until the outbox no longer has the changes that this process has applied."""
        if self._consuming:
            await asyncio.wait(self._consuming)

    async def _round(self) -> list[CapturedChange]:
        """Raises `CursorMoved` when Valkey and the database disagree about how far the index is."""
        await self.settled()
        async with AsyncExitStack() as turn:
            connection = await turn.enter_async_context(self.engine.begin())
            state, rows = await self.outbox.begin_round(connection, ROWS_A_ROUND)
            if state.built_as != self.index.fingerprint or any(row.op == "clear" for row in rows):
                raise CursorMoved
            if rows:
                moved = self.outbox.moved(rows, self.clock())
                calls = await self._apply(state, rows, moved)
                consume = partial(self._consume, connection, calls, rows, moved)
                task = asyncio.create_task(self._leave(turn.pop_all(), consume))
                self._consuming.add(task)
                task.add_done_callback(self._consuming.discard)
            elif not self._is_in_step(state, await self._cursor()):
                raise CursorMoved
            return rows

    async def _leave(self, turn: AsyncExitStack, consume: Callable[[], Awaitable[None]]) -> None:
        """Ends a round. After a failure, the next round consumes its changes."""
        try:
            async with turn:
                await consume()
        except Exception as error:  # no caller waits for this task
            log.warning(
                "changes applied but still in the outbox; the next round deletes them",
                index=self.index.name,
                exc_info=error,
            )

    async def _mend(self) -> None:
        """Consumes what an interrupted round applied, or else rebuilds the index."""
        async with self.engine.begin() as connection:
            await self.outbox.take_turn(connection)
            state, rows = await self.outbox.pending(connection, ROWS_A_ROUND)
            cursor = await self._cursor()
            is_cleared = any(row.op == "clear" for row in rows)
            if self._is_in_step(state, cursor) and not is_cleared:
                return  # another process has mended it meanwhile
            if cursor is not None and await self._finish(connection, state, cursor):
                return
        await self.rebuild()

    async def _finish(self, connection: AsyncConnection, state: IndexState, cursor: IndexCursor) -> bool:
        """Consumes what an interrupted round applied; returns whether there was such a round."""
        since, seqs = cursor.applied.since, cursor.applied.rows
        if not since == state.calls < cursor.calls or state.built_as != self.index.fingerprint:
            return False
        rows = await self.outbox.numbered(connection, seqs)
        if len(rows) != len(seqs):
            return False
        await self._consume(connection, cursor.calls, rows, self.outbox.moved(rows, self.clock()))
        return True

    async def rebuild(self) -> int:
        """Rebuilds the index from the table, while records change; returns the number of its entries."""
        while True:
            try:
                return await IndexRebuild(self).run()
            except DefinitionChanged as changed:
                await self.catalog.refresh(self.ref, changed.known)

    def _is_in_step(self, state: IndexState, cursor: IndexCursor | None) -> bool:
        return cursor is not None and cursor.calls == state.calls and state.built_as == self.index.fingerprint

    async def _cursor(self) -> IndexCursor | None:
        board = await self.catalog.board(self.ref)
        return await read_cursor(self.valkey, board)

    async def _apply(
        self, state: IndexState, rows: list[CapturedChange], moved: dict[str, PositionChange]
    ) -> int:
        """Applies changes in as many calls as they need; returns the total number of calls ever."""
        now = self.clock()
        seqs: defaultdict[str, list[int]] = defaultdict(list)
        for row in rows:
            seqs[row.key].append(row.seq)
        keys, size = list(moved), records_a_call(self.index)
        calls, applied = state.calls, AppliedRows(state.calls, [])
        for first in range(0, len(keys), size):
            chunk = keys[first : first + size]
            applied.rows += [seq for key in chunk for seq in seqs[key]]
            step = CursorMove(str(calls), str(calls + 1), msgspec.msgpack.encode(applied))
            await self._call({key: moved[key] for key in chunk}, now, step)
            calls += 1
        return calls

    async def _call(self, moved: dict[str, PositionChange], now: Moment, step: CursorMove) -> None:
        of_text = self.index.members.of_text
        changes = changes_of(self.index, ((of_text(key), each) for key, each in moved.items()), now)
        board = await self.catalog.board(self.ref)
        while True:
            writer = IndexWriter(self.valkey, board, self.index)
            targets = writer.targets(changes, now)
            try:
                await self.catalog.register(board, 0, targets, now)
                return await writer.place(targets, now, step)
            except DefinitionChanged as changed:
                board = await self.catalog.refresh(self.ref, changed.known)

    async def _consume(
        self,
        connection: AsyncConnection,
        number: int,
        rows: list[CapturedChange],
        moved: dict[str, PositionChange],
    ) -> None:
        await self.outbox.consume(connection, rows, moved, IndexState(number, self.index.fingerprint))


_applied = msgspec.msgpack.Decoder(AppliedRows)


async def read_cursor(valkey: Valkey, board: Board) -> IndexCursor | None:
    """How far Valkey has applied an index; None when it has no cursor."""
    calls, rows = await valkey.run(hashes.get_many(board.keys.of_board(0, "index"), ("cursor", "rows")))
    if calls is None:
        return None
    return IndexCursor(int(calls), _applied.decode(rows) if rows else AppliedRows(int(calls), []))
