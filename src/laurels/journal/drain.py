"""The journal on its way from Valkey into PostgreSQL: read, commit, and only then trim.

How far a stream is archived stands in PostgreSQL and moves in the transaction that stores the rows; whoever
works on a stream has its cursor locked until then. So any number of drains may run; one that dies leaves
its streams to the others at once; and an entry that is read again, because nobody trimmed it, is recognized.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from laurels import metrics
from laurels.errors import Unavailable
from laurels.journal.entry import JournalEntry, StreamId, Unreadable, read_entry
from laurels.journal.store.rows import COPY_SECONDS, JournalStore, Stream, StreamCursor, Unstorable
from laurels.journal.streams import Journals
from laurels.logs import get_logger
from laurels.valkey import functions, streams

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

# How often an entry is tried before it goes to the dead letters.
ATTEMPTS: Final = 5
# What one transaction takes: streams, and of each about this many bytes; at first, this many entries.
STREAMS_TOGETHER: Final = 64
BYTES_TOGETHER: Final = 8 * 2**20
ENTRIES_AT_FIRST: Final = 16
MOST_ENTRIES: Final = 2000
STRAYS_TOGETHER: Final = 100
# Between two looks at a stream that somebody else is working on.
TURN_SECONDS: Final = 0.01
# How long the others wait for boards that are fed.
FEED_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Drained:
    """What one round did."""

    boards: int = 0
    rows: int = 0
    watermark: Moment | None = None
    """Everything that was recorded before is archived; None when all is."""


@dataclass(slots=True)
class _Reading:
    """What was read of one stream: entries to be stored, in order, up to the first that cannot be."""

    cursor: StreamCursor
    entries: list[JournalEntry] = field(default_factory=list[JournalEntry])
    reached: StreamId | None = None
    """The last entry that is stored, or needs no storing."""
    known: StreamId | None = None
    """The last entry that had been archived before."""
    broken: tuple[StreamId, dict[bytes, bytes], str] | None = None
    last: tuple[StreamId, bytes] | None = None
    """Of all that was read: the id of the last entry, and its first value."""

    strays: list[JournalEntry] = field(default_factory=list[JournalEntry])
    """Entries that had been archived before, and are still there."""

    def hold(self, incomplete: list[JournalEntry]) -> None:
        """Leaves the first of these, and all behind it, to another time."""
        ids = {entry.stream_id for entry in incomplete}
        for number, entry in enumerate(self.entries):
            if entry.stream_id in ids:
                del self.entries[number:]
                self.reached = self.entries[-1].stream_id if self.entries else None
                self.broken = None
                return

    def fed(self) -> list[JournalEntry]:
        """The calls that are archived, and that boards which are fed may forget."""
        stored = [each for each in self.entries if self.reached and each.stream_id <= self.reached]
        return [each for each in (*self.strays, *stored) if each.feeds]

    def moved(self) -> StreamCursor:
        """Where the cursor stands after this, but for what is broken."""
        return self.cursor if self.reached is None else StreamCursor(self.reached, 0)


class Drain:
    """Archives the journals of all boards."""

    def __init__(
        self, valkey: Valkey, postgres: Postgres, store: BoardStore, feeds: Feeds, clock: Clock
    ) -> None:
        self._valkey = valkey
        self._feeds = feeds
        self._postgres = postgres
        self._clock = clock
        self.journals = Journals(valkey, store)
        self.store = JournalStore(postgres)
        self._begun: set[Stream] = set()
        self._counts: dict[Stream, int] = {}
        self._held: set[Stream] = set()

    async def add_partitions(self) -> None:
        """Makes the partitions of the months to come, and forgets boards that were dropped."""
        await self.store.ensure_partitions(self._clock())
        for board_id in await self.store.dropped():
            rows = await self.store.forget(board_id)
            log.info("the journal of a dropped board is deleted", board_id=board_id, rows=rows)

    async def run_once(self) -> Drained:
        """Takes a share of every stream that has something; streams that another drain works on are its."""
        streams = await self.journals.streams()
        waiting = [stream for stream, count in (await self.journals.lengths(streams)).items() if count]
        rows = await self._drain_all(waiting)
        oldest = await self.journals.oldest(waiting)
        first = min((each.milliseconds * 1000 for each in oldest.values()), default=None)
        return Drained(len({stream.board_id for stream in waiting}), rows, first)

    async def finish(self, ref: BoardRef | None = None) -> None:
        """Returns when everything that was recorded before is archived: of this board, or of all."""
        await self._finish(await (self.journals.streams() if ref is None else self.journals.of_board(ref)))

    async def finish_board(self, stored: StoredBoard) -> None:
        """The same for a board as it was defined, before or after that changes."""
        await self._finish(self.journals.streams_of(stored))

    async def wait_for_drains(self, board_id: int) -> None:
        """Returns when no drain reads the streams of this board; none begins to, once it was dropped."""
        await self.store.wait_for_drains(board_id)

    async def _finish(self, streams: list[Stream]) -> None:
        marks = await self.journals.newest(streams)
        while True:
            oldest = await self.journals.oldest(list(marks))
            left = [stream for stream, first in oldest.items() if first <= marks[stream]]
            if not left:
                return
            if not await self._drain_all(left):
                if self._held.intersection(left):
                    raise Unavailable("the journal waits for replicas, or for a board that is fed; try again")
                await asyncio.sleep(TURN_SECONDS)

    async def _drain_all(self, streams: list[Stream]) -> int:
        """How many rows there are more."""
        rows = 0
        for first in range(0, len(streams), STREAMS_TOGETHER):
            rows += await self._drain(streams[first : first + STREAMS_TOGETHER])
        return rows

    async def _drain(self, streams: Collection[Stream]) -> int:
        unknown = [stream for stream in streams if stream not in self._begun]
        await self.store.begin(unknown)
        self._begun.update(unknown)
        async with self._postgres.writing(seconds=COPY_SECONDS) as connection:
            cursors = await self.store.lease(connection, streams)
            self._begun &= cursors.keys() | (self._begun - set(streams))
            readings = await self._read(connection, cursors)
            await self._leave_unkept(readings)
            await self._complete_feeds(readings)
            await self.store.ensure_partitions_for(
                entry.stream_id.recorded_at for reading in readings.values() for entry in reading.entries
            )
            rows = await self._append(connection, readings)
            moved = {stream: reading.moved() for stream, reading in readings.items()}
            for stream, reading in readings.items():
                if reading.broken and moved[stream] == reading.cursor:
                    moved[stream] = await self._tried(stream, reading.cursor, *reading.broken)
            changed = {stream: to for stream, to in moved.items() if to != readings[stream].cursor}
            await self.store.move(connection, changed)
        metrics.JOURNAL_ROWS.inc(rows)
        upto = {stream: reading.known for stream, reading in readings.items() if reading.known}
        upto |= {stream: cursor.archived for stream, cursor in changed.items()}
        for stream in await self._forget_feeds(readings):
            upto.pop(stream, None)  # until they are forgotten, their entries stay
        await self._trim(upto)
        return rows

    async def _read(
        self, connection: AsyncConnection, cursors: dict[Stream, StreamCursor]
    ) -> dict[Stream, _Reading]:
        """What stands behind each cursor. What stands before it is looked at too: usually nothing."""
        share = max(1, BYTES_TOGETHER // max(1, len(cursors)))
        commands: list[Command[list[StreamEntry]]] = []
        for stream, cursor in cursors.items():
            count = self._counts.get(stream, ENTRIES_AT_FIRST)
            commands.append(streams.entries(stream.key, "-", str(cursor.archived), count=STRAYS_TOGETHER))
            commands.append(streams.entries(stream.key, f"({cursor.archived}", count=count))
        answers = list(map(_parsed, await self._valkey.run_all(commands)))
        readings: dict[Stream, _Reading] = {}
        for (stream, cursor), strays, entries in zip(
            cursors.items(), answers[::2], answers[1::2], strict=True
        ):
            if strays and await self._lift(connection, stream, cursor.archived, strays):
                continue
            if entries:
                size = sum(len(value) for _, fields in entries for value in fields.values())
                self._counts[stream] = min(max(1, share * len(entries) // max(1, size)), MOST_ENTRIES)
            readings[stream] = _decoded(stream, cursor, entries)
            if strays:
                readings[stream].known = strays[-1][0]
                readings[stream].strays = list(_readable(strays))
        return readings

    async def _leave_unkept(self, readings: dict[Stream, _Reading]) -> None:
        """What only one node has may be lost with it, and then be sent again: it is left to another time."""
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
                log.warning("a journal waits for its replicas", stream=stream.key, detail=error.detail)
                return False

        streams = list(readings)
        kept = await asyncio.gather(*(is_kept(stream, readings[stream]) for stream in streams))
        for stream, is_good in zip(streams, kept, strict=True):
            if not is_good:
                self._held.add(stream)
                del readings[stream]

    async def _complete_feeds(self, readings: dict[Stream, _Reading]) -> None:
        """Entries are archived once every board that they feed has them."""
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
        """Boards that are fed forget calls that are archived; the streams of whom one could not be told."""
        untold: list[Stream] = []
        for stream, reading in readings.items():
            if fed := reading.fed():
                try:
                    async with asyncio.timeout(FEED_SECONDS):
                        await self._feeds.forget(stream.shard, fed)
                except (TimeoutError, Unavailable):
                    untold.append(stream)
        return untold

    async def _lift(
        self, connection: AsyncConnection, stream: Stream, archived: StreamId, strays: _Entries
    ) -> bool:
        """Entries at or before the cursor: archived and not trimmed yet; or, after Valkey lost its memory or
        its clock went back, new ones under old ids. These get ids behind the cursor, and are read later.
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
            log.warning("entries of the journal came under old ids", stream=stream.key, entries=len(new))
            await functions.lift(self._valkey, stream.key, str(archived), list(map(str, new)))
        return bool(new)

    async def _new_among(
        self, connection: AsyncConnection, stream: Stream, strays: _Entries
    ) -> list[StreamId]:
        """Those that are neither archived nor among the dead letters."""
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
            except Unreadable:
                new.append(stream_id)
                continue
            if entry.version >= stream.board_id and entry.call != calls.get(stream_id):
                new.append(stream_id)
        return new

    async def _append(self, connection: AsyncConnection, readings: dict[Stream, _Reading]) -> int:
        """How many rows; all streams at once, or one entry at a time when PostgreSQL refuses something."""
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
                    # As it came, for the dead letters.
                    listed = streams.entries(stream.key, str(entry.stream_id), str(entry.stream_id))
                    for _, fields in await self._valkey.run(listed):
                        reading.broken = entry.stream_id, fields, error.detail
                    reading.reached = stored
                    break
                stored = entry.stream_id
        return rows

    async def _tried(
        self, stream: Stream, cursor: StreamCursor, stream_id: StreamId, fields: dict[bytes, bytes], why: str
    ) -> StreamCursor:
        """One attempt more at the entry behind the cursor; after the last one, past it."""
        if cursor.attempts + 1 < ATTEMPTS:
            return StreamCursor(cursor.archived, cursor.attempts + 1)
        flat = [word for pair in fields.items() for word in pair]
        await functions.bury(self._valkey, stream.dead_letters, str(stream_id), (*flat, "why", why))
        metrics.DEAD_LETTERS.inc()
        log.error("an entry of the journal cannot be archived", stream=stream.key, id=str(stream_id), why=why)
        return StreamCursor(stream_id, 0)

    async def _trim(self, archived: dict[Stream, StreamId]) -> None:
        """Up to what is archived: never an entry that nobody looked at."""
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
        if b"sign" not in fields:  # signs say that something changed on a board without a journal
            try:
                entry = read_entry(stream_id, fields, stream.shard)
            except Unreadable as error:
                reading.broken = stream_id, fields, str(error)
                break
            if entry.version >= stream.board_id:  # else of a board that had the name before
                reading.entries.append(entry)
        reading.reached = stream_id
    return reading


def _readable(entries: _Entries) -> Iterator[JournalEntry]:
    for stream_id, fields in entries:
        with suppress(Unreadable):
            yield read_entry(stream_id, fields)


def _entries_of(readings: dict[Stream, _Reading]) -> Iterator[tuple[Stream, JournalEntry]]:
    for stream, reading in readings.items():
        for entry in reading.entries:
            yield stream, entry
