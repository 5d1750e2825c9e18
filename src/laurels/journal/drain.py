"""Drains the journal from Valkey into PostgreSQL: reads the streams, commits the rows, then trims the
streams.

A cursor in PostgreSQL says how far a stream is archived. It moves in the transaction that stores the rows,
and the drain keeps it locked until the commit. So any number of drains may run. When one dies, the others
take over its streams at once, and an entry that was archived but not trimmed is recognized by the cursor.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from laurels import metrics
from laurels.errors import Unavailable
from laurels.journal.entry import JournalEntry, StreamId, UnreadableEntry, read_entry
from laurels.journal.store.rows import COPY_SECONDS, JournalStore, Stream, StreamCursor, Unstorable
from laurels.journal.streams import JournalStreams
from laurels.logs import get_logger
from laurels.valkey import functions, streams
from laurels.valkey.names import DEAD_LETTERS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.boards.definition import StoredBoard
    from laurels.boards.keys import BoardRef
    from laurels.boards.store import BoardStore
    from laurels.clock import Clock
    from laurels.moments import Moment
    from laurels.postgres.engine import Postgres
    from laurels.scores.feeds import Feeds
    from laurels.valkey.client import Valkey
    from laurels.valkey.command import Command
    from laurels.valkey.streams import StreamEntry

    _Entries = list[tuple[StreamId, dict[bytes, bytes]]]

log = get_logger("laurels.history")

# Attempts to archive an entry before it goes to the dead letters.
ATTEMPTS: Final = 5
# The size of a transaction: streams, bytes over all of them, and entries of a stream of unknown entry size.
STREAMS_TOGETHER: Final = 64
BYTES_TOGETHER: Final = 8 * 2**20
ENTRIES_AT_FIRST: Final = 16
MOST_ENTRIES: Final = 2000
STRAYS_TOGETHER: Final = 100
# Between two attempts to lock a stream that another drain has locked.
TURN_SECONDS: Final = 0.01
# Streams whose cursors exist and whose size of entries is known.
MOST_REMEMBERED: Final = 10_000
# How long a round waits for fed boards.
FEED_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class DrainRound:
    """The result of one round."""

    boards: int = 0
    rows: int = 0
    watermark: Moment | None = None
    """Everything recorded before this is archived; None when the streams are empty."""
    is_behind: bool = False
    """Whether a stream had more entries than the round takes."""


@dataclass(slots=True)
class _Reading:
    """The entries of one stream to store, in order, up to the first that cannot be stored."""

    cursor: StreamCursor
    entries: list[JournalEntry] = field(default_factory=list[JournalEntry])
    reached: StreamId | None = None
    """The last entry that is stored or needs no storing."""
    known: StreamId | None = None
    """The last entry that an earlier round archived."""
    broken: tuple[StreamId, dict[bytes, bytes], str] | None = None
    last: tuple[StreamId, bytes] | None = None
    """The id of the last entry that was read, and its first value."""
    strays: list[JournalEntry] = field(default_factory=list[JournalEntry])
    """Entries that an earlier round archived and did not trim."""

    def hold(self, incomplete: list[JournalEntry]) -> None:
        """Leaves the first of these and all entries after it to a later round."""
        ids = {entry.stream_id for entry in incomplete}
        for number, entry in enumerate(self.entries):
            if entry.stream_id in ids:
                del self.entries[number:]
                self.reached = self.entries[-1].stream_id if self.entries else None
                self.broken = None
                return

    def fed(self) -> list[JournalEntry]:
        """The archived calls that fed boards may forget."""
        stored = [each for each in self.entries if self.reached and each.stream_id <= self.reached]
        return [each for each in (*self.strays, *stored) if each.feeds]

    def calls(self) -> int:
        """How many calls this round stores."""
        return sum(self.reached is not None and each.stream_id <= self.reached for each in self.entries)

    def moved(self) -> StreamCursor:
        """The cursor after this round, an unreadable entry left aside."""
        return self.cursor if self.reached is None else StreamCursor(self.reached, 0)


class Drain:
    """Archives the journals of all boards. Its methods may run in several processes at once."""

    def __init__(
        self, valkey: Valkey, postgres: Postgres, store: BoardStore, feeds: Feeds, clock: Clock
    ) -> None:
        self._valkey = valkey
        self._feeds = feeds
        self._postgres = postgres
        self._clock = clock
        self.journal_streams = JournalStreams(valkey, store)
        self.store = JournalStore(postgres)
        self._begun: set[Stream] = set()
        self._counts: dict[Stream, int] = {}
        self._held: set[Stream] = set()
        self._is_behind = False
        """Whether a stream had more entries than this round takes."""

    async def add_partitions(self) -> None:
        """Creates the partitions of the next months, and deletes the journals of dropped boards."""
        await self.store.ensure_partitions(self._clock())
        for board_id in await self.store.dropped():
            rows = await self.store.forget(board_id)
            log.info("deleted the journal of a dropped board", board_id=board_id, rows=rows)

    async def run_once(self) -> DrainRound:
        """Archives a part of every stream that was announced and has entries, except those that another drain
        has locked.
        """
        self._is_behind = False
        waiting = list(await self.journal_streams.waiting())
        rows = await self._drain_all(waiting)
        oldest = await self.journal_streams.oldest(waiting)
        first = min((each.milliseconds * 1000 for each in oldest.values()), default=None)
        return DrainRound(len({stream.board_id for stream in waiting}), rows, first, self._is_behind)

    async def finish(self, ref: BoardRef | None = None) -> None:
        """Archives everything recorded before the call, of one board or of all; raises `Unavailable`."""
        if ref is not None:
            await self._finish(await self.journal_streams.of_board(ref))
            return
        async for some in self.journal_streams.all():
            await self._finish(some)

    async def finish_board(self, stored: StoredBoard) -> None:
        """As `finish`, for a board by a definition that need not be in force."""
        await self._finish(self.journal_streams.of_stored(stored))

    async def wait_for_drains(self, board_id: int) -> None:
        """Returns when no drain reads the board's streams. Once the board is dropped, no drain starts to."""
        await self.store.wait_for_drains(board_id)

    async def _finish(self, streams: list[Stream]) -> None:
        marks = await self.journal_streams.newest(streams)
        while True:
            oldest = await self.journal_streams.oldest(list(marks))
            left = [stream for stream, first in oldest.items() if first <= marks[stream]]
            if not left:
                return
            if not await self._drain_all(left):
                if self._held.intersection(left):
                    raise Unavailable("the journal waits for replicas or for a fed board; try again")
                await asyncio.sleep(TURN_SECONDS)

    async def _drain_all(self, streams: list[Stream]) -> int:
        """The number of rows archived."""
        rows = 0
        for first in range(0, len(streams), STREAMS_TOGETHER):
            rows += await self._drain(streams[first : first + STREAMS_TOGETHER])
        return rows

    async def _drain(self, streams: Collection[Stream]) -> int:
        if len(self._begun) > MOST_REMEMBERED:
            self._begun.clear()
            self._counts.clear()
        unknown = [stream for stream in streams if stream not in self._begun]
        await self.store.begin(unknown)
        self._begun.update(unknown)
        async with self._postgres.writing(seconds=COPY_SECONDS) as connection:
            cursors = await self.store.lease(connection, streams)
            self._begun &= cursors.keys() | (self._begun - set(streams))
            readings = await self._read(connection, cursors)
            await self._leave_undurable(readings)
            await self._complete_feeds(readings)
            await self.store.ensure_partitions_for(
                entry.stream_id.recorded_at for reading in readings.values() for entry in reading.entries
            )
            rows = await self._append(connection, readings)
            moved = {stream: reading.moved() for stream, reading in readings.items()}
            for stream, reading in readings.items():
                if reading.broken and moved[stream] == reading.cursor:
                    moved[stream] = await self._count_attempt(stream, reading.cursor, *reading.broken)
            changed = {stream: to for stream, to in moved.items() if to != readings[stream].cursor}
            await self.store.move(connection, changed, {each: readings[each].calls() for each in changed})
        metrics.JOURNAL_ROWS.inc(rows)
        upto = {stream: reading.known for stream, reading in readings.items() if reading.known}
        upto |= {stream: cursor.archived for stream, cursor in changed.items()}
        for stream in await self._forget_feeds(readings):
            upto.pop(stream, None)  # trimmed once the fed boards forgot the calls
        await self._trim(upto)
        return rows

    async def _read(
        self, connection: AsyncConnection, cursors: dict[Stream, StreamCursor]
    ) -> dict[Stream, _Reading]:
        """Reads the entries after each cursor, and those before it, of which there are usually none."""
        share = max(1, BYTES_TOGETHER // max(1, len(cursors)))
        commands: list[Command[list[StreamEntry]]] = []
        counts: dict[Stream, int] = {}
        for stream, cursor in cursors.items():
            count = counts[stream] = self._counts.get(stream, ENTRIES_AT_FIRST)
            commands.append(streams.entries(stream.key, "-", str(cursor.archived), count=STRAYS_TOGETHER))
            commands.append(streams.entries(stream.key, f"({cursor.archived}", count=count))
        answers = list(map(_parsed, await self._valkey.run_all(commands)))
        readings: dict[Stream, _Reading] = {}
        for (stream, cursor), strays, entries in zip(
            cursors.items(), answers[::2], answers[1::2], strict=True
        ):
            if strays and await self._lift(connection, stream, cursor.archived, strays):
                continue
            self._is_behind |= len(entries) == counts[stream]
            if entries:
                size = sum(len(value) for _, fields in entries for value in fields.values())
                self._counts[stream] = min(max(1, share * len(entries) // max(1, size)), MOST_ENTRIES)
            readings[stream] = _decoded(stream, cursor, entries)
            if strays:
                readings[stream].known = strays[-1][0]
                readings[stream].strays = list(_readable(strays))
        return readings

    async def _leave_undurable(self, readings: dict[Stream, _Reading]) -> None:
        """Leaves entries that are not as durable as configured to a later round.

        A failover may lose them, and their submissions may come again.
        """
        durability = self._feeds.durability
        if durability == "fast":
            return

        async def is_kept(stream: Stream, reading: _Reading) -> bool:
            if reading.last is None:
                return True
            name, value = reading.last
            try:
                return await functions.keeps(self._valkey, stream.key, str(name), value, durability)
            except Unavailable as error:
                log.warning(
                    "cannot archive a journal before its replicas have it",
                    stream=stream.key,
                    detail=error.detail,
                )
                return False

        streams = list(readings)
        kept = await asyncio.gather(*(is_kept(stream, readings[stream]) for stream in streams))
        for stream, is_good in zip(streams, kept, strict=True):
            if not is_good:
                self._held.add(stream)
                del readings[stream]

    async def _complete_feeds(self, readings: dict[Stream, _Reading]) -> None:
        """Completes the fed boards. An entry that one of them may lack is left to a later round."""
        self._held.difference_update(readings)

        async def complete(stream: Stream, reading: _Reading) -> None:
            feeding = [entry for entry in reading.entries if entry.feeds]
            if not feeding:
                return
            incomplete = feeding
            with suppress(TimeoutError):
                async with asyncio.timeout(FEED_SECONDS):
                    incomplete = await self._feeds.complete(stream.shard, feeding)
            if incomplete:
                self._held.add(stream)
                reading.hold(incomplete)

        await asyncio.gather(*(complete(*each) for each in readings.items()))

    async def _forget_feeds(self, readings: dict[Stream, _Reading]) -> list[Stream]:
        """Has fed boards forget archived calls; returns the streams for which that failed."""
        failed: list[Stream] = []
        for stream, reading in readings.items():
            if fed := reading.fed():
                try:
                    async with asyncio.timeout(FEED_SECONDS):
                        await self._feeds.forget(stream.shard, fed)
                except (TimeoutError, Unavailable):
                    failed.append(stream)
        return failed

    async def _lift(
        self, connection: AsyncConnection, stream: Stream, archived: StreamId, strays: _Entries
    ) -> bool:
        """Gives new entries at or before the cursor ids after it; returns whether there were any.

        Such entries are either archived and not trimmed yet, or new under old ids: Valkey lost its memory, or
        its clock was set back. A later round reads them.
        """
        is_all = len(strays) < STRAYS_TOGETHER
        new = await self._new_among(connection, stream, strays)
        while not is_all:
            after = f"({strays[-1][0]}"
            more = _parsed(
                await self._valkey.run(
                    streams.entries(stream.key, after, str(archived), count=STRAYS_TOGETHER)
                )
            )
            new += await self._new_among(connection, stream, more)
            strays += more
            is_all = len(more) < STRAYS_TOGETHER
        if new:
            log.warning(
                "journal entries have ids before the archived one; gave them new ids",
                stream=stream.key,
                entries=len(new),
            )
            await functions.lift(self._valkey, stream.key, str(archived), list(map(str, new)))
        return bool(new)

    async def _new_among(
        self, connection: AsyncConnection, stream: Stream, strays: _Entries
    ) -> list[StreamId]:
        """The entries that are neither archived nor dead letters."""
        if not strays:
            return []
        ids = [stream_id for stream_id, _ in strays]
        calls = await self.store.calls(connection, stream, ids)
        letters = await self._valkey.run(streams.entries(stream.dead_letters, str(ids[0]), str(ids[-1])))
        dead = {name: fields.get(b"body") for name, fields in _parsed(letters)}
        new: list[StreamId] = []
        for stream_id, fields in strays:
            if b"sign" in fields or (stream_id in dead and dead[stream_id] == fields.get(b"body")):
                continue
            try:
                entry = read_entry(stream_id, fields)
            except UnreadableEntry:
                new.append(stream_id)
                continue
            if entry.version >= stream.board_id and entry.call != calls.get(stream_id):
                new.append(stream_id)
        return new

    async def _append(self, connection: AsyncConnection, readings: dict[Stream, _Reading]) -> int:
        """Stores all streams at once, or entry by entry if PostgreSQL refuses one; the number of rows."""
        try:
            return await self.store.append(connection, _entries_of(readings))
        except Unstorable:
            pass
        rows = 0
        for stream, reading in readings.items():
            stored: StreamId | None = None
            for entry in reading.entries:
                try:
                    rows += await self.store.append(connection, [(stream, entry)])
                except Unstorable as error:
                    # The entry as Valkey has it, for the dead letters.
                    listed = streams.entries(stream.key, str(entry.stream_id), str(entry.stream_id))
                    for _, fields in await self._valkey.run(listed):
                        reading.broken = entry.stream_id, fields, error.detail
                    reading.reached = stored
                    break
                stored = entry.stream_id
        return rows

    async def _count_attempt(
        self, stream: Stream, cursor: StreamCursor, stream_id: StreamId, fields: dict[bytes, bytes], why: str
    ) -> StreamCursor:
        """The cursor with one more attempt; after the last attempt, past the entry, now a dead letter."""
        if cursor.attempts + 1 < ATTEMPTS:
            return StreamCursor(cursor.archived, cursor.attempts + 1)
        flat = [word for pair in fields.items() for word in pair]
        await functions.bury(self._valkey, stream.dead_letters, str(stream_id), (*flat, "why", why))
        with suppress(Unavailable):  # then the survey finds it
            await functions.announce(self._valkey, DEAD_LETTERS, (stream.dead_letters,))
        metrics.DEAD_LETTERS.inc()
        log.error(
            "moved a journal entry that cannot be archived to the dead letters",
            stream=stream.key,
            id=str(stream_id),
            why=why,
        )
        return StreamCursor(stream_id, 0)

    async def _trim(self, archived: dict[Stream, StreamId]) -> None:
        """Removes the archived entries, and never one that no round has read."""
        await self._valkey.run_all(
            streams.trim_before(stream.key, f"{upto.milliseconds}-{upto.seq + 1}")
            for stream, upto in archived.items()
        )


def _parsed(listed: list[StreamEntry]) -> _Entries:
    return [(StreamId.parse(name), fields) for name, fields in listed]


def _decoded(stream: Stream, cursor: StreamCursor, entries: _Entries) -> _Reading:
    reading = _Reading(cursor)
    if entries:
        name, fields = entries[-1]
        reading.last = name, next(iter(fields.values()))
    for stream_id, fields in entries:
        if b"sign" not in fields:  # a sign: a board without a journal changed
            try:
                entry = read_entry(stream_id, fields, stream.shard)
            except UnreadableEntry as error:
                reading.broken = stream_id, fields, str(error)
                break
            if entry.version >= stream.board_id:  # else of an earlier board of this name
                reading.entries.append(entry)
        reading.reached = stream_id
    return reading


def _readable(entries: _Entries) -> Iterator[JournalEntry]:
    for stream_id, fields in entries:
        with suppress(UnreadableEntry):
            yield read_entry(stream_id, fields)


def _entries_of(readings: dict[Stream, _Reading]) -> Iterator[tuple[Stream, JournalEntry]]:
    for stream, reading in readings.items():
        for entry in reading.entries:
            yield stream, entry
