"""The journal: submits batches of 250 to a board with four windows, then archives the same submissions.

Submitting and archiving take turns of some thousand submissions, so that both meet the same noise and have
the stores to themselves. The archive's turn ends when the rows are committed and the stream is trimmed.
"""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime

from bench.ground import FOUR_WINDOWS, ground, member
from bench.results import Results, rates_in_turns
from laurels import Submission

BATCH = 250
A_TURN = 20_000
TURNS = 20
TARGET = 0.8


async def run(members: int) -> Results:
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
            if turn:  # the first turn opens connections and learns how much to read at once
                submitted.append(A_TURN / (between - began))
                archived.append(A_TURN / (time.perf_counter() - between))
    return Results([rates_in_turns("archived", archived, ("submitted", submitted), least=TARGET)])
