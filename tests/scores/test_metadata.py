"""Metadata set without a score: which entries get it, and what stays as it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from laurels.boards.retention import WINDOWS_A_CALL
from laurels.errors import InvalidInput, NotFound, WindowGone
from laurels.journal.entry import START, read_entry
from laurels.sync import Laurels

if TYPE_CHECKING:
    from collections.abc import Callable

    from raw_valkey import RawValkey

    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints

WINDOWS: list[dict[str, Any]] = [
    {"period": "daily", "keep": 3},
    {"period": "weekly", "sum_of": "daily"},
    {"period": "all_time"},
    {"period": "rolling", "days": 2},
]
# Both layouts, with and without distinct scores, over one shard and several.
KINDS: list[dict[str, Any]] = [
    {},
    {"dense": True},
    {"score": "int64", "ties": "earliest", "shards": 3},
    {"ties": "member", "order": "asc", "aggregate": "sum"},
]


def metadata(engine: Laurels, board: str, member: str = "ada", **where: str) -> object:
    return engine.standing(board, member, **where).metadata  # pyright: ignore[reportArgumentType]  # periods and groups


@pytest.mark.parametrize("kind", KINDS)
def test_every_live_window_and_group_of_the_member_gets_it(
    engine: Laurels, new_board: Callable[..., str], clock: FixedClock, kind: dict[str, Any]
):
    board = new_board(windows=WINDOWS, groups=[["country"], ["city"]], **kind)
    engine.submit(board, "ada", 5, groups={"country": "BR", "city": "Rio"}, metadata={"level": 1})
    engine.submit(board, "bob", 6, groups={"country": "BR"}, metadata={"level": 2})
    clock.advance(timedelta(days=1))
    engine.submit(board, "ada", 7, groups={"country": "JP"}, metadata={"level": 3})
    told = engine.set_metadata(board, "ada", {"level": 9})
    # Two days, whole and in groups; their week; all time.
    assert (told.member, told.entries, told.applied) == ("ada", 3 + 2 + 4 + 4, True)
    for period in ("daily", "weekly", "all_time"):
        for group in ("", "country=JP"):
            assert metadata(engine, board, period=period, group=group) == {"level": 9}
    for group in ("", "country=BR", "city=Rio"):
        assert metadata(engine, board, slot="2025-10-24", group=group) == {"level": 9}
    assert metadata(engine, board, "bob", slot="2025-10-24", group="country=BR") == {"level": 2}
    assert metadata(engine, board, period="rolling_2d") is None
    standing = engine.standing(board, "ada", period="all_time")
    assert standing.score == (12 if kind.get("aggregate") == "sum" else 7)


def test_a_period_and_a_slot_name_one_window_and_a_group_one_group(
    engine: Laurels, new_board: Callable[..., str], clock: FixedClock
):
    board = new_board(windows=WINDOWS, groups=[["country"]])
    engine.submit(board, "ada", 5, groups={"country": "BR"})
    clock.advance(timedelta(days=1))
    engine.submit(board, "ada", 7, groups={"country": "BR"})
    assert engine.set_metadata(board, "ada", {"of": "today"}, period="daily").entries == 2
    assert engine.set_metadata(board, "ada", {"of": "yesterday"}, slot="2025-10-24").entries == 2
    assert engine.set_metadata(board, "ada", {"of": "BR"}, group="country=BR").entries == 4
    one = {"period": "all_time", "group": "country=BR"}
    assert engine.set_metadata(board, "ada", {"of": "one"}, **one).entries == 1  # pyright: ignore[reportArgumentType]
    assert metadata(engine, board) == {"of": "today"}
    assert metadata(engine, board, slot="2025-10-24") == {"of": "yesterday"}
    assert metadata(engine, board, slot="2025-10-24", group="country=BR") == {"of": "BR"}
    assert metadata(engine, board, period="all_time") is None
    assert metadata(engine, board, period="all_time", group="country=BR") == {"of": "one"}


def test_the_current_window_of_a_group_is_that_of_its_own_zone(
    engine: Laurels, new_board: Callable[..., str], clock: FixedClock
):
    clock.advance(timedelta(hours=3))  # 15:00 in UTC: in Kiritimati it is tomorrow
    board = new_board(
        windows=[{"period": "daily"}],
        groups=[["campus"]],
        timezone_by="campus",
        timezones={"east": "Pacific/Kiritimati"},
    )
    engine.submit(board, "ada", 5, groups={"campus": "east"})
    assert engine.set_metadata(board, "ada", {"x": 1}).entries == 2
    assert engine.set_metadata(board, "ada", {"x": 2}, period="daily").entries == 2
    assert engine.standing(board, "ada", slot="2025-10-25", group="campus=east").metadata == {"x": 2}
    assert engine.standing(board, "ada", slot="2025-10-24").metadata == {"x": 2}


def test_none_takes_it_away(engine: Laurels, new_board: Callable[..., str]):
    board = new_board()
    engine.submit(board, "ada", 5, metadata={"level": 1})
    assert engine.set_metadata(board, "ada", None).entries == 1
    assert metadata(engine, board) is None


def test_a_later_submission_brings_its_own_where_it_sets_the_entry(
    engine: Laurels, new_board: Callable[..., str]
):
    board = new_board()
    engine.submit(board, "ada", 5)
    engine.set_metadata(board, "ada", {"by": "hand"})
    engine.submit(board, "ada", 4, metadata={"by": "worse"})
    assert metadata(engine, board) == {"by": "hand"}
    engine.submit(board, "ada", 6)
    assert metadata(engine, board) is None


def test_an_id_counts_once(engine: Laurels, new_board: Callable[..., str]):
    board = new_board()
    engine.submit(board, "ada", 5)
    first = engine.set_metadata(board, "ada", {"n": 1}, id="one")
    assert (first.applied, first.id) == (True, "one")
    made = engine.set_metadata(board, "ada", {"n": 2})
    for given in ("one", made.id):
        again = engine.set_metadata(board, "ada", {"n": 3}, id=given)
        assert (again.applied, again.entries, again.id) == (False, 0, given)
    assert metadata(engine, board) == {"n": 2}


def test_who_has_no_entry_is_not_found_and_uses_up_no_id(engine: Laurels, new_board: Callable[..., str]):
    board = new_board(windows=WINDOWS, groups=[["country"]])
    with pytest.raises(NotFound, match="'ada' has no entry"):
        engine.set_metadata(board, "ada", {"n": 1}, id="one")
    engine.submit(board, "ada", 5)
    with pytest.raises(NotFound, match="group=country=BR"):
        engine.set_metadata(board, "ada", {"n": 1}, group="country=BR")
    assert engine.set_metadata(board, "ada", {"n": 1}, id="one").applied
    engine.remove(board, "ada")
    with pytest.raises(NotFound):
        engine.set_metadata(board, "ada", {"n": 2})
    with pytest.raises(NotFound, match="there is no board"):
        engine.set_metadata("tests/nowhere", "ada", {"n": 2})


def test_rolling_windows_carry_none(engine: Laurels, new_board: Callable[..., str]):
    board = new_board(windows=WINDOWS)
    engine.submit(board, "ada", 5)
    with pytest.raises(InvalidInput, match=r"period: 'rolling_2d' is rolling: .* have no metadata"):
        engine.set_metadata(board, "ada", {"n": 1}, period="rolling_2d")
    rolling = new_board(windows=[{"period": "rolling", "days": 2}])
    engine.submit(rolling, "ada", 5)
    with pytest.raises(InvalidInput, match=r"only rolling windows: .* have no metadata"):
        engine.set_metadata(rolling, "ada", {"n": 1})


def test_windows_that_are_over_or_to_come_are_not_found(
    engine: Laurels, new_board: Callable[..., str], clock: FixedClock
):
    board = new_board(windows=[{"period": "daily", "keep": 1}, {"period": "all_time"}])
    engine.submit(board, "ada", 5)
    clock.advance(timedelta(days=1))
    assert engine.set_metadata(board, "ada", {"n": 1}).entries == 1
    with pytest.raises(WindowGone):
        engine.set_metadata(board, "ada", {"n": 1}, slot="2025-10-24")
    with pytest.raises(NotFound, match="has not begun"):
        engine.set_metadata(board, "ada", {"n": 1}, slot="2030-01-01")
    with pytest.raises(InvalidInput, match="the board has no window 'hourly'"):
        engine.set_metadata(board, "ada", {"n": 1}, period="hourly")
    with pytest.raises(InvalidInput, match="group: "):
        engine.set_metadata(board, "ada", {"n": 1}, group="country=BR")


def test_its_bounds_are_those_of_a_submission(engine: Laurels, new_board: Callable[..., str]):
    board = new_board()
    engine.submit(board, "ada", 5)
    refused: list[Any] = [{"x": "y" * 4090}, [1], "text", {"x": object()}]
    for given in refused:
        with pytest.raises(InvalidInput, match="metadata: "):
            engine.set_metadata(board, "ada", given)
        with pytest.raises(InvalidInput, match="metadata: "):
            engine.submit(board, "ada", 6, metadata=given)
    assert engine.set_metadata(board, "ada", {"x": "y" * 4088}).entries == 1
    with pytest.raises(InvalidInput, match="id: "):
        engine.set_metadata(board, "ada", {}, id="x" * 257)
    with pytest.raises(InvalidInput, match="member: "):
        engine.set_metadata(board, "", {})


def test_more_windows_than_one_call_takes_all_get_it_once(
    engine: Laurels, new_board: Callable[..., str], clock: FixedClock
):
    board = new_board(windows=[{"period": "every", "seconds": 60}], lateness="P1D")
    for _ in range(WINDOWS_A_CALL + 5):
        engine.submit(board, "ada", 5)
        clock.advance(timedelta(seconds=60))
    told = engine.set_metadata(board, "ada", {"n": 1}, id="many")
    assert told.entries == WINDOWS_A_CALL + 5
    for window in engine.windows(board, limit=1000):
        if window.entries:
            assert metadata(engine, board, slot=window.slot) == {"n": 1}
    assert engine.set_metadata(board, "ada", {"n": 2}, id="many").applied is False
    assert engine.verify(board).differences == []


def test_a_fed_board_keeps_its_own(engine: Laurels, new_board: Callable[..., str]):
    fed = new_board()
    board = new_board(feeds=[fed])
    engine.submit(board, "ada", 5, metadata={"n": 1})
    engine.set_metadata(board, "ada", {"n": 2})
    assert metadata(engine, fed) == {"n": 1}
    engine.set_metadata(fed, "ada", {"n": 3})
    assert metadata(engine, board) == {"n": 2}


def test_a_rated_board_takes_it(engine: Laurels, new_board: Callable[..., str]):
    board = new_board(rating={"system": "elo"})
    engine.match(board, ["ada", "bob"], "ada", metadata={"map": "harbour"})
    assert engine.set_metadata(board, "ada", {"map": "tower"}).entries == 1
    assert (metadata(engine, board), metadata(engine, board, "bob")) == ({"map": "tower"}, {"map": "harbour"})


def test_it_goes_with_its_window(raw: RawValkey, endpoints: Endpoints, clock: FixedClock):
    board = "tests/expiring"
    with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=clock) as engine:
        engine.define(board, {"windows": [{"period": "daily", "keep": 2}]})
        engine.submit(board, "ada", 5)
        engine.set_metadata(board, "ada", {"n": 1})
        key = f"lb:{{{board}}}:daily:2025-10-24"
        assert 0 < raw.client.ttl(f"{key}|metadata") <= raw.client.ttl(key) + 1
        engine.drop(board, allow_drop="all")


def test_the_journal_tells_which_entries_got_it(raw: RawValkey, endpoints: Endpoints, clock: FixedClock):
    board = "tests/journaled"
    with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=clock) as engine:
        engine.define(board, {"windows": WINDOWS, "groups": [["country"]]})
        engine.submit(board, "ada", 5, groups={"country": "BR"})
        engine.set_metadata(board, "ada", {"n": 1}, period="daily", id="one")
        fields = raw.journal(board)[-1]
        entry = read_entry(START, fields)
        assert entry.kind == "metadata"
        assert [(row.op, row.groups) for row in entry.rows] == [
            ("daily|2025-10-24", None),
            ("daily|2025-10-24", {"country": "BR"}),
        ]
        assert {(row.id, row.member, row.metadata) for row in entry.rows} == {("one", b"ada", '{"n":1}')}
        engine.set_metadata(board, "ada", {"n": 1}, id="one")
        assert raw.journal(board)[-1] == fields
        engine.drop(board, allow_drop="all")


def test_what_many_set_at_once_is_as_the_journal_says(engine: Laurels, new_board: Callable[..., str]):
    board = new_board(windows=WINDOWS, groups=[["country"]], aggregate="last")
    engine.submit(board, "ada", 0, groups={"country": "BR"})

    def change(number: int) -> None:
        if number % 2:
            engine.set_metadata(board, "ada", {"n": number})
        else:
            engine.submit(board, "ada", number, groups={"country": "BR"}, metadata={"n": number})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(change, range(60)))
    assert engine.verify(board).differences == []
    seen = [metadata(engine, board, period=period) for period in ("daily", "weekly", "all_time")]
    assert seen[0] == seen[1] == seen[2]


def test_another_process_s_change_of_the_definition_is_noticed(
    engine: Laurels, other_engine: Laurels, new_board: Callable[..., str]
):
    board = new_board()
    engine.submit(board, "ada", 5)
    engine.set_metadata(board, "ada", {"n": 1})
    other_engine.define(board, {"lateness": "P2D"})
    assert engine.set_metadata(board, "ada", {"n": 2}).entries == 1
    # A process that knew of no metadata meets it with a submission.
    other_engine.submit(board, "ada", 6)
    assert metadata(engine, board) is None
