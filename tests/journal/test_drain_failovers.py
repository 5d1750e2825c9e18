"""Drains while the primary is replaced."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest
from redis.crc import key_slot
from sqlalchemy import text
from supported_servers import lacks_waitaof
from valkey_cluster import SLOTS, cluster_servers, cluster_url
from waiting import until

from laurels import Laurels
from laurels.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.embedded import Endpoints
    from laurels.journal.store.rows import Stream, StreamCursor

BOARD = "failovers/sums"
ROWS = "SELECT journal.id FROM laurels.journal JOIN laurels.boards ON boards.id = board_id"
IDS = [f"id-{number}" for number in range(20)]


async def submit(laurels: Laurels, submission: str) -> None:
    """Submits like a client: repeats with the same id until it is acknowledged."""
    while True:
        try:
            await laurels.submit(BOARD, "ada", 1, id=submission)
        except Unavailable:
            continue
        return


@pytest.mark.skipif(lacks_waitaof(), reason="durability `replicated` needs Redis 7.2 or Valkey")
async def test_entries_that_only_a_replaced_primary_had_are_not_archived(endpoints: Endpoints):
    number = key_slot(BOARD.encode()) * 3 // SLOTS
    with cluster_servers(3, 1, cluster_node_timeout="1500", appendonly="yes") as servers:
        primary, replica = servers[number], servers[3 + number]
        urls = {"valkey_url": cluster_url(servers), "postgres_url": endpoints.postgres_url}
        async with Laurels(**urls, durability="replicated", jobs=False) as laurels:  # pyright: ignore[reportArgumentType]
            await laurels.define(BOARD, {"aggregate": "sum"})
            await laurels.submit(BOARD, "ada", 1, id="before")
            # A frozen node greets no new connection.
            key = f"lb:{{{BOARD}}}:board"
            await asyncio.gather(*(laurels.valkey.command("EXISTS", key) for _ in range(20)))
            lease, submitting = laurels.drain.store.lease, list[asyncio.Task[None]]()

            async def lease_and_freeze(
                connection: AsyncConnection, streams: Collection[Stream]
            ) -> dict[Stream, StreamCursor]:
                leased = await lease(connection, streams)
                primary.process.send_signal(signal.SIGSTOP)
                submitting.extend(asyncio.create_task(submit(laurels, each)) for each in IDS)
                for _ in range(100):  # until they are sent
                    await asyncio.sleep(0)
                laurels.drain.store.lease = lease
                return leased

            laurels.drain.store.lease = lease_and_freeze
            draining = asyncio.create_task(laurels.drain.run_once())
            await asyncio.to_thread(lambda: until(replica.is_primary))
            primary.process.send_signal(signal.SIGCONT)
            await asyncio.gather(draining, return_exceptions=True)
            await asyncio.gather(*submitting)
            await laurels.journal_drained()
            async with laurels.postgres.reading() as connection:
                rows = await connection.execute(text(f"{ROWS} WHERE project = 'failovers'"))
                assert sorted(id_.decode() for (id_,) in rows) == sorted([*IDS, "before"])
            assert (await laurels.page(BOARD)).entries[0].score == 1 + len(IDS)
            await laurels.drop(BOARD, allow_drop="all")
