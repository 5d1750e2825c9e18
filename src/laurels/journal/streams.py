"""The streams of all journals, and their backlog: what is not archived yet."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from laurels import metrics
from laurels.boards.keys import BoardRef, KeySpace
from laurels.errors import InvalidInput, Unavailable
from laurels.journal.entry import START, StreamId
from laurels.journal.store.rows import Stream
from laurels.moments import SECOND
from laurels.valkey.keyspace import memory_usage
from laurels.valkey.streams import entries, length, newest_entries

if TYPE_CHECKING:
    from collections.abc import Collection

    from laurels.boards.definition import StoredBoard
    from laurels.boards.store import BoardStore
    from laurels.valkey.client import Valkey
    from laurels.valkey.streams import StreamEntry

# Definitions read by one query.
TOGETHER: Final = 1000
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
    """The streams of every board that has a journal. Each version of a definition is read once."""

    def __init__(self, valkey: Valkey, store: BoardStore) -> None:
        self._valkey = valkey
        self._store = store
        self._looked, self._recent = -RECENT_SECONDS, Backlog()
        self._versions: dict[int, int] = {}
        self._streams: dict[int, tuple[BoardRef, list[Stream]]] = {}

    async def all(self) -> list[Stream]:
        """Every stream, by the boards that PostgreSQL has now."""
        versions = await self._store.versions()
        for gone in self._versions.keys() - versions.keys():
            del self._versions[gone]
            self._streams.pop(gone, None)
        changed = [board for board, version in versions.items() if self._versions.get(board) != version]
        for first in range(0, len(changed), TOGETHER):
            for stored in await self._store.by_ids(changed[first : first + TOGETHER]):
                self._versions[stored.id] = stored.version
                self._streams[stored.id] = BoardRef(stored.project, stored.board), self.of_stored(stored)
        return [stream for _, streams in self._streams.values() for stream in streams]

    async def by_board(self) -> list[tuple[BoardRef, list[Stream]]]:
        """Every stream by board. Without PostgreSQL, those of the boards that were known before."""
        with suppress(Unavailable):
            await self.all()
        return list(self._streams.values())

    async def of_board(self, ref: BoardRef) -> list[Stream]:
        await self.all()
        return [stream for each, streams in self._streams.values() if each == ref for stream in streams]

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
        """Reads the backlog and sets its metrics. Without PostgreSQL, of the boards known before."""
        streams = [stream for _, known in await self.by_board() for stream in known]
        waiting = {stream: count for stream, count in (await self.lengths(streams)).items() if count}
        oldest = (await self.oldest(list(waiting))).values()
        sizes = await self._valkey.run_all(memory_usage(stream.key) for stream in waiting)
        dead = await self._valkey.run_all(length(stream.dead_letters) for stream in streams)
        first = min(oldest, default=START).milliseconds * 1000 or None
        age = 0.0 if first is None else max(0, await self._valkey.now() - first) / SECOND
        backlog = Backlog(sum(waiting.values()), sum(sizes), first, age, sum(dead))
        metrics.note_backlog(backlog.calls, backlog.bytes, backlog.age_seconds)
        return backlog


def _firsts(streams: Collection[Stream], listed: list[list[StreamEntry]]) -> dict[Stream, StreamId]:
    found = zip(streams, listed, strict=True)
    return {stream: StreamId.parse(entries[0][0]) for stream, entries in found if entries}
