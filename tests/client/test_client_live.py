"""Live updates from a real server: in order, through broken connections, to the end."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, closing
from typing import TYPE_CHECKING

import psutil
import pytest

from laurels.client import AsyncClient, Change, Client, Moved, Snapshot
from laurels.errors import InvalidInput, NotFound
from laurels.scores.results import Standing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from loopback_proxy import Proxy

    from laurels.client import Update

    from .conftest import Served

# Longer than any update takes; short enough to tell that one never comes.
PATIENCE = 30.0


async def following(updates: AsyncGenerator[Update]) -> Snapshot | Change:
    async with asyncio.timeout(PATIENCE):
        return (await anext(updates)).value


async def test_what_changes_is_told(async_client: AsyncClient, board: str):
    await async_client.submit(board, "ada", 5)
    async with aclosing(async_client.watch(board, limit=2)) as updates:
        snapshot = await following(updates)
        assert isinstance(snapshot, Snapshot)
        assert snapshot.entries == (await async_client.page(board, limit=2)).entries
        await async_client.submit(board, "bob", 7, metadata={"level": 3})
        change = await following(updates)
        assert isinstance(change, Change)
        assert [(moved.rank, moved.member, moved.previous_rank) for moved in change.entries] == [
            (1, "bob", None), (2, "ada", 1)
        ]  # fmt: skip
        assert change.entries[0].metadata == {"level": 3}
        await async_client.submit(board, "eve", 6)
        change = await following(updates)
        assert isinstance(change, Change)
        assert (change.total, change.left) == (3, ["ada"])


async def test_a_member_is_followed_wherever_it_stands(async_client: AsyncClient, board: str):
    await async_client.submit(board, "ada", 5)
    async with aclosing(async_client.watch(board, limit=1, member="bob")) as updates:
        snapshot = await following(updates)
        assert isinstance(snapshot, Snapshot)
        assert snapshot.member is None
        await async_client.submit(board, "bob", 2)
        change = await following(updates)
        assert isinstance(change, Change)
        assert isinstance(change.member, Standing)
        assert (change.member.rank, change.entries) == (2, [])


async def test_64_bit_scores_are_exact(async_client: AsyncClient):
    await async_client.define("exact", {"score": "int64"})
    async with aclosing(async_client.watch("exact", member="ada")) as updates:
        await following(updates)
        await async_client.submit("exact", "ada", 2**63 - 1)
        change = await following(updates)
        assert isinstance(change, Change)
        assert change.entries[0].score == 2**63 - 1
        assert isinstance(change.member, Standing)
        assert change.member.score == 2**63 - 1


async def test_a_broken_connection_goes_on_where_it_broke(
    served: Served, async_client: AsyncClient, project: str, proxy: Proxy, board: str
):
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        # What happens between two connections is not missed.
        if not pauses:
            await async_client.submit(board, "bob", 7)
        pauses.append(seconds)

    async with (
        AsyncClient(proxy.address, key=served.key, project=project, sleep=sleep) as unsteady,
        aclosing(unsteady.watch(board)) as updates,
    ):
        assert isinstance(await following(updates), Snapshot)
        proxy.faults.extend(["before", "before"])
        proxy.cut()
        change = await following(updates)
        assert isinstance(change, Change)
        assert [moved.member for moved in change.entries] == ["bob"]
    assert len(pauses) == 3
    assert pauses[0] >= 1.0  # as the server asks for
    first, *others = proxy.requests
    assert b"last-event-id" not in first.lower()
    assert all(b"last-event-id: " in request.lower() for request in others)


async def test_a_board_that_is_dropped_is_the_end(async_client: AsyncClient, board: str):
    async with aclosing(async_client.watch(board)) as updates:
        assert isinstance(await following(updates), Snapshot)
        await async_client.drop(board, allow_drop="all")
        with pytest.raises(NotFound):
            await following(updates)
        with pytest.raises(StopAsyncIteration):
            await following(updates)


async def test_what_cannot_be_followed_is_an_error(async_client: AsyncClient, board: str):
    with pytest.raises(NotFound):
        await following(async_client.watch("nowhere"))
    with pytest.raises(InvalidInput, match="limit"):
        await following(async_client.watch(board, limit=0))


async def test_many_follow_with_one_client(async_client: AsyncClient, board: str):
    async def second_update() -> Snapshot | Change:
        async with aclosing(async_client.watch(board)) as updates:
            async with connecting:
                assert isinstance(await following(updates), Snapshot)
            begun.release()
            return await following(updates)

    # A few at a time: it is how many stay connected that counts here, more than httpx would by itself.
    connecting, begun = asyncio.Semaphore(20), asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(second_update()) for _ in range(150)]
        for _ in tasks:
            await begun.acquire()
        await async_client.submit(board, "bob", 7)
    heard = [task.result() for task in tasks]
    assert heard == [Change(1, [Moved(1, "bob", 7, None)], [])] * 150


def test_a_blocking_client_follows_too(client: Client, board: str):
    with closing(client.watch(board)) as updates:
        assert isinstance(next(updates).value, Snapshot)
        client.submit(board, "ada", 5)
        change = next(updates).value
        assert isinstance(change, Change)
        assert change.entries[0].score == 5
        client.drop(board, allow_drop="all")
        with pytest.raises(NotFound):
            next(updates)
        assert list(updates) == []


def connections_to(served: Served) -> int:
    """How many this process has open."""
    return sum(
        bool(each.raddr) and each.raddr.port == served.port
        for each in psutil.Process().net_connections("tcp")
    )


def test_who_stops_listening_hangs_up(served: Served, client: Client, board: str):
    before = connections_to(served)
    for update in client.watch(board):
        assert isinstance(update.value, Snapshot)
        client.submit(board, "ada", 5)  # on the connection that is kept
        assert connections_to(served) == before + 1
        break
    assert connections_to(served) == before


async def test_who_stops_awaiting_hangs_up(served: Served, async_client: AsyncClient, board: str):
    before = connections_to(served)
    listening = asyncio.create_task(_listen_for_ever(async_client, board, heard := asyncio.Event()))
    await heard.wait()
    assert connections_to(served) == before + 1
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    assert connections_to(served) == before


async def _listen_for_ever(client: AsyncClient, board: str, heard: asyncio.Event) -> None:
    async with aclosing(client.watch(board)) as updates:
        async for _ in updates:
            heard.set()
