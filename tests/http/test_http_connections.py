"""What a connection may cost before it shows a key: bytes, requests in a row, time; and how many there are.

Time is an argument of what closes connections, so no test waits for it.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import httpx
import msgspec
import psutil
import pytest
from cli_processes import serving as served
from places import fast_place, folder_that_anybody_may_pass
from waiting import eventually
from ways import listening

from laurels.http.server import closing, connection, heads

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from fastapi import FastAPI
    from uvicorn.server import ServerState

    from laurels.http.server.connection import Connection

QUESTION = b"GET /healthz HTTP/1.1\r\nHost: laurels\r\n\r\n"
DEADLINE_SECONDS = 30
KEEP_ALIVE = 5


@dataclass
class Client:
    """One connection, and the server's side of it."""

    reading: asyncio.StreamReader
    writing: asyncio.StreamWriter
    connection: Connection
    _now: float = 0.0

    async def send(self, data: bytes) -> None:
        """And sees the server read it."""
        unread, receive = len(data), self.connection.data_received

        def count(data: bytes) -> None:
            nonlocal unread
            receive(data)
            unread -= len(data)

        self.connection.data_received = count
        self.writing.write(data)
        while unread:  # noqa: ASYNC110  # of another task
            await asyncio.sleep(0)
        self.connection.data_received = receive

    def after(self, seconds: float) -> None:
        """So many seconds pass; the first time, none do."""
        self._now = self._now + seconds if self._now else asyncio.get_running_loop().time() + 1e6
        self.connection.check_deadline(self._now)

    def is_open(self) -> bool:
        return not self.connection.transport.is_closing()

    async def answer(self) -> tuple[int, dict[str, Any]]:
        head = (await self.reading.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        return int(head.split()[1]), msgspec.json.decode(await self.reading.readexactly(length))

    async def rest(self) -> bytes:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self.reading.read()


@asynccontextmanager
async def connected(port: int, state: ServerState) -> AsyncGenerator[Client]:
    there = set(state.connections)
    reading, writing = await asyncio.open_connection("127.0.0.1", port)
    try:
        while not (new := cast("set[Connection]", set(state.connections) - there)):  # noqa: ASYNC110  # of another task
            await asyncio.sleep(0)
        yield Client(reading, writing, new.pop())
    finally:
        writing.close()


@pytest.fixture(scope="module")
async def server(app: FastAPI) -> AsyncGenerator[tuple[int, ServerState]]:
    async with listening(app, timeout_keep_alive=KEEP_ALIVE) as server:
        yield server


@pytest.fixture
async def talk(server: tuple[int, ServerState]) -> AsyncGenerator[Client]:
    async with connected(*server) as client:
        yield client


async def test_silent_connection_is_closed(talk: Client):
    talk.after(0)
    talk.after(closing.HEAD_SECONDS - 1)
    assert talk.is_open()
    talk.after(1)
    assert await talk.rest() == b""


@pytest.mark.parametrize("more", [b"", b"X-1: y\r\n"])
async def test_slow_head_is_answered_408_however_it_trickles_in(talk: Client, more: bytes):
    await talk.send(QUESTION[:30])
    talk.after(0)
    talk.after(closing.HEAD_SECONDS - 1)
    if more:
        await talk.send(more)
    assert talk.is_open()
    talk.after(1)
    status, problem = await talk.answer()
    assert (status, problem["type"]) == (408, "/problems/stalled")
    assert await talk.rest() == b""


async def test_slow_second_head_is_answered_408(talk: Client):
    await talk.send(QUESTION)
    assert (await talk.answer())[0] == 200
    talk.after(0)
    await talk.send(QUESTION[:30])
    talk.after(KEEP_ALIVE)
    talk.after(closing.HEAD_SECONDS - 1)
    assert talk.is_open()
    talk.after(1)
    assert (await talk.answer())[0] == 408


async def test_empty_lines_do_not_keep_a_connection_open(talk: Client):
    talk.after(0)
    talk.after(closing.HEAD_SECONDS - 1)
    await talk.send(b"\r\n")
    talk.after(1)
    assert await talk.rest() == b""


async def test_idle_connection_is_closed_and_each_request_keeps_it_open(talk: Client):
    for _ in range(2):
        await talk.send(QUESTION)
        assert (await talk.answer())[0] == 200
        talk.after(KEEP_ALIVE)
        talk.after(KEEP_ALIVE - 1)
        assert talk.is_open()
    talk.after(1)
    assert await talk.rest() == b""


async def test_rest_of_a_body_that_was_answered_does_not_keep_a_connection_open(talk: Client):
    await talk.send(
        b"POST /v1/projects/x/boards/y/scores HTTP/1.1\r\nHost: laurels\r\nContent-Length: 99\r\n\r\n{"
    )
    assert (await talk.answer())[0] == 401
    talk.after(0)
    talk.after(closing.REST_SECONDS - 1)
    await talk.send(b" ")
    assert talk.is_open()
    talk.after(1)
    assert await talk.rest() == b""


async def test_request_under_way_is_not_hurried(talk: Client, client: httpx.AsyncClient, board: str):
    key = client.headers["Authorization"]
    await talk.send(f"GET {board}/live HTTP/1.1\r\nHost: laurels\r\nAuthorization: {key}\r\n\r\n".encode())
    await talk.reading.readuntil(b"event: snapshot")
    for _ in range(3):
        talk.after(3600)
        assert talk.is_open()


async def test_client_that_reads_nothing_is_cut_off(talk: Client, client: httpx.AsyncClient, board: str):
    lines = b"".join(b'{"member":"%0200d","score":1}\n' % number for number in range(1000))
    sent = await client.post(
        f"{board}/scores/batch", content=lines, headers={"Content-Type": "application/x-ndjson"}
    )
    assert sent.json()["accepted"] == 1000
    key = client.headers["Authorization"]
    page = f"GET {board}/entries?limit=1000 HTTP/1.1\r\nHost: laurels\r\nAuthorization: {key}\r\n\r\n"
    wire = talk.connection.wire
    before = -1
    async with asyncio.timeout(DEADLINE_SECONDS):
        talk.writing.write(page.encode() * 60)
        while before != wire.get_write_buffer_size() or before <= 0:  # of another task
            before = wire.get_write_buffer_size()
            await asyncio.sleep(0)
    talk.after(0)
    talk.after(closing.UNREAD_SECONDS - 1)
    assert not wire.is_closing()
    talk.after(1)
    assert wire.is_closing()


async def test_connection_that_we_ended_is_closed_though_the_client_stays(talk: Client):
    talk.writing.write(b"nonsense\r\n\r\n")
    assert (await talk.answer())[0] == 400
    wire = talk.connection.wire
    talk.after(0)
    assert not wire.is_closing()
    talk.after(closing.LINGER_SECONDS)
    assert wire.is_closing()


async def test_answer_arrives_though_the_client_goes_on_sending(talk: Client):
    async with asyncio.timeout(DEADLINE_SECONDS):
        talk.writing.write(b"GET / HTTP/1.1\r\nX: " + b"y" * 2**23)
        status, problem = await talk.answer()
    assert (status, problem["type"]) == (431, "/problems/headers-too-large")


async def test_connection_too_many_is_answered_503_and_the_next_is_served_once_one_leaves(app: FastAPI):
    async with listening(app, limit_concurrency=2) as server:
        async with connected(*server) as first, connected(*server):
            async with connected(*server) as third:
                status, problem = await third.answer()
                assert (status, problem["type"]) == (503, "/problems/overloaded")
                assert await third.rest() == b""
            await first.send(QUESTION)
            assert (await first.answer())[0] == 200
        while server[1].connections:  # noqa: ASYNC110  # of another task
            await asyncio.sleep(0)
        async with connected(*server) as fourth:
            await fourth.send(QUESTION)
            assert (await fourth.answer())[0] == 200


async def test_stream_ends_when_its_client_leaves_behind_another_request(
    server: tuple[int, ServerState], client: httpx.AsyncClient, board: str
):
    key = client.headers["Authorization"]
    stream = f"GET {board}/live HTTP/1.1\r\nHost: laurels\r\nAuthorization: {key}\r\n\r\n".encode()
    async with connected(*server) as talk:
        talk.writing.write(stream + QUESTION)
        await talk.reading.readuntil(b"event: snapshot")
        assert server[1].tasks
    await eventually(lambda: not server[1].tasks)


async def test_pipeline_is_parsed_as_its_requests_are_answered(talk: Client):
    count = 5000
    most = 0
    talk.writing.write(QUESTION * count)
    async with asyncio.timeout(DEADLINE_SECONDS):
        for _ in range(count):
            assert (await talk.answer())[0] == 200
            most = max(most, len(talk.connection.pipeline))
    assert most <= connection.MOST_PIPELINED + connection.PIECE_BYTES // len(QUESTION) + 1


def test_floods_are_held_in_bounded_memory():
    """Of headers without end, trailers without end, and requests in a row whose answers are not read."""
    line = b"GET / HTTP/1.1\r\nHost: x\r\n"
    floods = {
        "one header": (line + b"X: ", b"y" * 2**16),
        "headers": (line, b"X-Some-Header: y\r\n" * 2**12),
        "target": (b"GET /", b"y" * 2**16),
        "requests": (b"", QUESTION * 2**11),
    }
    with (
        folder_that_anybody_may_pass(fast_place()) as folder,
        served(folder / "data") as server,
    ):
        process = psutil.Process(server.process.pid)
        asyncio.run(flood(server.url, *floods["requests"]))
        before = process.memory_info().rss
        for begin, more in floods.values():
            asyncio.run(flood(server.url, begin, more))
        assert process.memory_info().rss - before < 48 * 2**20


async def flood(url: str, begin: bytes, more: bytes) -> None:
    """From 20 connections, up to 16 MiB each, as far as the server takes it."""
    address = httpx.URL(url)

    async def one() -> None:
        _, writing = await asyncio.open_connection(address.host, address.port)
        try:
            writing.write(begin)
            for _ in range(2**24 // len(more)):
                writing.write(more)
                async with asyncio.timeout(1):
                    await writing.drain()
        except (OSError, TimeoutError):
            pass  # it reads no more
        finally:
            writing.transport.abort()

    await asyncio.gather(*(one() for _ in range(20)))


def test_the_limits_are_what_the_documentation_says():
    assert (heads.HEAD_BYTES, heads.TARGET_BYTES, heads.FRAMING_BYTES) == (64 * 1024, 48 * 1024, 16 * 1024)
    assert (closing.HEAD_SECONDS, closing.REST_SECONDS, closing.UNREAD_SECONDS) == (10, 30, 60)
