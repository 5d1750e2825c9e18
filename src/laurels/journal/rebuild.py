"""Rebuilds a board from its journal while submissions go on.

A replay writes a shadow board under keys of its own: first the rows in PostgreSQL, then the newer entries in
Valkey's stream. When none is left, a fence keeps writers off for an instant: the last entries are applied,
and every window is renamed into place. Reads go on throughout; writes wait. An interrupted rebuild changes
nothing, and its keys expire.
"""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from laurels.boards.retention import PARTS
from laurels.errors import Conflict, LaurelsError, NotFound, Unavailable
from laurels.journal.compare import Comparer, Comparison
from laurels.journal.entry import START, JournalRow, StreamId, UnreadableEntry, read_entry
from laurels.journal.replay import Replay
from laurels.journal.shadow_board import ShadowBoard
from laurels.journal.store.totals import RowTotals, RowTotalsStore
from laurels.logs import get_logger
from laurels.moments import datetime_of
from laurels.valkey import functions, hashes, sorted_sets, streams, strings
from laurels.valkey.functions import DefinitionChanged, FenceLapsed
from laurels.valkey.messages import Fence
from laurels.valkey.names import REBUILD

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from laurels.boards.board import Board, WindowAddress
    from laurels.boards.catalog import Catalog
    from laurels.boards.definition import StoredBoard
    from laurels.boards.keys import BoardRef
    from laurels.boards.retention import Retention
    from laurels.boards.store import BoardStore
    from laurels.clock import Clock
    from laurels.journal.drain import Drain
    from laurels.moments import Moment
    from laurels.postgres.engine import Postgres
    from laurels.valkey.client import Valkey

    Progress = Callable[[int, int], None]

log = get_logger("laurels.history")

# Compare only; replace the live board; or replace it even if that loses entries.
_Aim = Literal["verify", "rebuild", "force"]

ROWS_AT_ONCE: Final = 5000
ENTRIES_AT_ONCE: Final = 200
# How long a fence keeps writers off if the rebuild dies, in milliseconds.
FENCE_MILLISECONDS: Final = 10_000
# Windows renamed in one call: each has up to five keys, and a rename takes some 3 µs.
WINDOWS_A_SWITCH: Final = 50
ATTEMPTS: Final = 5
# Attempts to reach the end of the journal before writers have to wait.
CHASES: Final = 5
# After every row of an entry.
LAST_INDEX: Final = 2**31 - 1


class RebuildReport(msgspec.Struct, frozen=True):
    """The result of a rebuild or a comparison."""

    board: str
    rows: int
    """Journal rows that were applied."""
    windows: int
    entries: int
    begins: datetime | None
    """The time of the first row. Earlier submissions are not in the journal."""
    watermark: datetime | None
    """The time at which the last row was recorded."""
    doubled: int = 0
    """Rows under an id that an earlier row had, after Valkey had lost its memory; they count once."""
    differences: list[str] = []
    """The first differences of the live board, in words."""
    different: int = 0


@dataclass
class _Shard:
    number: int
    replay: Replay
    position: tuple[StreamId, int, int] | None = None
    archived: tuple[StreamId, int, int] | None = None
    """The last row that came from PostgreSQL."""
    tally: RowTotals = field(default_factory=RowTotals)
    """Of the rows up to `archived`."""
    begins: Moment | None = None
    last: StreamId | None = None


