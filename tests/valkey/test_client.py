from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from valkey_servers import running_valkey
from waiting import eventually

from laurels.errors import Unavailable
from laurels.valkey import functions, strings
from laurels.valkey.client import CONNECTIONS, Valkey
from laurels.valkey.shared_connection import RENEW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from raw_valkey import RawValkey

    from laurels.embedded import Endpoints

BLOCKING = ("BLPOP", "nothing-is-ever-here", 5)


async def ask_apart(valkey: Valkey) -> object:
    return await valkey.command(*BLOCKING, wait=5)


async def ask_for_one(valkey: Valkey) -> object:
    return await valkey.command(*BLOCKING)


async def ask_for_several(valkey: Valkey) -> object:
    return await valkey.commands([BLOCKING, ("ECHO", "other")])


async def test_concurrent_commands_get_their_own_replies(endpoints: Endpoints):
    valkey = Valkey(endpoints.valkey_url)
    answers = await asyncio.gather(*(valkey.command("ECHO", number) for number in range(3000)))
    await valkey.close()
    assert answers == [str(number).encode() for number in range(3000)]


async def test_more_blocking_commands_than_connections_wait_for_their_turn(endpoints: Endpoints):
    valkey = Valkey(endpoints.valkey_url)
    answers = await asyncio.gather(
        *(valkey.command("ECHO", number, wait=1) for number in range(3 * CONNECTIONS))
    )
    await valkey.close()
    assert answers == [str(number).encode() for number in range(3 * CONNECTIONS)]


@pytest.mark.parametrize("ask", [ask_apart, ask_for_one, ask_for_several])
async def test_what_is_given_up_leaves_no_answer_for_the_next(
    endpoints: Endpoints, raw: RawValkey, ask: Callable[[Valkey], Coroutine[object, object, object]]
):
    valkey = Valkey(endpoints.valkey_url, connections=1)
    others = blocked(raw)
    waiting = asyncio.create_task(ask(valkey))
    await eventually(lambda: blocked(raw) - others)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await valkey.commands([("ECHO", "mine")]) == [b"mine"]
    assert await valkey.command("ECHO", "mine") == b"mine"
    await valkey.close()


async def test_an_address_that_stands_for_another_node_is_looked_up_again(tmp_path: Path):
    address = tmp_path / "valkey"
    with running_valkey() as old, running_valkey() as new:
        address.symlink_to(old.socket)
        valkey = Valkey(f"unix://{address}")
        await valkey.load_functions()
        await valkey.run(strings.get("k"))
        await asyncio.sleep(RENEW_SECONDS)
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


async def test_calls_that_miss_the_functions_load_them_once(own_valkey_url: str):
    valkey = Valkey(own_valkey_url)
    await valkey.load_functions()
    await valkey.command("CONFIG", "RESETSTAT")
    await valkey.command("FUNCTION", "FLUSH")
    await asyncio.gather(*(functions.begin_session(valkey, f"k{number}", b"1", 60) for number in range(500)))
    assert (await valkey.info("stats"))["total_connections_received"] == "0"
    assert "'calls': 1," in (await valkey.info("commandstats"))["cmdstat_function|load"]
    await valkey.close()


async def test_who_leaves_while_the_functions_load_takes_nobody_along(own_valkey_url: str):
    valkey = Valkey(own_valkey_url)
    await valkey.command("FUNCTION", "FLUSH")
    first, other = (
        asyncio.create_task(functions.begin_session(valkey, f"k{number}", b"1", 60)) for number in range(2)
    )
    inside: Any = valkey
    while inside._node._loading is None:  # noqa: ASYNC110  # no event tells
        await asyncio.sleep(0)
    first.cancel()
    await other
    assert await valkey.run(strings.get("k1")) == b"1"
    await valkey.close()


def blocked(raw: RawValkey) -> set[str]:
    """The ids of the clients that wait in a BLPOP."""
    return {client["id"] for client in raw.client.client_list() if client["cmd"] == "blpop"}
