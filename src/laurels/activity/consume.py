"""Streams -> counters: read in order, folded, and applied so that nothing counts twice.

Each stream has a cursor in every shard of users, and it moves in the call that applies the effects behind it;
a call that expects another cursor changes nothing. An event that reaches two users is applied in two shards,
each by its own cursor. How far the whole stream is applied is told by the consumer group `laurels`, which
moves last and is never ahead. So a batch may be read again, a worker may pause or die anywhere, and two may
work on the same stream: the counters are the same.

Workers share the streams by who is there: the i-th stream is the (i mod n)-th worker's. While they disagree
for a moment, both work, and one finds that it was done.
"""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from laurels.activity.accumulate import EventSource, Sourced, fold
from laurels.activity.events import BadEvent, read_event
from laurels.activity.shard_changes import ShardCall
from laurels.activity.valkey_keys import (
    DEAD,
    DEAD_CURSORS,
    GROUP,
    SHARDS,
    STREAMS,
    WORKERS,
    ActivityKeys,
    shard_of,
)
from laurels.errors import LaurelsError
from laurels.logs import get_logger
from laurels.valkey import activity, hashes, keyspace, lists, sets, sorted_sets, streams
from laurels.valkey.activity import ActivityCall

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from laurels.activity.accumulate import CampusLike
    from laurels.activity.campuses import UserCampuses
    from laurels.clock import Clock
    from laurels.valkey.client import Valkey

# What is read at once: one call a shard then takes 2 ms of Valkey.
ENTRIES_TOGETHER: Final = 4000
# Between two signs of life, and how long a worker counts as there without one.
ATTEND_SECONDS: Final = 2.0
ABSENT_SECONDS: Final = 6.0
# How long a read blocks; how soon is tried again what failed; how often campuses are asked for again.
BLOCK_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 1.0
PARKED_SECONDS: Final = 5.0
# Users of a shard whose campus is asked for again, and of each how much is released at once.
PARKED_TOGETHER: Final = 100
WAITING_TOGETHER: Final = 1000
MOST_DEAD: Final = 100_000
"""Dead letters that are kept; the oldest go first."""

Id = tuple[int, int]
BEGINNING: Final = "0-0"
AT_THE_END: Final = "-"
"""No cursor is this, so a call that expects it applies nothing."""

log = get_logger("laurels.activity")


def parse_id(text: str) -> Id:
    milliseconds, _, seq = (text or BEGINNING).partition("-")
    return int(milliseconds), int(seq)


@dataclass(slots=True)
class _EntryBatch:
    """Entries of one stream, in order."""

    entries: int = 0
    last: str = BEGINNING
    effects: dict[int, list[tuple[Id, Sourced]]] = field(default_factory=dict[int, list[tuple[Id, Sourced]]])
    """By shard."""
    dead: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    def users(self) -> set[str]:
        return {sourced.effect.user for effects in self.effects.values() for _, sourced in effects}


class Lag(NamedTuple):
    """How one stream stands."""

    applied: int
    """Entries, ever."""
    waiting: int
    seconds: float
    """Age of the oldest entry that waits."""
    late: int
    """Effects that came when their day had expired: they are not counted."""


