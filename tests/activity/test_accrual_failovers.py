"""Events counted on a primary that is lost before its replica received them."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio
import pytest
from accrual_stage import NOON, AccrualStage
from redis.crc import key_slot
from supported_servers import lacks_waitaof
from valkey_cluster import SLOTS, cluster_servers, cluster_url
from waiting import until

from laurels import Laurels
from laurels.activity import valkey_keys
from laurels.activity.store.people import User
from laurels.clock import FixedClock
from laurels.errors import Unavailable
from laurels.moments import moment_of
from laurels.valkey import client

if TYPE_CHECKING:
    from laurels.embedded import Endpoints

pytestmark = pytest.mark.skipif(lacks_waitaof(), reason="durability `replicated` needs Redis 7.2 or Valkey")


def number_of(key: str) -> int:
    """The primary that has the key."""
    return key_slot(key.encode()) * 3 // SLOTS


async def test_events_are_counted_once_after_a_primary_is_lost(
    endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(client, "WAIT_SECONDS", 1)
    clock = FixedClock(moment_of(NOON))
    with cluster_servers(3, 1, cluster_node_timeout="1500", appendonly="yes") as servers:
        async with Laurels(
            valkey_url=cluster_url(servers),
            postgres_url=endpoints.postgres_url,
            durability="replicated",
            clock=clock,
            jobs=False,
        ) as laurels:
            stage = AccrualStage(laurels, clock)
            ada, bob = await users_apart_from(stage, valkey_keys.INVITES)
            accepted = {"event": "accepted", "from": bob, "to": ada}
            await stage.add(valkey_keys.INVITES, accepted)
            await stage.accrual.run_once()
            number = number_of(stage.keys.counters(20251024, bob))
            primary, replica = servers[number], servers[3 + number]
            replica.process.send_signal(signal.SIGSTOP)
            primary.client.execute_command("CLIENT", "KILL", "TYPE", "replica")
            await stage.add(valkey_keys.INVITES, accepted)
            for _ in range(2):  # what is counted there already is not durable either
                with pytest.raises(Unavailable):
                    await stage.accrual.run_once()
            primary.process.kill()
            primary.process.wait()
            replica.process.send_signal(signal.SIGCONT)
            await anyio.to_thread.run_sync(lambda: until(replica.is_primary))
            primary.start()
            await until_accrued(stage)
            assert (await stage.day(bob))["invites_accepted"] == "2"


async def users_apart_from(stage: AccrualStage, stream: str) -> tuple[str, str]:
    """Two users of a known campus whose counters are on another primary than the stream."""
    campus, found = await stage.campus(), list[str]()
    while len(found) < 2:
        user = str(uuid4())
        if number_of(stage.keys.counters(20251024, user)) != number_of(stream):
            found.append(user)
    await stage.laurels.activity.store.put_users([User(user, campus) for user in found])
    return found[0], found[1]


async def until_accrued(stage: AccrualStage) -> None:
    with anyio.fail_after(60):
        while True:
            try:
                await stage.accrual.run_once()
            except Unavailable:
                continue
            return