@dataclass(frozen=True)
class Rebuilder:
    """Rebuilds boards from their journals, and compares them with their journals."""

    valkey: Valkey
    postgres: Postgres
    catalog: Catalog
    boards: BoardStore
    retention: Retention
    drain: Drain
    clock: Clock

    async def rebuild(
        self, ref: BoardRef, progress: Progress | None = None, *, force: bool = False
    ) -> RebuildReport:
        """Replaces the board by what its journal says.

        Raises `Conflict` when the board has no journal, or holds entries that are not in the journal; `force`
        gives these entries up.
        """
        return await self._run(ref, progress, "force" if force else "rebuild")

    async def verify(self, ref: BoardRef, progress: Progress | None = None) -> RebuildReport:
        """Reports where the board differs from its journal; changes nothing."""
        return await self._run(ref, progress, "verify")

    async def _run(self, ref: BoardRef, progress: Progress | None, aim: _Aim) -> RebuildReport:
        stored = await self.boards.get(ref.project, ref.board)
        if stored is None:
            raise NotFound(f"there is no board {ref}")
        if not stored.definition.archive.journal:
            raise Conflict(
                f"{ref} keeps no journal (archive.journal is false), so it cannot be rebuilt or verified"
            )
        await self.drain.finish(ref)
        board = await self.catalog.in_force(ref)
        if aim != "verify" and await self.retention.adopted(board):
            raise Conflict(
                f"{ref} took over sorted sets of another program; their entries are not in its journal"
            )
        work = _RebuildRun(self, board, stored, progress, aim)
        try:
            return await work.run()
        except DefinitionChanged as changed:
            await self.catalog.refresh(ref, changed.known)
            raise Conflict(f"the definition of {ref} changed during the run; run it again") from changed


