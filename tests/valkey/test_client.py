from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from valkey_servers import running_valkey

from laurels.errors import Unavailable
from laurels.valkey import functions
from laurels.valkey.client import CONNECTIONS, Valkey

if TYPE_CHECKING:
    from pathlib import Path

    from laurels.embedded import Endpoints


async def test_more_commands_than_connections_wait_for_their_turn(endpoints: Endpoints):
    valkey = Valkey(endpoints.valkey_url)
    answers = await asyncio.gather(*(valkey.command("ECHO", number) for number in range(3 * CONNECTIONS)))
    await valkey.close()
    assert answers == [str(number).encode() for number in range(3 * CONNECTIONS)]


async def test_a_command_that_is_given_up_leaves_no_answer_for_the_next(endpoints: Endpoints):
    valkey = Valkey(endpoints.valkey_url, connections=1)
    waiting = asyncio.create_task(valkey.command("BLPOP", "nothing-is-ever-here", 5))
    while not await _blocked(endpoints):
        pass
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await valkey.command("ECHO", "mine") == b"mine"
    await valkey.close()


async def test_an_address_that_stands_for_another_node_is_looked_up_again(tmp_path: Path):
    address = tmp_path / "valkey"
    with running_valkey() as old, running_valkey() as new:
        address.symlink_to(old.socket)
        valkey = Valkey(f"unix://{address}")
        await valkey.load_functions()
        await asyncio.gather(
            *(functions.begin_session(valkey, f"k{number}", b"1", 60) for number in range(9))
        )
        address.unlink()
        address.symlink_to(new.socket)
        old.client.execute_command("REPLICAOF", "127.0.0.1", "1")
        with pytest.raises(Unavailable, match="READONLY"):
            await functions.begin_session(valkey, "k", b"1", 60)
        await functions.begin_session(valkey, "k", b"2", 60)
        assert new.client.get("k") == b"2"
        await valkey.close()


async def _blocked(endpoints: Endpoints) -> bool:
    other = Valkey(endpoints.valkey_url)
    told = await other.info("clients")
    await other.close()
    return int(told["blocked_clients"]) > 0
