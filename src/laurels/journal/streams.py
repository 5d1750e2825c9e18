"""The streams of journals that have entries, and their backlog: what is not archived yet."""

from __future__ import annotations

import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from laurels import metrics
from laurels.boards.definition import StoredBoard
from laurels.boards.keys import BoardRef, KeySpace, board_of
from laurels.errors import InvalidInput, Unavailable
from laurels.journal.entry import START, StreamId
from laurels.journal.store.rows import Stream
from laurels.moments import SECOND
from laurels.valkey.announcements import announced, looked_at
from laurels.valkey.keyspace import memory_usage
from laurels.valkey.names import DEAD_LETTERS, JOURNALS
from laurels.valkey.streams import entries, length, newest_entries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from laurels.boards.store import BoardStore
    from laurels.valkey.client import Valkey
    from laurels.valkey.streams import StreamEntry

# Definitions read by one query.
TOGETHER: Final = 1000
# Streams that are remembered for the time when PostgreSQL does not answer.
MOST_REMEMBERED: Final = 10_000
RECENT_SECONDS: Final = 5.0
# How far the archive may lag behind without an alarm.
ALARM_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Backlog:
    """The journal entries that Valkey holds and PostgreSQL does not."""

    calls: int = 0
    bytes: int = 0
    oldest: int | None = None
    """The time of the oldest of these calls, in microseconds by Valkey's clock."""
    age_seconds: float = 0.0
    dead_letters: int = 0

    def alarms(self, alarm_bytes: int) -> list[str]:
        alarms: list[str] = []
        if self.age_seconds > ALARM_SECONDS:
            alarms.append(f"the journal is {self.age_seconds:,.0f} s behind ({self.calls:,} calls)")
        if self.bytes > alarm_bytes:
            mebibytes = self.bytes / 1024**2
            alarms.append(f"{mebibytes:,.0f} MiB of Valkey's memory wait to be archived")
        if self.dead_letters:
            alarms.append(f"{self.dead_letters:,} entries of the journal could not be archived")
        return alarms


class JournalStreams:
    """The streams of journals. Boards whose journals are empty are not looked at, except by `all`."""

    def __init__(self, valkey: Valkey, store: BoardStore) -> None:
        self._valkey = valkey
        self._store = store
        self._looked, self._recent = -RECENT_SECONDS, Backlog()
        self._known: dict[str, Stream] = {}
        """By its key and by that of its dead letters."""

    async def all(self) -> AsyncIterator[list[Stream]]:
        """Every stream, some at a time, by the boards that PostgreSQL has."""
        after: int | None = 0
        while after is not None:
            boards, after = await self._store.following(after, TOGETHER)
            yield [stream for stored in boards for stream in self.of_stored(stored)]

    async def of_board(self, ref: BoardRef) -> list[Stream]:
        stored = await self._store.get(*ref)
        return self.of_stored(stored) if stored else []

    def of_stored(self, stored: StoredBoard) -> list[Stream]:
        """The streams of a board by this definition, one a shard."""
        if not stored.definition.archive.journal:
            return []
        ref = BoardRef(stored.project, stored.board)
        try:
            keys = KeySpace(ref, stored.definition, cluster=self._valkey.is_cluster)
        except InvalidInput:  # defined for a single node: unusable on a cluster, so without a journal
            return []
        return [
            Stream(stored.id, shard, keys.of_board(shard, "journal"), keys.of_board(shard, "dead"))
            for shard in range(keys.shards)
        ]

    async def waiting(self, *, known: bool = False) -> dict[Stream, int]:
        """The streams that were announced and have entries, and how many. `known`: without PostgreSQL, those
        that this process knows from before.
        """
        return await self._filled(JOURNALS, known=known)

    async def letters(self, *, known: bool = False) -> dict[Stream, int]:
        """As `waiting`, for dead letters."""
        return await self._filled(DEAD_LETTERS, known=known)

    async def _filled(self, name: str, *, known: bool) -> dict[Stream, int]:
        await self._valkey.announcer.flush()
        seen = await announced(self._valkey, name)
        counts = dict(zip(seen, await self._valkey.run_all(map(length, seen)), strict=True))
        empty = {key: seen[key] for key, count in counts.items() if not count}
        await looked_at(self._valkey, name, empty)
        filled = [key for key in seen if key not in empty]
        with suppress(Unavailable) if known else nullcontext():
            await self._look_up(filled)
        return {self._known[key]: counts[key] for key in filled if key in self._known}

    async def _look_up(self, keys: list[str]) -> None:
        """Learns which streams have these keys, by the boards that PostgreSQL has."""
        if len(self._known) > MOST_REMEMBERED:
            self._known.clear()
        for first in range(0, len(keys), TOGETHER):
            together = keys[first : first + TOGETHER]
            boards = await self._store.get_all({board_of(key) for key in together})
            for key in together:
                self._known.pop(key, None)
            for stored in boards.values():
                for stream in self.of_stored(stored) if isinstance(stored, StoredBoard) else ():
                    self._known[stream.key] = self._known[stream.dead_letters] = stream

    async def lengths(self, streams: Collection[Stream]) -> dict[Stream, int]:
        """The number of entries in each."""
        answers = await self._valkey.run_all(length(stream.key) for stream in streams)
        return dict(zip(streams, answers, strict=True))

    async def oldest(self, streams: Collection[Stream]) -> dict[Stream, StreamId]:
        """The first entry of each stream that has any."""
        listed = await self._valkey.run_all(entries(stream.key, count=1) for stream in streams)
        return _firsts(streams, listed)

    async def newest(self, streams: Collection[Stream]) -> dict[Stream, StreamId]:
        """The last entry of each stream that has any."""
        listed = await self._valkey.run_all(newest_entries(stream.key, 1) for stream in streams)
        return _firsts(streams, listed)

    async def recent_backlog(self) -> Backlog:
        """As `backlog`, read again after `RECENT_SECONDS` only."""
        now = time.monotonic()
        if now >= self._looked + RECENT_SECONDS:
            self._looked, self._recent = now, await self.backlog()
        return self._recent

    async def backlog(self) -> Backlog:
        """Reads the backlog and sets its metrics. Without PostgreSQL, of the streams known before."""
        waiting = await self.waiting(known=True)
        oldest = (await self.oldest(waiting)).values()
        sizes = await self._valkey.run_all(memory_usage(stream.key) for stream in waiting)
        dead = (await self.letters(known=True)).values()
        first = min(oldest, default=START).milliseconds * 1000 or None
        age = 0.0 if first is None else max(0, await self._valkey.now() - first) / SECOND
        backlog = Backlog(sum(waiting.values()), sum(sizes), first, age, sum(dead))
        metrics.note_backlog(backlog.calls, backlog.bytes, backlog.age_seconds)
        return backlog


def _firsts(streams: Collection[Stream], listed: list[list[StreamEntry]]) -> dict[Stream, StreamId]:
    found = zip(streams, listed, strict=True)
    return {stream: StreamId.parse(entries[0][0]) for stream, entries in found if entries}
