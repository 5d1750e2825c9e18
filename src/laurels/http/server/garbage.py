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
from pathlib import Path
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
    frozen_at = memory()
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        now = memory()
        if now > frozen_at * GROWTH:
            freeze()
            now = frozen_at = memory()
        frozen_at = min(frozen_at, now)


def memory() -> int:
    """The resident memory of the process in bytes; where there is no /proc, the most that it ever was."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return pages * resource.getpagesize()
