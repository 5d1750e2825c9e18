"""The outbox into Valkey, a round at a time: what was committed, where it puts its records, a few calls.

A round is a transaction of the database that holds the records. It takes the index's turn, reads what is
visible, calls Valkey, and takes out of the outbox what it applied. Who waits for it goes on as soon as Valkey
has it all; the outbox is seen to behind its back, before the turn ends.

The cursor in Valkey counts calls and moves with their effects; the database's own count is written in the
same transaction as what they consumed. So at any moment the two are equal, or the cursor is ahead and names
the rows that were applied since: whoever comes next consumes them. Any other difference means that one of the
stores lost something, and the index is made anew.
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
from laurels.index.rebuild import Rebuild
from laurels.index.writes import CursorMove, Placer, changes_of, records_a_call
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
    from laurels.index.outbox import Captured, PositionChange
    from laurels.moments import Moment
    from laurels.valkey.client import Valkey

# Changes that a transaction takes: the more, the fewer of those that are done are passed over again.
ROWS_A_ROUND: Final = 2000

log = get_logger("laurels.index")


class Applied(msgspec.Struct, array_like=True):
    """The changes of a round that Valkey has."""

    since: int
    """The cursor before it."""
    rows: list[int]


class IndexCursor(NamedTuple):
    """How far the index is, as Valkey knows it."""

    calls: int
    applied: Applied


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
        """Applies everything that was committed before the call; how many changes, later ones too."""
        applied = 0
        while rows := await self.apply():
            applied += len(rows)
            if len(rows) < ROWS_A_ROUND:
                break
        return applied

    async def apply(self) -> list[Captured]:
        """One round: the changes that it applied, oldest first; none when nothing is left."""
        while True:
            try:
                return await self._round()
            except CursorMoved:
                await self._mend()

    async def settled(self) -> None:
        """Returns when the outbox does not have any more what rounds of this process applied."""
        if self._consuming:
            await asyncio.wait(self._consuming)

    async def _round(self) -> list[Captured]:
        """Raises `CursorMoved` when the index is not where its database says."""
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
        """Ends a round. Should it fail, the next one finds out, and mends it."""
        try:
            async with turn:
                await consume()
        except Exception as error:  # whatever it is, nobody waits for it
            log.warning("applied, but not consumed", index=self.index.name, error=str(error), exc_info=error)

    async def _mend(self) -> None:
        """Consumes what an interrupted round applied, or else makes the index anew."""
        async with self.engine.begin() as connection:
            await self.outbox.take_turn(connection)
            state, rows = await self.outbox.pending(connection, ROWS_A_ROUND)
            cursor = await self._cursor()
            is_cleared = any(row.op == "clear" for row in rows)
            if self._is_in_step(state, cursor) and not is_cleared:
                return  # by somebody else, meanwhile
            if cursor is not None and await self._finish(connection, state, cursor):
                return
        await self.rebuild()

    async def _finish(self, connection: AsyncConnection, state: IndexState, cursor: IndexCursor) -> bool:
        """Consumes what a round applied before it was interrupted; whether there was such a round."""
        since, seqs = cursor.applied.since, cursor.applied.rows
        if not since == state.calls < cursor.calls or state.built_as != self.index.fingerprint:
            return False
        rows = await self.outbox.numbered(connection, seqs)
        if len(rows) != len(seqs):
            return False
        await self._consume(connection, cursor.calls, rows, self.outbox.moved(rows, self.clock()))
        return True

    async def rebuild(self) -> int:
        """Makes the index anew from the table, while others write; how many entries it has then."""
        while True:
            try:
                return await Rebuild(
                    self.index, self.ref, self.engine, self.valkey, self.catalog, self.retention, self.clock
                ).run()
            except DefinitionChanged as changed:
                await self.catalog.refresh(self.ref, changed.known)

    def _is_in_step(self, state: IndexState, cursor: IndexCursor | None) -> bool:
        return cursor is not None and cursor.calls == state.calls and state.built_as == self.index.fingerprint

    async def _cursor(self) -> IndexCursor | None:
        board = await self.catalog.board(self.ref)
        return await read_cursor(self.valkey, board)

    async def _apply(self, state: IndexState, rows: list[Captured], moved: dict[str, PositionChange]) -> int:
        """How many calls were applied then, in all."""
        now = self.clock()
        seqs: defaultdict[str, list[int]] = defaultdict(list)
        for row in rows:
            seqs[row.key].append(row.seq)
        keys, size = list(moved), records_a_call(self.index)
        calls, applied = state.calls, Applied(state.calls, [])
        for first in range(0, len(keys), size):
            some = keys[first : first + size]
            applied.rows += [seq for key in some for seq in seqs[key]]
            step = CursorMove(str(calls), str(calls + 1), msgspec.msgpack.encode(applied))
            await self._call({key: moved[key] for key in some}, now, step)
            calls += 1
        return calls

    async def _call(self, moved: dict[str, PositionChange], now: Moment, step: CursorMove) -> None:
        of_text = self.index.members.of_text
        changes = changes_of(self.index, ((of_text(key), each) for key, each in moved.items()), now)
        board = await self.catalog.board(self.ref)
        while True:
            placer = Placer(self.valkey, board, self.index)
            targets = placer.targets(changes, now)
            try:
                await self.catalog.register(board, 0, targets, now)
                return await placer.place(targets, now, step)
            except DefinitionChanged as changed:
                board = await self.catalog.refresh(self.ref, changed.known)

    async def _consume(
        self, connection: AsyncConnection, number: int, rows: list[Captured], moved: dict[str, PositionChange]
    ) -> None:
        await self.outbox.consume(connection, rows, moved, IndexState(number, self.index.fingerprint))


_applied = msgspec.msgpack.Decoder(Applied)


async def read_cursor(valkey: Valkey, board: Board) -> IndexCursor | None:
    """None: Valkey knows nothing of the index."""
    calls, rows = await valkey.run(hashes.get_many(board.keys.of_board(0, "index"), ("cursor", "rows")))
    if calls is None:
        return None
    return IndexCursor(int(calls), _applied.decode(rows) if rows else Applied(int(calls), []))
