"""Streams of events from a real server: what they carry, who may hear them, and how they end."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvicorn
from waiting import eventually

from laurels.access.store.secrets import NewSecret
from laurels.http.routes import live
from laurels.scores import live as boards_live

from .player_tokens import token

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from fastapi import FastAPI

    from laurels.embedded import Endpoints
    from laurels.engine import Laurels

    from .conftest import MakeKey

DEADLINE = 15.0
CLIENTS = 1000
OPEN_FILES = 2 * CLIENTS + 500


@dataclass
class Event:
    name: str = ""
    id: str = ""
    data: Any = None
    comments: list[str] = field(default_factory=list[str])
    retry: str = ""


class Stream:
    """One who listens, and never waits for long."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> Event:
        """The next event, or comment."""
        event = Event()
        async with asyncio.timeout(DEADLINE):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if not line:
                    return event
                match name:
                    case "event":
                        event.name = value
                    case "id":
                        event.id = value
                    case "retry":
                        event.retry = value
                    case "data":
                        event.data = json.loads(value)
                    case _:
                        event.comments.append(line)
        raise EOFError

    async def event(self, name: str) -> Event:
        """The next event, which has this name."""
        while not (event := await self.next()).name:
            pass
        assert event.name == name
        return event


@pytest.fixture(scope="module")
async def address(app: FastAPI) -> AsyncGenerator[str]:
    """Where the app answers, by sockets."""
    config = uvicorn.Config(
        app, http="httptools", log_config=None, access_log=False, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        yield "http://{}:{}".format(*listener.getsockname())
        server.should_exit = True
        await serving


@pytest.fixture
async def listener(
    address: str, admin_key: str, client: httpx.AsyncClient
) -> AsyncGenerator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {admin_key}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=DEADLINE) as listener:
        yield listener


@asynccontextmanager
async def listening(listener: httpx.AsyncClient, board: str, **what: Any) -> AsyncGenerator[Stream]:  # noqa: ANN401  # as httpx takes it
    async with listener.stream("GET", f"{board}/live", **what) as response:
        assert response.status_code == 200, await response.aread()
        yield Stream(response)


async def test_metadata_that_is_set_without_a_score_is_told(
    listener: httpx.AsyncClient, client: httpx.AsyncClient, scored: str
):
    async with listening(listener, scored, params={"member": "bob"}) as stream:
        await stream.event("snapshot")
        answer = await client.patch(f"{scored}/entries/bob", json={"metadata": {"level": 8}})
        assert answer.status_code == 200, answer.text
        change = (await stream.event("change")).data
        (moved,) = change["entries"]
        assert (moved["member"], moved["rank"], moved["previous_rank"]) == ("bob", 2, 2)
        assert moved["metadata"] == change["member"]["metadata"] == {"level": 8}


async def submit(client: httpx.AsyncClient, board: str, member: str, score: float, **carried: object) -> None:
    answer = await client.post(f"{board}/scores", json={"member": member, "score": score, **carried})
    assert answer.status_code == 200, answer.text


