"""A thousand clients that follow one board over HTTP: the delay of a change, and the memory of a client.

The server is a process with one worker; the clients are sockets of this process, on the same cores.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httpx

from bench.ground import console, table, temporary_servers

CHANGES = 20
# Longer than the server waits between two reads, so that each change is an update of its own.
PAUSE_SECONDS = 0.5
KEY = "bench-live"
BOARD = "/v1/projects/bench/boards/live"
ASKING = f"GET {BOARD}/live HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()


async def run(clients: int) -> bool:
    """Reports only; there is no target."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with temporary_servers() as urls, socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        environment = os.environ | {
            "LAURELS_VALKEY_URL": urls.valkey_url,
            "LAURELS_POSTGRES_URL": urls.postgres_url,
            "LAURELS_BOOTSTRAP_KEY": KEY,
            "LAURELS_LOG_LEVEL": "warning",
        }
        command = [sys.executable, "-m", "uvicorn", "--factory", "laurels.http.app:app_from_settings"]
        command += ["--fd", str(listener.fileno()), "--no-access-log", "--log-level", "warning"]
        with subprocess.Popen(  # noqa: ASYNC220  # nothing else runs yet
            command, env=environment, pass_fds=[listener.fileno()]
        ) as server:
            try:
                await measure(clients, listener.getsockname(), server.pid)
            finally:
                server.terminate()
    return True


async def measure(clients: int, address: tuple[str, int], server: int) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    url = f"http://{address[0]}:{address[1]}"
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as submitter:
        (await submitter.put(BOARD, json={})).raise_for_status()
        batch = [{"member": f"m{number}", "score": number} for number in range(100)]
        (await submitter.post(f"{BOARD}/scores/batch", json=batch)).raise_for_status()
        before = memory(server)
        streams = await opened(clients, address)
        each = (memory(server) - before) / clients
        delays = [
            delay
            for number in range(CHANGES)
            for delay in await delays_of_a_change(submitter, streams, 1000 + number)
        ]
        for _, writer in streams:
            writer.close()
    delays.sort()
    drawn = table(
        f"Live: {clients:,} clients on one worker, {CHANGES} changes, from before the submit to the event",
        "p50",
        "p99",
        "slowest",
        "memory a client",
    )
    shown = [statistics.median(delays), delays[int(len(delays) * 0.99)], delays[-1]]
    drawn.add_row(*(f"{delay * 1000:.0f} ms" for delay in shown), f"{each / 1024:.0f} KiB")
    console.print(drawn)


async def opened(
    clients: int, address: tuple[str, int]
) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    at_once = asyncio.Semaphore(50)

    async def open_one() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with at_once:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(ASKING)
            await reader.readuntil(b"event: snapshot\n")
            await reader.readuntil(b"\n\n")
            return reader, writer

    return await asyncio.gather(*(open_one() for _ in range(clients)))


async def delays_of_a_change(
    submitter: httpx.AsyncClient,
    streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]],
    score: int,
) -> list[float]:
    async def received(reader: asyncio.StreamReader) -> float:
        await reader.readuntil(b'"score":%d,' % score)
        return time.perf_counter()

    waiting = [asyncio.create_task(received(reader)) for reader, _ in streams]
    await asyncio.sleep(PAUSE_SECONDS)
    began = time.perf_counter()
    (await submitter.post(f"{BOARD}/scores", json={"member": "ada", "score": score})).raise_for_status()
    return [moment - began for moment in await asyncio.gather(*waiting)]


def memory(process: int) -> int:
    """The resident memory in bytes."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
