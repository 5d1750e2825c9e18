"""Each function by its contract, as the head of its Lua file describes it."""

from __future__ import annotations

import asyncio
import itertools
import struct
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import redis

from laurels.clock import FixedClock
from laurels.sync import Laurels
from laurels.valkey.client import Valkey, library_code

if TYPE_CHECKING:
    from collections.abc import Generator

    from laurels.embedded import Endpoints

Client = Any  # redis-py types its client only in part
PLAIN = ("number", 1, "shared", 0, 0, 0)
WITH_METADATA = ("number", 1, "shared", 0, 1, 0)
DENSE = ("number", 1, "shared", 1, 0, 0)
INT64 = ("int64", 1, "shared", 0, 0, 0)
EARLIEST = ("number", 1, "earliest", 0, 0, 0)
VERSION = 7
DAYS = ("monday", "tuesday", "wednesday")

_names = itertools.count(1)


def packed(value: int) -> bytes:
    """The sortable bytes of an int64."""
    return struct.pack(">Q", value + 2**63)


def packed_number(value: float) -> bytes:
    """The sortable bytes of a positive double."""
    return struct.pack(">Q", struct.unpack(">Q", struct.pack(">d", value))[0] + 2**63)


def stored(score: int) -> tuple[float, bytes]:
    """The double and the low bytes that an int64 is split into, on a board that does not negate it."""
    low = 0 if abs(score) < 2**53 else score % 2048
    return float(score - low), struct.pack(">H", low)


@pytest.fixture(scope="module")
def client(own_valkey_url: str) -> Generator[Client]:
    """A client of a Valkey that has the functions."""

    async def load() -> None:
        valkey = Valkey(own_valkey_url)
        await valkey.load_functions()
        await valkey.close()

    asyncio.run(load())
    client = connected(own_valkey_url)
    yield client
    client.close()


def connected(url: str) -> Client:
    untyped: Any = redis.Redis
    return untyped.from_url(url)


class Board:
    """The keys of a board, and calls on it."""

    def __init__(self, client: Client, shape: tuple[object, ...] = PLAIN) -> None:
        self.client, self.shape = client, shape
        self.name = f"{{board-{next(_names)}}}"
        self.call("laurels_adopt", ["board"], VERSION)

    def key(self, name: str) -> str:
        return f"{self.name}:{name}"

    def call(self, function: str, names: list[str], *args: object, read: bool = False) -> Any:  # noqa: ANN401  # a reply
        keys = [self.key(name) for name in names]
        return self.client.execute_command("FCALL_RO" if read else "FCALL", function, len(keys), *keys, *args)

    def parts(self, window: str) -> list[str]:
        kind, _, ties, dense, metadata, _ = self.shape
        beside = ["|prefixes"] * (kind == "int64" or ties == "earliest") + ["|metadata"] * bool(metadata)
        return [window, *(f"{window}{part}" for part in beside + ["|scores", "|counts"] * bool(dense))]

    def submit(self, *pairs: tuple[object, str], moments: bytes = b"", **header: object) -> Any:  # noqa: ANN401  # a reply
        told: dict[str, object] = {
            "shape": self.shape,
            "version": VERSION,
            "aggregate": "best",
            "count": len(pairs),
            "fast": 0,
            "report": 0,
            "journal": 1,
            "call": f"call-{next(_names)}",
            "ids": [],
            "calls": [],
            "ops": [],
            "metadata": [],
            "first": [1] * len(pairs),
            "max_change": 0,
            "fed": 0,
            "replayed": 0,
            "fingerprints": [],
            "targets": [
                {"window": 1, "chosen": 0, "seconds": 0, "how": "direct", "base": 0, "days": [], "op": ""}
            ],
        }
        memory = [f"{name}:{number}" for name in ("ids", "calls") for number in range(3)]
        fed = ["fed"] * (header.get("fed") == 1)
        names = ["board", "journal", *memory, *fed, *self.parts("window")]
        encoded = msgspec.msgpack.encode(told | header)
        flat = [word for pair in pairs for word in pair]
        return self.call("laurels_submit", names, encoded, "what was submitted", moments, *flat)

    def age(self, name: str, seconds: int) -> None:
        """Makes the present generation older by this much, like a step of the server's clock."""
        number, began = self.client.hget(self.key("board"), name).split()
        self.client.hset(self.key("board"), name, f"{int(number)} {int(began) - seconds}")

    def entries(self, window: str = "window") -> list[tuple[bytes, float]]:
        return self.client.zrange(self.key(window), 0, -1, withscores=True)

    def held(self) -> list[bytes]:
        return sorted(key for key in self.client.scan_iter(f"{self.name}*"))


