"""Builds an index from its table, beside the one in use, while records change.

A build reads the table in chunks, in the order of its keys. The windows are filled under temporary names and
then replace the old ones while readers go on. Changes wait in the outbox until then: rounds apply all of them
afterwards, also those that a chunk has read already. That is safe, because a change sets its record's entries
and clears those of every position that the record had.

What a chunk is about to write is stored with the progress, before it is written. A build that goes on
where another was killed clears that first, because the records may have changed meanwhile.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from laurels.boards.board import Board
from laurels.boards.retention import PARTS, target_at
from laurels.errors import Unavailable
from laurels.index.outbox import LONG_SECONDS, RECORDS_AT_ONCE, Build
from laurels.index.positions import NOWHERE, RecordMove
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

    from laurels.boards.board import Target, WindowAddress
    from laurels.index.apply import Applier
    from laurels.index.positions import Position
    from laurels.index.rows import Record, Want
    from laurels.valkey.client import Value

# When the temporary keys of a killed build expire.
ABANDONED_SECONDS: Final = 86_400
FENCE_MILLISECONDS: Final = 10_000
WINDOWS_A_SWITCH: Final = 50


class IndexRebuild:
    """One build of an index."""

    def __init__(
        self, applier: Applier, progress: Callable[[int], None] = lambda _: None, *, resume: bool = True
    ) -> None:
        """`progress` is called with the number of records that are done. `resume`: whether to go on where an
        interrupted build stopped.
        """
        self._applier = applier
        self._progress = progress
        self._resume = resume
        self._index = applier.index
        self._valkey = applier.valkey
        self._clock = applier.clock
        self._outbox = applier.outbox
        self._done: set[Want] = set()
        self._steps = 0

    async def run(self) -> int:
        """Returns how many records have an entry."""
        engine = self._applier.engine
        board = await self._applier.catalog.in_force(self._applier.ref)
        async with engine.begin() as turn:
            await self._outbox.take_turn(turn, idle=LONG_SECONDS)
            async with engine.begin() as connection:
                state = await self._outbox.state(connection)
                build = await self._begun(connection, board)
            entries = await self._fill(build, turn)
            try:
                async with engine.begin() as connection:
                    await self._applier.rows.forget_absent(connection)
                    await self._put_in_force(board)
                    await self._outbox.reached(connection, state.calls + 1, self._index.fingerprint)
                    await self._outbox.save_build(connection, None)
                cursor: dict[str, Value] = {"cursor": state.calls + 1, "rows": b""}
                await self._valkey.run(hashes.put(board.keys.of_board(0, "index"), cursor))
            finally:
                await self._clean_up()
        return entries

    async def _begun(self, connection: AsyncConnection, board: Board) -> Build:
        """The interrupted build, if Valkey still has all of it; else a new one."""
        fingerprint, found = self._index.fingerprint, await self._outbox.build(connection)
        if found:
            self._place_in(board, found)
            cursor = await self._valkey.run(hashes.get_many(self._names()[1], ("cursor",)))
            steps = 0 if cursor[0] is None else int(cursor[0])
            is_same = (found.built_as, found.version) == (fingerprint, board.version)
            if self._resume and is_same and steps >= found.steps > 0:
                self._steps = steps
                return found
            await self._clean_up()
        await self._outbox.fold_all(connection, self._clock())
        build = Build(secrets.token_hex(8), fingerprint, board.version, self._clock())
        await self._outbox.save_build(connection, build)
        self._place_in(board, build)
        await functions.adopt(self._valkey, self._names()[:1], board.version)
        return build

    def _place_in(self, board: Board, build: Build) -> None:
        beside = Board(
            board.ref,
            board.definition,
            board.version,
            cluster=self._valkey.is_cluster,
            prefix=f"{REBUILD}{build.token}:",
        )
        self._placer = IndexWriter(self._valkey, beside)

    async def _fill(self, build: Build, turn: AsyncConnection) -> int:
        while True:
            was_interrupted = bool(build.writing)
            positions, writes, last = await self._chunk(build)
            if not positions and not was_interrupted:
                return build.entries
            for each in writes:
                await self._place(each)
            now, rule = self._clock(), self._index.rule
            build.entries += sum(1 for position in positions.values() if rule.windows(position, now))
            build.records += len(positions)
            build.writing, build.after, build.steps = [], last, self._steps
            async with self._applier.engine.begin() as connection:
                await self._outbox.save_build(connection, build)
            await turn.execute(text("SELECT 1"))  # keeps the turn from being idle, and fails if it is lost
            self._progress(build.records)

    async def _chunk(self, build: Build) -> tuple[dict[str, Position], list[BoardWrites], list[str] | None]:
        """Reads the next records, in one snapshot, and stores what is about to be written: their positions,
        the writes, and the place of the last.
        """
        repeatable = self._applier.engine.execution_options(isolation_level="REPEATABLE READ")
        written: defaultdict[str, list[Position]] = defaultdict(list)
        for key, position in build.writing:
            written[key].append(position)
        async with repeatable.begin() as connection:
            records = await self._applier.rows.after(connection, build.after, build.begun, RECORDS_AT_ONCE)
            positions = await self._positions(connection, records)
            moves = {
                key: RecordMove(tuple(written[key]), positions.get(key, NOWHERE))
                for key in dict.fromkeys([*written, *positions])
            }
            writes = await self._writes(connection, list(moves.items()))
            build.writing += positions.items()
            await self._outbox.save_build(connection, build)
        return positions, writes, records[-1].place if records else build.after

    async def _positions(self, connection: AsyncConnection, records: list[Record]) -> dict[str, Position]:
        """The positions of these records after all changes that the snapshot shows."""
        now, rule = self._clock(), self._index.rule
        pending = await self._outbox.of_keys(connection, [each.key for each in records])
        moved = self._outbox.moved(pending, now)
        positions: dict[str, Position] = {}
        changed: dict[str, Position] = {}
        for each in records:
            known, row = each.position, each.row
            if each.key in moved:
                known = moved[each.key].after
                if row is not None and known and self._index.at is None:
                    row = row._replace(moment=known[-1].moment)
            positions[each.key] = rule.settled(known, row, now)
            if not self._index.is_stored(each.position, positions[each.key]):
                changed[each.key] = positions[each.key]
        if changed and not self._index.is_computed:
            await self._outbox.store(connection, changed)
        return positions

    async def _writes(
        self, connection: AsyncConnection, moves: list[tuple[str, RecordMove]]
    ) -> list[BoardWrites]:
        """One for each call."""
        now, size = self._clock(), records_a_call(self._index)
        chunks = [moves[first : first + size] for first in range(0, len(moves), size)]
        if self._index.member is None:
            return [changes_of(self._index, chunk, now) for chunk in chunks]
        writes: list[BoardWrites] = []
        for chunk in chunks:
            wants: dict[Want, Target] = {}
            for _, move in chunk:
                wants |= wants_of(self._index, move, now)
            # Records of one member come together, so its entries are remembered until the next member.
            wants = {want: target for want, target in wants.items() if want not in self._done}
            last = next((move.after[-1].member for _, move in reversed(chunk) if move.after), None)
            self._done = {want for want in (*self._done, *wants) if want.member == last}
            entries = await self._applier.rows.entries(connection, wants)
            writes.append(entry_changes(self._index, wants, entries))
        return writes

    async def _place(self, writes: BoardWrites) -> None:
        if not writes.targets:
            return
        now, beside = self._clock(), self._placer.board
        await self._applier.catalog.register(beside, 0, writes.targets.values(), now)
        step = CursorMove(str(self._steps or ""), str(self._steps + 1))
        self._steps += 1
        await self._placer.place(writes, now, step)
        await self._limit_life(writes.targets.values())

    async def _limit_life(self, targets: Iterable[Target]) -> None:
        """Lets temporary keys expire whose final ones never do."""
        lasting = [target for target in targets if not target.seconds_to_live(self._clock())]
        keys = [f"{self._key(target.address)}{part}" for target in lasting for part in PARTS]
        keys += [self._placer.board.keys.of_board(0, f"cuts:{target.address.token}") for target in lasting]
        await self._valkey.run_all(
            keyspace.expire(key, ABANDONED_SECONDS, if_persistent=True) for key in (*keys, *self._names())
        )

    def _key(self, address: WindowAddress) -> str:
        return self._placer.board.window_key(0, address)

    async def _put_in_force(self, board: Board) -> None:
        # From here on, the temporary windows are not whole any more.
        await self._valkey.run(keyspace.unlink(self._names()[1]))
        beside, retention = self._placer.board, self._applier.retention
        made = {
            address: target
            async for address in retention.addresses(beside, 0)
            if (target := target_at(board, address))
        }
        await self._applier.catalog.register(board, 0, made.values(), self._clock())
        addresses = dict.fromkeys(made)
        async for address in retention.addresses(board, 0):
            addresses[address] = None
        names = board.keys.of_board(0, "board"), board.keys.of_board(0, "journal")
        token = secrets.token_hex(8)
        await functions.fence(self._valkey, names, board.version, Fence(token, FENCE_MILLISECONDS))
        try:
            await self._valkey.run(keyspace.unlink(board.keys.of_board(0, "index")))
            listed = list(addresses)
            for first in range(0, len(listed), WINDOWS_A_SWITCH):
                await self._switch(board, token, made, listed[first : first + WINDOWS_A_SWITCH])
        except FenceLapsed:
            raise Unavailable(
                f"{board.ref}: Valkey was too slow to switch windows; rebuild it again"
            ) from None
        finally:
            with suppress(FenceLapsed):
                await functions.unfence(self._valkey, names[0], token)

    async def _switch(
        self, board: Board, token: str, made: dict[WindowAddress, Target], addresses: list[WindowAddress]
    ) -> None:
        now = self._clock()
        keys, seconds = [board.keys.of_board(0, "board")], list[int]()
        for address in addresses:
            target = made.get(address)
            for part in PARTS:
                keys += (f"{self._key(address)}{part}", f"{board.window_key(0, address)}{part}")
                seconds.append(target.seconds_to_live(now) if target else 0)
        await functions.switch(self._valkey, keys, (token, FENCE_MILLISECONDS), seconds)

    async def _clean_up(self) -> None:
        """Deletes the temporary keys that are left."""
        beside = self._placer.board
        left = [address async for address in self._applier.retention.addresses(beside, 0)]
        keys = [f"{self._key(address)}{part}" for address in left for part in PARTS]
        keys += {beside.keys.of_board(0, f"cuts:{address.token}") for address in left}
        await self._valkey.run_all(keyspace.unlink(key) for key in (*keys, *self._names()))

    def _names(self) -> list[str]:
        """The temporary keys of the whole board."""
        return [
            self._placer.board.keys.of_board(0, name) for name in ("board", "index", "journal", "windows")
        ]
