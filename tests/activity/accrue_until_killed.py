"""Two workers that count, killed at random: each argument is a number of applied entries at which one of them
gets SIGKILL and is replaced. Ends when the number of the last argument is applied.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
import traceback
from typing import Any

import redis

from laurels.activity import consume
from laurels.activity.campus_people import CampusPeople
from laurels.activity.campuses import UserCampuses
from laurels.activity.store.people import CampusStore
from laurels.activity.valkey_keys import GROUP, STREAMS, ActivityKeys
from laurels.clock import FixedClock
from laurels.people.records import Person, Place
from laurels.people.store import RecordStore
from laurels.postgres.engine import Postgres
from laurels.valkey.client import Valkey

VALKEY_URL, POSTGRES_URL, NOW, SEED, TOGETHER, *MOMENTS = sys.argv[1:]

# Workers expire sooner than in production, and small batches can be killed in more places.
consume.ATTEND_SECONDS = 0.05  # pyright: ignore[reportConstantRedefinition]
consume.ABSENT_SECONDS = 0.3  # pyright: ignore[reportConstantRedefinition]
consume.RETRY_SECONDS = 0.02  # pyright: ignore[reportConstantRedefinition]
consume.ENTRIES_TOGETHER = int(TOGETHER)  # pyright: ignore[reportConstantRedefinition]


async def work() -> None:
    valkey, postgres = Valkey(VALKEY_URL), Postgres(POSTGRES_URL)
    stored = CampusStore(postgres), RecordStore(postgres, Person), RecordStore(postgres, Place)
    people = CampusPeople(*stored, "UTC")
    campuses = UserCampuses(valkey, people, ActivityKeys(cluster=valkey.is_cluster))
    await consume.Accrual(valkey, campuses, FixedClock(int(NOW))).run()


def start() -> int:
    worker = os.fork()
    if worker == 0:
        try:
            asyncio.run(work())
        except BaseException:  # noqa: BLE001  # the parent's code must not go on here
            traceback.print_exc()
        os._exit(1)
    return worker


def applied(client: Any, workers: list[int]) -> int:  # noqa: ANN401  # redis-py types its clients only in part
    assert all(os.waitpid(worker, os.WNOHANG) == (0, 0) for worker in workers)
    found = 0
    for stream in STREAMS:
        if client.exists(stream):
            groups = client.xinfo_groups(stream)
            found += sum(group["entries-read"] or 0 for group in groups if group["name"] == GROUP.encode())
    return found


def main() -> None:
    untyped: Any = redis.RedisCluster if "+cluster" in VALKEY_URL else redis.Redis
    client = untyped.from_url(VALKEY_URL.replace("+cluster", ""))
    chance = random.Random(int(SEED))  # noqa: S311  # no secret
    workers = [start(), start()]
    *moments, everything = map(int, MOMENTS)
    for moment in moments:
        while applied(client, workers) < moment:
            time.sleep(0.01)
        victim = chance.randrange(2)
        os.kill(workers[victim], signal.SIGKILL)
        _, status = os.waitpid(workers[victim], 0)
        workers[victim] = start()
        sys.stdout.write(f"{os.WTERMSIG(status)}\n")
    while applied(client, workers) < everything:
        time.sleep(0.01)
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)


main()
