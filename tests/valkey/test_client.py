from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from laurels.valkey.client import CONNECTIONS, Valkey

if TYPE_CHECKING:
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


async def _blocked(endpoints: Endpoints) -> bool:
    other = Valkey(endpoints.valkey_url)
    told = await other.info("clients")
    await other.close()
    return int(told["blocked_clients"]) > 0
