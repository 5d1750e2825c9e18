"""The longest that any command of ours holds Valkey at a million members: SLOWLOG over everything we do."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from bench.ground import FOUR_WINDOWS, Ground, console, ground, member, table, verdict
from laurels import Submission

LIMIT_MILLISECONDS = 10
BOARDS = {
    "plain": {"windows": FOUR_WINDOWS},
    "exact": {"windows": FOUR_WINDOWS, "ties": "earliest"},
    "sum": {
        "windows": [{"period": "daily", "keep": 1}, {"period": "weekly", "sum_of": "daily"}],
        "aggregate": "sum",
    },
    "dense": {"windows": FOUR_WINDOWS, "dense": True},
    "rolling": {"windows": [{"period": "rolling", "days": 30}], "aggregate": "sum"},
}


async def run(members: int) -> bool:
    drawn = table(
        f"The longest command at {members:,} members, milliseconds", "work", "longest", "over 10 ms", ""
    )
    good = True
    async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
        here.raw.config_set("slowlog-max-len", 100_000)
        here.raw.config_set("slowlog-log-slower-than", 1_000)
        for name, definition in BOARDS.items():
            board = f"bench/{name}"
            await here.laurels.define(board, definition)
            work = {
                "fill": lambda board=board: here.fill(board, members),
                "batches": lambda board=board: batches(here, board, members),
                "reads": lambda board=board: reads(here, board, members),
                "removals": lambda board=board: removals(here, board),
                "day change": lambda board=board: day_change(here, board),
                "expiry": lambda board=board: expiry(here, board),
                "drop": lambda board=board: here.laurels.drop(board),
            }
            for what, do in work.items():
                here.raw.slowlog_reset()
                await do()
                slow = [entry for entry in here.raw.slowlog_get(100_000) if is_ours(entry["command"])]
                longest = max((entry["duration"] for entry in slow), default=0) / 1000
                over = sum(entry["duration"] > LIMIT_MILLISECONDS * 1000 for entry in slow)
                good = good and not over
                drawn.add_row(
                    f"{name}: {what}",
                    f"{longest:.1f}" if longest else "< 1",
                    str(over),
                    verdict(holds=not over),
                )
    console.print(drawn)
    return good


def is_ours(command: bytes) -> bool:
    return not command.startswith((b"SLOWLOG", b"CONFIG", b"FUNCTION"))


async def batches(here: Ground, board: str, members: int) -> None:
    chosen = random.Random(4)  # noqa: S311  # data, not secrets
    for _ in range(40):
        batch = [
            Submission(member(chosen.randrange(members)), chosen.randrange(9_000_000)) for _ in range(1000)
        ]
        await here.laurels.submit_many(board, batch)


async def reads(here: Ground, board: str, members: int) -> None:
    for number in range(0, members, members // 50):
        await here.laurels.standing(board, member(number))
        await here.laurels.page(board, limit=1000, rank=number + 1)
        await here.laurels.among(board, [member(i) for i in range(number, number + 1000)])
    await here.laurels.distribution(board, 1000)


async def removals(here: Ground, board: str) -> None:
    for number in range(100):
        await here.laurels.remove(board, member(number))


async def day_change(here: Ground, board: str) -> None:
    here.clock.advance(timedelta(days=1))
    await here.laurels.submit(board, member(7), 5)
    await here.laurels.page(board)
    here.clock.advance(timedelta(days=1))
    await here.laurels.page(board)


async def expiry(here: Ground, board: str) -> None:
    """Every window of the board expires at once, as if its keep were over."""
    keys = list(here.raw.scan_iter(f"lb:{{{board}}}:*-*"))
    for key in keys:
        here.raw.pexpire(key, 1)
    while any(here.raw.exists(key) for key in keys):
        pass
