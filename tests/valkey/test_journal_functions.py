"""The functions on the journal, by their contract."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from laurels.valkey import functions
from laurels.valkey.client import Valkey
from laurels.valkey.streams import stream_entries

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_names = itertools.count(1)


@pytest.fixture
async def valkey(own_valkey_url: str) -> AsyncGenerator[Valkey]:
    valkey = Valkey(own_valkey_url)
    await valkey.load_functions()
    yield valkey
    await valkey.close()


@pytest.fixture
def key() -> str:
    return f"journal-{next(_names)}"


async def ids(valkey: Valkey, key: str) -> list[str]:
    return [name.decode() for name, _ in stream_entries(await valkey.command("XRANGE", key, "-", "+"))]


class TestLift:
    async def test_gives_entries_ids_above_the_floor_in_their_order(self, valkey: Valkey, key: str):
        for number in (1, 2, 3):
            await valkey.command("XADD", key, f"{number}-0", "body", str(number))
        floor = f"{2**42}-5"
        assert await functions.lift(valkey, key, floor, ["1-0", "3-0", "4-0"]) == 2
        left = stream_entries(await valkey.command("XRANGE", key, "-", "+"))
        assert [fields[b"body"] for _, fields in left] == [b"2", b"1", b"3"]
        assert [name.decode() for name, _ in left] == ["2-0", f"{2**42}-6", f"{2**42}-7"]

    async def test_leaves_a_stream_that_is_past_the_floor_where_it_is(self, valkey: Valkey, key: str):
        await valkey.command("XADD", key, "1-0", "body", "a")
        await valkey.command("XADD", key, f"{2**42}-9", "body", "b")
        await valkey.command("XDEL", key, f"{2**42}-9")
        await functions.lift(valkey, key, "5-0", ["1-0"])
        assert await ids(valkey, key) == [f"{2**42}-10"]

    async def test_of_a_stream_that_is_gone_does_nothing(self, valkey: Valkey, key: str):
        assert await functions.lift(valkey, key, "5-0", ["1-0"]) == 0
        assert not await valkey.command("EXISTS", key)


class TestBury:
    async def test_keeps_an_entry_under_its_id_once(self, valkey: Valkey, key: str):
        for _ in range(2):
            await functions.bury(valkey, key, "7-1", ("body", b"\xc1", "why", "it is torn"))
        assert await ids(valkey, key) == ["7-1"]

    async def test_keeps_one_that_comes_late_too(self, valkey: Valkey, key: str):
        await functions.bury(valkey, key, "7-1", ("body", "a"))
        await functions.bury(valkey, key, "6-0", ("body", "b"))
        first, second = stream_entries(await valkey.command("XRANGE", key, "-", "+"))
        assert first[0] == b"7-1"
        assert second[1] == {b"body": b"b"}


class TestExhume:
    async def test_moves_an_entry_to_the_end_of_the_journal_without_why(self, valkey: Valkey, key: str):
        await valkey.command("XADD", f"{key}:journal", "9-0", "body", "first")
        await functions.bury(valkey, key, "7-1", ("body", "torn", "skipped", "1", "why", "it was new"))
        assert await functions.exhume(valkey, key, f"{key}:journal", "7-1")
        assert await ids(valkey, key) == []
        _, (_, fields) = stream_entries(await valkey.command("XRANGE", f"{key}:journal", "-", "+"))
        assert fields == {b"body": b"torn", b"skipped": b"1"}

    async def test_of_an_entry_that_is_not_there_does_nothing(self, valkey: Valkey, key: str):
        assert not await functions.exhume(valkey, key, f"{key}:journal", "7-1")
        assert not await valkey.command("EXISTS", f"{key}:journal")


class TestConfirm:
    async def test_counts_the_calls_that_did_not_run(self, valkey: Valkey, key: str):
        await valkey.command("HSET", key, "version", 7)
        await valkey.command("SADD", f"{key}:now", "a", "b")
        await valkey.command("SADD", f"{key}:before", "c")
        keys = (key, f"{key}:now", f"{key}:before")
        assert await functions.confirm(valkey, keys, ("a", "c"), "fast") == 0
        assert await functions.confirm(valkey, keys, ("a", "x", "c", "y"), "fast") == 2
        assert await valkey.command("HGET", key, "version") == b"7"

    async def test_makes_no_board_where_there_is_none(self, valkey: Valkey, key: str):
        assert await functions.confirm(valkey, (key,), ("a",), "fast") == 1
        assert not await valkey.command("EXISTS", key)
