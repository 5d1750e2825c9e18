"""What a submission, a rank and a page of 100 cost on one window that grows to ten million members, beside
the same command on the same sorted set by redis-py.

The window grows in batches, and is measured at each size. At the end it is compared with a window of 10,000,
in turns. A window with exact ties grows to a tenth of the members.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bench.ground import Ground, ground, in_turns, member, sizes
from bench.results import Plot, Results, Row, Tail, judged, panel_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Ask = Callable[[Ground, str, int], Awaitable[object]]

PARTS = (1000, 100, 10, 1)
"""Of all members, when the window is measured."""
EXACT_PART = 10
FEW = 10_000
QUESTIONS = 1_000
TARGET = 2.0
DEFINITION: dict[str, Any] = {"windows": [{"period": "all_time"}], "archive": {"journal": False}}
MANY = "bench/many"
KEY = "lb:{bench/many}:all_time"


async def run(members: int) -> Results:
    costs: dict[str, dict[int, tuple[Tail, Tail]]] = {what: {} for what in ASKED}
    async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
        await prepare(here, DEFINITION)
        grown = 0
        for size in sizes(members, PARTS):
            await here.fill(MANY, size, first=grown)
            grown = size
            for what in ASKED:
                costs[what][size] = await beside_raw(here, what, size)
        rows = [await beside_few(here, what, members, "plain") for what in ASKED]
    async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
        await prepare(here, {**DEFINITION, "ties": "earliest"})
        await here.fill(MANY, members // EXACT_PART)
        rows += [await beside_few(here, what, members // EXACT_PART, "exact") for what in ASKED]
    panels = [panel_of(what, found, "one command by redis-py") for what, found in costs.items()]
    return Results(rows, [Plot("members", "Cost by members of a window", "members", "milliseconds", panels)])


async def prepare(here: Ground, definition: dict[str, Any]) -> None:
    for board in (MANY, "bench/few"):
        await here.laurels.define(board, definition)
    await here.fill("bench/few", FEW)


async def beside_raw(here: Ground, what: str, members: int) -> tuple[Tail, Tail]:
    ask, ask_raw = ASKED[what]
    asked = random.Random(members).choices(range(members), k=QUESTIONS)  # noqa: S311  # data, not secrets
    return await in_turns(asked, lambda i: ask(here, MANY, i), lambda i: ask_raw(here, KEY, i))


async def beside_few(here: Ground, what: str, members: int, layout: str) -> Row:
    ask, _ = ASKED[what]
    shares = [random.Random(i).random() for i in range(QUESTIONS)]  # noqa: S311  # data, not secrets
    many, few = await in_turns(
        shares,
        lambda share: ask(here, MANY, int(share * members)),
        lambda share: ask(here, "bench/few", int(share * FEW)),
    )
    ratio = many.p50 / few.p50
    return Row(
        f"{what}, {layout}, {members:,} members",
        f"{many.p50:.2f} ms",
        f"{FEW:,} members: {few.p50:.2f} ms",
        ratio,
        *judged(ratio, most=TARGET),
        many,
    )


def better_score() -> int:
    return random.randrange(1_000_000, 9_000_000)  # noqa: S311  # data, not secrets


async def submit(here: Ground, board: str, number: int) -> object:
    return await here.laurels.submit(board, member(number), better_score())


async def submit_raw(here: Ground, key: str, number: int) -> object:
    return here.raw.zadd(key, {member(number): better_score()})


async def rank(here: Ground, board: str, number: int) -> object:
    return await here.laurels.standing(board, member(number))


async def rank_raw(here: Ground, key: str, number: int) -> object:
    rank = here.raw.zrevrank(key, member(number))
    if rank is None:
        raise RuntimeError(f"{key} has no {member(number)}")
    return rank


async def page(here: Ground, board: str, _: int) -> object:
    return await here.laurels.page(board, limit=100)


async def page_raw(here: Ground, key: str, _: int) -> object:
    return here.raw.zrevrange(key, 0, 99, withscores=True)


ASKED: dict[str, tuple[Ask, Ask]] = {
    "submit": (submit, submit_raw),
    "rank": (rank, rank_raw),
    "page of 100": (page, page_raw),
}
