"""Through a real server: what httpx's shortcut into the app does not show."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

import httpx
import psutil
import pytest
import uvicorn
import zstandard
from cli_processes import serving
from places import fast_place, folder_that_anybody_may_pass

from laurels.http import body
from laurels.http.server.fast_protocol import FastProtocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator

    from fastapi import FastAPI

    from laurels.embedded import Endpoints


@contextmanager
def listening() -> Generator[socket.socket]:
    """A socket that takes connections from now on; a server answers them once it is there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def address(listener: socket.socket) -> str:
    return "http://{}:{}".format(*listener.getsockname())


@pytest.fixture(params=[FastProtocol, "h11"])
async def served(
    request: pytest.FixtureRequest, app: FastAPI, admin_key: str
) -> AsyncGenerator[httpx.AsyncClient]:
    config = uvicorn.Config(app, http=request.param, log_config=None, access_log=False, proxy_headers=False)
    server = uvicorn.Server(config)
    with listening() as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        headers = {"Authorization": f"Bearer {admin_key}"}
        async with httpx.AsyncClient(base_url=address(listener), headers=headers) as client:
            yield client
        server.should_exit = True
        await serving


async def test_members_with_slashes_arrive_as_they_were_sent(served: httpx.AsyncClient, board: str):
    for member, score in (("x", 1), ("x/around", 2), ("é\n/🏆", 3)):
        sent = await served.post(f"{board}/scores", json={"member": member, "score": score})
        assert sent.status_code == 200
    assert (await served.get(f"{board}/entries/x%2Faround")).json()["member"] == "x/around"
    assert len((await served.get(f"{board}/entries/x/around")).json()["entries"]) == 3
    assert (await served.get(f"{board}/entries/%C3%A9%0A%2F%F0%9F%8F%86")).json()["score"] == 3


async def test_lines_are_streamed(served: httpx.AsyncClient, board: str):
    async def lines() -> AsyncIterator[bytes]:
        for index in range(5000):
            yield b'{"member":"m%d","score":%d}\n' % (index, index)

    answer = await served.post(
        f"{board}/scores/batch", content=lines(), headers={"Content-Type": "application/x-ndjson"}
    )
    assert answer.json() == {"accepted": 5000, "rejected": []}


async def test_a_body_that_is_too_large_is_answered(served: httpx.AsyncClient, board: str):
    answer = await served.post(f"{board}/scores", content=b" " * (4 * 2**20))
    assert answer.status_code == 413
    assert answer.json()["type"] == "/problems/too-large"
    assert (await served.get(board)).status_code == 200


async def test_who_has_no_key_is_told_before_the_body_is_read(served: httpx.AsyncClient, board: str):
    answer = await served.post(
        f"{board}/scores/batch", content=b" " * (8 * 2**20), headers={"Authorization": "Bearer none"}
    )
    assert answer.status_code == 401


async def test_head_has_no_body(served: httpx.AsyncClient):
    answer = await served.head("/healthz")
    assert (answer.status_code, answer.content) == (200, b"")
    assert (await served.get("/healthz")).json() == {"status": "ok"}


def test_workers_make_their_app_from_the_settings(endpoints: Endpoints):
    environment = os.environ | {
        "LAURELS_VALKEY_URL": endpoints.valkey_url,
        "LAURELS_POSTGRES_URL": endpoints.postgres_url,
        "LAURELS_BOOTSTRAP_KEY": "from-the-first-start",
        "LAURELS_LOG_FORMAT": "json",
        "LAURELS_ACCESS_LOG": "all",
    }
    with listening() as listener:
        command = [sys.executable, "-m", "uvicorn", "--factory", "laurels.http.app:app_from_settings"]
        with subprocess.Popen(
            [*command, "--fd", str(listener.fileno()), "--workers", "2", "--no-access-log"],
            env=environment,
            pass_fds=[listener.fileno()],
            stderr=subprocess.PIPE,
            text=True,
        ) as server:
            key = {"Authorization": "Bearer from-the-first-start"}
            with httpx.Client(base_url=address(listener), headers=key, timeout=30) as client:
                ready = client.get("/readyz", headers={"X-Request-Id": "r-1"})
                projects = client.get("/v1/projects")
            server.send_signal(signal.SIGTERM)
            logged = server.communicate()[1]
    assert ready.json()["status"] == "ready"
    assert projects.status_code == 200
    assert '"route": "/v1/projects"' in logged
    assert "from-the-first-start" not in logged


@pytest.mark.parametrize("coding", ["identity", "zstd"])
def test_a_batch_of_64_mib_is_read_in_constant_memory(coding: str):
    """Lines with much room in them: what counts here is what is read, not what is written."""
    room = bytes(b" \t"[byte & 1] for byte in range(256))
    count = body.BATCH_BYTES // 3640
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    chance = random.Random(1)  # noqa: S311  # nothing that compresses too well to be true

    def lines() -> Iterator[bytes]:
        for index in range(count):
            blank = chance.randbytes(3600).translate(room)
            yield b'{"member":"m%05d",%b"score":%d}\n' % (index, blank, 10_000 + index)

    def compressed() -> Iterator[bytes]:
        for piece in lines():
            yield compressor.compress(piece)
        yield compressor.flush()

    headers = {"Content-Type": "application/x-ndjson", "Authorization": "Bearer memory"}
    with (
        folder_that_anybody_may_pass(fast_place()) as folder,
        serving(folder / "data", settings={"LAURELS_BOOTSTRAP_KEY": "memory"}) as server,
        httpx.Client(base_url=server.url, headers=headers, timeout=120) as client,
    ):
        board = "/v1/projects/memory/boards/arcade"
        assert client.put(board, json={}, headers={"Content-Type": "application/json"}).status_code == 201
        process = psutil.Process(server.process.pid)
        client.post(f"{board}/scores/batch", content=b"".join(islice(lines(), 1000)))
        before = process.memory_info().rss
        largest = before

        def watched(pieces: Iterator[bytes]) -> Iterator[bytes]:
            nonlocal largest
            for index, piece in enumerate(pieces):
                if index % 100 == 0:
                    largest = max(largest, process.memory_info().rss)
                if piece:
                    yield piece

        answer = client.post(
            f"{board}/scores/batch",
            content=watched(lines() if coding == "identity" else compressed()),
            headers={"Content-Encoding": coding},
        )
        assert answer.json() == {"accepted": count, "rejected": []}, answer.text[:500]
        largest = max(largest, process.memory_info().rss)
    assert largest - before < 24 * 2**20
