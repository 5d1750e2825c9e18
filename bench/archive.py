"""The cost of a snapshot: its rate beside a bare scan of the window, its memory, and how it holds Valkey.

As in `bench/stalls.py`, a control shows how many long commands are due to the machine.
"""

from __future__ import annotations

import time
import tracemalloc
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.ground import Ground, ground
from bench.results import Results, Row
from bench.stalls import Held, Watch, as_rare

# A scan holds some hundreds of entries at a time, however large the window is.
MIB = 1024**2
MEMORY_MIB = 16
# Even for short work, the control must run long enough to show the machine's noise.
LEAST_CONTROL_SECONDS = 1.0
BOARDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "exact": ({"ties": "earliest"}, {}),
    "top 100": ({}, {"top": 100}),
}


async def run(members: int) -> Results:
    rows: list[Row] = []
    ours, control = Held(), Held()
    for name, (fields, policy) in BOARDS.items():
        async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as place:
            definition = {
                "windows": [{"period": "daily", "keep": 1}],
                "archive": {"journal": False, "snapshot": [{"period": "daily", **policy}]},
                **fields,
            }
            await place.laurels.define("bench/archive", definition)
            await place.fill("bench/archive", members)
            place.clock.advance(timedelta(days=1))
            watch = Watch(place.raw, members)
            watch.start()
            began = time.perf_counter()
            taken = await place.laurels.snapshot_taker.take_due(None)
            seconds = time.perf_counter() - began
            held = watch.stop()
            rate, bare = members / seconds, members / time_scan(place)
            ours.add(held)
            control.add(watch.control(held, max(held.seconds, LEAST_CONTROL_SECONDS)))
            # The window is final now, so it is taken again; tracing makes this several times slower.
            place.clock.advance(timedelta(days=1))
            tracemalloc.start()
            again = await place.laurels.snapshot_taker.take_due(None)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            holds = peak <= MEMORY_MIB * MIB and taken.snapshots == again.snapshots == 1
            rows += (
                Row(f"{name}: entries", f"{rate:,.0f}/s", f"bare scan: {bare:,.0f}/s", rate / bare),
                Row(f"{name}: calls", str(held)),
                Row(
                    f"{name}: memory of Python",
                    f"{peak / MIB:.1f} MiB",
                    "",
                    None,
                    f"≤ {MEMORY_MIB} MiB",
                    holds,
                ),
            )
    return Results([*rows, as_rare(ours, control)])


def time_scan(here: Ground) -> float:
    began = time.perf_counter()
    for _ in here.raw.zscan_iter("lb:{bench/archive}:daily:2025-10-24", count=1000):
        pass
    return time.perf_counter() - began
