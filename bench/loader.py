"""A load generator: each connection sends its next request when it has an answer.

    python -m bench.loader HOST PORT SECONDS CONNECTIONS < requests

Reads the requests as msgpack from standard input, and writes the results as JSON to standard output.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from typing import TYPE_CHECKING, cast

import msgspec
import uvloop

if TYPE_CHECKING:
    from collections.abc import Iterator


class Seen(msgspec.Struct):
    """How many answers came with each status, and the latency of each in seconds."""

    seconds: float
    statuses: dict[int, int]
    latencies: list[float]

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Connection(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes], seen: Seen, until: float) -> None:
        self._requests, self._seen, self._until = requests, seen, until
        self._buffer = bytearray()
        self._sent = 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        if self._sent >= self._until:
            self._transport.close()
        else:
            self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._buffer[:end]).lower()
        start = head.find(b"content-length:")
        length = int(head[start + 15 :].split(b"\r\n", 1)[0]) if start >= 0 else 0
        if len(self._buffer) < end + 4 + length:
            return
        del self._buffer[: end + 4 + length]
        self._seen.latencies.append(time.perf_counter() - self._sent)
        status = int(head[9:12])
        self._seen.statuses[status] = self._seen.statuses.get(status, 0) + 1
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # the protocol's own name
        self.done.set_result(None)


async def load(host: str, port: int, seconds: float, connections: int, requests: list[bytes]) -> Seen:
    endless = itertools.cycle(requests)
    seen = Seen(seconds, {}, [])
    loop = asyncio.get_running_loop()
    until = time.perf_counter() + seconds
    opened = [
        await loop.create_connection(lambda: Connection(endless, seen, until), host, port)
        for _ in range(connections)
    ]
    await asyncio.gather(*(connection.done for _, connection in opened))
    return seen


def main() -> None:
    host, port, seconds, connections = sys.argv[1:]
    requests = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[bytes])
    seen = uvloop.run(load(host, int(port), float(seconds), int(connections), requests))
    sys.stdout.buffer.write(msgspec.json.encode(seen))


if __name__ == "__main__":
    main()
