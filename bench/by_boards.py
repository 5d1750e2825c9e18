"""What the first score of a board and a page cost when a project has ten to a hundred thousand boards, beside
the same command on as many sorted sets by redis-py.

Boards are defined in bulk. Scores and reads go one after the other to boards chosen from all of them, from a
process that has used none of them before.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bench.boards import define
from bench.ground import ground, in_turns, sizes
from bench.results import Plot, Results, Row, Tail, counted, panel_of, rows_of

if TYPE_CHECKING:
    from bench.ground import Ground

PARTS = (10_000, 1_000, 100, 10, 1)
"""Of all boards, when they are measured."""
CHOSEN = 2_000
"""How many boards get a first score at most, and how many pages are read."""


async def run(boards: int) -> Results:
    first_scores: dict[int, tuple[Tail, Tail]] = {}
    pages: dict[int, tuple[Tail, Tail]] = {}
    defined: list[Row] = []
    async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
        for size in sizes(boards, PARTS):
            project = f"bench-{size}"
            rate = await define(here.laurels, project, size)
            defined.append(Row(f"define {counted(size, 'boards')}", f"{rate:,.0f}/s"))
            chosen = random.Random(size)  # noqa: S311  # data, not secrets
            scored = chosen.sample(range(size), min(size, CHOSEN))
            first_scores[size] = await measure_submits(here, project, scored)
            pages[size] = await measure_pages(here, project, chosen.choices(scored, k=CHOSEN))
    costs = {"first score": first_scores, "page of 10": pages}
    return Results(
        [*defined, *(row for what, found in costs.items() for row in rows_of(what, found, "boards"))],
        [
            Plot(
                "boards",
                "Cost by boards of a project",
                "boards",
                "milliseconds",
                [panel_of(what, found, "one command by redis-py") for what, found in costs.items()],
            )
        ],
    )


async def measure_submits(here: Ground, project: str, boards: list[int]) -> tuple[Tail, Tail]:
    async def add(number: int) -> None:
        here.raw.zadd(f"raw:{project}:{number}", {"ada": number})

    return await in_turns(boards, lambda i: here.laurels.submit(f"{project}/b{i}", "ada", i), add)


async def measure_pages(here: Ground, project: str, boards: list[int]) -> tuple[Tail, Tail]:
    async def read(number: int) -> None:
        here.raw.zrevrange(f"raw:{project}:{number}", 0, 9, withscores=True)

    return await in_turns(boards, lambda i: here.laurels.page(f"{project}/b{i}", limit=10), read)