class TestSubmit:
    def test_ok_writes_the_entries_and_the_journal(self, client: Client):
        board = Board(client)
        assert board.submit((5, "ada"), (3, "bob"), report=1) == [
            b"ok",
            [],
            [[1, b"5", b"", 0, -1], [1, b"3", b"", 1, -1]],
        ]
        assert board.entries() == [(b"bob", 3.0), (b"ada", 5.0)]
        ((_, entry),) = client.xrange(board.key("journal"))
        assert entry == {b"body": b"what was submitted", b"skipped": b""}

    def test_ok_without_a_report_tells_none(self, client: Client):
        assert Board(client).submit((5, "ada"), fast=1) == [b"ok", [], []]

    def test_a_report_tells_what_was_and_what_is(self, client: Client):
        board = Board(client)
        board.submit((5, "ada"), (4, "bob"))
        assert board.submit((4.5, "bob"), report=1) == [b"ok", [], [[1, b"4.5", b"4", 1, 1]]]
        assert board.submit((1, "bob"), report=1) == [b"ok", [], [[0, b"4.5", b"4.5", 1, 1]]]
        assert board.submit((9, "bob"), report=1, first=[0]) == [b"ok", [], [[0, b"", b"", -1, -1]]]

    @pytest.mark.parametrize("fast", [0, 1])
    def test_version_when_the_definition_changed(self, client: Client, fast: int):
        board = Board(client)
        before = board.held()
        assert board.submit((5, "ada"), version=VERSION - 1, fast=fast) == [b"version", b"7"]
        assert board.submit((5, "ada"), version=VERSION + 1, fast=fast) == [b"version", b"7"]
        assert board.held() == before

    def test_version_is_empty_when_valkey_knows_no_board(self, client: Client):
        board = Board(client)
        client.delete(board.key("board"))
        assert board.submit((5, "ada")) == [b"version", b""]
        assert board.held() == []

    @pytest.mark.parametrize("fast", [0, 1])
    def test_metadata_when_the_board_has_some_and_the_call_names_no_keys(self, client: Client, fast: int):
        board = Board(client, WITH_METADATA)
        board.submit((5, "ada"), metadata=['{"level":1}'])
        board.shape = PLAIN
        assert board.submit((9, "ada"), fast=fast) == [b"metadata"]
        assert board.entries() == [(b"ada", 5.0)]
        board.shape = WITH_METADATA
        assert board.submit((9, "ada"), metadata=[""])[0] == b"ok"
        assert not client.exists(board.key("window|metadata"))

    def test_duplicate_when_the_id_was_seen(self, client: Client):
        board = Board(client)
        assert board.submit((5, "ada"), ids=["a"], calls=[""])[1] == []
        assert board.submit((9, "ada"), ids=["a"], calls=[""]) == [b"ok", [1, b"duplicate"], []]
        assert board.submit((9, "ada"), (7, "bob"), ids=["a", "b"], calls=["", ""])[1] == [1, b"duplicate"]
        assert board.entries() == [(b"ada", 5.0), (b"bob", 7.0)]
        skipped = [entry[b"skipped"] for _, entry in client.xrange(board.key("journal"))]
        assert skipped == [b"", b"1"]

    @pytest.mark.parametrize("generation", range(3))
    def test_duplicate_when_any_generation_knows_the_id(self, client: Client, generation: int):
        board = Board(client)
        client.sadd(board.key(f"ids:{generation}"), "a")
        assert board.submit((5, "ada"), ids=["a"], calls=[""])[1] == [1, b"duplicate"]

    def test_duplicate_when_it_occurs_twice_in_the_call(self, client: Client):
        board = Board(client)
        pairs = ((5, "ada"), (6, "ada"), (7, "ada"))
        assert board.submit(*pairs, ids=["a", "a", ""], calls=["", "", ""], fast=1)[1] == [2, b"duplicate"]
        assert board.entries() == [(b"ada", 7.0)]

    @pytest.mark.parametrize("generation", range(3))
    def test_duplicate_when_the_call_that_made_the_id_ran(self, client: Client, generation: int):
        board = Board(client)
        client.sadd(board.key(f"calls:{generation}"), "x")
        assert board.submit((5, "ada"), ids=["~x.0"], calls=["x"])[1] == [1, b"duplicate"]
        assert board.submit((5, "ada"), ids=["~y.0"], calls=["y"])[1] == []

    def test_a_call_is_remembered_by_its_id(self, client: Client):
        board = Board(client)
        board.submit((5, "ada"), call="x")
        assert client.smembers(board.key("calls:0")) == {b"x"}
        assert 0 < client.ttl(board.key("calls:0")) <= 2 * 86400

    @pytest.mark.parametrize("known", ["fed", "calls:0", "calls:1", "calls:2"])
    def test_a_call_from_a_feeder_runs_once(self, client: Client, known: str):
        board = Board(client)
        client.sadd(board.key(known), "x")
        assert board.submit((5, "ada"), (6, "eve"), call="x", fed=1)[1] == [1, b"duplicate", 2, b"duplicate"]
        assert board.submit((5, "ada"), call="y", fed=1)[1] == []
        assert client.sismember(board.key("fed"), "y")
        assert board.entries() == [(b"ada", 5.0)]

    def test_ids_that_a_call_from_a_feeder_made_are_not_remembered_one_by_one(self, client: Client):
        board = Board(client)
        client.sadd(board.key("ids:0"), "~x.1")  # sent again by its client, and counted
        told = board.submit((5, "ada"), (6, "eve"), call="x", fed=1, ids=["~x.0", "~x.1"], calls=["x", "x"])
        assert told[1] == [2, b"duplicate"]
        assert client.smembers(board.key("ids:0")) == {b"~x.1"}

    def test_range_when_a_double_would_become_infinite(self, client: Client):
        board = Board(client)
        board.submit((1.5e308, "ada"), aggregate="sum")
        assert board.submit((1.5e308, "ada"), aggregate="sum") == [b"ok", [1, b"range"], []]
        assert board.entries() == [(b"ada", 1.5e308)]
        assert client.xlen(board.key("journal")) == 1

    @pytest.mark.parametrize("shape", [PLAIN, EARLIEST, ("int64", 1, "shared", 0, 0, 0)])
    def test_range_refuses_one_submission_of_a_batch(self, client: Client, shape: tuple[object, ...]):
        board = Board(client, shape)
        greatest, five = (packed(2**63 - 1), packed(5)) if shape[0] == "int64" else (1.5e308, 5)
        if shape == EARLIEST:
            greatest, five = packed_number(1.5e308), packed_number(5)
        batch = (greatest, "ada"), (five, "bob")
        assert board.submit(*batch, aggregate="sum", moments=packed(1) * 2) == [b"ok", [], []]
        before = dict(board.entries())
        assert board.submit(*batch, aggregate="sum", moments=packed(2) * 2) == [b"ok", [1, b"range"], []]
        after = dict(board.entries())
        (kept,) = (
            before.keys() & after.keys()
            if shape == EARLIEST
            else [each for each in after if each.endswith(b"ada")]
        )
        assert kept.endswith(b"ada")
        assert after[kept] == before[kept]
        assert {abs(score) for name, score in after.items() if name.endswith(b"bob")} == {10.0}

    @pytest.mark.parametrize("aggregate", ["best", "sum"])
    def test_a_batch_in_which_a_member_comes_twice(self, client: Client, aggregate: str):
        board = Board(client, INT64)
        board.submit((packed(5), "ada"), (packed(7), "ada"), (packed(6), "ada"), aggregate=aggregate)
        assert board.entries() == [(b"\0\0ada", 7.0 if aggregate == "best" else 18.0)]

    def test_a_batch_writes_only_what_changes(self, client: Client):
        board = Board(client, INT64)
        board.submit((packed(5), "ada"), (packed(5), "bob"))
        client.config_resetstat()
        board.submit((packed(7), "ada"), (packed(3), "bob"))
        calls = client.info("commandstats")
        assert not calls.keys() & {"cmdstat_zrem", "cmdstat_hset"}
        assert board.entries() == [(b"\0\0bob", 5.0), (b"\0\0ada", 7.0)]

    def test_range_when_an_int64_would_overflow(self, client: Client):
        board = Board(client, INT64)
        board.submit((packed(2**63 - 1), "ada"), aggregate="sum")
        double, low = stored(2**63 - 1)
        assert board.entries() == [(low + b"ada", double)]
        assert board.submit((packed(1), "ada"), aggregate="sum")[1] == [1, b"range"]
        assert board.entries() == [(low + b"ada", double)]
        assert client.hgetall(board.key("window|prefixes")) == {b"ada": low}

    def test_max_change_when_the_entry_would_move_too_far(self, client: Client):
        board = Board(client)
        board.submit((5, "ada"), aggregate="last", max_change=2.5)
        assert board.submit((7.6, "ada"), aggregate="last", max_change=2.5)[1] == [1, b"max_change"]
        assert board.submit((7.5, "ada"), aggregate="last", max_change=2.5)[1] == []

    def test_max_change_of_int64_is_two_halves(self, client: Client):
        board = Board(client, INT64)
        limit = divmod(2**40 + 1, 2**32)
        board.submit((packed(-5), "ada"), aggregate="last", max_change=limit)
        far, near = packed(2**40 - 3), packed(2**40 - 4)
        assert board.submit((far, "ada"), aggregate="last", max_change=limit)[1] == [1, b"max_change"]
        assert board.submit((near, "ada"), aggregate="last", max_change=limit)[1] == []

    def test_an_op_of_its_own_is_taken_before_the_boards(self, client: Client):
        board = Board(client)
        board.submit((5, "ada"), (2, "ada"), (1, "ada"), ops=["", "sum", "first"])
        assert board.entries() == [(b"ada", 7.0)]

    def test_keys_live_as_long_as_told_from_the_first_write_on(self, client: Client):
        board = Board(client, DENSE)
        target: dict[str, object] = {
            "window": 1,
            "chosen": 0,
            "how": "direct",
            "base": 0,
            "days": [],
            "op": "",
        }
        board.submit((5, "ada"), targets=[target | {"seconds": 1000}])
        board.submit((6, "ada"), targets=[target | {"seconds": 5000}])
        for part in board.parts("window"):
            assert 900 < client.ttl(board.key(part)) <= 1000

    def test_no_journal_when_it_is_not_asked_for(self, client: Client):
        board = Board(client)
        board.submit((5, "ada"), journal=0)
        assert not client.exists(board.key("journal"))

    def test_7000_submissions_fit_one_call(self, client: Client):
        board = Board(client)
        pairs = [(number, f"m{number}") for number in range(7001)]
        assert board.submit(*pairs, fast=1)[0] == b"ok"
        assert client.zcard(board.key("window")) == 7001


