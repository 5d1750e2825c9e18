"""`laurels_index` by its contract: each reply, and what is written with it."""

from __future__ import annotations

import asyncio
import itertools
import struct
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import redis

from laurels.valkey.client import Valkey

if TYPE_CHECKING:
    from collections.abc import Generator

Client = Any  # redis-py types its client only in part
# Kind of score, whether the highest is best, ties, dense ranks, metadata.
INT64 = ("int64", 1, "member", 1, 0, 0)
NUMBER = ("number", 1, "shared", 1, 0, 0)
PARTS = {"int64": ("", "|prefixes", "|scores", "|counts"), "number": ("", "|scores", "|counts")}

_names = itertools.count(1)


@pytest.fixture(scope="module")
def client(own_valkey_url: str) -> Generator[Client]:
    async def load() -> None:
        valkey = Valkey(own_valkey_url)
        await valkey.load_functions()
        await valkey.close()

    asyncio.run(load())
    untyped: Any = redis.Redis
    client = untyped.from_url(own_valkey_url)
    yield client
    client.close()


class Index:
    """A board's keys, and rounds of its index."""

    def __init__(self, client: Client) -> None:
        self.client, self.name = client, f"{{index-{next(_names)}}}"
        client.fcall("laurels_adopt", 1, self.key("board"), 7)

    def key(self, name: str) -> str:
        return f"{self.name}:{name}"

    def apply(
        self,
        windows: dict[str, dict[str, bytes | str]],
        step: tuple[str, str] = ("", "1"),
        shape: tuple[Any, ...] = INT64,
        seconds: int = 0,
        version: int = 7,
    ) -> Any:  # noqa: ANN401  # a reply
        keys = [self.key(name) for name in ("board", "index", "journal")]
        keys += [f"{self.key(window)}{part}" for window in windows for part in PARTS[shape[0]]]
        header = msgspec.msgpack.encode(
            {
                "shape": shape,
                "version": version,
                "expected": step[0],
                "reached": step[1],
                "targets": [(len(members), seconds) for members in windows.values()],
            }
        )
        rest = [
            word
            for members in windows.values()
            for member, place in members.items()
            for word in (place, member)
        ]
        return self.client.fcall("laurels_index", len(keys), *keys, header, b"rows", *rest)

    def held(self, window: str) -> tuple[int, int, list[int]]:
        """The number of entries and prefixes, and the count of each distinct score."""
        counts = self.client.hvals(f"{self.key(window)}|counts")
        return (
            self.client.zcard(self.key(window)),
            self.client.hlen(f"{self.key(window)}|prefixes"),
            sorted(map(int, counts)),
        )


@pytest.fixture
def index(client: Client) -> Index:
    return Index(client)


def place(score: int) -> bytes:
    return struct.pack(">Q", score + 2**63)


def test_a_round_places_members_and_moves_the_cursor(index: Index):
    assert index.apply({"day": {"ada": place(5), "bob": place(5)}, "asia": {"ada": place(5)}}) == [b"ok"]
    assert index.held("day") == (2, 2, [2])
    assert index.held("asia") == (1, 1, [1])
    assert index.client.hgetall(index.key("index")) == {b"cursor": b"1", b"rows": b"rows"}
    assert index.client.xlen(index.key("journal")) == 1


def test_the_next_round_changes_and_takes_out(index: Index):
    index.apply({"day": {"ada": place(5), "bob": place(5), "eve": place(7)}})
    assert index.apply({"day": {"ada": place(6), "bob": "", "nobody": ""}}, ("1", "2")) == [b"ok"]
    assert index.held("day") == (2, 2, [1, 1])
    assert index.apply({"day": {"ada": "", "eve": ""}}, ("2", "3")) == [b"ok"]
    assert index.client.exists(*(f"{index.key('day')}{part}" for part in PARTS["int64"])) == 0


def test_doubles_are_written_in_the_same_way(index: Index):
    index.apply({"day": {"ada": "5", "bob": "5"}}, shape=NUMBER)
    index.apply({"day": {"ada": ""}}, ("1", "2"), shape=NUMBER)
    assert index.client.zrange(index.key("day"), 0, -1, withscores=True) == [(b"bob", 5.0)]
    assert index.held("day")[2] == [1]


@pytest.mark.parametrize("expected", ["", "2"])
def test_another_cursor_is_told_and_nothing_written(index: Index, expected: str):
    index.apply({"day": {"ada": place(5)}})
    before = index.client.hgetall(index.key("index"))
    assert index.apply({"day": {"ada": ""}}, (expected, "9")) == [b"moved", b"1"]
    assert index.held("day") == (1, 1, [1])
    assert index.client.hgetall(index.key("index")) == before


def test_a_cursor_that_is_not_there_is_told(index: Index):
    assert index.apply({"day": {"ada": place(5)}}, ("1", "2")) == [b"moved", b""]


def test_another_version_is_told_and_nothing_written(index: Index):
    assert index.apply({"day": {"ada": place(5)}}, version=6) == [b"version", b"7"]
    assert index.held("day") == (0, 0, [])


def test_behind_a_fence_nothing_is_written(index: Index):
    until = int(time.time() * 1000) + 60_000
    index.client.hset(index.key("board"), "fence", f"{until} somebody")
    assert index.apply({"day": {"ada": place(5)}}) == [b"fenced"]
    assert index.held("day") == (0, 0, [])


def test_windows_get_their_time_to_live_once(index: Index):
    index.apply({"day": {"ada": place(5), "bob": place(5)}}, seconds=1000)
    index.apply({"day": {"ada": place(6)}}, ("1", "2"), seconds=5000)
    for part in PARTS["int64"]:
        assert 900 < index.client.ttl(f"{index.key('day')}{part}") <= 1000


def test_a_round_without_windows_leaves_no_sign(index: Index):
    assert index.apply({}) == [b"ok"]
    assert index.client.exists(index.key("journal")) == 0
