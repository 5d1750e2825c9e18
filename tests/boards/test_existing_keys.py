"""Keys of other programs under the names of templates are left alone, or taken over with `adopt`."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from laurels.errors import Conflict, InvalidInput, KeyTaken
from laurels.scores.submission import Submission
from laurels.sync import Laurels

if TYPE_CHECKING:
    from collections.abc import Generator

    from raw_valkey import RawValkey

    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints

TODAY, TOMORROW = "2025-10-24", "2025-10-25"
DAY = 86_400 * 1_000_000

_numbers = count(1)


@pytest.fixture
def engine(endpoints: Endpoints, clock: FixedClock) -> Generator[Laurels]:
    """On a single node, whose keys `raw` sees."""
    with Laurels(
        valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=clock
    ) as laurels:
        yield laurels


@pytest.fixture
def name(raw: RawValkey) -> Generator[str]:
    """The prefix of all keys of a test."""
    name = f"theirs-{next(_numbers)}"
    yield name
    for key in raw.client.scan_iter(f"{name}*", count=1000):
        raw.client.delete(key)


def daily(name: str, **more: object) -> dict[str, Any]:
    return {"windows": [{"period": "daily"}], "keys": {"daily": f"{name}:{{slot}}"}, **more}


def entries(engine: Laurels, board: str, **where: str) -> list[tuple[str, object]]:
    return [(each.member, each.score) for each in engine.page(board, **where).entries]  # pyright: ignore[reportArgumentType]


class TestDefinition:
    @pytest.mark.parametrize("slot", ["2025-10-20", TODAY, TOMORROW])
    def test_a_sorted_set_of_another_program_is_refused(
        self, engine: Laurels, raw: RawValkey, name: str, slot: str
    ):
        raw.client.zadd(f"{name}:{slot}", {"ada": 5})
        for conflict in (engine.preview(f"tests/{name}", daily(name)).conflict,):
            assert conflict is not None
            assert f"{name}:{slot}" in conflict
        with pytest.raises(Conflict, match=f"{name}:{slot}.*adopt"):
            engine.define(f"tests/{name}", daily(name))

    def test_a_group_of_another_program_is_refused(self, engine: Laurels, raw: RawValkey, name: str):
        raw.client.zadd(f"{name}:{TODAY}:country=BR", {"ada": 5})
        grouped = daily(name, groups=[["country"]])
        with pytest.raises(Conflict, match="country=BR"):
            engine.define(f"tests/{name}", grouped)
        engine.define(f"tests/{name}", daily(name))  # without groups it never has that key
        with pytest.raises(Conflict, match="country=BR"):
            engine.define(f"tests/{name}", grouped)

    def test_keys_of_other_types_are_refused_even_with_adopt(
        self, engine: Laurels, raw: RawValkey, name: str
    ):
        raw.client.set(f"{name}:{TODAY}", "text")
        with pytest.raises(Conflict, match="string"):
            engine.define(f"tests/{name}", daily(name, adopt=True))

    def test_existing_keys_with_a_windows_suffix_are_refused(
        self, engine: Laurels, raw: RawValkey, name: str
    ):
        raw.client.hset(f"{name}:{TODAY}|metadata", "ada", "{}")
        with pytest.raises(Conflict, match="metadata"):
            engine.define(f"tests/{name}", daily(name, adopt=True))

    def test_names_that_the_board_never_makes_are_free(self, engine: Laurels, raw: RawValkey, name: str):
        for key in (f"{name}:2025-13-01", f"{name}:{TODAY}:x", f"{name}:{TODAY}|other", f"{name}"):
            raw.client.set(key, "text")
        raw.client.set(f"{name}:".encode() + b"\xff", "text")
        assert engine.define(f"tests/{name}", daily(name)).created

    def test_a_boards_own_keys_do_not_forbid_a_change(self, engine: Laurels, name: str):
        board = f"tests/{name}"
        engine.define(board, daily(name))
        engine.submit(board, "ada", 5)
        grouped = daily(name, groups=[["country"]], lateness="P2D")
        engine.define(board, grouped)
        engine.submit(board, "bob", 7, groups={"country": "BR"}, metadata={"n": 1})
        engine.define(board, {**grouped, "groups": [["country"], ["city"]]})
        assert entries(engine, board) == [("bob", 7), ("ada", 5)]

    @pytest.mark.parametrize(
        "more",
        [
            {"score": "int64"},
            {"ties": "earliest"},
            {"dense": True},
            {"rating": {"system": "elo"}},
            {"windows": [{"period": "daily"}, {"period": "weekly", "sum_of": "daily"}]},
            {"windows": [{"period": "daily"}, {"period": "rolling", "days": 7}]},
            {"keys": None},
        ],
    )
    def test_only_plain_windows_are_adopted(self, engine: Laurels, name: str, more: dict[str, Any]):
        with pytest.raises(InvalidInput, match="adopt"):
            engine.define(f"tests/{name}", {**daily(name, adopt=True), **more})


class TestAdoption:
    def test_the_entries_become_the_boards_and_outlive_it(
        self, engine: Laurels, raw: RawValkey, clock: FixedClock, name: str
    ):
        board, key = f"tests/{name}", f"{name}:{TODAY}"
        raw.client.zadd(key, {"ada": 5, "bob": 7})
        windows = [{"period": "daily", "keep": 2}]
        engine.define(board, {**daily(name, adopt=True), "windows": windows})
        assert entries(engine, board) == [("bob", 7), ("ada", 5)]
        assert engine.submit(board, "ada", 9, metadata={"n": 1}).previous_score == 5
        assert engine.remove(board, "bob")
        assert raw.client.ttl(key) == -1
        clock.now += DAY
        engine.submit(board, "eve", 1)
        engine.drop(board, allow_drop="all")
        assert raw.client.zrange(key, 0, -1, withscores=True) == [(b"ada", 9.0)]
        assert raw.client.ttl(key) == -1
        assert raw.keys(name) == [key.encode()]

    def test_every_window_and_group_is_taken_over_at_once(self, engine: Laurels, raw: RawValkey, name: str):
        board = f"tests/{name}"
        keys = [f"{name}:{TODAY}", f"{name}:2025-10-23", f"{name}:2025-10-23:country=B%2CR"]
        for key in keys:
            raw.client.zadd(key, {"ada": 5})
        engine.define(board, daily(name, adopt=True, groups=[["country"]]))
        assert entries(engine, board, slot="2025-10-23", group="country=B%2CR") == [("ada", 5)]
        assert [each.slot for each in engine.windows(board)] == [TODAY, "2025-10-23"]
        assert engine.remove(board, "ada")
        assert raw.keys(f"{name}:") == []

    def test_later_windows_are_taken_over_when_they_are_first_written(
        self, engine: Laurels, raw: RawValkey, clock: FixedClock, name: str
    ):
        board, key = f"tests/{name}", f"{name}:{TOMORROW}"
        engine.define(board, daily(name, adopt=True))
        raw.client.zadd(key, {"ada": 5})
        clock.now += DAY
        assert engine.submit(board, "bob", 4).rank == 2
        engine.drop(board, allow_drop="all")
        assert raw.keys(f"{name}:") == [key.encode()]

    def test_a_group_that_is_no_longer_defined_is_left(self, engine: Laurels, raw: RawValkey, name: str):
        board, key = f"tests/{name}", f"{name}:{TODAY}:country=BR"
        raw.client.zadd(key, {"ada": 5})
        engine.define(board, daily(name, adopt=True, groups=[["country"]]))
        engine.define(board, daily(name, adopt=True), allow_drop="daily")
        assert raw.client.zscore(key, "ada") == 5

    def test_a_shorter_keep_sets_no_expiry_on_it(self, engine: Laurels, raw: RawValkey, name: str):
        board, key = f"tests/{name}", f"{name}:{TODAY}"
        raw.client.zadd(key, {"ada": 5})
        engine.define(board, daily(name, adopt=True))
        engine.define(board, {**daily(name, adopt=True), "windows": [{"period": "daily", "keep": 2}]})
        assert raw.client.ttl(key) == -1

    def test_members_that_no_board_takes_can_be_read(self, engine: Laurels, raw: RawValkey, name: str):
        board, key = f"tests/{name}", f"{name}:{TODAY}"
        raw.client.zadd(key, {b"\xff\xfe": 3, b"x" * 300: 2, "ada": 1})
        engine.define(board, daily(name, adopt=True))
        page = engine.page(board, limit=1)
        assert page.entries[0].member == r"\xff\xfe"
        assert page.next is not None
        following = engine.page(board, cursor=page.next).entries
        assert [each.member for each in following] == ["x" * 300, "ada"]
        assert engine.standing(board, "ada").rank == 3
        assert engine.around(board, "ada").entries[0].member == r"\xff\xfe"
        assert engine.distribution(board).total == 3

    def test_infinite_scores_are_not_taken_over(self, engine: Laurels, raw: RawValkey, name: str):
        board = f"tests/{name}"
        raw.client.zadd(f"{name}:{TODAY}", {"ada": "inf"})
        with pytest.raises(Conflict):
            engine.define(board, daily(name, adopt=True))

    def test_scores_that_become_infinite_later_can_be_read(self, engine: Laurels, raw: RawValkey, name: str):
        board, key = f"tests/{name}", f"{name}:{TODAY}"
        raw.client.zadd(key, {"ada": 5})
        engine.define(board, daily(name, adopt=True))
        raw.client.zadd(key, {"bob": "inf", "eve": "-inf"})
        assert [member for member, _ in entries(engine, board)] == ["bob", "ada", "eve"]
        assert engine.standing(board, "bob").rank == 1
        assert engine.distribution(board).total == 3

    def test_a_rebuild_refuses_to_replace_it(self, engine: Laurels, raw: RawValkey, name: str):
        board, key = f"tests/{name}", f"{name}:{TODAY}"
        raw.client.zadd(key, {"ada": 5})
        engine.define(board, daily(name, adopt=True))
        engine.submit(board, "bob", 7)
        with pytest.raises(Conflict, match="took over"):
            engine.rebuild(board, force=True)
        assert raw.client.zcard(key) == 2


class TestLater:
    """Another program writes a key after the board is defined."""

    def test_a_sorted_set_is_neither_changed_nor_dropped(
        self, engine: Laurels, raw: RawValkey, name: str, caplog: pytest.LogCaptureFixture
    ):
        board, key = f"tests/{name}", f"{name}:{TODAY}"
        engine.define(board, daily(name))
        raw.client.zadd(key, {"ada": 5})
        with pytest.raises(KeyTaken) as refused:
            engine.submit(board, "bob", 7)
        assert key not in refused.value.detail
        assert key in caplog.text
        engine.drop(board, allow_drop="all")
        assert raw.client.zrange(key, 0, -1, withscores=True) == [(b"ada", 5.0)]

    @pytest.mark.parametrize("is_written", [False, True])
    def test_a_value_of_another_type_is_a_conflict(
        self, engine: Laurels, raw: RawValkey, name: str, *, is_written: bool
    ):
        board, key = f"tests/{name}", f"{name}:{TODAY}"
        engine.define(board, daily(name, aggregate="sum"))
        if is_written:
            engine.submit(board, "ada", 1)
        raw.client.delete(key)
        raw.client.set(key, "text")
        for ask in (
            lambda: engine.submit(board, "ada", 1),
            lambda: engine.page(board),
            lambda: engine.standing(board, "ada"),
            lambda: engine.remove(board, "ada") if is_written else engine.page(board),
        ):
            with pytest.raises(KeyTaken):
                ask()
        assert raw.client.get(key) == b"text"

    def test_neighbours_go_on(self, engine: Laurels, raw: RawValkey, name: str):
        board = f"tests/{name}"
        engine.define(board, daily(name, groups=[["country"]]))
        raw.client.set(f"{name}:{TODAY}:country=BR", "text")
        result = engine.submit_many(
            board,
            [Submission(f"m{n}", n, groups={"country": "BR" if n % 2 else "JP"}) for n in range(6)],
        )
        assert result.accepted == 3
        assert [each.index for each in result.rejected] == [1, 3, 5]
        assert engine.page(board).total == 3

    def test_a_clash_on_a_fed_board_refuses_only_the_fed_submission(
        self, engine: Laurels, raw: RawValkey, name: str
    ):
        fed, board = f"tests/{name}-fed", f"tests/{name}"
        engine.define(fed, daily(name))
        engine.define(board, {"feeds": [fed]})
        raw.client.set(f"{name}:{TODAY}", "text")
        assert engine.submit(board, "ada", 5).rank == 1
        engine.archived(board)

    def test_a_clash_refuses_only_the_match_that_needs_the_key(
        self, engine: Laurels, raw: RawValkey, name: str
    ):
        board = f"tests/{name}"
        engine.define(board, daily(name, groups=[["country"]], rating={"system": "elo"}))
        raw.client.set(f"{name}:{TODAY}:country=BR", "text")
        with pytest.raises(KeyTaken):
            engine.match(board, ["ada", "bob"], "ada", groups={"ada": {"country": "BR"}})
        assert engine.match(board, ["ada", "bob"], "ada").applied

    def test_a_sorted_set_in_the_place_of_a_hash_is_a_conflict(
        self, engine: Laurels, raw: RawValkey, name: str
    ):
        board = f"tests/{name}"
        engine.define(board, daily(name))
        engine.submit(board, "ada", 5, metadata={"n": 1})
        raw.client.delete(f"{name}:{TODAY}|metadata")
        raw.client.zadd(f"{name}:{TODAY}|metadata", {"x": 1})
        with pytest.raises(KeyTaken):
            engine.submit(board, "ada", 6, metadata={"n": 2})
        assert raw.client.zscore(f"{name}:{TODAY}", "ada") == 5


class TestTogether:
    def test_of_clashing_boards_defined_concurrently_only_one_exists(self, engine: Laurels, name: str):
        async def define_all() -> list[object]:
            tries = (
                engine.engine.define(f"tests/{name}-{number}", {"keys": {"all_time": f"{name}:{suffix}"}})
                for number, suffix in enumerate(["{project}", "tests"] * 5)
            )
            return await asyncio.gather(*tries, return_exceptions=True)

        outcomes = engine.run(define_all())
        refused = [each for each in outcomes if isinstance(each, InvalidInput)]
        assert len(refused) == len(outcomes) - 1, outcomes


def test_on_a_cluster_the_keys_of_every_node_are_looked_at(
    cluster_url: str, endpoints: Endpoints, clock: FixedClock
):
    url, stores = cluster_url, endpoints.postgres_url
    with Laurels(valkey_url=url, postgres_url=stores, clock=clock) as engine:

        def command(*words: str | float) -> object:
            return engine.run(engine.engine.valkey.command(*words))

        for number in range(8):  # hash tags of several nodes
            name, board = f"cl{number}", f"tests/cl{number}"
            key = f"{{{name}}}:{TODAY}"
            command("ZADD", key, 5, "ada")
            with pytest.raises(Conflict, match=name):
                engine.define(board, daily(name, groups=[["country"]]))
            engine.define(board, daily(name, groups=[["country"]], adopt=True))
            assert engine.submit(board, "bob", 4, groups={"country": "BR"}).rank == 2
            engine.drop(board, allow_drop="all")
            assert command("ZCARD", key) == 2
            assert command("EXISTS", f"{key}:country=BR") == 0
            command("DEL", key)