class TestAdopt:
    def test_a_later_version_is_taken(self, client: Client):
        board = Board(client)
        assert board.call("laurels_adopt", ["board"], VERSION + 1) == VERSION + 1
        assert client.hget(board.key("board"), "version") == b"8"

    @pytest.mark.parametrize("version", [VERSION, VERSION - 1])
    def test_an_earlier_one_is_not(self, client: Client, version: int):
        board = Board(client)
        assert board.call("laurels_adopt", ["board"], version) == VERSION
        assert client.hget(board.key("board"), "version") == b"7"

    def test_the_tenth_is_later_than_the_ninth(self, client: Client):
        board = Board(client)
        for version in (9, 10, 9):
            board.call("laurels_adopt", ["board"], version)
        assert client.hget(board.key("board"), "version") == b"10"


class TestRetire:
    def test_no_version_is_in_force_until_a_later_one_is_adopted(self, client: Client):
        board = Board(client)
        assert board.call("laurels_retire", ["board"], VERSION + 1) == 1
        assert board.call("laurels_adopt", ["board"], VERSION) == VERSION + 1
        assert board.call("laurels_retire", ["board"], VERSION + 1) == 1, "it was not finished"
        assert board.call("laurels_retired", ["board"], VERSION + 1, 100) == 1
        assert 0 < client.ttl(board.key("board")) <= 100
        assert board.call("laurels_adopt", ["board"], VERSION) == VERSION + 1
        assert board.call("laurels_adopt", ["board"], VERSION + 2) == VERSION + 2
        assert client.ttl(board.key("board")) == -1

    def test_it_is_finished_once(self, client: Client):
        board = Board(client)
        board.call("laurels_retire", ["board"], VERSION + 1)
        board.call("laurels_retired", ["board"], VERSION + 1, 100)
        assert board.call("laurels_retire", ["board"], VERSION + 1) == 0
        assert board.call("laurels_retired", ["board"], VERSION + 1, 100) == 0

    def test_a_later_version_in_force_stays(self, client: Client):
        board = Board(client)
        assert board.call("laurels_retire", ["board"], VERSION - 1) == 0
        assert client.hget(board.key("board"), "version") == b"7"

    def test_keys_are_set_aside_only_under_its_number(self, client: Client):
        board = Board(client)
        client.set(board.key("ids"), 1)
        names = ["board", "ids", "ids|gone"]
        board.call("laurels_retire", ["board"], VERSION + 1)
        other = board.call("laurels_set_aside", names, 10, 10, "dropping", VERSION + 2)
        assert other == [b"version", b"8"]
        assert client.exists(board.key("ids"))
        assert board.call("laurels_set_aside", names, 10, 10, "dropping", VERSION + 1) == [b"ok"]
        assert not client.exists(board.key("ids"))


