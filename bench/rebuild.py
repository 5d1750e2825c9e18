"""Rebuild: rebuilds a board with four windows from its journal, then compares the two.

The rate counts journal rows, from the first read to the switch. Valkey's slow log gives the longest command.
The comparison must find no difference.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from bench.ground import FOUR_WINDOWS, ground
from bench.results import Results, Row, judged

BOARD = "bench/rebuild"
LONGEST_MILLISECONDS = 10


async def run(members: int) -> Results:
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
    missing = members * len(FOUR_WINDOWS) - told.entries
    return Results(
        [
            Row("rows of the journal", f"{told.rows / seconds:,.0f}/s"),
            Row(
                "entries that differ or are missing",
                f"{verified.different + missing:,}",
                "",
                None,
                *judged(verified.different + missing, most=0),
            ),
            Row(
                "longest command", f"{slowest:.1f} ms", "", None, *judged(slowest, most=LONGEST_MILLISECONDS)
            ),
        ]
    )
