"""A worker that is killed while it takes a snapshot: VALKEY_URL POSTGRES_URL NOW CHUNKS."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

from laurels.clock import FixedClock
from laurels.engine import Laurels
from laurels.scores.shards import ShardedWindow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from laurels.valkey.messages import EntryReply


async def main(valkey_url: str, postgres_url: str, now: str, chunks: str) -> None:
    scan = ShardedWindow.scan

    async def scan_and_die(self: ShardedWindow) -> AsyncIterator[list[EntryReply]]:
        left = int(chunks)
        async for some in scan(self):
            yield some
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    ShardedWindow.scan = scan_and_die
    clock = FixedClock(int(now))
    async with Laurels(valkey_url=valkey_url, postgres_url=postgres_url, clock=clock) as laurels:
        await laurels.snapshot_taker.take_due(None)


asyncio.run(main(*sys.argv[1:]))