class TestRegister:
    def register(self, board: Board, seconds: int, group: str = "") -> None:
        board.call(
            "laurels_register",
            ["board", "windows", "cuts"],
            VERSION,
            "daily|2025-10-24",
            1_761_264_000,
            seconds,
            0,
            group,
            0,
        )

    def test_a_window_of_another_version_is_not(self, client: Client):
        board = Board(client)
        board.call("laurels_adopt", ["board"], VERSION + 1)
        self.register(board, 100)
        assert board.entries("windows") == []

    def test_a_window_is_listed_by_its_start(self, client: Client):
        board = Board(client)
        self.register(board, 100)
        assert board.entries("windows") == [(b"daily|2025-10-24", 1_761_264_000.0)]
        assert not client.exists(board.key("cuts"))

    def test_its_groups_are_listed_for_as_long_as_the_last_of_them(self, client: Client):
        board = Board(client)
        for seconds, group in ((1000, "c=x"), (5000, "c=y"), (500, "c=z")):
            self.register(board, seconds, group)
        assert client.smembers(board.key("cuts")) == {b"c=x", b"c=y", b"c=z"}
        assert 4900 < client.ttl(board.key("cuts")) <= 5000

    def test_for_ever_is_for_ever(self, client: Client):
        board = Board(client)
        self.register(board, 0, "c=x")
        assert client.ttl(board.key("cuts")) == -1


class TestRemove:
    def remove(self, board: Board, member: str, version: int = VERSION) -> Any:  # noqa: ANN401  # a reply
        header = {"shape": board.shape, "version": version, "journal": 1}
        names = ["board", "journal", *board.parts("window"), *board.parts("other")]
        return board.call("laurels_remove", names, msgspec.msgpack.encode(header), "that it left", member)

    @pytest.mark.parametrize("shape", [PLAIN, WITH_METADATA, DENSE, INT64])
    def test_ok_tells_in_how_many_windows_it_was(self, client: Client, shape: tuple[object, ...]):
        board = Board(client, shape)
        score = packed(5) if shape is INT64 else 5
        board.submit((score, "ada"), metadata=['{"n":1}'] if shape is WITH_METADATA else [])
        assert self.remove(board, "ada") == [b"ok", 1]
        assert self.remove(board, "ada") == [b"ok", 0]
        assert not any(client.exists(board.key(part)) for part in board.parts("window"))
        bodies = [entry[b"body"] for _, entry in client.xrange(board.key("journal"))]
        assert bodies == [b"what was submitted", b"that it left", b"that it left"]

    def test_a_distinct_score_stays_while_another_has_it(self, client: Client):
        board = Board(client, DENSE)
        board.submit((5, "ada"), (5, "bob"), (3, "cid"))
        self.remove(board, "ada")
        assert client.hgetall(board.key("window|counts")) == {b"5": b"1", b"3": b"1"}
        self.remove(board, "bob")
        assert board.entries("window|scores") == [(b"3", 3.0)]

    def test_version_when_the_definition_changed(self, client: Client):
        board = Board(client)
        board.submit((5, "ada"))
        assert self.remove(board, "ada", VERSION + 1) == [b"version", b"7"]
        client.delete(board.key("board"))
        assert self.remove(board, "ada") == [b"version", b""]
        assert board.entries() == [(b"ada", 5.0)]


