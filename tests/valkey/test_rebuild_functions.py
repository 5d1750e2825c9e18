"""The functions of rebuild.lua, by their replies."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest

from laurels.valkey import functions
from laurels.valkey.client import Valkey
from laurels.valkey.functions import DefinitionChanged, FenceLapsed
from laurels.valkey.messages import Fence, PlaceHeader, ReadHeader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

SHAPE = ("number", 1, "shared", 0, 1, 0)
VERSION = 7
_numbers = itertools.count(1)


@pytest.fixture
async def valkey(own_valkey_url: str) -> AsyncGenerator[Valkey]:
    valkey = Valkey(own_valkey_url)
    await valkey.load_functions()
    yield valkey
    await valkey.close()


@pytest.fixture
async def tag(valkey: Valkey) -> str:
    """The beginning of a board's keys; its version is 7."""
    tag = f"{{fences/{next(_numbers)}}}"
    await functions.adopt(valkey, (f"{tag}:board",), VERSION)
    return tag


async def place(valkey: Valkey, tag: str, version: int = VERSION, **scores: int) -> int:
    header = PlaceHeader(SHAPE, version, 1, 0, ["{}" for _ in scores])
    rest = [part for member, score in scores.items() for part in (str(score), member)]
    keys = [f"{tag}:board", f"{tag}:journal", f"{tag}:w", f"{tag}:w|metadata"]
    return await functions.place(valkey, keys, header, (b"body", *rest))


async def rename(valkey: Valkey, tag: str, version: int = VERSION) -> int:
    keys = [f"{tag}:board", f"{tag}:w", f"{tag}:w|metadata"]
    return await functions.rename(valkey, keys, ReadHeader(SHAPE, version), b"ada", b"~")


async def fence(valkey: Valkey, tag: str, token: str, *, version: int = VERSION, floor: str = "0-0") -> str:
    names = f"{tag}:board", f"{tag}:journal"
    return await functions.fence(valkey, names, version, Fence(token, 60_000, floor))


async def test_another_version_is_refused_and_nothing_is_written(valkey: Valkey, tag: str):
    for refused in (
        place(valkey, tag, 8, ada=1),
        rename(valkey, tag, 8),
        fence(valkey, tag, "mine", version=8),
    ):
        with pytest.raises(DefinitionChanged):
            await refused
    assert await valkey.command("EXISTS", f"{tag}:w", f"{tag}:journal") == 0


async def test_entries_are_placed_whatever_there_was(valkey: Valkey, tag: str):
    assert await place(valkey, tag, ada=5, bob=1) == 2
    assert await place(valkey, tag, ada=3) == 2
    assert float(await valkey.command("ZSCORE", f"{tag}:w", "ada")) == 3
    assert await valkey.command("XLEN", f"{tag}:journal") == 2


async def test_a_member_is_renamed_without_its_metadata(valkey: Valkey, tag: str):
    await place(valkey, tag, ada=5)
    await valkey.command("EXPIRE", f"{tag}:w", 100)
    assert await rename(valkey, tag) == 1
    assert await rename(valkey, tag) == 0
    assert await valkey.command("ZRANGE", f"{tag}:w", 0, -1) == [b"~"]
    assert await valkey.command("HLEN", f"{tag}:w|metadata") == 0
    assert await valkey.command("TTL", f"{tag}:w") > 0


async def test_writers_wait_for_whoever_has_the_fence(valkey: Valkey, tag: str):
    await fence(valkey, tag, "mine")
    await fence(valkey, tag, "mine")
    waiting = [asyncio.create_task(each) for each in (place(valkey, tag, ada=1), fence(valkey, tag, "other"))]
    _, pending = await asyncio.wait(waiting, timeout=10 * functions.FENCED_SECONDS)
    assert len(pending) == 2
    with pytest.raises(FenceLapsed):
        await functions.unfence(valkey, f"{tag}:board", "other")
    assert await valkey.command("EXISTS", f"{tag}:w") == 0
    await functions.unfence(valkey, f"{tag}:board", "mine")
    placed, fenced = waiting
    await fenced
    await functions.unfence(valkey, f"{tag}:board", "other")
    assert await placed == 1
    assert await valkey.command("ZRANGE", f"{tag}:w", 0, -1) == [b"ada"]


async def test_the_journal_goes_on_above_the_floor(valkey: Valkey, tag: str):
    assert await fence(valkey, tag, "mine", floor="99999999999999-7") == "99999999999999-7"
    assert await valkey.command("XLEN", f"{tag}:journal") == 0


async def test_keys_change_places_for_the_owner_of_the_fence_alone(valkey: Valkey, tag: str):
    await valkey.commands([("SET", f"{tag}:{name}", name) for name in ("new", "old", "gone")])
    pairs = [f"{tag}:board", f"{tag}:new", f"{tag}:old", f"{tag}:none", f"{tag}:gone"]
    await fence(valkey, tag, "mine")
    with pytest.raises(FenceLapsed):
        await functions.switch(valkey, pairs, ("other", 1000), (100, 0))
    assert await valkey.command("GET", f"{tag}:old") == b"old"
    await functions.switch(valkey, pairs, ("mine", 1000), (100, 0))
    assert await valkey.command("GET", f"{tag}:old") == b"new"
    assert 0 < await valkey.command("TTL", f"{tag}:old") <= 100
    assert await valkey.command("EXISTS", f"{tag}:new", f"{tag}:gone") == 0
    await functions.unfence(valkey, f"{tag}:board", "mine", metadata=True)
    assert await valkey.command("HGET", f"{tag}:board", "metadata") == b"1"