def request(path: str, key: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: laurels.test\r\nAuthorization: Bearer {key}\r\n\r\n".encode()


def followers(laurels: Laurels) -> int:
    return sum(laurels.live.followers.values())


async def test_a_stream_begins_with_the_page(
    listener: httpx.AsyncClient, client: httpx.AsyncClient, scored: str
):
    async with listening(listener, scored, params={"limit": 3}) as stream:
        headers = stream.response.headers
        assert headers["content-type"] == "text/event-stream; charset=utf-8"
        assert headers["cache-control"] == "no-store"
        assert headers["x-accel-buffering"] == "no"
        assert (await stream.next()).retry == "1000"
        assert (await stream.event("snapshot")).data == (
            await client.get(f"{scored}/entries", params={"limit": 3})
        ).json()


async def test_what_changes_is_told(listener: httpx.AsyncClient, client: httpx.AsyncClient, scored: str):
    async with listening(listener, scored, params={"member": "joe", "group": "country=JP"}) as stream:
        snapshot = await stream.event("snapshot")
        assert snapshot.data["member"]["rank"] == 2
        await submit(client, scored, "joe", 250, groups={"country": "JP"}, metadata={"level": 7})
        change = await stream.event("change")
        joe = {"rank": 1, "member": "joe", "score": 250, "previous_rank": 2, "metadata": {"level": 7}}
        eve = {"rank": 2, "member": "eve", "score": 200, "previous_rank": 1}
        standing = (await client.get(f"{scored}/entries/joe", params={"group": "country=JP"})).json()
        assert change.data == {"total": 2, "entries": [joe, eve], "left": [], "member": standing}
        assert change.id != snapshot.id


async def test_exact_scores_are_strings(
    listener: httpx.AsyncClient, client: httpx.AsyncClient, int64_board: str
):
    async with listening(listener, int64_board, params={"member": "ada"}) as stream:
        assert (await stream.event("snapshot")).data["member"] is None
        await submit(client, int64_board, "ada", 2**62 + 1)
        change = (await stream.event("change")).data
        assert (change["entries"][0]["score"], change["member"]["score"]) == (str(2**62 + 1), str(2**62 + 1))
    async with listening(listener, int64_board) as stream:
        assert (await stream.event("snapshot")).data["entries"][0]["score"] == str(2**62 + 1)


async def test_whoever_comes_back_goes_on_where_it_was(
    listener: httpx.AsyncClient, client: httpx.AsyncClient, board: str
):
    async with listening(listener, board) as stream:
        began = await stream.event("snapshot")
        await submit(client, board, "ada", 1)
        heard = await stream.event("change")
    for what in ({"headers": {"Last-Event-ID": began.id}}, {"params": {"last_event_id": began.id}}):
        async with listening(listener, board, **what) as stream:
            assert await stream.event("change") == heard
    async with listening(listener, board, headers={"Last-Event-ID": "0123456789abcdef-1"}) as stream:
        assert (await stream.event("snapshot")).data["total"] == 1


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=0", 422),
        ("limit=1001", 422),
        ("period=weekly", 422),
        ("group=city=rome", 422),
        ("member=", 422),
        ("slot=yesterday", 422),
        ("slot=2025-10-01", 404),
        ("cursor=x", 422),
    ],
)
async def test_what_cannot_be_followed_is_a_problem(
    client: httpx.AsyncClient, board: str, query: str, status: int
):
    answer = await client.get(f"{board}/live?{query}")
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_stream_needs_a_key_that_may_read(
    anybody: httpx.AsyncClient,
    board: str,
    boards: str,
    project: str,
    make_key: MakeKey,
    client: httpx.AsyncClient,
):
    assert (await client.get(f"{boards}/nothing/live")).status_code == 404
    writer = {"Authorization": f"Bearer {await make_key(project, 'submit')}"}
    assert (await anybody.get(f"{board}/live", headers=writer)).status_code == 403
    assert (await anybody.get(f"{board}/live", headers={"Authorization": ""})).status_code == 401


async def test_head_ends_at_once(listener: httpx.AsyncClient, board: str, laurels: Laurels):
    answer = await listener.head(f"{board}/live")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    await eventually(lambda: followers(laurels) == 0)


