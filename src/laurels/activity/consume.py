"""Applies the events of the streams to the counters, each event exactly once.

Each stream has a cursor in every shard of users. The call that applies effects also moves the cursor; a call
that expects another cursor changes nothing. An event that reaches two users is applied in two shards, each
with its own cursor. The consumer group `laurels` shows how far the whole stream is applied: it moves last and
is never ahead. So a batch may be read again, a worker may pause or die anywhere, and two workers may follow
the same stream: the counters are the same.

Workers report to Valkey every two seconds and divide the streams: worker i of n takes every n-th stream from
the i-th on. This saves work and protects nothing, so it needs no lock. Jobs need one (`jobs/store.py`);
decision 0020 says why streams do not use it.
"""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from laurels.activity.accumulate import EventSource, SourcedEffect, fold
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

# Entries of a batch: Valkey then works 2 ms on the call of one shard.
ENTRIES_TOGETHER: Final = 4000
# Between two reports of a worker, and after how long without one the others take its streams.
ATTEND_SECONDS: Final = 2.0
ABSENT_SECONDS: Final = 6.0
# How long a read blocks; the pause after a failure; the pause between two looks at parked effects.
BLOCK_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 1.0
PARKED_SECONDS: Final = 5.0
# Users of a shard whose campus is looked up again, and effects of one user that one call releases.
PARKED_TOGETHER: Final = 100
WAITING_TOGETHER: Final = 1000
MOST_DEAD: Final = 100_000
"""The number of dead letters to keep; the oldest are trimmed."""

Id = tuple[int, int]
BEGINNING: Final = "0-0"
AT_THE_END: Final = "-"
"""No cursor has this value, so a call that expects it applies nothing."""

log = get_logger("laurels.activity")


def parse_id(text: str) -> Id:
    milliseconds, _, seq = (text or BEGINNING).partition("-")
    return int(milliseconds), int(seq)


@dataclass(slots=True)
class _EntryBatch:
    """Entries of one stream, in order."""

    entries: int = 0
    last: str = BEGINNING
    effects: dict[int, list[tuple[Id, SourcedEffect]]] = field(
        default_factory=dict[int, list[tuple[Id, SourcedEffect]]]
    )
    """By shard."""
    dead: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    def users(self) -> set[str]:
        return {sourced.effect.user for effects in self.effects.values() for _, sourced in effects}


class Lag(NamedTuple):
    """How far one stream is applied, in entries."""

    applied: int
    waiting: int
    seconds: float
    """Age of the oldest waiting entry."""
    late: int
    """Effects that came after their day had expired, and do not count."""


