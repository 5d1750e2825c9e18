"""A cluster of three primaries and their replicas at `replicated`: kills, freezes and thaws, planned
failovers and moving slots under load from clients that retry by id, and from some that never do. Nothing that
was acknowledged is lost, nothing counts twice, a fed board and the archive have what the feeder has, and no
request is answered with 500.

A failure prints its seed: `make faults FAILOVER_SEED=…` does the same again.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from cluster_faults import Faults
from deployment import ONCE, Deployment, in_thread
from journal_rows import journal, sums, until_archived
from load import Load
from redis.crc import key_slot
from valkey_cluster import cluster_servers, cluster_url

if TYPE_CHECKING:
    from pathlib import Path

    from laurels.client import AsyncClient

FAILOVERS = int(os.environ.get("FAILOVERS", "6"))
SLOT_MOVES = int(os.environ.get("SLOT_MOVES", "2"))
FAILOVER_SEED = int(os.environ.get("FAILOVER_SEED", "2026"))
KINDS = ("kill", "freeze", "planned")


def schedule(chance: random.Random) -> list[str]:
    """As many of each kind of failover, and the moves of slots, in a random order."""
    faults = [KINDS[number % len(KINDS)] for number in range(FAILOVERS)] + ["move"] * SLOT_MOVES
    chance.shuffle(faults)
    return faults


async def test_whatever_becomes_of_the_primaries_what_was_acknowledged_is_there_once(place: Path):
    chance = random.Random(FAILOVER_SEED)  # noqa: S311  # which node, not a secret
    seeded = f"FAILOVER_SEED={FAILOVER_SEED} FAILOVERS={FAILOVERS} SLOT_MOVES={SLOT_MOVES}"
    print(seeded)  # noqa: T201  # shown when it fails
    options = {"cluster_node_timeout": "1500", "appendonly": "yes", "appendfsync": "always"}
    with cluster_servers(3, 1, **options) as servers:
        settings = {"LAURELS_DURABILITY": "replicated"}
        deployment = Deployment(place, settings, ("api", "worker"), valkey_url=cluster_url(servers))
        with deployment.running():
            async with deployment.clients(6) as clients, deployment.clients(2, ONCE) as hasty:
                load, given_up = Load("sums"), Load("given-up")
                await clients[0].define("fed", {"aggregate": "sum"})
                await clients[0].define(load.board, {"aggregate": "sum", "feeds": ["faults/fed"]})
                await clients[0].define("fed-up", {"aggregate": "sum"})
                await clients[0].define(given_up.board, {"aggregate": "sum", "feeds": ["faults/fed-up"]})
                boards = (load.board, "fed", given_up.board, "fed-up")
                slots = [key_slot(f"faults/{board}".encode()) for board in boards]
                faults = Faults(servers, chance, slots)
                async with load.running(clients), given_up.running(hasty):
                    for fault in schedule(chance):
                        await load.until_acknowledged(chance.randrange(10, 60))
                        await in_thread(lambda fault=fault: faults.happen(fault))
                    await load.until_acknowledged(50)
                told = load.sums()
                assert await scores(clients[0], load.board) == told
                for board in (load.board, given_up.board):
                    await until_archived(deployment, board)
                assert journal(deployment, load.board) == load.rows()
                assert await scores(clients[0], "fed") == told
                # Of those who gave up, what was acknowledged is there, and all stores tell the same.
                rows = journal(deployment, given_up.board)
                assert set(given_up.rows()) <= set(rows)
                assert len({submission for submission, _, _ in rows}) == len(rows)
                counted = sums(rows)
                assert await scores(clients[0], given_up.board) == counted
                assert await scores(clients[0], "fed-up") == counted
            assert '"status": 500' not in deployment.log("api")
            assert "Traceback" not in deployment.log("api")


async def scores(client: AsyncClient, board: str) -> dict[str, float | int | None]:
    return {entry.member: entry.score for entry in (await client.page(board)).entries}
