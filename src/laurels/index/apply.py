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
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from laurels.index.outbox import IndexState, Outbox
from laurels.index.rebuild import IndexRebuild
from laurels.index.rows import RecordRows
from laurels.index.writes import (
    BoardWrites,
    CursorMove,
    IndexWriter,
    changes_of,
    entry_changes,
    records_a_call,
    wants_of,
)
from laurels.logs import get_logger
from laurels.valkey import hashes
from laurels.valkey.functions import CursorMoved, DefinitionChanged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from laurels.boards.board import Board, Target
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.boards.retention import Retention
    from laurels.clock import Clock
    from laurels.index.declare import DeclaredIndex
    from laurels.index.outbox import CapturedChange
    from laurels.index.positions import RecordMove
    from laurels.index.rows import Want
    from laurels.valkey.client import Valkey

# BoardWrites that a round takes. More of them mean fewer scans over rows that are deleted already.
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

    @cached_property
    def outbox(self) -> Outbox:
        return Outbox(self.index)

    @cached_property
    def rows(self) -> RecordRows:
        return RecordRows(self.index)

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

    async def is_built(self, connection: AsyncConnection) -> bool:
        """Whether the index was built as it is declared, and Valkey still has it."""
        state = await self.outbox.state(connection)
        return state.built_as == self.index.fingerprint and await self._cursor() is not None

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
            is_whole = state.built_as == self.index.fingerprint and not state.is_building
            if not is_whole or any(row.op == "clear" for row in rows):
                raise CursorMoved
            if rows:
                moved = self.outbox.moved(rows, self.clock())
                calls = await self._apply(connection, state, rows, moved)
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
        await self.build()

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

    async def build(self, progress: Callable[[int], None] = lambda _: None, *, resume: bool = True) -> int:
        """Builds the index from the table, while records change; returns how many records have an entry.
        `resume`: whether to go on where an interrupted build stopped.
        """
        while True:
            try:
                return await IndexRebuild(self, progress, resume=resume).run()
            except DefinitionChanged as changed:
                await self.catalog.refresh(self.ref, changed.known)

    def _is_in_step(self, state: IndexState, cursor: IndexCursor | None) -> bool:
        is_whole = state.built_as == self.index.fingerprint and not state.is_building
        return cursor is not None and cursor.calls == state.calls and is_whole

    async def _cursor(self) -> IndexCursor | None:
        board = await self.catalog.board(self.ref)
        return await read_cursor(self.valkey, board)

    async def _apply(
        self,
        connection: AsyncConnection,
        state: IndexState,
        rows: list[CapturedChange],
        moved: dict[str, RecordMove],
    ) -> int:
        """Applies changes in as many calls as they need; returns the total number of calls ever."""
        seqs: defaultdict[str, list[int]] = defaultdict(list)
        for row in rows:
            seqs[row.key].append(row.seq)
        changes = (
            self._each_record if self.index.member is None else await self._each_member(connection, moved)
        )
        keys, size = list(moved), records_a_call(self.index)
        calls, applied = state.calls, AppliedRows(state.calls, [])
        for first in range(0, len(keys), size):
            chunk = keys[first : first + size]
            applied.rows += [seq for key in chunk for seq in seqs[key]]
            step = CursorMove(str(calls), str(calls + 1), msgspec.msgpack.encode(applied))
            await self._call(changes([(key, moved[key]) for key in chunk]), step)
            calls += 1
        return calls

    def _each_record(self, moved: list[tuple[str, RecordMove]]) -> BoardWrites:
        return changes_of(self.index, moved, self.clock())

    async def _each_member(
        self, connection: AsyncConnection, moved: dict[str, RecordMove]
    ) -> Callable[[list[tuple[str, RecordMove]]], BoardWrites]:
        """The entries of all members whose records moved, by their present rows. Each is written once."""
        now = self.clock()
        if not self.index.is_computed:
            await self.outbox.store(connection, {key: move.after for key, move in moved.items()})
        of_records = {key: wants_of(self.index, move, now) for key, move in moved.items()}
        left: dict[Want, Target] = {}
        for wants in of_records.values():
            left |= wants
        entries = await self.rows.entries(connection, left)

        def changes(chunk: list[tuple[str, RecordMove]]) -> BoardWrites:
            wants = {
                want: target
                for key, _ in chunk
                for want, target in of_records[key].items()
                if left.pop(want, None) is not None
            }
            return entry_changes(self.index, wants, entries)

        return changes

    async def _call(self, changes: BoardWrites, step: CursorMove) -> None:
        now, board = self.clock(), await self.catalog.board(self.ref)
        while True:
            try:
                await self.catalog.register(board, 0, changes.targets.values(), now)
                return await IndexWriter(self.valkey, board).place(changes, now, step)
            except DefinitionChanged as changed:
                board = await self.catalog.refresh(self.ref, changed.known)

    async def _consume(
        self,
        connection: AsyncConnection,
        number: int,
        rows: list[CapturedChange],
        moved: dict[str, RecordMove],
    ) -> None:
        await self.outbox.consume(connection, rows, moved, IndexState(number, self.index.fingerprint))


_applied = msgspec.msgpack.Decoder(AppliedRows)


async def read_cursor(valkey: Valkey, board: Board) -> IndexCursor | None:
    """How far Valkey has applied an index; None when it has no cursor."""
    calls, rows = await valkey.run(hashes.get_many(board.keys.of_board(0, "index"), ("cursor", "rows")))
    if calls is None:
        return None
    return IndexCursor(int(calls), _applied.decode(rows) if rows else AppliedRows(int(calls), []))