class TestFold:
    def fold(self, board: Board, **header: object) -> Any:  # noqa: ANN401  # a reply
        told = {"shape": board.shape, "version": VERSION, "op": "sum", "day": 1, "cursor": "0", "count": 250}
        encoded = msgspec.msgpack.encode(told | {"seconds": 0} | header)
        windows = [part for window in ("rolling", *DAYS) for part in board.parts(window)]
        return board.call("laurels_fold", ["board", *windows], encoded)

    def fill(self, board: Board, day: str, **scores: float) -> None:
        board.client.zadd(board.key(day), scores)

    def test_each_day_adds_those_that_no_earlier_day_holds(self, client: Client):
        board = Board(client)
        self.fill(board, "monday", ada=1)
        self.fill(board, "tuesday", ada=2, bob=5)
        self.fill(board, "wednesday", bob=6, cid=9)
        assert self.fold(board, day=1) == [b"ok", b"0"]
        assert board.entries("rolling") == [(b"ada", 3.0)]
        self.fold(board, day=2)
        assert board.entries("rolling") == [(b"ada", 3.0), (b"bob", 11.0)]
        for _ in range(2):
            self.fold(board, day=3)
        assert board.entries("rolling") == [(b"ada", 3.0), (b"cid", 9.0), (b"bob", 11.0)]

    @pytest.mark.parametrize(("op", "expected"), [("sum", 6), ("best", 3), ("last", 1), ("first", 2)])
    def test_it_aggregates_as_told(self, client: Client, op: str, expected: int):
        board = Board(client)
        for day, score in (("monday", 2), ("tuesday", 3), ("wednesday", 1)):
            self.fill(board, day, ada=score)
        self.fold(board, op=op)
        assert board.entries("rolling") == [(b"ada", float(expected))]

    @pytest.mark.parametrize(
        ("days", "total"),
        [
            ((2**63 - 1, 5, -10), 2**63 - 6),
            ((2**62, 2**62 - 1, 0), 2**63 - 1),
            ((2**62, 2**62, 0), None),
            ((2**63 - 1, 2**63 - 1, 2**63 - 1), None),
            ((-(2**62), -(2**62) + 1, -1), -(2**63)),
            ((-(2**62), -(2**62), -1), None),
            ((-(2**63), -(2**63), -(2**63)), None),
        ],
    )
    def test_the_sum_of_int64_days_is_exact_and_only_it_must_be_in_range(
        self, client: Client, days: tuple[int, int, int], total: int | None
    ):
        board = Board(client, INT64)
        for window, score in zip(DAYS, days, strict=True):
            double, low = stored(score)
            client.zadd(board.key(window), {low + b"ada": double})
            client.hset(board.key(f"{window}|prefixes"), "ada", low)
        self.fold(board)
        double, low = stored(total or 0)
        assert board.entries("rolling") == ([] if total is None else [(low + b"ada", double)])
        assert client.hgetall(board.key("rolling|prefixes")) == ({} if total is None else {b"ada": low})

    def test_it_removes_a_member_whose_sum_leaves_the_range(self, client: Client):
        board = Board(client, DENSE)
        self.fill(board, "monday", ada=1e308, bob=1)
        self.fold(board)
        assert board.entries("rolling") == [(b"bob", 1.0), (b"ada", 1e308)]
        self.fill(board, "tuesday", ada=1e308, bob=2)
        self.fold(board)
        assert board.entries("rolling") == [(b"bob", 3.0)]
        assert client.hgetall(board.key("rolling|counts")) == {b"3": b"1"}

    def test_the_earlier_of_equal_entries_stays_the_best(self, client: Client):
        """Equal moments occur after an import, which takes moments as given."""
        board = Board(client, ("int64", 0, "earliest", 0, 0, 0))
        for window, moment in zip(DAYS, (30, 10, 20), strict=True):
            prefix = b"\0\0" + packed(moment)
            client.zadd(board.key(window), {prefix + b"ada": 5})
            client.hset(board.key(f"{window}|prefixes"), "ada", prefix)
        assert self.fold(board, op="best") == [b"ok", b"0"]
        assert client.hget(board.key("rolling|prefixes"), "ada") == b"\0\0" + packed(10)

    def test_the_cursor_leads_through_a_large_day(self, client: Client):
        board = Board(client)
        board.client.zadd(board.key("monday"), {f"m{number}": number for number in range(1000)})
        _, cursor = self.fold(board, count=100)
        assert cursor != b"0"
        assert 0 < client.zcard(board.key("rolling")) < 1000
        calls = 1
        while cursor != b"0":
            _, cursor = self.fold(board, count=100, cursor=cursor.decode())
            calls += 1
        assert client.zcard(board.key("rolling")) == 1000
        assert calls > 4

    def test_the_window_lives_as_long_as_told(self, client: Client):
        board = Board(client)
        self.fill(board, "monday", ada=1)
        self.fold(board, seconds=1000)
        assert 900 < client.ttl(board.key("rolling")) <= 1000

    def test_version_when_the_definition_changed(self, client: Client):
        board = Board(client)
        self.fill(board, "monday", ada=1)
        assert self.fold(board, version=VERSION + 1) == [b"version", b"7"]
        client.delete(board.key("board"))
        assert self.fold(board) == [b"version", b""]
        assert not client.exists(board.key("rolling"))


class TestReading:
    def read(self, board: Board, function: str, *args: object, **header: object) -> Any:  # noqa: ANN401  # a reply
        told: dict[str, object] = {"shape": board.shape, "version": VERSION, "brief": 0}
        encoded = msgspec.msgpack.encode(told | header)
        return board.call(function, ["board", *board.parts("window")], encoded, *args, read=True)

    def page(self, board: Board, by: str, *args: object, **header: object) -> Any:  # noqa: ANN401  # a reply
        told: dict[str, Any] = {"limit": 2, "offset": 0, "above": 1, "below": 1, "share": (1, 2)}
        return self.read(board, "laurels_page", *args, by=by, **(told | header))

    @pytest.fixture
    def five(self, client: Client) -> Board:
        board = Board(client, DENSE)
        board.submit((9, "a"), (8, "b"), (8, "c"), (7, "d"), (1, "e"))
        return board

    @pytest.mark.parametrize("function", ["laurels_standing", "laurels_count", "laurels_page"])
    def test_version_when_the_definition_changed(self, client: Client, five: Board, function: str):
        told = {"by": "start", "limit": 1, "offset": 0}
        assert self.read(five, function, version=VERSION + 1, **told) == [b"version", b"7"]
        client.delete(five.key("board"))
        assert self.read(five, function, **told) == [b"version", b""]

    def test_standings(self, five: Board):
        assert self.read(five, "laurels_standing", "d", "nobody", "b") == [
            5,
            [b"7", 3, 3, 2, b""],
            [],
            [b"8", 1, 2, 1, b""],
        ]

    def test_brief_standings_leave_out_what_costs_more(self, five: Board, client: Client):
        assert self.read(five, "laurels_standing", "d", "nobody", brief=1) == [5, [b"7", 3, -1, -1, b""], []]
        unique = Board(client, ("int64", 1, "member", 0, 0, 0))
        unique.submit((packed(5), "a"), (packed(5), "b"))
        found = self.read(unique, "laurels_standing", "b", brief=1)
        assert found == [2, [packed(5), 1, 1, -1, b""]]

    def test_standings_bring_metadata(self, client: Client):
        board = Board(client, WITH_METADATA)
        board.submit((5, "ada"), (3, "bob"), metadata=['{"n":1}', ""])
        assert self.read(board, "laurels_standing", "ada", "bob") == [
            2,
            [b"5", 0, 0, -1, b'{"n":1}'],
            [b"3", 1, 1, -1, b""],
        ]

    def test_counts_of_places_where_nobody_is(self, five: Board):
        assert self.read(five, "laurels_count", "8.5", "x", "8", "bb", "0", "") == [5, [1, 1], [1, 2], [5, 5]]

    def test_pages_from_either_end(self, five: Board):
        assert self.page(five, "start", offset=1) == [5, 1, 1, [b"c", b"8", b"b", b"8"], []]
        assert self.page(five, "start", offset=9)[3] == []
        assert self.page(five, "end") == [5, 3, 3, [b"d", b"7", b"e", b"1"], []]
        assert self.page(five, "end", offset=4)[3] == [b"a", b"9"]

    def test_pages_behind_and_before_a_place(self, five: Board):
        assert self.page(five, "after", "8", "c")[3] == [b"b", b"8", b"d", b"7"]
        assert self.page(five, "after", "8.5", "x")[3] == [b"c", b"8", b"b", b"8"]
        assert self.page(five, "before", "8", "b")[3] == [b"a", b"9", b"c", b"8"]
        assert self.page(five, "before", "9", "a")[3] == []

    def test_a_members_neighbourhood(self, five: Board):
        assert self.page(five, "member", "d") == [5, 2, 1, [b"b", b"8", b"d", b"7", b"e", b"1"], []]
        assert self.page(five, "member", "nobody") == [5]

    def test_the_entry_at_a_share(self, five: Board):
        assert self.page(five, "share", share=(1, 1))[3] == [b"a", b"9"]
        assert self.page(five, "share", share=(0, 1))[3] == [b"e", b"1"]
        assert self.page(five, "share", share=(1, 2))[3] == [b"b", b"8"]

    def test_an_empty_window(self, client: Client):
        board = Board(client)
        assert self.page(board, "share") == [0, 0, 0, [], []]
        assert self.page(board, "start") == [0, 0, 0, [], []]
        assert self.page(board, "end") == [0, 0, 0, [], []]


