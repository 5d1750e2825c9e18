"""Keeps the garbage collector from stopping the service for long.

A full pass of Python's collector visits every object: 80 to 110 ms in a service that has just started. What
lives as long as the process is therefore frozen: no later pass visits it. The collector then visits only what
requests leave behind, and seldom does, since nearly all of that is freed without it.

A frozen cycle that is dropped later would never be freed. So when memory has grown by a quarter, everything
is collected and frozen again.
"""

from __future__ import annotations

import asyncio
import gc
import resource
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

# Net allocations of containers between two passes, and passes of each generation between two of the next.
THRESHOLDS: Final = (50_000, 20, 1000)
CHECK_SECONDS: Final = 10.0
GROWTH: Final = 1.25


@asynccontextmanager
async def frozen_heap() -> AsyncGenerator[None]:
    """Freezes what is there now, and watches memory while the block runs."""
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    freeze()
    watching = asyncio.create_task(_watch())
    try:
        yield
    finally:
        watching.cancel()
        gc.set_threshold(*before)
        gc.unfreeze()


def freeze() -> None:
    """Collects everything, then freezes what is left."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


async def _watch() -> None:
    frozen_at = most_memory()
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        if most_memory() > frozen_at * GROWTH:
            freeze()
            frozen_at = most_memory()


def most_memory() -> int:
    """The most memory that the process ever had; in KiB on Linux, in bytes on macOS."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
