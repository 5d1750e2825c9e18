"""Batches of 250 into a board with four windows, beside raw variadic ZADD doing the same window writes.

Raw and ours take turns, a few batches each, so that both meet the same noise; each round has new scores that
all improve, so that every write is one.
"""

from __future__ import annotations

import random
import statistics
import time
from datetime import UTC, datetime

from bench.ground import FOUR_WINDOWS, Ground, console, ground, member, table, verdict
from laurels import Submission

BATCH = 250
TURN = 10  # batches before the other one's turn
TARGETS = {"plain": 0.85, "exact": 0.35}
BOARDS = {
    "plain": {"windows": FOUR_WINDOWS},
    "exact": {"windows": FOUR_WINDOWS, "ties": "earliest"},
    "sum": {"windows": FOUR_WINDOWS, "aggregate": "sum"},
}


async def run(members: int, rounds: int = 10) -> bool:
    async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
        for name, definition in BOARDS.items():
            await here.laurels.define(f"bench/{name}", definition)
            await here.fill(f"bench/{name}", members)
        fill_raw(here, members)
        ratios: dict[str, list[float]] = {name: [] for name in BOARDS}
        rates: list[float] = []
        chosen = random.Random(2)  # noqa: S311  # data, not secrets
        for number in range(1, rounds + 1):
            pairs = [
                (member(chosen.randrange(members)), chosen.randrange(1_000_000) + number * 1_000_000)
                for _ in range(BATCH * TURN)
            ]
            raw = time_raw(here, pairs)
            rates.append(len(pairs) * len(FOUR_WINDOWS) / raw)
            for name in BOARDS:
                ratios[name].append(raw / await time_ours(here, f"bench/{name}", pairs))
        return show(ratios, rates, members)


def fill_raw(here: Ground, members: int) -> None:
    chosen = random.Random(1)  # noqa: S311  # data, not secrets
    for first in range(0, members, BATCH):
        scores = {member(i): chosen.randrange(1_000_000) for i in range(first, min(first + BATCH, members))}
        for window in range(len(FOUR_WINDOWS)):
            here.raw.zadd(f"raw:{window}", scores)


def time_raw(here: Ground, pairs: list[tuple[str, int]]) -> float:
    began = time.perf_counter()
    for first in range(0, len(pairs), BATCH):
        scores = dict(pairs[first : first + BATCH])
        for window in range(len(FOUR_WINDOWS)):
            here.raw.zadd(f"raw:{window}", scores)
    return time.perf_counter() - began


async def time_ours(here: Ground, board: str, pairs: list[tuple[str, int]]) -> float:
    began = time.perf_counter()
    for first in range(0, len(pairs), BATCH):
        batch = [Submission(name, score) for name, score in pairs[first : first + BATCH]]
        await here.laurels.submit_many(board, batch)
    return time.perf_counter() - began


def show(ratios: dict[str, list[float]], rates: list[float], members: int) -> bool:
    drawn = table(
        f"Window writes in batches of {BATCH}, {members:,} members; raw: {statistics.median(rates):,.0f}/s",
        "board",
        "median of raw",
        "least",
        "target",
        "",
    )
    good = True
    for name, found in ratios.items():
        target = TARGETS.get(name)
        median = statistics.median(found)
        holds = target is None or median >= target
        good = good and holds
        drawn.add_row(
            name,
            f"{median:.2f}",
            f"{min(found):.2f}",
            "reported" if target is None else f"{target:.2f}",
            verdict(holds=holds),
        )
    console.print(drawn)
    return good
