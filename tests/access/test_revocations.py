from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from waiting import eventually

from laurels.access.revocations import Revocations
from laurels.valkey import client
from laurels.valkey.client import Valkey

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

DEADLINE_SECONDS = 10


async def primaries(revocations: Revocations) -> list[Any]:
    """A client of each node."""
    return await revocations._valkey._primaries()  # pyright: ignore[reportPrivateUsage]  # there is no public way


@pytest.fixture(params=["own_valkey_url", "own_cluster_url"])
async def two(request: pytest.FixtureRequest) -> AsyncGenerator[tuple[Revocations, Revocations]]:
    """Two subscribers that Valkey cannot tell from two processes; on one node, and on a cluster."""
    url: str = request.getfixturevalue(request.param)
    valkeys = Valkey(url), Valkey(url)
    one, other = (Revocations(valkey) for valkey in valkeys)
    yield one, other
    for revocations, valkey in zip((one, other), valkeys, strict=True):
        await revocations.close()
        await valkey.close()


async def test_every_listening_process_receives_a_revocation(two: tuple[Revocations, Revocations]):
    one, other = two
    heard: list[str] = []
    one.subscribe(heard.append)
    assert not one.is_listening
    async with asyncio.timeout(DEADLINE_SECONDS):
        await one.listening()
    await other.announce("key:1")
    await other.announce("key:é")
    await eventually(lambda: len(heard) == 2)
    assert heard == ["key:1", "key:é"]
    assert (one.count, one.gaps) == (2, 1)


async def test_the_revoking_process_is_notified_before_it_goes_on(two: tuple[Revocations, Revocations]):
    one, _ = two
    heard: list[str] = []
    one.subscribe(heard.append)
    await one.announce("key:1")
    assert heard == ["key:1"]


async def test_a_lost_subscription_counts_as_a_gap(
    two: tuple[Revocations, Revocations],
):
    one, other = two
    heard: list[str] = []
    one.subscribe(heard.append)
    async with asyncio.timeout(DEADLINE_SECONDS):
        await one.listening()
    for node in await primaries(other):
        await node.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
    await eventually(lambda: not one.is_listening)
    await eventually(lambda: one.is_listening)
    assert one.gaps == 2
    await other.announce("key:2")
    await eventually(lambda: heard == ["key:2"])


async def test_a_silent_channel_is_pinged(
    two: tuple[Revocations, Revocations], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(client, "SILENCE_SECONDS", 0.1)
    one, other = two

    async def pings() -> int:
        found = 0
        for node in await primaries(other):
            stats = await node.execute_command("INFO", "commandstats")
            found += stats.get("cmdstat_ping", {}).get("calls", 0)
        return found

    before = await pings()
    async with asyncio.timeout(DEADLINE_SECONDS):
        await one.listening()
        while await pings() < before + 3:
            pass
    assert (one.is_listening, one.gaps) == (True, 1)
    for node in await primaries(other):
        await node.execute_command("CLIENT", "PAUSE", 1000, "ALL")
    await eventually(lambda: not one.is_listening)
    await eventually(lambda: one.is_listening)
    assert one.gaps > 1


async def test_a_silent_valkey_does_not_prevent_a_revocation():
    valkey = Valkey("redis://127.0.0.1:1")
    revocations = Revocations(valkey)
    heard: list[str] = []
    revocations.subscribe(heard.append)
    revocations.listen()
    await revocations.announce("key:1")
    assert heard == ["key:1"]
    assert not revocations.is_listening
    await revocations.close()
    await valkey.close()
