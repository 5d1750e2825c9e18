"""Submits to a board that feeds another, and kills itself before the fed board has counted."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from laurels.engine import Laurels
from laurels.scores.feeds import Feeds
from laurels.scores.submission import Submission


async def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def submit(valkey_url: str, postgres_url: str, board: str) -> None:
    async with Laurels(valkey_url=valkey_url, postgres_url=postgres_url, jobs=False) as laurels:
        Feeds.carry = die  # pyright: ignore[reportAttributeAccessIssue]  # whatever it is given
        await laurels.submit_many(board, [Submission(f"m{number}", 1) for number in range(20)])


asyncio.run(submit(*sys.argv[1:]))
