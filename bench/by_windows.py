"""What submissions cost on boards with one to eight windows, in batches of 250 and alone, beside the same
`ZADD`s by redis-py: one for each window, in one round trip.

Ours and redis-py take turns with the same new scores.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bench.ground import Ground, ground, in_turns, member
from bench.results import Plot, Results, Tail, panel_of, rows_of
from laurels import Submission

if TYPE_CHECKING:
    from collections.abc import Iterator

    Scores = dict[str, int]

COUNTS = (1, 2, 4, 8)
WINDOWS: tuple[dict[str, Any], ...] = (
    {"period": "all_time"},
    {"period": "daily"},
    {"period": "weekly"},
    {"period": "monthly"},
    {"period": "yearly"},
    {"period": "hourly"},
    {"period": "every", "seconds": 600, "name": "ten_minutes"},
    {"period": "every", "seconds": 7200, "name": "two_hours"},
)
TURNS = {1: 1_000, 250: 100}
"""By the number of submissions in a call."""


async def run(members: int) -> Results:
    costs: dict[str, dict[int, tuple[Tail, Tail]]] = {}
    async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
        for count in COUNTS:
            board = f"bench/{count}"
            definition = {"windows": WINDOWS[:count], "archive": {"journal": False}}
            await here.laurels.define(board, definition)
            await here.fill(board, members)
            for first in range(0, members, 1000):
                numbers = range(first, min(first + 1000, members))
                await add(here, count, {member(i): i for i in numbers})
            for size in TURNS:
                what = "a submission" if size == 1 else f"a batch of {size}"
                costs.setdefault(what, {})[count] = await beside_raw(here, count, size, members)
    return Results(
        [row for what, found in costs.items() for row in rows_of(what, found, "windows")],
        [
            Plot(
                "windows",
                "Cost by windows of a board",
                "windows",
                "milliseconds",
                [panel_of(what, found, "ZADDs by redis-py") for what, found in costs.items()],
            )
        ],
    )


async def beside_raw(here: Ground, count: int, size: int, members: int) -> tuple[Tail, Tail]:
    async def submit(scores: Scores) -> None:
        if size == 1:
            await here.laurels.submit(f"bench/{count}", *next(iter(scores.items())))
        else:
            given = [Submission(name, score) for name, score in scores.items()]
            await here.laurels.submit_many(f"bench/{count}", given)

    return await in_turns(new_scores(size, members), submit, lambda scores: add(here, count, scores))


def new_scores(size: int, members: int) -> Iterator[Scores]:
    """Better scores each time, so that every score is written."""
    chosen = random.Random(size)  # noqa: S311  # data, not secrets
    for turn in range(1, TURNS[size] + 1):
        least = (turn + size) * 1_000_000
        yield {member(chosen.randrange(members)): least + chosen.randrange(1_000_000) for _ in range(size)}


async def add(here: Ground, count: int, scores: Scores) -> None:
    pipeline = here.raw.pipeline(transaction=False)
    for window in range(count):
        pipeline.zadd(f"raw:{count}:{window}", scores)
    pipeline.execute()
