"""Finalizes what is due, and is killed when a day's rows are stored and the boards have its scores: right
before the commit.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

from laurels.activity.rankings import Rankings
from laurels.clock import FixedClock
from laurels.engine import Laurels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laurels.activity.days import Day
    from laurels.activity.scoring import Scores
    from laurels.activity.store.people import Campus

DAY = 20251024
_place = Rankings.place


async def place_and_die(self: Rankings, campus: Campus, day: Day, scores: Mapping[str, Scores]) -> int:
    placed = await _place(self, campus, day, scores)
    if day.ymd == DAY:
        os.kill(os.getpid(), signal.SIGKILL)
    return placed


async def run(valkey_url: str, postgres_url: str, now: int) -> None:
    clock = FixedClock(now)
    async with Laurels(valkey_url=valkey_url, postgres_url=postgres_url, clock=clock) as laurels:
        await laurels.activity.finalizer.run_due(_silently)


async def _silently(_: str) -> None:
    pass


if __name__ == "__main__":
    _, valkey_url, postgres_url, now = sys.argv
    Rankings.place = place_and_die
    asyncio.run(run(valkey_url, postgres_url, int(now)))
