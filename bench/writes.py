"""Batches of 250 into a board with four windows, beside raw variadic ZADD with the same window writes.

Raw and ours take turns of a few batches, so that both meet the same noise and hold entries of the same age.
Each round has new and better scores, so that every score is written.
"""

from __future__ import annotations

import random
import statistics
import time
from datetime import UTC, datetime

from rich.progress import track

from bench.ground import FOUR_WINDOWS, Ground, console, ground, member
from bench.results import Results, Row, judged
from laurels import Submission

BATCH = 250
TURN = 10  # batches
TARGETS = {"plain": 0.9, "exact": 0.5, "sum": 0.7}
BOARDS = {
    "plain": {"windows": FOUR_WINDOWS},
    "exact": {"windows": FOUR_WINDOWS, "ties": "earliest"},
    "sum": {"windows": FOUR_WINDOWS, "aggregate": "sum"},
}


async def run(members: int, rounds: int = 30) -> Results:
    ratios: dict[str, list[float]] = {}
    rates: list[float] = []
    for name, definition in BOARDS.items():
        async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
            board = f"bench/{name}"
            await here.laurels.define(board, definition)
            await fill(here, board, members)
            ratios[name] = [
                await compare(here, board, members, number, rates) for number in range(1, rounds + 1)
            ]
    return Results(rows(ratios, rates))


async def fill(here: Ground, board: str, members: int) -> None:
    """Fills both in turns, so that the memory of both has the same age and layout."""
    chosen = random.Random(1)  # noqa: S311  # data, not secrets
    for first in track(range(0, members, BATCH * TURN), f"filling {board}", console=console, transient=True):
        numbers = range(first, min(first + BATCH * TURN, members))
        pairs = [(member(i), chosen.randrange(1_000_000)) for i in numbers]
        time_raw(here, pairs)
        await time_ours(here, board, pairs)


async def compare(here: Ground, board: str, members: int, number: int, rates: list[float]) -> float:
    """Our speed divided by raw speed, for the same scores."""
    chosen = random.Random(number)  # noqa: S311  # data, not secrets
    pairs = [
        (member(chosen.randrange(members)), chosen.randrange(1_000_000) + number * 1_000_000)
        for _ in range(BATCH * TURN)
    ]
    if number % 2:
        raw, ours = time_raw(here, pairs), await time_ours(here, board, pairs)
    else:
        ours, raw = await time_ours(here, board, pairs), time_raw(here, pairs)
    rates.append(len(pairs) * len(FOUR_WINDOWS) / raw)
    return raw / ours


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


def rows(ratios: dict[str, list[float]], rates: list[float]) -> list[Row]:
    raw = statistics.median(rates)
    found: list[Row] = []
    for name, each in ratios.items():
        ratio = statistics.median(each)
        written = f"{raw * ratio:,.0f} window writes/s"
        found.append(Row(name, written, f"{raw:,.0f}/s", ratio, *judged(ratio, least=TARGETS.get(name))))
    return found
