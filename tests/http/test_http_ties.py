"""Equal scores on a board of `earliest`: over HTTP too, the order in which they came decides."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import msgspec
import pytest

from laurels.engine import Laurels
from laurels.http.app import create_app
from laurels.scores.submission import Submission, Submitted

from .test_http_fast_submit import known, serving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx

    from laurels.embedded import Endpoints

    from .test_http_fast_submit import Way

MEMBERS = [f"m{number:03}" for number in range(150)]
random.Random(14).shuffle(MEMBERS)  # noqa: S311  # data, not secrets


@pytest.fixture
async def ticking(endpoints: Endpoints) -> AsyncGenerator[Laurels]:
    """By a clock that goes on."""
    async with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as laurels:
        yield laurels


@pytest.fixture
async def way(ticking: Laurels, admin_key: str) -> AsyncGenerator[Way]:
    async with serving(create_app(ticking), admin_key) as way:
        yield way


async def defined(ticking: Laurels, project: str, shards: int) -> str:
    """A board that feeds another one; both go by the earliest."""
    await ticking.define(f"{project}/fed", {"ties": "earliest", "shards": shards})
    await ticking.define(
        f"{project}/ties", {"ties": "earliest", "shards": shards, "feeds": [f"{project}/fed"]}
    )
    return f"/v1/projects/{project}/boards/ties"


async def check(ticking: Laurels, project: str) -> None:
    for board in (f"{project}/ties", f"{project}/fed"):
        await ticking.archived(board)
        assert await listed(ticking, board) == MEMBERS
        await ticking.rebuild(board)
        assert await listed(ticking, board) == MEMBERS
        assert (await ticking.verify(board)).differences == []


async def listed(ticking: Laurels, board: str) -> list[str]:
    return [entry.member for entry in (await ticking.page(board, limit=1000)).entries]


def encoded(member: str) -> bytes:
    return msgspec.json.encode({"member": member, "score": 5})


@pytest.mark.parametrize("shards", [1, 3])
async def test_of_single_scores_on_one_connection(
    way: Way, ticking: Laurels, project: str, admin_key: str, shards: int
):
    """Sent one behind the other, without waiting for answers: the first goes by the fast way."""
    board = await known(way, await defined(ticking, project, shards))
    await ticking.remove(f"{project}/ties", "first")
    await ticking.remove(f"{project}/fed", "first")
    head = (
        f"POST {board}/scores HTTP/1.1\r\nHost: laurels.test\r\nAuthorization: Bearer {admin_key}\r\n"
        "Content-Type: application/json\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
    for member in MEMBERS:
        body = encoded(member)
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    async with asyncio.timeout(30):
        for member in MEMBERS:
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200")
            length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            assert msgspec.json.decode(await reader.readexactly(length))["member"] == member
    writer.close()
    assert way.taken[0]
    await check(ticking, project)


@pytest.mark.parametrize("shards", [1, 3])
async def test_of_single_scores_that_are_under_way_together(ticking: Laurels, project: str, shards: int):
    await defined(ticking, project, shards)
    submit = ticking.submit
    await asyncio.gather(*(submit(f"{project}/ties", member, 5) for member in MEMBERS))
    await check(ticking, project)


@pytest.mark.parametrize("shards", [1, 3])
async def test_of_single_scores_that_the_express_way_hands_over(ticking: Laurels, project: str, shards: int):
    await defined(ticking, project, shards)
    board = f"{project}/ties"
    await ticking.page(board)  # this process knows it now
    told: asyncio.Queue[Submitted | Exception] = asyncio.Queue()
    for member in MEMBERS:
        send = ticking.prepare(board, Submission(member, 5))
        assert send
        send(told.put_nowait)
    for _ in MEMBERS:
        assert isinstance(await told.get(), Submitted)
    await check(ticking, project)


@pytest.mark.parametrize("kind", ["array", "lines", "lines in pieces"])
@pytest.mark.parametrize("shards", [1, 3])
async def test_of_a_batch(way: Way, ticking: Laurels, project: str, kind: str, shards: int):
    board = await defined(ticking, project, shards)
    answer: httpx.Response
    if kind == "array":
        content = b"[" + b",".join(map(encoded, MEMBERS)) + b"]"
        headers = {"Content-Type": "application/json"}
        answer = await way.client.post(f"{board}/scores/batch", content=content, headers=headers)
    else:
        sent = b"".join(encoded(member) + b"\n" for member in MEMBERS)
        step = 777 if kind == "lines in pieces" else len(sent)

        async def pieces() -> AsyncGenerator[bytes]:
            for first in range(0, len(sent), step):
                yield sent[first : first + step]

        headers = {"Content-Type": "application/x-ndjson"}
        answer = await way.client.post(f"{board}/scores/batch", content=pieces(), headers=headers)
    assert answer.json()["accepted"] == len(MEMBERS)
    await check(ticking, project)
