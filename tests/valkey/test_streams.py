from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from valkey_servers import running_valkey

from laurels.errors import Unavailable
from laurels.valkey.client import Valkey
from laurels.valkey.streams import append_numbered, last_number

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from valkey_servers import Server

    from laurels.valkey.client import Value

STREAM = "events"
ENTRIES: list[tuple[int, dict[str, Value]]] = [
    (number, {"event": "earned", "number": number, "part": 0.1, "meta": b"{}"}) for number in range(1, 6)
]


@pytest.fixture(scope="module")
def server() -> Generator[Server]:
    with running_valkey() as server:
        yield server


@pytest.fixture
async def valkey(server: Server) -> AsyncGenerator[Valkey]:
    server.client.flushall()
    valkey = Valkey(server.url)
    yield valkey
    await valkey.close()


async def test_entries_that_are_sent_again_are_there_once_and_as_they_were_given(
    server: Server, valkey: Valkey
):
    assert await append_numbered(valkey, STREAM, ENTRIES[:3], 100) == 3
    assert await append_numbered(valkey, STREAM, ENTRIES, 100) == 5
    assert await last_number(valkey, STREAM) == 5
    listed = server.client.xrange(STREAM)
    assert [name for name, _ in listed] == [f"{number}-0".encode() for number in range(1, 6)]
    assert listed[0][1] == {b"event": b"earned", b"number": b"1", b"part": b"0.1", b"meta": b"{}"}


async def test_what_is_refused_is_not_passed_by_what_follows(server: Server, valkey: Valkey):
    await append_numbered(valkey, STREAM, ENTRIES[:1], 100)
    server.client.config_set("maxmemory", 1)
    with pytest.raises(Unavailable):
        await append_numbered(valkey, STREAM, ENTRIES, 100)
    server.client.config_set("maxmemory", 0)
    assert await append_numbered(valkey, STREAM, ENTRIES, 100) == 5
    assert server.client.xlen(STREAM) == 5
