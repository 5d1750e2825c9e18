"""The journal: batches of 250 into a board with four windows, and the same submissions archived.

Submitting and archiving take turns, a few thousand submissions each, so that both meet the same noise. Each
has both stores to itself in its turn; the archive's turn ends when the rows are committed and the stream is
trimmed.
"""

from __future__ import annotations

import random
import statistics
import time
from datetime import UTC, datetime

from bench.ground import FOUR_WINDOWS, console, ground, member, table, verdict
from laurels import Submission

BATCH = 250
A_TURN = 20_000
TURNS = 20
TARGET = 0.8


async def run(members: int) -> bool:
    submitted: list[float] = []
    archived: list[float] = []
    chosen = random.Random(1)  # noqa: S311  # data, not secrets
    async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
        await here.laurels.define("bench/journal", {"windows": FOUR_WINDOWS})
        for turn in range(TURNS + 1):
            given = [
                Submission(member(chosen.randrange(members)), turn * 1_000_000 + chosen.randrange(1_000_000))
                for _ in range(A_TURN)
            ]
            began = time.perf_counter()
            for first in range(0, A_TURN, BATCH):
                await here.laurels.submit_many("bench/journal", given[first : first + BATCH])
            between = time.perf_counter()
            await here.laurels.archived("bench/journal")
            if turn:  # the first one makes connections and learns how much to read at once
                submitted.append(A_TURN / (between - began))
                archived.append(A_TURN / (time.perf_counter() - between))
    return show(submitted, archived, members)


def show(submitted: list[float], archived: list[float], members: int) -> bool:
    ratios = [ours / theirs for ours, theirs in zip(archived, submitted, strict=True)]
    holds = statistics.median(ratios) >= TARGET
    drawn = table(f"Journal, {members:,} members, turns of {A_TURN:,}", "", "median a second", "least")
    drawn.add_row("submitted", f"{statistics.median(submitted):,.0f}", f"{min(submitted):,.0f}")
    drawn.add_row("archived", f"{statistics.median(archived):,.0f}", f"{min(archived):,.0f}")
    drawn.add_row(
        f"archived by submitted, target {TARGET}", f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f}"
    )
    console.print(drawn, verdict(holds=holds))
    return holds
