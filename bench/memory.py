"""Bytes an entry: all keys of a window, beside a bare sorted set with the same members and scores."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from bench.ground import Ground, console, ground, member, table, verdict

TARGETS = {"plain": 1.15, "exact": 2.2}
BOARDS = {"plain": {}, "exact": {"ties": "earliest"}}


async def run(members: int) -> bool:
    async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
        bare = fill_bare(here, members) / members
        drawn = table(f"Bytes an entry, {members:,} members", "window", "bytes", "of bare", "target", "")
        drawn.add_row("bare sorted set", f"{bare:.1f}", "1.00", "", "")
        good = True
        for name, definition in BOARDS.items():
            before = used(here)
            await here.laurels.define(f"bench/{name}", definition)
            await here.fill(f"bench/{name}", members)
            here.raw.delete(f"lb:{{bench/{name}}}:journal")
            wait_until_freed(here)
            own = (used(here) - before) / members
            holds = own / bare <= TARGETS[name]
            good = good and holds
            drawn.add_row(
                name, f"{own:.1f}", f"{own / bare:.2f}", f"≤ {TARGETS[name]:.2f}", verdict(holds=holds)
            )
        console.print(drawn)
        console.print("All keys of a board except its journal, which the archive drains.", style="dim")
        return good


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