class StreamConsumer:
    """Applies one stream. Other workers may apply it at the same time."""

    def __init__(self, accrual: Accrual, stream: str) -> None:
        self._accrual = accrual
        self._valkey = accrual.valkey
        self.stream = stream
        self.floor = BEGINNING
        """Every entry up to this id is applied."""
        self._cursors: list[str] | None = None

    async def step(self) -> int:
        """Applies the next batch; returns the number of its entries."""
        if self._cursors is None:
            self._cursors = await self._load_cursors()
        applied = await activity.join(self._valkey, self.stream, GROUP)
        if applied is None:
            return 0
        self.floor = applied
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
                shard.append((place, SourcedEffect(effect, source)))
        batch.last = listed[-1][0].decode()
        return batch

    async def _apply(self, batch: _EntryBatch, cursors: list[str]) -> None:
        """Calls each shard until its cursor is at the end of the batch, whichever worker moved it.

        Above the durability `fast`, a shard that is already there is called too: the wait of the call that
        brought it there may have failed.
        """
        campuses = await self._accrual.campuses.of(batch.users())
        last, left = parse_id(batch.last), list(batch.effects)
        if self._valkey.durability == "fast":
            left = [shard for shard in left if parse_id(cursors[shard]) < last]
        while left:
            calls = [self._call(batch, shard, cursors[shard], campuses) for shard in left]
            for shard, cursor in zip(left, await activity.accrue(self._valkey, calls), strict=True):
                cursors[shard] = batch.last if cursor is None else cursor
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
    """Keeps the counters of users' days. Any number of workers share the streams."""

    def __init__(self, valkey: Valkey, campuses: UserCampuses, clock: Clock) -> None:
        self.valkey = valkey
        self.campuses = campuses
        self.clock = clock
        self.keys = ActivityKeys(cluster=valkey.is_cluster)
        self._worker = f"{platform.node()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.share: frozenset[str] = frozenset()
        """The streams of this worker."""
        self._leads = False

    async def run_once(self) -> int:
        """Applies everything that waits now; returns the number of entries."""
        applied = sum(await asyncio.gather(*(self._apply_all(stream) for stream in STREAMS)))
        await self.release()
        return applied

    async def _apply_all(self, stream: str) -> int:
        follower, applied = StreamConsumer(self, stream), 0
        while entries := await follower.step():
            applied += entries
        return applied

    async def run(self) -> None:
        """Applies events as they come, until it is cancelled."""
        apart = self.valkey.apart()
        try:
            # One command first: redis-py loses connections that are opened while it discovers a cluster.
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
            # Repeated, because redis-py may take a cancellation for a timeout of its own.
            while left := [task for task in working if not task.done()]:
                for task in left:
                    task.cancel()
                await asyncio.wait(left, timeout=1)

    async def _leave(self) -> None:
        try:
            await self.valkey.run(sorted_sets.remove(WORKERS, [self._worker]))
        except LaurelsError as error:
            log.warning("worker not signed off; it expires soon", worker=self._worker, detail=error.detail)

    async def _attend(self) -> None:
        """Reports this worker, and learns which streams belong to it."""
        while True:
            try:
                workers = await activity.attend(
                    self.valkey, WORKERS, self._worker, int(ABSENT_SECONDS * 1000)
                )
                own = workers.index(self._worker)
                self.share = frozenset(STREAMS[own :: len(workers)])
                self._leads = own == 0
            except Exception as error:  # as in `_follow`
                log.warning("worker not reported; retrying", worker=self._worker, exc_info=error)
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
            except Exception as error:  # a failure in one stream must not stop the others
                log.warning("stream not applied; retrying", stream=stream, exc_info=error)
                follower = StreamConsumer(self, stream)
                await asyncio.sleep(RETRY_SECONDS)

    async def _release_forever(self) -> None:
        while True:
            await asyncio.sleep(PARKED_SECONDS)
            try:
                if self._leads:
                    await self.release()
            except Exception as error:  # as in `_follow`
                log.warning("parked effects not applied; retrying", exc_info=error)

    async def release(self) -> int:
        """Applies the parked effects of users whose campus is known by now; returns the number of users."""
        parked = await self.valkey.run_all(
            sets.random_members(self.keys.parked(shard), PARKED_TOGETHER) for shard in range(SHARDS)
        )
        campuses = await self.campuses.of([user for users in parked for user in users])
        for user, campus in campuses.items():
            await self._release_user(user, campus)
        return len(campuses)

    async def _release_user(self, user: str, campus: CampusLike) -> None:
        parked = self.keys.parked_of(user)
        while texts := await self.valkey.run(lists.first_texts(parked, WAITING_TOGETHER)):
            now = self.clock()
            folded = fold((SourcedEffect.from_text(user, text) for text in texts), {user: campus}, now)
            call = ShardCall(self.keys, shard_of(user), now)
            call.key(parked)
            message = (*call.effects(folded), user, texts[0], len(texts))
            await activity.release(self.valkey, ActivityCall(call.keys, message))

    async def lags(self, streams: Collection[str] = STREAMS) -> dict[str, Lag]:
        """The lag of each stream, counted over all workers."""
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
        """How many users have parked effects."""
        return sum(
            await self.valkey.run_all(sets.cardinality(self.keys.parked(shard)) for shard in range(SHARDS))
        )


def _payload(fields: dict[bytes, bytes]) -> str:
    shown = {name.decode(errors="replace"): value.decode(errors="replace") for name, value in fields.items()}
    return msgspec.json.encode(shown).decode()
