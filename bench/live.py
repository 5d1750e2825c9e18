"""A thousand clients that follow one board over HTTP: how long after the submission a change arrives, beside
ten clients, and the memory of a client.

The server is `laurels serve`; the clients are sockets of this process, on the same cores.
"""

from __future__ import annotations

import asyncio
import re
import resource
import time

import httpx

from bench.http import KEY, serving, temporary_folder
from bench.results import Results, Row, tail_of

FEW = 10
CHANGES = 20
# Longer than the server waits between two reads, so that each change is an update of its own.
PAUSE_SECONDS = 0.5
BOARD = "/v1/projects/bench/boards/live"
ASKING = f"GET {BOARD}/live HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()


async def run(clients: int) -> Results:
    """Reports only; there is no target."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with temporary_folder() as folder, serving(folder / "data") as port:
        return await measure(clients, ("127.0.0.1", port))


async def measure(clients: int, address: tuple[str, int]) -> Results:
    headers = {"Authorization": f"Bearer {KEY}"}
    url = f"http://{address[0]}:{address[1]}"
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as submitter:
        (await submitter.put(BOARD, json={})).raise_for_status()
        batch = [{"member": f"m{number}", "score": number} for number in range(100)]
        (await submitter.post(f"{BOARD}/scores/batch", json=batch)).raise_for_status()
        streams = await opened(FEW, address)
        few = tail_of(await delays(submitter, streams, 1000))
        before = await memory(submitter)
        streams += await opened(clients, address)
        each = (await memory(submitter) - before) / clients
        many = tail_of(await delays(submitter, streams, 2000))
        for _, writer in streams:
            writer.close()
    beside = f"{FEW} clients: {few.p50:.0f} ms"
    return Results(
        [
            Row(
                f"delay with {clients:,} clients", f"{many.p50:.0f} ms", beside, many.p50 / few.p50, tail=many
            ),
            Row("memory of a client", f"{each / 1024:.0f} KiB"),
        ]
    )


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


async def delays(
    submitter: httpx.AsyncClient,
    streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]],
    first: int,
) -> list[float]:
    changes = [await delays_of_a_change(submitter, streams, first + number) for number in range(CHANGES)]
    return [delay for change in changes for delay in change]


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


async def memory(client: httpx.AsyncClient) -> float:
    """The server's resident memory in bytes."""
    metrics = (await client.get("/metrics")).raise_for_status().text
    found = re.search(r"^process_resident_memory_bytes (\S+)$", metrics, re.MULTILINE)
    if found is None:
        raise RuntimeError("the server does not report its memory")
    return float(found[1])
