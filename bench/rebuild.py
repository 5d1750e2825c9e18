"""Rebuild: rebuilds a board with four windows from its journal, then compares the two.

The rate counts journal rows, from the first read to the switch, and stands beside that of submitting them in
batches. The comparison must find no difference. As in `bench/stalls.py`, a control shows how many long calls
are due to the machine.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from bench.archive import LEAST_CONTROL_SECONDS
from bench.ground import FOUR_WINDOWS, ground
from bench.results import Results, Row, judged
from bench.stalls import Watch, as_rare

BOARD = "bench/rebuild"


async def run(members: int) -> Results:
    async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
        await here.laurels.define(BOARD, {"windows": FOUR_WINDOWS, "ties": "earliest"})
        began = time.perf_counter()
        await here.fill(BOARD, members)
        submitted = members / (time.perf_counter() - began)
        await here.laurels.archived(BOARD)
        here.raw.flushall()
        watch = Watch(here.raw, members)
        watch.start()
        began = time.perf_counter()
        told = await here.laurels.rebuild(BOARD)
        rebuilt = told.rows / (time.perf_counter() - began)
        held = watch.stop()
        control = watch.control(held, max(held.seconds / 2, LEAST_CONTROL_SECONDS))
        verified = await here.laurels.verify(BOARD)
    wrong = verified.different + members * len(FOUR_WINDOWS) - told.entries
    return Results(
        [
            Row("rows rebuilt", f"{rebuilt:,.0f}/s", f"submitted: {submitted:,.0f}/s", rebuilt / submitted),
            Row("entries that differ or are missing", f"{wrong:,}", "", None, *judged(wrong, most=0)),
            Row("calls", str(held)),
            as_rare(held, control),
        ]
    )
