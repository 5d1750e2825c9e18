"""The cost of a campus's day: scoring its users, finalizing the day, and doing it again; and how long each
holds Valkey. As in `bench/stalls.py`, a control shows how many long commands are due to the machine.
"""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from bench.archive import LEAST_CONTROL_SECONDS
from bench.ground import Ground, ground
from bench.results import Results, Row, judged
from bench.stalls import Held, Watch, as_rare
from laurels.activity.store.people import Campus
from laurels.activity.valkey_keys import ActivityKeys, shard_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CAMPUS = Campus(str(UUID(int=1)), "Bench", "UTC")
NOON = datetime(2025, 10, 24, 12, tzinfo=UTC)
YMD = 20251024
COUNTERS = (
    "invites_accepted", "friends_new", "dm_sent", "room_sent", "acts_played", "acts_won", "rooms_joined",
    "rooms_created",
)  # fmt: skip
PEERS = 3


async def run(members: int) -> Results:
    found: list[Row] = []
    ours, control, rows = Held(), Held(), 0
    async with ground(NOON) as place:
        activity = place.laurels.activity
        await activity.store.put_campuses([CAMPUS])
        seed(place, members)

        async def score() -> None:
            while await activity.rescorer.run_once():
                pass

        async def finalize() -> None:
            nonlocal rows
            rows = await activity.finalizer.finalize(CAMPUS, YMD)

        work: dict[str, Callable[[], Awaitable[None]]] = {
            "scored, all of them": score,
            "finalized": finalize,
            "finalized again": finalize,
        }
        watch = Watch(place.raw, members)
        for name, do in work.items():
            watch.start()
            began = time.perf_counter()
            await do()
            seconds = time.perf_counter() - began
            held = watch.stop()
            ours.add(held)
            found += Row(name, f"{members / seconds:,.0f} users/s"), Row(f"{name}: calls", str(held))
            control.add(watch.control(held, max(held.seconds / 2, LEAST_CONTROL_SECONDS)))
            place.clock.now += (timedelta(hours=12, minutes=6) if do is score else timedelta(0)) // timedelta(
                microseconds=1
            )
    complete = Row("users of the day", f"{rows:,}", "", None, *judged(rows, least=members))
    return Results([*found, complete, as_rare(ours, control)])


def seed(place: Ground, members: int) -> None:
    """Writes the counters that the streams would produce."""
    chosen = random.Random(7)  # noqa: S311  # data, not secrets
    keys = ActivityKeys(cluster=False)
    pipeline = place.raw.pipeline(transaction=False)
    for number in range(members):
        user = str(UUID(int=1_000_000 + number))
        shard = shard_of(user)
        peers = [str(UUID(int=chosen.randrange(10**9))) for _ in range(PEERS)]
        counters = {name: chosen.randrange(20) for name in COUNTERS}
        distinct = {"uniq_senders": PEERS, "uniq_invite_accept_from": 1}
        pipeline.hset(
            keys.counters(YMD, user), mapping={**counters, **distinct, "touched": 1, "campus": CAMPUS.id}
        )
        pipeline.sadd(keys.senders(YMD, user), *peers)
        pipeline.sadd(keys.accepts(YMD, user), peers[0])
        pipeline.sadd(keys.campus_users(shard, YMD, CAMPUS.id), user)
        pipeline.zadd(keys.changed(shard), {f"{YMD}:{user}": number + 1})
        if number % 1_000 == 999:
            pipeline.execute()
    pipeline.execute()