class StreamConsumer:
    """Applies one stream. Others may apply it too."""

    def __init__(self, accrual: Accrual, stream: str) -> None:
        self._accrual = accrual
        self._valkey = accrual.valkey
        self.stream = stream
        self.floor = BEGINNING
        """Every entry up to here is applied."""
        self._cursors: list[str] | None = None

    async def step(self) -> int:
        """Applies the next entries; how many there were."""
        if self._cursors is None:
            self._cursors = await self._load_cursors()
        joined = await activity.join(self._valkey, self.stream, GROUP)
        if joined is None:
            return 0
        self.floor = joined.cursor
        listed = await self._valkey.run(
            streams.entries(self.stream, f"({self.floor}", count=ENTRIES_TOGETHER)
        )
        if not listed:
            return 0
        batch = self._read(listed)
        await self._apply(batch, self._cursors)
        if batch.dead:
            keys = DEAD, DEAD_CURSORS
            await activity.discard(self._valkey, keys, self.stream, MOST_DEAD, batch.dead)
        moved = self.floor, batch.last, batch.entries
        if await activity.advance(self._valkey, self.stream, GROUP, moved):
            self.floor = batch.last
        return batch.entries

    async def _load_cursors(self) -> list[str]:
        keys = map(self._accrual.keys.cursors, range(SHARDS))
        held = await self._valkey.run_all(hashes.get(key, self.stream) for key in keys)
        return [cursor.decode() if cursor else "" for cursor in held]

    def _read(self, listed: list[tuple[bytes, dict[bytes, bytes]]]) -> _EntryBatch:
        batch, now = _EntryBatch(len(listed)), self._accrual.clock() // 1000
        for name, fields in listed:
            id_ = name.decode()
            place = parse_id(id_)
            try:
                event = read_event(self.stream, place[0], fields, now)
            except BadEvent as error:
                batch.dead.append((id_, str(error), _payload(fields)))
                continue
            source = EventSource(self.stream, id_, event.at)
            for effect in event.effects:
                shard = batch.effects.setdefault(shard_of(effect.user), [])
                shard.append((place, Sourced(effect, source)))
        batch.last = listed[-1][0].decode()
        return batch

    async def _apply(self, batch: _EntryBatch, cursors: list[str]) -> None:
        """Until every shard that the batch reaches is at its end, by whomever, and as durably as is asked.
        A shard that is there already may owe that to a call whose wait failed, so it is called all the same.
        """
        campuses = await self._accrual.campuses.of(batch.users())
        last, left = parse_id(batch.last), list(batch.effects)
        if self._valkey.durability == "fast":
            left = [shard for shard in left if parse_id(cursors[shard]) < last]
        while left:
            calls = [self._call(batch, shard, cursors[shard], campuses) for shard in left]
            for shard, accrued in zip(left, await activity.accrue(self._valkey, calls), strict=True):
                cursors[shard] = batch.last if accrued.cursor is None else accrued.cursor
            left = [shard for shard in left if parse_id(cursors[shard]) < last]

    def _call(
        self, batch: _EntryBatch, shard: int, cursor: str, campuses: Mapping[str, CampusLike]
    ) -> ActivityCall:
        after = parse_id(cursor)
        effects = (sourced for place, sourced in batch.effects[shard] if place > after)
        now = self._accrual.clock()
        folded = fold(effects, campuses, now)
        call = ShardCall(self._accrual.keys, shard, now)
        expected = cursor if after < parse_id(batch.last) else AT_THE_END
        message = (*call.effects(folded), self.stream, expected, batch.last, call.parked(folded))
        return ActivityCall(call.keys, message)