class TestLoading:
    """The library on each primary, as plain clients see it."""

    @pytest.fixture(params=["node", "cluster"])
    def primaries(
        self, request: pytest.FixtureRequest, endpoints: Endpoints
    ) -> Generator[tuple[Laurels, list[Client]]]:
        fixture = "own_valkey_url" if request.param == "node" else "own_cluster_url"
        url: str = request.getfixturevalue(fixture)
        if request.param == "node":
            clients: list[Client] = [connected(url)]
        else:
            cluster: Client = redis.RedisCluster.from_url(url.replace("+cluster", ""))
            clients = [redis.Redis(host=node.host, port=node.port) for node in cluster.get_primaries()]
            cluster.close()
        with Laurels(valkey_url=url, postgres_url=endpoints.postgres_url, clock=FixedClock(0)) as engine:
            yield engine, clients
        for client in clients:
            client.close()

    def codes(self, clients: list[Client]) -> list[str]:
        listed = [client.function_list(library="laurels", withcode=True) for client in clients]
        return [_library_code(each[0]) if each else "" for each in listed]

    def boards(self, engine: Laurels) -> list[str]:
        """Enough boards that every primary has one."""
        boards = [f"loading/board-{number}" for number in range(12)]
        for board in boards:
            engine.define(board, {"aggregate": "sum"})
        return boards

    def test_it_is_on_every_primary_once_an_engine_is_open(self, primaries: tuple[Laurels, list[Client]]):
        _, clients = primaries
        assert self.codes(clients) == [library_code()] * len(clients)

    def test_a_missing_library_is_loaded_and_the_call_repeated(self, primaries: tuple[Laurels, list[Client]]):
        engine, clients = primaries
        boards = self.boards(engine)
        for client in clients:
            client.function_flush()
        for board in boards:
            before = engine.submit(board, "ada", 5).score
            assert engine.submit(board, "ada", 5).score == (before or 0) + 5
        for client in clients:
            client.function_flush()
        assert [engine.standing(board, "ada").rank for board in boards] == [1] * len(boards)
        assert self.codes(clients) == [library_code()] * len(clients)

    def test_another_body_under_our_name_is_replaced_when_it_lacks_a_function(
        self, primaries: tuple[Laurels, list[Client]]
    ):
        engine, clients = primaries
        boards = self.boards(engine)
        other = "#!lua name=laurels\nredis.register_function('laurels_old', function() return 1 end)"
        for client in clients:
            client.function_load(other, replace=True)
        for board in boards:
            engine.submit(board, "ada", 5)
        assert self.codes(clients) == [library_code()] * len(clients)

    def test_a_body_that_differs_is_replaced_when_an_engine_opens(
        self, primaries: tuple[Laurels, list[Client]]
    ):
        engine, clients = primaries
        for client in clients:
            client.function_load(library_code() + "\n-- another version\n", replace=True)
        assert not engine.run(engine.engine.valkey.functions_are_current())
        settings = engine.engine.settings
        with Laurels(valkey_url=settings.valkey_url, postgres_url=settings.postgres_url) as newer:
            assert newer.run(newer.engine.valkey.functions_are_current())
        assert self.codes(clients) == [library_code()] * len(clients)

    def test_a_valkey_that_was_emptied_starts_anew(self, primaries: tuple[Laurels, list[Client]]):
        engine, clients = primaries
        boards = self.boards(engine)
        definition = {"aggregate": "sum", "windows": [{"period": "daily"}], "groups": [["c"]]}
        engine.define("loading/emptied", definition)
        engine.submit("loading/emptied", "ada", 5, groups={"c": "x"})
        for board in boards:
            engine.submit(board, "bob", 7)
        for client in clients:
            client.flushall()
            client.function_flush()
        answer = engine.submit("loading/emptied", "ada", 3, groups={"c": "x"})
        assert (answer.score, answer.previous_score, answer.rank) == (3, None, 1)
        assert [window.entries for window in engine.windows("loading/emptied")] == [1]
        assert [engine.page(board).total for board in boards] == [0] * len(boards)
        assert engine.remove("loading/emptied", "ada")
        assert engine.page("loading/emptied", group="c=x").total == 0


