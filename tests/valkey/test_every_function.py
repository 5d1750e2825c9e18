"""Calls every function once, on the oldest supported server (Debian's Redis) and on the tests' own."""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from supported_servers import debian_s_redis, valkey_server
from valkey_servers import running

from laurels.valkey.client import Valkey, library_code

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

Client = Any  # redis-py types its client only in part
Smoke = tuple[list[str], list[object], object]
"""The names of the keys, the arguments, and the answer."""

REGISTERED = sorted(set(re.findall(r"\'(laurels_\w+)\'", library_code())))
READING = {
    "laurels_standing",
    "laurels_count",
    "laurels_page",
    "laurels_scan",
    "laurels_backlog",
    "laurels_missing",
}
SHAPE = ("number", 1, "shared", 0, 0, 0)
WITH_METADATA = ("number", 1, "shared", 0, 1, 0)
VERSION = 7
ONCE_KEYS = ["once:0", "once:1", "once:2"]
SUBMIT_KEYS = ["board", "journal", "ids:0", "ids:1", "ids:2", "calls:0", "calls:1", "calls:2"]
TARGET: dict[str, object] = {
    "window": 1,
    "chosen": 0,
    "seconds": 0,
    "how": "direct",
    "base": 0,
    "days": [],
    "op": "",
}
_tags = itertools.count(1)


def header(**more: object) -> bytes:
    return msgspec.msgpack.encode({"shape": SHAPE, "version": VERSION} | more)


def submitted(**more: object) -> bytes:
    told: dict[str, object] = {
        "aggregate": "last",
        "count": 1,
        "fast": 0,
        "report": 0,
        "journal": 1,
        "call": "call",
        "ids": [],
        "calls": [],
        "ops": [],
        "metadata": [],
        "first": [1],
        "max_change": 0,
        "targets": [TARGET],
        "fed": 0,
        "replayed": 0,
        "fingerprints": [],
    }
    return header(**told | more)


MATCHED = submitted(count=2, first=[1, 1], sizes=[2], skip=[0, 0], repeated=[0])
LATE: list[object] = []
# limits, late, days: one day of one user, with one counter
EFFECTS = [
    [5, 3],
    LATE,
    [[4, "20251024:ada", "campus", 60, 5, ["messages", 1], 0, [], 0, [], 0, []]],
]
ACCRUED = msgspec.msgpack.encode([*EFFECTS, "stream", "", "1-0", []])
RELEASED = msgspec.msgpack.encode([[5, 3], LATE, [], "ada", "waits", 1])
INDEXED = header(expected="", reached="1", targets=[(1, 0)])
PLACED = header(shape=WITH_METADATA, journal=1, seconds=0, metadata=[""])
RENAMED = header(shape=WITH_METADATA)
DESCRIBED = header(
    shape=WITH_METADATA, journal=1, durable=0, replayed=0, id="one", remember=1, metadata="{}", seconds=[0]
)
FOLDED = header(op="sum", day=1, cursor="0", count=10, seconds=60)