class Accrual:
    """Keeps the counters of users' days. Any number of them share the work."""

    def __init__(self, valkey: Valkey, campuses: UserCampuses, clock: Clock) -> None:
        self.valkey = valkey
        self.campuses = campuses
        self.clock = clock
        self.keys = ActivityKeys(cluster=valkey.is_cluster)
        self._worker = f"{platform.node()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.share: frozenset[str] = frozenset()
        """The streams that are this worker's."""
        self._leads = False

    async def run_once(self) -> int:
        """Applies everything that waits now; how many entries there were."""
        applied = sum(await asyncio.gather(*(self._finish(stream) for stream in STREAMS)))
        await self.release()
        return applied

    async def _finish(self, stream: str) -> int:
        follower, applied = StreamConsumer(self, stream), 0
        while entries := await follower.step():
            applied += entries
        return applied

    async def run(self) -> None:
        """Applies what comes, until it is cancelled."""
        apart = self.valkey.apart()
        try:
            # By one first: redis-py loses connections that many open while it learns who is in a cluster.
            await apart.run(keyspace.exists(WORKERS))
            await self._work(apart)
        finally:
            await self._leave()
            await apart.close()

    async def _work(self, apart: Valkey) -> None:
        working = [
            asyncio.create_task(self._attend()),
            asyncio.create_task(self._release_forever()),
            *(asyncio.create_task(self._follow(apart, stream)) for stream in STREAMS),
        ]
        try:
            await asyncio.gather(*working)
        finally:
            # Again and again: redis-py may take a cancellation for a timeout of its own.
            while left := [task for task in working if not task.done()]:
                for task in left:
                    task.cancel()
                await asyncio.wait(left, timeout=1)

    async def _leave(self) -> None:
        try:
            await self.valkey.run(sorted_sets.remove(WORKERS, [self._worker]))
        except LaurelsError as error:
            log.warning("a worker could not leave", detail=error.detail)

    async def _attend(self) -> None:
        """Says that this worker is there, and sees which streams are its."""
        while True:
            try:
                there = await activity.attend(self.valkey, WORKERS, self._worker, int(ABSENT_SECONDS * 1000))
                shared = {stream: there[i % len(there)] for i, stream in enumerate(STREAMS)}
                self.share = frozenset(stream for stream, who in shared.items() if who == self._worker)
                self._leads = there[0] == self._worker
            except Exception as error:  # as of a stream, below
                log.warning("a worker cannot attend", exc_info=error)
            await asyncio.sleep(ATTEND_SECONDS)

    async def _follow(self, apart: Valkey, stream: str) -> None:
        follower = StreamConsumer(self, stream)
        while True:
            if stream not in self.share:
                follower = StreamConsumer(self, stream)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            try:
                if not await follower.step():
                    await streams.wait_for_entry(apart, stream, follower.floor, BLOCK_SECONDS)
            except Exception as error:  # whatever goes wrong in one stream harms no other
                log.warning("a stream is not applied", stream=stream, exc_info=error)
                follower = StreamConsumer(self, stream)
                await asyncio.sleep(RETRY_SECONDS)

    async def _release_forever(self) -> None:
        while True:
            await asyncio.sleep(PARKED_SECONDS)
            try:
                if self._leads:
                    await self.release()
            except Exception as error:  # as of a stream
                log.warning("what waits for a campus is not applied", exc_info=error)

    async def release(self) -> int:
        """Applies what waited for users whose campus is known by now; how many users."""
        some = await self.valkey.run_all(
            sets.random_members(self.keys.parked(shard), PARKED_TOGETHER) for shard in range(SHARDS)
        )
        waiting = [user for users in some for user in users]
        campuses = await self.campuses.of(waiting)
        for user, campus in campuses.items():
            while await self._release_some(user, campus):
                pass
        return len(campuses)

    async def _release_some(self, user: str, campus: CampusLike) -> bool:
        """Whether there was something."""
        waits = self.keys.parked_of(user)
        texts = await self.valkey.run(lists.first_texts(waits, WAITING_TOGETHER))
        if not texts:
            return False
        now = self.clock()
        folded = fold((Sourced.read(user, text) for text in texts), {user: campus}, now)
        call = ShardCall(self.keys, shard_of(user), now)
        call.key(waits)
        await activity.release(
            self.valkey, ActivityCall(call.keys, (*call.effects(folded), user, texts[0], len(texts)))
        )
        return True

    async def lags(self, streams: Collection[str] = STREAMS) -> dict[str, Lag]:
        """How each stream stands, whoever applies it."""
        fields = [f"late:{stream}" for stream in streams]
        counted = await self.valkey.run_all(
            hashes.get_many(self.keys.cursors(shard), fields) for shard in range(SHARDS)
        )
        backlogs = [await activity.backlog(self.valkey, stream, GROUP) for stream in streams]
        now = self.clock() // 1000
        return {
            stream: Lag(
                applied=backlog.applied,
                waiting=backlog.waiting,
                seconds=max(0, now - parse_id(backlog.oldest)[0]) / 1000 if backlog.oldest else 0.0,
                late=sum(int(shard[i] or 0) for shard in counted),
            )
            for i, (stream, backlog) in enumerate(zip(streams, backlogs, strict=True))
        }

    async def parked(self) -> int:
        """How many users have something that waits for their campus."""
        return sum(
            await self.valkey.run_all(sets.cardinality(self.keys.parked(shard)) for shard in range(SHARDS))
        )


def _payload(fields: dict[bytes, bytes]) -> str:
    shown = {name.decode(errors="replace"): value.decode(errors="replace") for name, value in fields.items()}
    return msgspec.json.encode(shown).decode()
