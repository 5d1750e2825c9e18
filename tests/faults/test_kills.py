"""API, worker, Valkey and PostgreSQL killed at random under load: at `fsync`, nothing acknowledged is lost,
nothing counts twice, nothing is torn; journal, live windows and what the clients were told are one.

A failure prints its seed: `make faults KILL_SEED=…` does the same again.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from deployment import PARTS, Deployment, in_thread
from journal_rows import journal, until_archived
from load import Load

if TYPE_CHECKING:
    from pathlib import Path

KILLS = int(os.environ.get("KILLS", "20"))
KILL_SEED = int(os.environ.get("KILL_SEED", "2025"))
WINDOWS = [{"period": "all_time"}, {"period": "daily"}, {"period": "rolling", "days": 7}]


async def test_whatever_is_killed_what_was_acknowledged_is_there_once(place: Path):
    chance = random.Random(KILL_SEED)  # noqa: S311  # which process, not a secret
    print(f"KILL_SEED={KILL_SEED} KILLS={KILLS}")  # noqa: T201  # shown when it fails
    deployment = Deployment(place, {"LAURELS_DURABILITY": "fsync"}, PARTS)
    with deployment.running():
        async with deployment.clients(8) as clients:
            load = Load("sums")
            await clients[0].define(load.board, {"aggregate": "sum", "windows": WINDOWS, "ties": "earliest"})
            async with load.running(clients):
                for _ in range(KILLS):
                    await load.until_acknowledged(chance.randrange(10, 60))
                    part = chance.choice(PARTS)
                    await in_thread(lambda part=part: deployment.kill(part))
                await load.until_acknowledged(50)
            told = load.sums()
            for window in ("all_time", "daily", "rolling_7d"):
                page = await clients[0].page(load.board, period=window)
                assert {entry.member: entry.score for entry in page.entries} == told, window
        await until_archived(deployment)
        assert journal(deployment) == load.rows()