def _library_code(listed: Any) -> str:  # noqa: ANN401  # a map by RESP3, a flat list by RESP2
    words: list[Any] = (
        [word for pair in listed.items() for word in pair] if hasattr(listed, "items") else listed
    )
    return words[words.index(b"library_code") + 1].decode()


class TestMemory:
    """Generations age by the server's clock. These tests change when a generation began."""

    PERIOD = 45_000

    def submit(self, board: Board, given: str) -> bool:
        """Whether the submission counted."""
        return board.submit((5, "ada"), ids=[given], calls=[""])[1] == []

    def state(self, board: Board, name: str = "ids") -> tuple[int, int]:
        number, began = board.client.hget(board.key("board"), name).split()
        return int(number), int(began)

    def test_an_id_is_remembered_for_two_periods_at_least(self, client: Client):
        board = Board(client)
        assert self.submit(board, "first")
        board.age("ids", self.PERIOD - 60)
        assert self.submit(board, "a")
        for other in ("b", "c"):
            board.age("ids", self.PERIOD)
            assert self.submit(board, other)
            assert not self.submit(board, "a")

    def test_an_id_is_forgotten_after_three_periods(self, client: Client):
        board = Board(client)
        for given in ("a", "b", "c"):
            assert self.submit(board, given)
            board.age("ids", self.PERIOD)
        assert self.submit(board, "d")
        assert self.submit(board, "a")
        assert not self.submit(board, "b")

    def test_a_step_ahead_by_years_ends_one_generation(self, client: Client):
        board = Board(client)
        assert self.submit(board, "a")
        board.age("ids", 10 * 365 * 86_400)
        assert self.submit(board, "b")
        assert not self.submit(board, "a")
        assert self.state(board)[0] == 1

    def test_a_step_back_forgets_nothing_and_lets_the_generation_begin_again(self, client: Client):
        board = Board(client)
        assert self.submit(board, "a")
        _, began = self.state(board)
        board.age("ids", -10 * 365 * 86_400)
        assert self.submit(board, "b")
        assert not self.submit(board, "a")
        number, begins = self.state(board)
        assert number == 0
        assert began <= begins <= began + 60

    def test_a_call_is_remembered_for_ten_minutes(self, client: Client):
        board = Board(client)
        board.submit((5, "ada"), call="x")
        for _ in range(2):
            board.age("calls", 360)
            board.submit((5, "ada"))
            assert board.submit((5, "ada"), ids=["~x.0"], calls=["x"])[1] == [1, b"duplicate"]
        board.age("calls", 360)
        board.submit((5, "ada"))
        assert board.submit((5, "ada"), ids=["~x.0"], calls=["x"])[1] == []

    def test_every_generation_expires(self, client: Client):
        board = Board(client)
        for given in ("a", "b", "c", "d"):
            self.submit(board, given)
            for name in ("ids", "calls"):
                board.age(name, self.PERIOD)
        keys = [board.key(f"{name}:{number}") for name in ("ids", "calls") for number in range(3)]
        assert all(0 < client.ttl(key) <= 2 * 86_400 for key in keys)

    def test_a_generation_is_set_aside_shortly_before_it_would_be_dropped(self, client: Client):
        board = Board(client)
        names = ["board", "ids:0", "ids:1", "ids:2", "ids:0|gone"]
        for given in ("a", "b", "c"):
            assert self.submit(board, given)
            board.age("ids", self.PERIOD - 1801)
            assert board.call("laurels_retire_generation", names, "ids", 1, 60) == [b"ok"]
            board.age("ids", 1801)
        aside = board.call("laurels_retire_generation", names, "ids", 1, 60)
        assert aside == [b"ok", board.key("ids:0|gone").encode()]
        assert client.smembers(board.key("ids:0|gone")) == {b"a"}
        assert not client.exists(board.key("ids:0"))
        assert not self.submit(board, "b")
        assert self.submit(board, "a")


def test_a_worker_heard_of_before_the_clock_was_set_back_is_forgotten(client: Client):
    board = Board(client)
    seconds, _ = client.time()
    client.zadd(board.key("workers"), {"gone": (seconds + 3600) * 1000, "there": seconds * 1000})
    assert board.call("laurels_attend", ["workers"], "me", 60_000) == [b"there", b"me"]


def test_a_fence_from_before_the_clock_was_set_back_keeps_nobody_off(client: Client):
    board = Board(client)
    seconds, _ = client.time()
    for ahead, told in ((10, b"fenced"), (3600, b"ok")):
        client.hset(board.key("board"), "fence", f"{(seconds + ahead) * 1000} token")
        assert board.submit((5, "ada"))[0] == told


