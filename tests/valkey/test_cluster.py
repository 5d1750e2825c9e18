"""A cluster whose primaries freeze, fail over and move slots, as the client sees it."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from redis.crc import key_slot
from supported_servers import lacks_waitaof
from valkey_cluster import ClusterServer, cluster_servers, cluster_url, move_slot
from waiting import until

from laurels.errors import OutcomeUnknown, Unavailable
from laurels.valkey import functions
from laurels.valkey.client import Valkey
from laurels.valkey.cluster import key_of
from laurels.valkey.requirements import COMMANDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

needs_waitaof = pytest.mark.skipif(lacks_waitaof(), reason="`replicated` needs Redis 7.2 or Valkey")
KEY = "{frozen}:counter"
COUNT = """#!lua name=counting
redis.register_function('count', function(keys) return redis.call('INCR', keys[1]) end)
"""


@pytest.fixture
def servers() -> Generator[list[ClusterServer]]:
    with cluster_servers(3, 1, cluster_node_timeout="1500", appendonly="yes") as servers:
        for server in servers[:3]:
            server.client.execute_command("FUNCTION", "LOAD", COUNT)
        yield servers


@pytest.fixture
async def valkey(servers: list[ClusterServer]) -> AsyncGenerator[Valkey]:
    client = Valkey(cluster_url(servers), replicas=1)
    yield client
    await client.close()


def owner_of(servers: list[ClusterServer], key: str) -> int:
    return key_slot(key.encode()) * 3 // 16384


async def in_thread(work: Any) -> None:  # noqa: ANN401  # any callable
    await asyncio.to_thread(work)


@pytest.mark.parametrize("command", [each for each in COMMANDS if "{key}" in each])
def test_the_key_of_every_command_decides_its_node(command: str):
    words = command.split()
    assert key_of(tuple(words)) == "{key}"


@needs_waitaof
async def test_calls_leave_a_silent_primary_for_its_replica(servers: list[ClusterServer], valkey: Valkey):
    number = owner_of(servers, KEY)
    primary, replica = servers[number], servers[3 + number]
    assert await valkey.write("count", (KEY,), (), "replicated") == 1
    primary.process.send_signal(signal.SIGSTOP)
    silent = asyncio.create_task(valkey.write("count", (KEY,), (), "replicated"))
    await in_thread(lambda: until(replica.is_primary))
    promoted = time.monotonic()
    with pytest.raises(OutcomeUnknown):
        await silent
    while True:
        try:
            assert int(await valkey.command("GET", KEY)) == 1
            break
        except Unavailable:
            assert time.monotonic() - promoted < 10
    assert await valkey.write("count", (KEY,), ()) == 2
    assert time.monotonic() - promoted < 10


async def test_other_primaries_answer_while_one_is_silent(servers: list[ClusterServer], valkey: Valkey):
    number = owner_of(servers, KEY)
    await valkey.command("GET", KEY)
    servers[number].process.send_signal(signal.SIGSTOP)
    waiting = [asyncio.create_task(valkey.command("GET", KEY)) for _ in range(300)]
    other = next(f"{{{name}}}" for name in "abcdefgh" if owner_of(servers, f"{{{name}}}") != number)
    began = time.monotonic()
    await valkey.command("SET", other, 1)
    assert time.monotonic() - began < 2
    servers[number].process.send_signal(signal.SIGCONT)
    await asyncio.gather(*waiting, return_exceptions=True)


@needs_waitaof
async def test_a_replaced_primary_that_thaws_acknowledges_nothing(
    servers: list[ClusterServer], valkey: Valkey
):
    number = owner_of(servers, KEY)
    primary, replica = servers[number], servers[3 + number]
    assert await valkey.write("count", (KEY,), (), "replicated") == 1
    primary.process.send_signal(signal.SIGSTOP)
    sent = [asyncio.create_task(valkey.write("count", (KEY,), (), "replicated")) for _ in range(20)]
    await in_thread(lambda: until(replica.is_primary))
    primary.process.send_signal(signal.SIGCONT)
    answers = await asyncio.gather(*sent, return_exceptions=True)
    acknowledged = [answer for answer in answers if isinstance(answer, int)]
    assert all(isinstance(answer, int | Unavailable) for answer in answers)
    counted = int(replica.client.get(KEY))
    assert counted >= 1 + len(acknowledged)
    assert all(answer <= counted for answer in acknowledged)


@needs_waitaof
async def test_a_primary_that_was_replaced_and_is_back_acknowledges_only_what_it_has(
    servers: list[ClusterServer], valkey: Valkey
):
    """A `WAIT` under way when its primary is replaced continues, and counts replicas of the new history."""
    number = owner_of(servers, KEY)
    primary, replica = servers[number], servers[3 + number]
    assert await valkey.write("count", (KEY,), (), "replicated") == 1
    cut_off(primary)
    doubtful = asyncio.create_task(valkey.write("count", (KEY,), (), "replicated"))
    await in_thread(lambda: until(lambda: blocked_clients(primary) == 1))
    replica.client.execute_command("CLUSTER", "FAILOVER", "TAKEOVER")
    await in_thread(lambda: until(lambda: follows(primary)))
    primary.client.config_set("requirepass", "")
    primary.client.execute_command("CLUSTER", "FAILOVER", "TAKEOVER")
    await in_thread(lambda: until(lambda: primary.is_primary() and follows(replica)))
    for _ in range(100):  # the new history grows past the point that the old one had reached
        primary.client.incr(f"{KEY}:other")
    with pytest.raises(OutcomeUnknown):
        await doubtful
    assert int(await valkey.command("GET", KEY)) == 1
    assert await valkey.write("count", (KEY,), (), "replicated") == 2


def cut_off(primary: ClusterServer) -> None:
    """Cuts a primary off from its replica by a password, until the password is removed."""
    primary.client.config_set("requirepass", "of the test")
    primary.client.execute_command("CLIENT", "KILL", "TYPE", "replica")


def blocked_clients(server: ClusterServer) -> int:
    return server.client.info("clients")["blocked_clients"]


def follows(server: ClusterServer) -> bool:
    role = server.client.execute_command("ROLE")
    return role[0] == b"slave" and role[3] == b"connected"


async def test_impatient_callers_leave_a_silent_primary_too(servers: list[ClusterServer], valkey: Valkey):
    number = owner_of(servers, KEY)
    await valkey.ask_primaries("PING")
    servers[number].process.send_signal(signal.SIGSTOP)
    async with asyncio.timeout(60):
        while True:
            with suppress(TimeoutError, Unavailable):
                async with asyncio.timeout(2):  # as `/readyz` asks
                    await valkey.ask_primaries("PING")
                    return


async def test_calls_to_a_silent_cluster_wait_together(servers: list[ClusterServer], valkey: Valkey):
    await valkey.command("GET", KEY)
    for server in servers:
        server.process.send_signal(signal.SIGSTOP)
    asked = [asyncio.create_task(valkey.command("GET", f"{KEY}:{number}")) for number in range(30)]
    began = time.monotonic()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(answer, Unavailable) for answer in answers)
    # One after the other they took 95 s; together, 8.
    assert time.monotonic() - began < 40


async def test_a_slot_that_nobody_had_is_found_once_somebody_has_it():
    slot = key_slot(KEY.encode())
    with cluster_servers(3, cluster_require_full_coverage="no") as servers:
        for server in servers:
            server.client.execute_command("CLUSTER", "DELSLOTS", slot)
        valkey = Valkey(cluster_url(servers))
        asked = asyncio.create_task(valkey.command("GET", KEY))
        await valkey.command("GET", "another")
        with pytest.raises(Unavailable, match="CLUSTERDOWN"):
            await asked
        servers[0].client.execute_command("CLUSTER", "ADDSLOTS", slot)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with suppress(Unavailable):
                assert await valkey.command("GET", KEY) is None
                break
        else:
            pytest.fail("the slot was not looked for again")
        await valkey.close()


async def test_a_node_that_imports_a_slot_gets_our_functions(servers: list[ClusterServer], valkey: Valkey):
    slot = key_slot(KEY.encode())
    number = owner_of(servers, KEY)
    source, target, silent = servers[number], servers[(number + 1) % 3], servers[(number + 2) % 3]
    await valkey.load_functions()
    target.client.execute_command("FUNCTION", "FLUSH")
    target.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", source.name)
    source.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", target.name)
    silent.process.send_signal(signal.SIGSTOP)
    await functions.begin_session(valkey, KEY, b"session", 60)
    target.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", target.name)
    assert target.client.get(KEY) == b"session"


@needs_waitaof
async def test_reads_and_writes_go_on_while_slots_move(servers: list[ClusterServer], valkey: Valkey):
    slot = key_slot(KEY.encode())
    number = owner_of(servers, KEY)
    source, target = servers[number], servers[(number + 1) % 3]
    others = [f"{{frozen}}:{name}" for name in range(20)]
    await asyncio.gather(*(valkey.command("SET", key, "x") for key in others))
    stop = asyncio.Event()
    counted = 0

    async def count() -> None:
        nonlocal counted
        while not stop.is_set():
            await valkey.write("count", (KEY,), (), "replicated")
            counted += 1

    async def read() -> None:
        while not stop.is_set():
            assert await valkey.commands([("GET", key) for key in others]) == [b"x"] * 20

    async with asyncio.TaskGroup() as group:
        for work in (count, count, read, read):
            group.create_task(work())
        for _ in range(4):
            await in_thread(lambda source=source, target=target: move_slot(slot, source, target, servers))
            source, target = target, source
        stop.set()
    assert int(await valkey.command("GET", KEY)) == counted
