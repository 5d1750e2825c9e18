"""What it costs to archive a window: how long, how much memory, and how long it holds Valkey.

As in `bench/stalls.py`, a control tells what of the long commands is the machine's doing.
"""

from __future__ import annotations

import time
import tracemalloc
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.ground import console, ground, table, verdict
from bench.stalls import CHANCE, Held, Watch

# A walk holds some hundreds of entries at a time, whatever the window has.
MEMORY_LIMIT = 64 * 1024**2
# So that the machine's doing can be seen even where the work itself is short.
LEAST_CONTROL_SECONDS = 1.0
BOARDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "exact": ({"ties": "earliest"}, {}),
    "top 100": ({}, {"top": 100}),
}


async def run(members: int) -> bool:
    drawn = table(
        f"Archiving a window of {members:,} entries",
        "board", "seconds", "entries/s", "memory", "mean ms", "longest ms", "over 10 ms", "",
    )  # fmt: skip
    ours, control, is_small = Held(), Held(), True
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
            ours.add(held)
            control.add(watch.control(held, max(held.seconds, LEAST_CONTROL_SECONDS)))
            # Again, since it settled: traced, which takes several times as long.
            place.clock.advance(timedelta(days=1))
            tracemalloc.start()
            again = await place.laurels.snapshot_taker.take_due(None)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            holds = peak < MEMORY_LIMIT and taken.snapshots == again.snapshots == 1
            is_small = is_small and holds
            drawn.add_row(
                name,
                f"{seconds:.1f}",
                f"{members / seconds:,.0f}",
                f"{peak / 1024**2:.1f} MiB",
                f"{1000 * held.seconds / max(1, held.commands):.2f}",
                f"{1000 * held.longest:.1f}" if held.over else "< 10",
                f"{held.over} of {held.commands}",
                verdict(holds=holds),
            )
    console.print(drawn)
    is_short = ours.over_a_second <= CHANCE * control.over_a_second
    console.print(
        f"Over 10 ms, for each second that it ran: ours {ours.over_a_second:.2f}, "
        f"the control {control.over_a_second:.2f}: {verdict(holds=is_short)}. Memory is what Python holds.",
    )
    return is_small and is_short
