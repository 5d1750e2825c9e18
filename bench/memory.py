"""Bytes an entry, beside a bare sorted set with the same members and scores.

All keys of a board count, except its journal, which the archive drains.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from bench.ground import Ground, ground, member
from bench.results import Bars, Results, Row, judged

TARGETS = {"plain": 1.15, "by member": 1.15, "earliest": 1.7}
BOARDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "by member": {"ties": "member"},
    "earliest": {"ties": "earliest"},
    "int64": {"score": "int64"},
    "dense": {"dense": True},
}


async def run(members: int) -> Results:
    async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
        bare = fill_bare(here, members) / members
        rows: list[Row] = []
        bars = [("sorted set", bare)]
        for name, definition in BOARDS.items():
            before = used(here)
            board = f"bench/{name.replace(' ', '-')}"
            await here.laurels.define(board, definition)
            await here.fill(board, members)
            here.raw.delete(f"lb:{{{board}}}:journal")
            wait_until_freed(here)
            own = (used(here) - before) / members
            bound = judged(own / bare, most=TARGETS.get(name))
            bars.append((name, own))
            rows.append(Row(name, f"{own:.1f} B", f"{bare:.1f} B", own / bare, *bound))
        plot = Bars("memory", "Memory by layout", "bytes an entry", bars, control="sorted set")
        return Results(rows, [plot])


def fill_bare(here: Ground, members: int) -> int:
    before = used(here)
    chosen = random.Random(1)  # noqa: S311  # data, not secrets
    for first in range(0, members, 1000):
        numbers = range(first, min(first + 1000, members))
        here.raw.zadd("bare", {member(i): chosen.randrange(1_000_000) for i in numbers})
    return used(here) - before


def wait_until_freed(here: Ground) -> None:
    """Waits until Valkey has freed deleted keys, which it does in the background."""
    while here.raw.info("memory")["lazyfree_pending_objects"]:
        pass


def used(here: Ground) -> int:
    """The memory of Valkey's data, without its clients' buffers."""
    return here.raw.info("memory")["used_memory_dataset"]
