"""Submits to a board, and kills itself before the journal is announced."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from laurels.engine import Laurels
from laurels.valkey import announcements


async def submit(valkey_url: str, postgres_url: str, board: str) -> None:
    announcements.PAUSE_SECONDS = 3600  # pyright: ignore[reportConstantRedefinition]
    async with Laurels(valkey_url=valkey_url, postgres_url=postgres_url, jobs=False) as laurels:
        await laurels.submit(board, "ada", 1)
        os.kill(os.getpid(), signal.SIGKILL)


asyncio.run(submit(*sys.argv[1:]))