class _RebuildRun:
    """One run of a rebuild or a comparison."""

    def __init__(
        self,
        tools: Rebuilder,
        board: Board,
        stored: StoredBoard,
        progress: Progress | None,
        aim: _Aim,
    ) -> None:
        self._tools = tools
        self._valkey = tools.valkey
        self._board = board
        self._board_id = stored.id
        self._progress = progress
        self._puts_in_force = aim != "verify"
        self._gives_up = aim == "force"
        self._token = secrets.token_hex(8)
        self._store = RowTotalsStore(tools.postgres)
        self._now = tools.clock()
        self._made = ShadowBoard(
            board, cluster=tools.valkey.is_cluster, prefix=f"{REBUILD}{self._token}:", now=self._now
        )
        self._done, self._of = 0, 0
        self._entries = 0
        self._windows: set[WindowAddress] = set()
        self._comparison = Comparison()

    async def run(self) -> RebuildReport:
        self._of = await self._store.count(self._board_id)
        shards: list[_Shard] = []
        for number in range(self._board.keys.shards):
            replay = Replay(self._valkey, self._board, self._made, number, remembers=self._puts_in_force)
            shard = _Shard(number, replay)
            shards.append(shard)
            try:
                await replay.begin()
                await self._catch_up(shard)
                await replay.finish()
                await self._check_rows(shard)
                await (self._put_in_force(shard) if self._puts_in_force else self._compare(shard))
            finally:
                await replay.abandon()
        return self._result(shards)

    def _result(self, shards: list[_Shard]) -> RebuildReport:
        begins = min((each.begins for each in shards if each.begins is not None), default=None)
        last = max((each.last for each in shards if each.last is not None), default=None)
        return RebuildReport(
            board=str(self._board.ref),
            rows=self._done,
            windows=len(self._windows),
            entries=self._entries,
            begins=None if begins is None else datetime_of(begins),
            watermark=None if last is None else last.recorded_at,
            doubled=sum(each.replay.doubled for each in shards),
            differences=self._comparison.described,
            different=self._comparison.different,
        )

    async def _catch_up(self, shard: _Shard, *, fenced: bool = False) -> None:
        """Applies the journal after the shard's position: behind a fence all of it, else until little is left
        or `CHASES` attempts were made.

        The stream is read before PostgreSQL: entries that are archived and trimmed in between are rows by
        then.
        """
        chases = 0
        while fenced or chases < CHASES:
            if fenced and chases:
                await self._fence(shard)
            tail = await self._tail(shard)
            rows = await self._tools.drain.store.rows(
                self._board_id, shard=shard.number, after=shard.position, limit=ROWS_AT_ONCE
            )
            if rows:
                for row in rows:
                    shard.tally.add(row)
                await self._apply(shard, rows)
                shard.position = shard.archived = _place_of(rows[-1])
                chases += len(rows) < ROWS_AT_ONCE
                continue
            for stream_id, of_entry in tail:
                await self._apply(shard, of_entry)
                shard.position = stream_id, shard.number, LAST_INDEX
            await shard.replay.flush()
            if len(tail) < ENTRIES_AT_ONCE:
                return
            chases += 1

    async def _apply(self, shard: _Shard, rows: list[JournalRow]) -> None:
        if not rows:
            return
        if shard.begins is None:
            shard.begins = rows[0].now
        await shard.replay.apply(rows)
        shard.last = rows[-1].stream_id
        self._done += len(rows)
        if self._progress:
            self._progress(self._done, max(self._of, self._done))

    async def _tail(self, shard: _Shard) -> list[tuple[StreamId, list[JournalRow]]]:
        key = self._board.keys.of_board(shard.number, "journal")
        after = f"({shard.position[0]}" if shard.position else "-"
        listed = await self._valkey.run(streams.entries(key, after, count=ENTRIES_AT_ONCE))
        return [
            (StreamId.parse(name), self._rows_of(shard.number, StreamId.parse(name), fields))
            for name, fields in listed
        ]

    def _rows_of(self, shard: int, stream_id: StreamId, fields: dict[bytes, bytes]) -> list[JournalRow]:
        """None for entries that the drain skips too: signs, entries of an earlier board, unreadable ones."""
        try:
            entry = read_entry(stream_id, fields, shard)
        except UnreadableEntry:
            return []
        return entry.rows if entry.version >= self._board_id else []

    async def _check_rows(self, shard: _Shard) -> None:
        """Raises unless PostgreSQL has as many rows as were applied, with the same sums."""
        archived = await self._store.tally(self._board_id, shard.number, shard.archived)
        if archived != shard.tally:
            raise LaurelsError(
                f"{self._board.ref}: the {shard.tally.rows:,} journal rows that were read are not the "
                f"{archived.rows:,} in PostgreSQL; nothing was changed, run it again"
            )

    async def _compare(self, shard: _Shard) -> None:
        comparer = Comparer(self._valkey, (self._board, self._made), shard.number)
        addresses = dict.fromkeys([*shard.replay.written, *await self._live_addresses(shard)])
        doubtful = [each for address in addresses async for each in comparer.doubts(address)]
        await self._fence(shard)
        try:
            await self._catch_up(shard, fenced=True)
            await comparer.settle(doubtful, self._comparison)
            if self._board.is_rated:
                await comparer.compare_ratings(self._comparison)
            self._count(await self._cardinalities(shard, self._made, list(shard.replay.written)))
        finally:
            await self._unfence(shard)

    async def _put_in_force(self, shard: _Shard) -> None:
        targets = shard.replay.written
        for attempt in range(ATTEMPTS):
            await self._register(shard)
            await self._fence(shard)
            try:
                await self._catch_up(shard, fenced=True)
                await self._register(shard)
                counts = await self._cardinalities(shard, self._made, list(targets))
                await self._check_counts(shard, counts)
                await self._switch(shard)
                after = await self._cardinalities(shard, self._board, list(targets))
                if after != counts:
                    raise LaurelsError(
                        f"{self._board.ref}: its windows changed during the switch; run it again"
                    )
                await self._mark_complete(shard)
                self._count(counts)
            except FenceLapsed:
                if attempt + 1 == ATTEMPTS or not await self._is_whole(shard):
                    raise Unavailable(
                        f"{self._board.ref}: Valkey was too slow to switch the windows; run it again"
                    ) from None
                continue
            finally:
                await self._unfence(shard)
            targets.clear()  # they are the live board's now
            return

    async def _is_whole(self, shard: _Shard) -> bool:
        """Whether no window was switched yet."""
        counts = await self._cardinalities(shard, self._made, list(shard.replay.written))
        return all(counts.values())

    async def _fence(self, shard: _Shard) -> None:
        keys = self._board.keys
        cursors = await self._tools.drain.store.cursors(self._board_id)
        journal = keys.of_board(shard.number, "journal")
        floor = cursors.get(journal, START)
        names = keys.of_board(shard.number, "board"), journal
        wanted = Fence(self._token, FENCE_MILLISECONDS, str(floor))
        try:
            await functions.fence(self._valkey, names, self._board.version, wanted)
        except DefinitionChanged as changed:
            if changed.known is not None:
                raise
            await self._tools.catalog.adopt(self._board)  # this shard lost its memory
            await functions.fence(self._valkey, names, self._board.version, wanted)

    async def _unfence(self, shard: _Shard) -> None:
        key = self._board.keys.of_board(shard.number, "board")
        try:
            await functions.unfence(
                self._valkey, key, self._token, metadata=self._puts_in_force and shard.replay.has_metadata
            )
        except FenceLapsed:
            log.warning("the fence of a rebuild lapsed before its end", board=str(self._board.ref))

    async def _register(self, shard: _Shard) -> None:
        """Lists the windows before they are written, as submissions do."""
        targets = list(shard.replay.written.values())
        try:
            await self._tools.catalog.register(self._board, shard.number, targets, self._now)
        except DefinitionChanged as changed:
            if changed.known is not None:
                raise
            await self._tools.catalog.adopt(self._board)  # this shard lost its memory
            await self._tools.catalog.register(self._board, shard.number, targets, self._now)

    async def _live_addresses(self, shard: _Shard) -> list[WindowAddress]:
        found = [each async for each in self._tools.retention.addresses(self._board, shard.number)]
        return [each for each in found if self._made.keeps(each)]

    async def _check_counts(self, shard: _Shard, counts: Counter[WindowAddress]) -> None:
        """Raises where a window is smaller than the one that it replaces, or its keys disagree."""
        if self._board.ordering.prefixed:
            prefixes = await self._valkey.run_all(
                hashes.length(shard.replay.keys_of(self._made, address)[1]) for address in counts
            )
            if prefixes != list(counts.values()):
                raise LaurelsError(
                    f"{self._board.ref}: a rebuilt window has another number of prefixes than of entries; "
                    "nothing was changed, run it again"
                )
        if self._gives_up:
            return
        live = await self._cardinalities(shard, self._board, await self._live_addresses(shard))
        for address, count in live.items():
            if count > counts[address]:
                raise Conflict(
                    f"{self._board.ref} holds {count - counts[address]:,} entries in "
                    f"{address.token.rstrip('|')} {address.cut or ''}".rstrip()
                    + " that are not in its journal; nothing was changed. To give them up, use force"
                )

    async def _switch(self, shard: _Shard) -> None:
        now = self._tools.clock()
        written = shard.replay.written
        gone = [each for each in await self._live_addresses(shard) if each not in written]
        seconds = {address: target.seconds_to_live(now) for address, target in written.items()}
        addresses = [*written, *gone]
        for first in range(0, len(addresses), WINDOWS_A_SWITCH):
            keys, lives = [self._board.keys.of_board(shard.number, "board")], list[int]()
            for address in addresses[first : first + WINDOWS_A_SWITCH]:
                made, live = (shard.replay.keys_of(board, address) for board in (self._made, self._board))
                for pair in zip(made, live, strict=True):
                    keys += pair
                lives += [seconds.get(address, 0)] * len(PARTS)
            await functions.switch(self._valkey, keys, (self._token, FENCE_MILLISECONDS), lives)
        if self._board.is_rated:
            keys = [self._board.keys.of_board(shard.number, "board")]
            keys += [board.keys.of_board(shard.number, "ratings") for board in (self._made, self._board)]
            await functions.switch(self._valkey, keys, (self._token, FENCE_MILLISECONDS), (0,))

    async def _mark_complete(self, shard: _Shard) -> None:
        now = self._tools.clock()
        markers: dict[str, int] = {}
        for address in shard.replay.complete & shard.replay.written.keys():
            target = shard.replay.written[address]
            name = f"built:{address.token}:{target.zoned.zone}"
            markers[self._board.keys.of_board(shard.number, name)] = target.seconds_to_live(now)
        await self._valkey.run_all(
            strings.put(marker, 1, seconds=seconds) for marker, seconds in markers.items()
        )

    async def _cardinalities(
        self, shard: _Shard, board: Board, addresses: list[WindowAddress]
    ) -> Counter[WindowAddress]:
        keys = [board.window_key(shard.number, address) for address in addresses]
        sizes = await self._valkey.run_all(map(sorted_sets.cardinality, keys))
        return Counter(dict(zip(addresses, sizes, strict=True)))

    def _count(self, counts: Counter[WindowAddress]) -> None:
        self._windows.update(counts)
        self._entries += counts.total()


def _place_of(row: JournalRow) -> tuple[StreamId, int, int]:
    return row.stream_id, row.shard, row.index
