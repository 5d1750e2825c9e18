"""Rebuild: rebuilds a board with four windows from its journal, then compares the two.

The rate counts journal rows, from the first read to the switch. Valkey's slow log gives the longest command.
The comparison must find no difference.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from bench.ground import FOUR_WINDOWS, console, ground, table, verdict

BOARD = "bench/rebuild"
LONGEST_MILLISECONDS = 10


async def run(members: int) -> bool:
    async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
        await here.laurels.define(BOARD, {"windows": FOUR_WINDOWS, "ties": "earliest"})
        await here.fill(BOARD, members)
        await here.laurels.archived(BOARD)
        here.raw.flushall()
        here.raw.config_set("slowlog-log-slower-than", 1000)
        here.raw.slowlog_reset()
        began = time.perf_counter()
        told = await here.laurels.rebuild(BOARD)
        seconds = time.perf_counter() - began
        slowest = max((each["duration"] for each in here.raw.slowlog_get(128)), default=0) / 1000
        verified = await here.laurels.verify(BOARD)
    holds = verified.different == 0 and told.entries == members * len(FOUR_WINDOWS)
    drawn = table(f"Rebuild, {members:,} members in four windows", "", "")
    drawn.add_row("rows", f"{told.rows:,}")
    drawn.add_row("seconds", f"{seconds:,.1f}")
    drawn.add_row("rows a second", f"{told.rows / seconds:,.0f}")
    drawn.add_row("entries", f"{told.entries:,}")
    drawn.add_row("differences", f"{verified.different:,}")
    drawn.add_row(f"longest command, ms (at most {LONGEST_MILLISECONDS})", f"{slowest:.1f}")
    console.print(drawn, verdict(holds=holds and slowest <= LONGEST_MILLISECONDS))
    return holds
