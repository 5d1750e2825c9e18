"""A rank and a top-100 page on a board of many members, beside the same on a board of 10,000."""

from __future__ import annotations

import random
import statistics
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bench.ground import Ground, console, ground, member, table, verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

FEW = 10_000
QUESTIONS = 2_000
TARGET = 2.0
LAYOUTS = {"plain": {}, "exact": {"ties": "earliest"}}


async def run(members: int) -> bool:
    good = True
    drawn = table(
        f"Reads at {members:,} members, beside {FEW:,}; milliseconds, median of {QUESTIONS:,}",
        "question",
        f"at {FEW:,}",
        f"at {members:,}",
        "ratio",
        "target",
        "",
    )
    for layout, definition in LAYOUTS.items():
        async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
            for name, size in (("few", FEW), ("many", members)):
                await here.laurels.define(f"bench/{name}", definition)
                await here.fill(f"bench/{name}", size)
            for question, ask in (("rank", ask_rank), ("top 100", ask_top)):
                few, many = await take_turns(here, ask, members)
                holds = many / few <= TARGET
                good = good and holds
                drawn.add_row(
                    f"{question}, {layout}",
                    f"{few * 1000:.3f}",
                    f"{many * 1000:.3f}",
                    f"{many / few:.2f}",
                    f"≤ {TARGET:.1f}",
                    verdict(holds=holds),
                )
    console.print(drawn)
    return good


async def take_turns(
    here: Ground, ask: Callable[[Ground, str, int], Awaitable[object]], members: int
) -> tuple[float, float]:
    times: dict[str, list[float]] = {"few": [], "many": []}
    chosen = random.Random(3)  # noqa: S311  # data, not secrets
    for _ in range(QUESTIONS):
        for name, size in (("few", FEW), ("many", members)):
            number = chosen.randrange(size)
            began = time.perf_counter()
            await ask(here, f"bench/{name}", number)
            times[name].append(time.perf_counter() - began)
    return statistics.median(times["few"]), statistics.median(times["many"])


async def ask_rank(here: Ground, board: str, number: int) -> object:
    return await here.laurels.standing(board, member(number))


async def ask_top(here: Ground, board: str, number: int) -> object:  # noqa: ARG001  # the same page each time
    return await here.laurels.page(board, limit=100)