async def test_a_silent_stream_says_that_it_is_alive(
    listener: httpx.AsyncClient, board: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(live, "HEARTBEAT_SECONDS", 0.05)
    async with listening(listener, board) as stream:
        await stream.event("snapshot")
        for _ in range(2):
            assert (await stream.next()).comments == [": still here"]


async def test_a_key_that_is_revoked_hears_no_more(
    address: str, laurels: Laurels, board: str, project: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(live, "HEARTBEAT_SECONDS", 0.05)
    key, secret = await laurels.keys.create(project, ("read",))
    headers = {"Authorization": f"Bearer {secret}"}
    async with (
        httpx.AsyncClient(base_url=address, headers=headers) as reader,
        listening(reader, board) as stream,
    ):
        await stream.event("snapshot")
        assert (await stream.next()).comments
        assert await laurels.keys.revoke(key.prefix)
        end = await stream.event("end")
        assert (end.data["status"], end.data["type"]) == (401, "/problems/unauthorized")
        with pytest.raises(EOFError):
            await stream.next()


@pytest.mark.parametrize("by", ["key", "token"])
async def test_no_change_is_told_after_a_revocation(
    address: str, laurels: Laurels, client: httpx.AsyncClient, board: str, project: str, by: str
):
    key, secret = await laurels.keys.create(project, ("read",))
    of_players, signing = await laurels.secrets.create(project, NewSecret("players"))
    bearer = secret if by == "key" else token(signing or "", project, "ada")
    async with (
        httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {bearer}"}) as reader,
        listening(reader, board) as stream,
    ):
        await stream.event("snapshot")
        if by == "key":
            assert await laurels.keys.revoke(key.prefix)
        else:
            assert await laurels.secrets.revoke(of_players.id)
        submitted = await client.post(f"{board}/scores", json={"member": "bob", "score": 5000})
        assert submitted.status_code == 200
        told = await stream.next()
        assert (told.name, told.data["status"]) == ("end", 401)


async def test_another_key_that_is_revoked_changes_nothing(
    listener: httpx.AsyncClient, laurels: Laurels, client: httpx.AsyncClient, board: str, project: str
):
    async with listening(listener, board) as stream:
        await stream.event("snapshot")
        key, _ = await laurels.keys.create(project, ("read",))
        assert await laurels.keys.revoke(key.prefix)
        await client.post(f"{board}/scores", json={"member": "bob", "score": 5000})
        assert (await stream.event("change")).data["entries"][0]["member"] == "bob"


async def test_a_board_that_is_dropped_is_at_its_end(
    listener: httpx.AsyncClient, client: httpx.AsyncClient, board: str
):
    async with listening(listener, board) as stream:
        await stream.event("snapshot")
        assert (await client.delete(board, params={"allow_drop": "all"})).status_code == 204
        end = await stream.event("end")
        assert (end.data["status"], end.data["type"]) == (404, "/problems/not-found")
        with pytest.raises(EOFError):
            await stream.next()


async def test_a_client_that_leaves_is_noticed(listener: httpx.AsyncClient, board: str, laurels: Laurels):
    async with listening(listener, board) as stream:
        await stream.event("snapshot")
        assert followers(laurels) == 1
    await eventually(lambda: followers(laurels) == 0)


async def test_a_client_that_does_not_read_is_caught_up_by_a_snapshot(
    listener: httpx.AsyncClient,
    client: httpx.AsyncClient,
    address: str,
    admin_key: str,
    board: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(boards_live, "MOST_WAITING", 2)
    much = [
        {"member": f"m{number}", "score": number, "metadata": {"x": "y" * 4000}} for number in range(2, 1000)
    ]
    await client.post(f"{board}/scores/batch", json=much)
    host, port = address.removeprefix("http://").split(":")
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(slow, (host, int(port)))
        await loop.sock_sendall(slow, request(f"{board}/live?limit=1000", admin_key))
        heard = bytearray(await loop.sock_recv(slow, 100))
        async with listening(listener, board, params={"limit": 1000}) as quick:
            await quick.event("snapshot")
            last = Event()
            for number in range(5):
                await submit(client, board, "ada", number + 1)
                last = await quick.event("change")
        async with asyncio.timeout(DEADLINE):
            while heard.count(b"event: snapshot") < 2:
                heard += await loop.sock_recv(slow, 2**20)
    assert f"id: {last.id}\r\nevent: snapshot" in heard.replace(b"\n", b"\r\n").decode(errors="replace")
    assert heard.count(b"event: change") < 5


async def test_a_thousand_clients_all_hear_a_change(
    client: httpx.AsyncClient, address: str, admin_key: str, board: str, laurels: Laurels
):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < OPEN_FILES:
        pytest.skip(f"needs {OPEN_FILES} open files; the system allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, OPEN_FILES), hard))
    host, port = address.removeprefix("http://").split(":")
    asking = request(f"{board}/live", admin_key)
    waiting = asyncio.Semaphore(50)

    async def opened() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with waiting:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(asking)
            await reader.readuntil(b"event: snapshot")
            return reader, writer

    async def hears(reader: asyncio.StreamReader) -> bool:
        return (
            b'"member":"ada","score":77'
            in await reader.readuntil(b"event: change\n") + await reader.readline()
        )

    async with asyncio.timeout(60):
        streams = await asyncio.gather(*(opened() for _ in range(CLIENTS)))
        assert [count for count in laurels.live.followers.values() if count] == [CLIENTS]
        await submit(client, board, "ada", 77)
        assert all(await asyncio.gather(*(hears(reader) for reader, _ in streams)))
    for _, writer in streams:
        writer.close()
    await eventually(lambda: followers(laurels) == 0)


def test_a_server_with_open_streams_stops_at_once(endpoints: Endpoints):
    environment = os.environ | {
        "LAURELS_VALKEY_URL": endpoints.valkey_url,
        "LAURELS_POSTGRES_URL": endpoints.postgres_url,
        "LAURELS_BOOTSTRAP_KEY": "from-the-first-start",
    }
    key = {"Authorization": "Bearer from-the-first-start"}
    board = "/v1/projects/api-stopping/boards/arcade"
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        command = [sys.executable, "-m", "uvicorn", "--factory", "laurels.http.app:app_from_settings"]
        command += ["--fd", str(listener.fileno()), "--no-access-log", "--timeout-graceful-shutdown", "60"]
        with subprocess.Popen(
            command, env=environment, pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL
        ) as server:
            url = "http://{}:{}".format(*listener.getsockname())
            with httpx.Client(base_url=url, headers=key, timeout=60) as client:
                assert client.put(board, json={}).status_code in (200, 201)
            streams = [socket.create_connection(listener.getsockname(), DEADLINE) for _ in range(100)]
            heard = [bytearray() for _ in streams]
            for stream in streams:
                stream.sendall(request(f"{board}/live", "from-the-first-start"))
            for stream, received in zip(streams, heard, strict=True):
                while b"event: snapshot" not in received:
                    received.extend(stream.recv(65536))
            server.send_signal(signal.SIGTERM)
            began = time.monotonic()
            server.wait(DEADLINE)
            assert time.monotonic() - began < 5
            for stream, received in zip(streams, heard, strict=True):
                while piece := stream.recv(65536):
                    received.extend(piece)
                assert received.endswith(b"0\r\n\r\n")
                assert b"event: end" not in received
                stream.close()