# Each on a board of its own, whose window has ada with 5, with a journal of one entry `1-0`.
SMOKES: dict[str, Smoke] = {
    "laurels_accrue": (["cursors", "changed", "parked", "day", "users"], [ACCRUED], [b"ok", 1]),
    "laurels_adopt": (["board"], [VERSION], VERSION),
    "laurels_advance": (["journal"], ["group", "0-0", "1-0", 1], 0),
    "laurels_announce": (["names"], ["NX", "one", "two"], 2),
    "laurels_attend": (["workers"], ["me", 1000], [b"me"]),
    "laurels_backlog": (["journal"], ["group"], [0, 1, b"1-0"]),
    "laurels_bury": (["dead"], ["5-0", "body", "b"], b"5-0"),
    "laurels_claim": (["board", *ONCE_KEYS], ["key", "print", "owner", 10], [b"mine"]),
    "laurels_confirm": (["board", "calls"], ["call"], 1),
    "laurels_convert": (["board", "window", "positions", "made"], [header(cursor="0", count=10)], [b"0", 0]),
    "laurels_count": (["board", "window"], [header(), "6", "bob"], [1, [0, 0]]),
    "laurels_discard": (["dead", "dead-cursors"], ["stream", 10, "1-0", "why", "payload"], 1),
    "laurels_empty": (["window"], ["0", 10], b""),
    "laurels_exhume": (["dead", "journal"], ["5-0"], 0),
    "laurels_fence": (["board", "journal"], [VERSION, "token", 1000, "0-0"], [b"ok", b"1-0"]),
    "laurels_fold": (["board", "rolling", "window"], [FOLDED], [b"ok", b"0"]),
    "laurels_hit": (["limit"], [2, 1000], [[1, 0, 1, 1000]]),
    "laurels_index": (["board", "index", "journal", "window"], [INDEXED, "rows", "7", "bob"], [b"ok"]),
    "laurels_join": (["journal"], ["group"], [b"0-0", 0]),
    "laurels_list_aside": (["discarded"], ["name"], 1),
    "laurels_keeps": (["journal"], ["1-0", "b"], 1),
    "laurels_lift": (["journal"], ["9-0", "1-0"], 1),
    "laurels_looked_at": (["window"], ["ada", "5", "", "bob", "1", ""], 1),
    "laurels_match": (
        [*SUBMIT_KEYS, "ratings", "window"],
        [MATCHED, "body", "", 1016, "ada", 984, "bob", "ada", "", "1016", "bob", "", "984"],
        [b"ok", [0, 0, 1, -1]],
    ),
    "laurels_missing": ([], ["PING", "NOSUCH"], [b"NOSUCH", b"unknown"]),
    "laurels_number": (["events"], [10, msgspec.msgpack.encode([(5, ["event", "e"])])], b"5"),
    "laurels_page": (
        ["board", "window"],
        [header(by="start", limit=5, offset=0)],
        [1, 0, 0, [b"ada", b"5"], []],
    ),
    "laurels_place": (
        ["board", "journal", "window", "window|metadata"],
        [PLACED, "body", "7", "bob"],
        [b"ok", 2],
    ),
    "laurels_register": (
        ["board", "windows", "cuts"],
        [VERSION, "daily|x", 1, 60, 0, "country=BR", 0],
        [b"ok"],
    ),
    "laurels_release": (["cursors", "changed", "parked", "waits"], [RELEASED], [b"gone"]),
    "laurels_remove": (
        ["board", "journal", "window"],
        [header(journal=1, durable=0, rated=0), "body", "ada"],
        [b"ok", 1],
    ),
    "laurels_rename": (["board", "window", "window|metadata"], [RENAMED, "ada", "bob"], [b"ok", 1]),
    "laurels_retire": (["board"], [VERSION + 1], 1),
    "laurels_retire_generation": (["board", *ONCE_KEYS, "once|gone"], ["once", 1, 60], [b"ok"]),
    "laurels_retired": (["board"], [VERSION + 1, 60], 0),
    "laurels_scan": (["board", "window"], [header(cursor="0", count=10)], [1, b"0", [b"ada", b"5"], []]),
    "laurels_session": (["session"], ["key", 60], 1),
    "laurels_set_aside": (["board", "window", "window|gone"], [1, 60, "", ""], [b"ok", b"window|gone"]),
    "laurels_set_metadata": (
        [*SUBMIT_KEYS[:5], "window", "window|metadata"],
        [DESCRIBED, "body", "ada"],
        [b"ok", 1],
    ),
    "laurels_settle": (ONCE_KEYS, ["key", "owner", "forget", "", ""], 0),
    "laurels_standing": (
        ["board", "window"],
        [header(brief=0), "ada", "bob"],
        [1, [b"5", 0, 0, -1, b""], []],
    ),
    "laurels_submit": (
        [*SUBMIT_KEYS, "window"],
        [submitted(report=1), "body", "", 9, "ada"],
        [b"ok", [], [[1, b"9", b"5", 0, 0]]],
    ),
    "laurels_switch": (["board", "other", "window"], ["token", 1000, 0], [b"lapsed"]),
    "laurels_unfence": (["board"], ["token", 0], [b"lapsed"]),
    "laurels_unmark": (["changed"], ["mark", 1], 0),
    "laurels_writable": ([], [], 1),
}


@pytest.fixture(scope="module", params=[debian_s_redis, valkey_server], ids=["redis", "own"])
def client(request: pytest.FixtureRequest) -> Generator[Client]:
    program: Callable[[], Path] = request.param
    with running(program()) as server:

        async def load() -> None:
            valkey = Valkey(server.url)
            await valkey.load_functions()
            await valkey.close()

        asyncio.run(load())
        yield server.client


def test_every_registered_function_has_a_smoke(client: Client):
    ((*_, functions),) = client.function_list()
    names = sorted(function[1].decode() for function in functions)
    assert names == REGISTERED == sorted(SMOKES)


@pytest.mark.parametrize("name", REGISTERED)
def test_a_function_answers(client: Client, name: str):
    keys, args, answer = SMOKES[name]
    tag = f"{{smoke-{next(_tags)}}}"
    client.fcall("laurels_adopt", 1, f"{tag}board", VERSION)
    client.zadd(f"{tag}window", {"ada": 5})
    client.xadd(f"{tag}journal", {"body": "b"}, id="1-0")
    how = "FCALL_RO" if name in READING else "FCALL"
    found = client.execute_command(how, name, len(keys), *(tag + key for key in keys), *args)
    assert _without(tag.encode(), found) == answer


def _without(tag: bytes, reply: object) -> object:
    if isinstance(reply, list):
        return [_without(tag, each) for each in cast("list[object]", reply)]
    return reply.removeprefix(tag) if isinstance(reply, bytes) else reply
