"""`laurels_match` by its contract: each reply, and what is written with it."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import redis

from laurels.valkey.client import Valkey

if TYPE_CHECKING:
    from collections.abc import Generator

Client = Any  # redis-py types its client only in part
PLAIN = ("number", 1, "shared", 0, 0, 0)
WITH_METADATA = ("number", 1, "shared", 0, 1, 0)
MEMORY = ("ids:0", "ids:1", "ids:2", "calls:0", "calls:1", "calls:2")
KEYS = ("board", "journal", *MEMORY, "ratings", "window")
NEW = {"ada": ("", "1016"), "bob": ("", "984")}

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


class Duels:
    """A board's keys, and matches of ada and bob on it."""

    def __init__(self, client: Client) -> None:
        self.client, self.name = client, f"{{duels-{next(_names)}}}"
        client.fcall("laurels_adopt", 1, self.key("board"), 7)

    def key(self, name: str) -> str:
        return f"{self.name}:{name}"

    def play(self, states: dict[str, tuple[str, str]], **header: object) -> Any:  # noqa: ANN401  # a reply
        """Plays with each player's expected and new state, which here is just the rating."""
        target: dict[str, object] = {
            "window": 1,
            "chosen": 0,
            "seconds": 0,
            "how": "direct",
            "base": 0,
            "days": [],
            "op": "",
        }
        told: dict[str, object] = {
            "shape": PLAIN, "version": 7, "aggregate": "last", "count": len(states), "fast": 0, "report": 1,
            "journal": 1, "call": f"call-{next(_names)}", "ids": [""], "calls": [""], "ops": [],
            "metadata": [], "first": [1] * len(states), "max_change": 0, "targets": [target], "fed": 0,
            "sizes": [len(states)], "skip": [0] * len(states), "repeated": [0], "replayed": 0,
        } | header  # fmt: skip
        names = [*KEYS, "window|metadata"] if told["shape"] == WITH_METADATA else KEYS
        pairs = [word for name, (_, new) in states.items() for word in (new or "0", name)]
        players = [word for name, state in states.items() for word in (name, *state)]
        words = (msgspec.msgpack.encode(told), "what was played", "", *pairs, *players)
        return self.client.fcall("laurels_match", len(names), *map(self.key, names), *words)

    def entries(self) -> list[tuple[bytes, float]]:
        return self.client.zrange(self.key("window"), 0, -1, withscores=True)

    def ratings(self) -> dict[bytes, bytes]:
        return self.client.hgetall(self.key("ratings"))


@pytest.fixture
def duels(client: Client) -> Duels:
    return Duels(client)


def test_ok_tells_ranks_and_writes_entries_states_and_the_journal(duels: Duels):
    assert duels.play(NEW) == [b"ok", [0, -1, 1, -1]]
    assert duels.entries() == [(b"bob", 984), (b"ada", 1016)]
    assert duels.ratings() == {b"ada": b"1016", b"bob": b"984"}
    assert duels.play({"ada": ("1016", "990"), "bob": ("984", "1010")}) == [b"ok", [1, 0, 0, 1]]
    assert duels.client.xlen(duels.key("journal")) == 2


def test_matches_of_one_call_happen_one_after_the_other(duels: Duels):
    pairs = {"ada": ("", "1016"), "bob": ("", "984"), "eve": ("", "1030"), "joe": ("", "970")}
    assert duels.play(pairs, sizes=[2, 2], ids=["", ""], calls=["", ""], repeated=[0, 0]) == [
        b"ok",
        [0, -1, 1, -1, 0, -1, 3, -1],
    ]


def test_stale_tells_what_players_have_and_writes_nothing(duels: Duels):
    duels.play(NEW)
    again = {"ada": ("1016", "1031"), "bob": ("", "969")}
    assert duels.play(again) == [b"stale", [b"1016", b"984"], [0]]
    assert duels.ratings() == {b"ada": b"1016", b"bob": b"984"}
    assert duels.entries() == [(b"bob", 984), (b"ada", 1016)]
    assert duels.client.xlen(duels.key("journal")) == 1


def test_stale_tells_which_matches_were_seen_before(duels: Duels):
    duels.play(NEW, ids=["game-1"])
    known = {"ada": ("1016", "1031"), "bob": ("984", "969")}
    assert duels.play(known, ids=["game-1"]) == [b"stale", [b"1016", b"984"], [1]]
    seen = {"ada": ("1016", ""), "bob": ("984", "")}
    assert duels.play(seen, ids=["game-1"], repeated=[1], skip=[1, 1]) == [b"ok", [0, 0, 1, 1]]
    assert duels.play(seen, ids=["game-2"], repeated=[1]) == [b"stale", [b"1016", b"984"], [0]]
    assert duels.client.xlen(duels.key("journal")) == 1


def test_who_is_skipped_has_a_state_and_no_entry(duels: Duels):
    assert duels.play(NEW, skip=[1, 0]) == [b"ok", [-1, -1, 0, -1]]
    assert duels.entries() == [(b"bob", 984)]
    assert duels.ratings() == {b"ada": b"1016", b"bob": b"984"}


def test_another_version_is_told_and_nothing_written(duels: Duels):
    assert duels.play(NEW, version=6) == [b"version", b"7"]
    assert duels.ratings() == {}


def test_metadata_must_be_named_once_there_is_some(duels: Duels):
    told = ['{"n":1}'] * 2
    assert duels.play(NEW, shape=WITH_METADATA, metadata=told)[0] == b"ok"
    assert duels.client.hgetall(duels.key("window|metadata")) == {b"ada": b'{"n":1}', b"bob": b'{"n":1}'}
    assert duels.play({"ada": ("1016", "1031"), "bob": ("984", "969")}) == [b"metadata"]


def test_nobody_plays_behind_a_fence(duels: Duels):
    duels.client.hset(duels.key("board"), "fence", f"{int(time.time() * 1000) + 60_000} somebody")
    assert duels.play(NEW) == [b"fenced"]
    assert duels.ratings() == {}
