"""Large keys are renamed at once and emptied in chunks."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from laurels.valkey import functions, sets
from laurels.valkey.chunked_delete import ENTRIES_A_CALL, LIFE_SECONDS, MANY_ENTRIES, REGISTRY, ChunkedDelete
from laurels.valkey.client import Valkey

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from laurels.valkey.client import Value

functions_empty = functions.empty
_numbers = itertools.count(1)
MEMBERS = [f"member-{number}" for number in range(MANY_ENTRIES + 1)]
FILL = {
    "zset": ("ZADD", [(str(len(member)), member) for member in MEMBERS]),
    "hash": ("HSET", [(member, "x") for member in MEMBERS]),
    "set": ("SADD", [(member,) for member in MEMBERS]),
}
SIZE = {"zset": "ZCARD", "hash": "HLEN", "set": "SCARD"}


@pytest.fixture
async def valkey(own_valkey_url: str) -> AsyncGenerator[Valkey]:
    valkey = Valkey(own_valkey_url)
    await valkey.load_functions()
    yield valkey
    await valkey.close()


@pytest.fixture
def tag() -> str:
    return f"{{discards/{next(_numbers)}}}"


async def fill(valkey: Valkey, kind: str, key: str, members: int) -> str:
    command, entries = FILL[kind]
    await valkey.command(command, key, *itertools.chain.from_iterable(entries[:members]))
    return key


async def keys(valkey: Valkey, tag: str) -> list[str]:
    found: Any = await valkey.command("KEYS", f"{tag.replace('{', '?')}*")
    return sorted(key.decode() for key in found)


async def test_small_keys_and_those_that_are_not_there_are_gone_at_once(valkey: Valkey, tag: str):
    small = [await fill(valkey, kind, f"{tag}:{kind}", MANY_ENTRIES - 1) for kind in FILL]
    await valkey.command("SET", f"{tag}:text", 1)
    await valkey.command("XADD", f"{tag}:stream", "*", "a", "b")
    await ChunkedDelete(valkey).discard(*small, f"{tag}:text", f"{tag}:stream", f"{tag}:nothing")
    assert await keys(valkey, tag) == []
    assert await ChunkedDelete(valkey).empty() == 0


@pytest.mark.parametrize("kind", list(FILL))
async def test_a_large_key_is_set_aside_for_a_while_and_emptied_in_pieces(
    valkey: Valkey, tag: str, kind: str, monkeypatch: pytest.MonkeyPatch
):
    key = await fill(valkey, kind, f"{tag}:{kind}", len(MEMBERS))
    await ChunkedDelete(valkey).discard(key)
    (aside,) = await keys(valkey, tag)
    assert aside.startswith(f"{key}|gone:")
    assert LIFE_SECONDS - 60 < await valkey.command("TTL", aside) <= LIFE_SECONDS
    assert await valkey.run(sets.members(REGISTRY)) == {aside}
    sizes = [len(MEMBERS)]

    async def watched(valkey: Valkey, key: str, cursor: str, count: int) -> str:
        following = await functions_empty(valkey, key, cursor, count)
        sizes.append(await valkey.command(SIZE[kind], key))
        return following

    monkeypatch.setattr(functions, "empty", watched)
    # The name that it had may be somebody else's by now.
    await fill(valkey, kind, key, 5)
    assert await ChunkedDelete(valkey).empty() == 1
    taken = [before - after for before, after in itertools.pairwise(sizes)]
    assert sizes[-1] == 0
    # A hash may give a few more than it is asked for: those that share a place.
    assert max(taken) <= ENTRIES_A_CALL * 1.2
    assert await keys(valkey, tag) == [key]
    assert await valkey.command(SIZE[kind], key) == 5
    assert not await valkey.command("EXISTS", REGISTRY)


async def test_a_journal_is_large_by_the_calls_it_tells_of(valkey: Valkey, tag: str):
    many, calls_a_piece = MANY_ENTRIES // 100, ENTRIES_A_CALL // 100
    for _ in range(many):
        await valkey.command("XADD", f"{tag}:journal", "*", "body", "x")
    await ChunkedDelete(valkey).discard(f"{tag}:journal")
    (aside,) = await keys(valkey, tag)
    for left in range(many - calls_a_piece, 0, -calls_a_piece):
        assert await functions.empty(valkey, aside, "0", ENTRIES_A_CALL) == "0"
        assert await valkey.command("XLEN", aside) == left
    assert await functions.empty(valkey, aside, "0", ENTRIES_A_CALL) == ""
    assert await keys(valkey, tag) == []
    assert await ChunkedDelete(valkey).empty() == 1


async def test_whoever_is_interrupted_leaves_the_rest_to_the_next(
    valkey: Valkey, tag: str, monkeypatch: pytest.MonkeyPatch
):
    names = [await fill(valkey, "hash", f"{tag}:{number}", len(MEMBERS)) for number in range(2)]
    await ChunkedDelete(valkey).discard(*names)
    calls = itertools.count(1)

    async def dying(valkey: Valkey, *rest: Any) -> str:  # noqa: ANN401  # passed on
        if next(calls) > 3:
            raise ConnectionError("gone")
        return await functions_empty(valkey, *rest)

    monkeypatch.setattr(functions, "empty", dying)
    with pytest.raises(ConnectionError):
        await ChunkedDelete(valkey).empty()
    monkeypatch.undo()
    left: list[Value] = [await valkey.command("HLEN", key) for key in await keys(valkey, tag)]
    assert len(left) == 2
    assert await ChunkedDelete(valkey).empty() == 2
    assert await keys(valkey, tag) == []


async def test_what_expired_before_anybody_came_is_no_trouble(valkey: Valkey, tag: str):
    await ChunkedDelete(valkey).discard(await fill(valkey, "zset", f"{tag}:z", len(MEMBERS)))
    (aside,) = await keys(valkey, tag)
    await valkey.command("UNLINK", aside)
    assert await ChunkedDelete(valkey).empty() == 1
    assert not await valkey.command("EXISTS", REGISTRY)