class TestMetadata:
    """Metadata of existing entries."""

    def set(self, board: Board, *windows: str, **header: object) -> Any:  # noqa: ANN401  # a reply
        told: dict[str, object] = {
            "shape": board.shape,
            "version": VERSION,
            "journal": 1,
            "durable": 0,
            "replayed": 0,
            "fingerprints": [],
            "id": "one",
            "remember": 1,
            "metadata": '{"n":1}',
            "seconds": [0] * len(windows),
        }
        names = ["board", "journal", "ids:0", "ids:1", "ids:2"]
        names += [part for window in windows for part in board.parts(window)]
        packed_header = msgspec.msgpack.encode(told | header)
        return board.call("laurels_set_metadata", names, packed_header, "body", "ada")

    @pytest.fixture
    def board(self, client: Client) -> Board:
        """Where ada has an entry in `window`, and none in `other`."""
        board = Board(client, WITH_METADATA)
        assert client.zadd(board.key("window"), {"ada": 5})
        return board

    def stored(self, board: Board, window: str = "window") -> dict[bytes, bytes]:
        return board.client.hgetall(board.key(f"{window}|metadata"))

    def test_only_entries_that_are_there_get_it(self, board: Board):
        assert self.set(board, "other", "window") == [b"ok", 1]
        assert (self.stored(board), self.stored(board, "other")) == ({b"ada": b'{"n":1}'}, {})
        ((_, fields),) = board.client.xrange(board.key("journal"))
        assert fields == {b"body": b"body", b"skipped": b"1"}
        assert board.client.hget(board.key("board"), "metadata") == b"1"

    def test_none_takes_it_away(self, board: Board):
        self.set(board, "window")
        assert self.set(board, "window", id="two", metadata="") == [b"ok", 1]
        assert self.stored(board) == {}

    def test_it_lives_as_long_as_its_window(self, board: Board):
        self.set(board, "window", seconds=[100])
        assert 0 < board.client.ttl(board.key("window|metadata")) <= 100

    def test_an_id_that_was_seen_changes_nothing(self, board: Board):
        self.set(board, "window")
        assert self.set(board, "window", metadata='{"n":2}') == [b"duplicate"]
        assert self.stored(board) == {b"ada": b'{"n":1}'}
        assert board.client.xlen(board.key("journal")) == 1

    def test_a_call_that_others_follow_remembers_no_id(self, board: Board):
        assert self.set(board, "window", remember=0) == [b"ok", 1]
        assert self.set(board, "window") == [b"ok", 1]
        assert self.set(board, "window") == [b"duplicate"]

    def test_where_there_is_no_entry_nothing_is_written(self, board: Board):
        assert self.set(board, "other") == [b"ok", 0]
        assert board.client.exists(board.key("journal"), board.key("ids:0"), board.key("other|metadata")) == 0
        assert self.set(board) == [b"ok", 0]

    def test_another_version_and_a_fence_keep_it_off(self, board: Board):
        assert self.set(board, "window", version=VERSION + 1) == [b"version", str(VERSION).encode()]
        seconds, _ = board.client.time()
        board.client.hset(board.key("board"), "fence", f"{(seconds + 10) * 1000} token")
        assert self.set(board, "window") == [b"fenced"]
        assert self.stored(board) == {}


class TestOnce:
    """Idempotency keys: claims, settlements, and what other owners see."""

    def claim(self, board: Board, fingerprint: str = "f", owner: str = "a", seconds: int = 30) -> Any:  # noqa: ANN401  # a reply
        names = ["board", "once:0", "once:1", "once:2"]
        return board.call("laurels_claim", names, "key", fingerprint, owner, seconds)

    def settle(self, board: Board, how: str, owner: str = "a", *rest: object) -> Any:  # noqa: ANN401  # a reply
        fingerprint, value = (*rest, "", "")[:2]
        names = ["once:0", "once:1", "once:2"]
        return board.call("laurels_settle", names, "key", owner, how, fingerprint, value)

    def test_the_first_has_it_and_the_others_wait(self, client: Client):
        board = Board(client)
        assert self.claim(board) == [b"mine"]
        assert self.claim(board, owner="b") == [b"busy"]
        assert self.claim(board, fingerprint="", owner="b") == [b"busy"]
        assert self.claim(board, fingerprint="g", owner="b") == [b"other"]
        assert client.ttl(board.key("once:0")) == 2 * 86400

    def test_what_was_answered_is_told_to_the_same_request_alone(self, client: Client):
        board = Board(client)
        self.claim(board, fingerprint="")
        assert self.settle(board, "done", "a", "f", "the answer") == 1
        assert self.claim(board, owner="b") == [b"done", b"f", b"the answer"]
        assert self.claim(board, fingerprint="", owner="b") == [b"done", b"f", b"the answer"]
        assert self.claim(board, fingerprint="g", owner="b") == [b"other"]

    def test_answers_of_earlier_generations_are_known(self, client: Client):
        board = Board(client)
        self.claim(board)
        board.age("once", 45_000)
        board.call("laurels_claim", ["board", "once:0", "once:1", "once:2"], "another", "f", "a", 30)
        assert client.hkeys(board.key("once:1")) == [b"another"]
        assert self.settle(board, "done", "a", "f", "the answer") == 1
        assert self.claim(board, owner="b") == [b"done", b"f", b"the answer"]

    def test_a_key_that_is_claimed_again_and_forgotten_is_known_to_no_generation(self, client: Client):
        board = Board(client)
        self.claim(board, seconds=0)
        board.age("once", 45_000)
        assert self.claim(board, owner="b") == [b"mine"]
        assert self.settle(board, "forget", "b") == 1
        assert self.claim(board, fingerprint="g", owner="c") == [b"mine"]

    def test_a_claim_from_before_the_servers_clock_was_set_back_does_not_block(self, client: Client):
        board = Board(client)
        self.claim(board, seconds=3600)
        assert self.claim(board, owner="b", seconds=30) == [b"mine"]

    def test_a_claim_runs_out_and_is_lost_to_the_next(self, client: Client):
        board = Board(client)
        self.claim(board, seconds=0)
        assert self.claim(board, fingerprint="g", owner="b") == [b"other"]
        assert self.claim(board, owner="b") == [b"mine"]
        assert self.settle(board, "done", "a", "f", "too late") == 0
        assert self.claim(board, owner="c") == [b"busy"]

    def test_a_claim_is_renewed_opened_and_forgotten(self, client: Client):
        board = Board(client)
        self.claim(board, seconds=0)
        assert self.settle(board, "renew", "a", "", 30) == 1
        assert self.claim(board, owner="b") == [b"busy"]
        assert self.settle(board, "open", "a", "f") == 1
        assert self.claim(board, fingerprint="g", owner="b") == [b"other"]
        assert self.claim(board, owner="b") == [b"mine"]
        assert self.settle(board, "forget", "b") == 1
        assert self.claim(board, fingerprint="g", owner="c") == [b"mine"]
