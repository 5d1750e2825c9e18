from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from topologies import on_node
from valkey_servers import running_valkey

from laurels.boards.keys import BoardRef
from laurels.errors import Conflict, InvalidInput, NotFound
from laurels.moments import moment_of
from laurels.scores.submission import Submission
from laurels.sync import Laurels
from laurels.valkey.chunked_delete import MANY_ENTRIES, REGISTRY

if TYPE_CHECKING:
    from raw_valkey import RawValkey

    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints

NewBoard = Callable[..., str]
MICROSECOND = timedelta(microseconds=1)
DAY, WEEK, LINGER = 86_400, 7 * 86_400, 1800


def moment(text: str) -> int:
    return moment_of(datetime.fromisoformat(text))


def scores(engine: Laurels, board: str, **where: Any) -> dict[str, int | float]:  # noqa: ANN401  # keyword arguments
    return {entry.member: entry.score for entry in engine.page(board, **where).entries}


class TestKeep:
    def is_over(self, engine: Laurels, board: str, slot: str) -> bool:
        with pytest.raises(NotFound, match="no longer kept"):
            engine.page(board, slot=slot)
        return True

    @pytest.mark.parametrize(
        ("keep", "over"),
        [
            (1, "2025-10-25T00:00:00Z"),
            (2, "2025-10-26T00:00:00Z"),
            (7, "2025-10-31T00:00:00Z"),
            ("P7D", "2025-11-01T00:00:00Z"),
            ("PT90M", "2025-10-25T01:30:00Z"),
        ],
    )
    def test_a_window_can_be_asked_for_up_to_the_very_instant(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock, keep: object, over: str
    ):
        board = new_board(windows=[{"period": "daily", "keep": keep}])
        engine.submit(board, "ada", 1)
        clock.now = moment(over) - 1
        assert scores(engine, board, slot="2025-10-24") == {"ada": 1}
        assert "2025-10-24" in [window.slot for window in engine.windows(board)]
        clock.now += 1
        assert self.is_over(engine, board, "2025-10-24")
        assert "2025-10-24" not in [window.slot for window in engine.windows(board)]

    def test_keep_counts_windows_of_the_boards_own_days(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(windows=[{"period": "daily", "keep": 3}], timezone="America/New_York")
        clock.now = moment("2025-11-01T12:00:00-04:00")
        engine.submit(board, "ada", 1)
        # November 2 has 25 hours there: the third day ends at midnight of the 4th, winter time.
        clock.now = moment("2025-11-04T00:00:00-05:00") - 1
        assert scores(engine, board, slot="2025-11-01") == {"ada": 1}
        clock.now += 1
        assert self.is_over(engine, board, "2025-11-01")

    def test_a_late_submission_to_a_window_that_is_over_counts_only_where_it_can_be_seen(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(windows=[{"period": "daily", "keep": 1}, {"period": "all_time"}])
        clock.now = moment("2025-10-25T00:00:00Z")
        answer = engine.submit(board, "ada", 5, at=datetime(2025, 10, 24, 23, tzinfo=UTC))
        assert (answer.score, answer.rank, answer.applied) == (None, None, False)
        assert scores(engine, board) == {}
        assert scores(engine, board, period="all_time") == {"ada": 5}

    def test_a_window_that_has_not_begun_is_not_found(self, engine: Laurels, new_board: NewBoard):
        board = new_board(windows=[{"period": "daily"}, {"period": "rolling", "days": 2}])
        for period in ("daily", "rolling_2d"):
            with pytest.raises(NotFound, match="has not begun"):
                engine.page(board, period=period, slot="2025-10-25")


class TestTimesToLive:
    NOW = "2025-02-22T12:00:00Z"  # a Saturday: the day ends in half a day, the week in a day and a half

    @on_node
    def test_windows_of_framedle_expire_as_documented(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock, raw: RawValkey
    ):
        clock.now = moment(self.NOW)
        board = new_board(
            windows=[
                {"period": "daily", "keep": "P7D"},
                {"period": "weekly", "sum_of": "daily", "keep": "P30D"},
                {"period": "all_time", "name": "xp"},
            ],
            groups=[["country"]],
        )
        engine.submit(board, "ada", 5, groups={"country": "BR"})
        own = f"lb:{{{board}}}"
        # Under names of our own they linger a little, so that large ones can be taken away in pieces.
        expected = {
            f"{own}:daily:2025-02-22": DAY // 2 + 7 * DAY + LINGER,
            f"{own}:daily:2025-02-22:country=BR": DAY // 2 + 7 * DAY + LINGER,
            f"{own}:weekly:2025-w08": DAY * 3 // 2 + 30 * DAY + LINGER,
            f"{own}:weekly:2025-w08:country=BR": DAY * 3 // 2 + 30 * DAY + LINGER,
        }
        for key, seconds in expected.items():
            assert seconds - 60 < raw.client.ttl(key) <= seconds
        for key in (f"{own}:xp", f"{own}:xp:country=BR"):
            assert raw.client.pttl(key) == -1

    @on_node
    def test_the_documented_names_carry_them_too(self, engine: Laurels, clock: FixedClock, raw: RawValkey):
        clock.now = moment(self.NOW)
        board = "retention/daily_frame"
        engine.define(
            board,
            {
                "windows": [{"period": "daily", "keep": "P7D"}, {"period": "all_time", "name": "xp"}],
                "groups": [["country"]],
                "keys": {
                    "daily": "lb:{board}:{slot}",
                    "daily:country": "lb:{board}:{slot}:country:{group.country}",
                    "xp": "lb:alltime:xp",
                },
            },
        )
        engine.submit(board, "ada", 5, groups={"country": "BR"})
        # A plain sorted set, member -> score, that any Redis client can read.
        assert raw.client.zrange("lb:daily_frame:2025-02-22", 0, -1, withscores=True) == [(b"ada", 5.0)]
        assert raw.client.zscore("lb:alltime:xp", "ada") == 5.0
        for key in ("lb:daily_frame:2025-02-22", "lb:daily_frame:2025-02-22:country:BR"):
            assert 7.5 * DAY - 60 < raw.client.ttl(key) <= 7.5 * DAY
        assert raw.client.pttl("lb:alltime:xp") == -1
        engine.drop(board, allow_drop="all")
        assert raw.keys("daily_frame") == []
        assert raw.keys("lb:alltime:xp") == []

    @pytest.mark.parametrize("score", ["number", "int64"])
    @on_node
    def test_all_keys_of_a_window_expire_with_it(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey, score: str
    ):
        windows = [{"period": "daily", "keep": 2}]
        board = new_board(windows=windows, dense=True, groups=[["c"]], score=score)
        engine.submit(board, "ada", 1, groups={"c": "x"})
        engine.submit(board, "ada", 5, groups={"c": "x"}, metadata={"level": 1})
        engine.submit_many(board, [Submission("bob", 5, groups={"c": "y"})])
        keys = raw.keys(f"{board}}}:daily:2025-10-24")
        parts = 4 if score == "number" else 5
        # Only ada has metadata, so the group y has none.
        assert len(keys) == 3 * parts - 1
        seconds = DAY // 2 + DAY + LINGER
        for key in [*keys, f"lb:{{{board}}}:cuts:daily|2025-10-24".encode()]:
            assert seconds - 60 < raw.client.ttl(key) <= seconds

    @on_node
    def test_ids_and_calls_expire_too(self, engine: Laurels, new_board: NewBoard, raw: RawValkey):
        board = new_board(archive={"journal": False})
        engine.submit(board, "ada", 1, id="x")
        passing = [key for key in raw.keys(board) if b":ids:" in key or b":calls:" in key]
        assert len(passing) == 2
        assert all(raw.client.ttl(key) > 0 for key in passing)

    @on_node
    def test_the_list_of_a_windows_groups_lives_as_long_as_the_last_of_them(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        board = new_board(
            windows=[{"period": "daily", "keep": 1}],
            groups=[["campus"]],
            timezone_by="campus",
            timezones={"tokyo": "Asia/Tokyo", "la": "America/Los_Angeles"},
        )
        for campus in ("tokyo", "la"):
            engine.submit(board, "ada", 1, groups={"campus": campus})
        last = raw.client.ttl(f"lb:{{{board}}}:daily:2025-10-24:campus=la")
        assert last > raw.client.ttl(f"lb:{{{board}}}:daily:2025-10-24:campus=tokyo")
        assert raw.client.ttl(f"lb:{{{board}}}:cuts:daily|2025-10-24") >= last

    @on_node
    def test_windows_that_end_every_few_minutes_do_not_pile_up(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        windows = [{"period": "every", "seconds": seconds, "keep": 1} for seconds in (600, 3600)]
        board = new_board(windows=windows)
        engine.submit(board, "ada", 1)
        short, long = (raw.client.ttl(raw.keys(f"{board}}}:every_{each}s")[0]) for each in (600, 3600))
        assert short <= 600
        assert LINGER < long <= 3600 + LINGER


def sweep(engine: Laurels, board: str) -> None:
    """Runs the retention job's step for a board."""
    maintenance = engine.engine.maintenance

    async def swept() -> None:
        await maintenance.retention.sweep(await maintenance.catalog.in_force(BoardRef.parse(board)))

    engine.run(swept())


class TestSweep:
    """A sweep deletes windows that are over before they expire, and changes no other."""

    SKEW = timedelta(minutes=5)

    @on_node
    def test_windows_go_with_their_groups_once_no_clock_can_ask_for_them(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock, raw: RawValkey
    ):
        windows = [
            {"period": "daily", "keep": 1},
            {"period": "weekly"},
            {"period": "rolling", "days": 2, "keep": 1},
        ]
        board = new_board(windows=windows, groups=[["c"]], dense=True, ties="earliest")
        engine.submit(board, "ada", 1, groups={"c": "x"}, metadata={"n": 1}, id="i")
        clock.now = moment("2025-10-27T23:59:00Z")
        engine.submit(board, "bob", 2, groups={"c": "x"})
        assert len([key for key in raw.keys(board) if b":daily" in key or b"rolling" in key]) > 20
        clock.now = moment("2025-11-15T00:00:00Z")
        sweep(engine, board)
        left = raw.keys(board)
        assert not [key for key in left if b":daily" in key or b"rolling" in key]
        assert scores(engine, board, period="weekly", slot="2025-w43", group="c=x") == {"ada": 1}
        assert raw.client.zrange(f"lb:{{{board}}}:windows", 0, -1) == [b"weekly|2025-w43", b"weekly|2025-w44"]

    def test_it_waits_for_clocks_that_are_behind(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(windows=[{"period": "daily", "keep": 1}])
        engine.submit(board, "ada", 1)
        ended = moment("2025-10-25T00:00:00Z")
        clock.now = ended + int(self.SKEW / MICROSECOND) - 1
        sweep(engine, board)
        clock.now = ended - 1
        assert scores(engine, board) == {"ada": 1}
        clock.now = ended + int(self.SKEW / MICROSECOND)
        sweep(engine, board)
        clock.now = ended - 1
        assert scores(engine, board) == {}

    @on_node
    def test_ids_go_shortly_before_they_would_be_forgotten(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        board = new_board()
        for given in ("a", "b", "c"):
            engine.submit(board, "ada", 1, id=given)
            raw.age(board, "ids", 45_000 - 1800)
            if given != "c":
                raw.age(board, "ids", 1800)
        assert len(raw.keys(f"{board}}}:ids:")) == 3
        sweep(engine, board)
        assert len(raw.keys(f"{board}}}:ids:")) == 2
        assert not engine.submit(board, "ada", 1, id="b").applied

    def test_groups_of_other_timezones_go_in_their_own_time(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(
            windows=[{"period": "daily", "keep": 1}],
            groups=[["campus"]],
            timezone_by="campus",
            timezones={"tokyo": "Asia/Tokyo", "la": "America/Los_Angeles"},
        )
        for campus in ("tokyo", "la"):
            engine.submit(board, "ada", 1, groups={"campus": campus})
        noon = clock.now
        clock.now = moment("2025-10-25T00:00:00Z") - 1
        sweep(engine, board)
        assert scores(engine, board, group="campus=la") == {"ada": 1}
        clock.now = noon
        assert scores(engine, board, group="campus=tokyo") == {}
        assert scores(engine, board) == {"ada": 1}

    @pytest.mark.parametrize("score", ["number", "int64"])
    def test_large_windows_are_emptied_in_chunks_while_the_board_is_used(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock, score: str
    ):
        windows = [{"period": "daily", "keep": 1}, {"period": "all_time"}]
        board = new_board(windows=windows, score=score, shards=2)
        many = [Submission(f"m{number}", number) for number in range(2 * MANY_ENTRIES + 2_000)]
        engine.submit_many(board, many)
        clock.advance(timedelta(days=1))
        sweep(engine, board)
        aside = [
            name
            for name in engine.run(engine.engine.valkey.command("SMEMBERS", REGISTRY))
            if board.encode() in name
        ]
        assert len(aside) == (2 if score == "number" else 4)
        engine.submit(board, "ada", 7)
        assert scores(engine, board) == {"ada": 7}
        assert engine.run(engine.engine.maintenance.empty_discarded()) >= len(aside)
        for name in aside:
            assert engine.run(engine.engine.valkey.command("EXISTS", name)) == 0
        assert engine.page(board, period="all_time").total == len(many) + 1
        assert scores(engine, board) == {"ada": 7}

    @on_node
    def test_a_large_board_is_dropped_at_once_and_can_be_defined_again(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        definition = {"archive": {"journal": False}, "ties": "member"}
        board = new_board(**definition)
        engine.submit_many(board, [Submission(f"m{number}", number) for number in range(MANY_ENTRIES + 1)])
        engine.drop(board, allow_drop="all")
        assert all(b"|gone:" in key for key in raw.keys(board))
        engine.define(board, definition)
        assert scores(engine, board) == {}
        engine.submit(board, "ada", 7)
        engine.run(engine.engine.maintenance.empty_discarded())
        assert not [key for key in raw.keys(board) if b"|gone:" in key]
        assert scores(engine, board) == {"ada": 7}


class TestWindows:
    def test_they_are_listed_newest_first_with_their_bounds_and_sizes(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(windows=[{"period": "daily", "keep": 3}, {"period": "all_time"}], groups=[["c"]])
        for day in range(5):
            for member in range(day + 1):
                engine.submit(board, f"m{member}", 1, groups={"c": "x"} if member == 0 else None)
            clock.advance(timedelta(days=1))
        listed = engine.windows(board)
        assert [(window.period, window.slot, window.entries) for window in listed] == [
            ("daily", "2025-10-29", 0),
            ("daily", "2025-10-28", 5),
            ("daily", "2025-10-27", 4),
            ("all_time", "", 5),
        ]
        assert listed[0].starts_at == datetime(2025, 10, 29, tzinfo=UTC)
        assert listed[0].ends_at == datetime(2025, 10, 30, tzinfo=UTC)
        assert listed[-1].starts_at is None
        for window in listed:
            engine.page(board, period=window.period, slot=window.slot)
        assert [window.entries for window in engine.windows(board, period="daily", group="c=x")] == [0, 1, 1]
        assert len(engine.windows(board, limit=2)) == 2

    @pytest.mark.parametrize("limit", [0, 1001])
    @on_node
    def test_a_thousand_at_most(self, engine: Laurels, new_board: NewBoard, limit: int):
        board = new_board()
        with pytest.raises(InvalidInput):
            engine.windows(board, limit=limit)

    @on_node
    def test_an_hour_that_only_a_groups_clock_shows_is_listed_and_removed_and_dropped(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock, raw: RawValkey
    ):
        board = new_board(
            windows=[{"period": "hourly"}],
            groups=[["campus"]],
            timezone_by="campus",
            timezones={"ny": "America/New_York"},
            archive={"journal": False},
        )
        clock.now = moment("2025-11-02T06:30:00Z")  # half past one there, for the second time
        engine.submit(board, "ada-lovelace", 1, groups={"campus": "ny"})
        engine.submit(board, "bob", 1, groups={"campus": "ny"})
        assert [window.slot for window in engine.windows(board)] == ["2025-11-02T06"]
        listed = engine.windows(board, group="campus=ny")
        assert [(window.slot, window.entries) for window in listed] == [("2025-11-02T01b", 2)]
        engine.define(board, {**_definition(engine, board), "lateness": "PT2H"})
        assert engine.remove(board, "ada-lovelace")
        assert raw.holding(board, b"ada-lovelace") == []
        engine.drop(board, allow_drop="all")
        assert raw.keys(board) == []


def _definition(engine: Laurels, board: str) -> dict[str, Any]:
    return engine.run(engine.engine.definition(board)).model_dump(mode="json")


class TestRemoval:
    EVERYTHING: dict[str, Any] = {  # noqa: RUF012
        "windows": [
            {"period": "daily"},
            {"period": "hourly", "keep": 48},
            {"period": "weekly", "sum_of": "daily"},
            {"period": "rolling", "days": 3},
            {"period": "every", "seconds": 60, "keep": 5},
            {"period": "all_time"},
        ],
        "groups": [["country"], ["country", "city"]],
        "dense": True,
        "archive": {"journal": False},
    }

    @pytest.mark.parametrize("layout", [{}, {"score": "int64"}, {"ties": "earliest"}])
    @on_node
    def test_it_leaves_no_trace(
        self,
        engine: Laurels,
        new_board: NewBoard,
        clock: FixedClock,
        raw: RawValkey,
        layout: dict[str, Any],
    ):
        board = new_board(**self.EVERYTHING, **layout)
        for day in range(4):
            for member in ("ada-lovelace", "bob"):
                engine.submit(
                    board,
                    member,
                    day + len(member),
                    groups={"country": f"c{day}", "city": "x"},
                    metadata={"of": member},
                )
            engine.page(board, period="rolling_3d")
            clock.advance(timedelta(days=1))
        engine.page(board, period="rolling_3d")
        assert len(raw.holding(board, b"ada-lovelace")) > 20
        assert engine.remove(board, "ada-lovelace")
        assert raw.holding(board, b"ada-lovelace") == []
        assert raw.holding(board, b"bob")
        for window in engine.windows(board):
            page = engine.page(board, period=window.period, slot=window.slot)
            assert {entry.member for entry in page.entries} <= {"bob"}
            if page.entries:
                stood = engine.standing(board, "bob", period=window.period, slot=window.slot)
                assert (stood.rank, stood.dense_rank, stood.total) == (1, 1, 1)
        clock.advance(timedelta(days=1))
        assert "ada-lovelace" not in scores(engine, board, period="rolling_3d")
        assert not engine.remove(board, "ada-lovelace")

    @on_node
    def test_the_journal_tells_of_it(self, engine: Laurels, new_board: NewBoard, raw: RawValkey):
        board = new_board()
        engine.submit(board, "ada", 1)
        engine.remove(board, "ada")
        bodies = [entry[b"body"] for entry in raw.journal(board)]
        assert [b"submit" in body for body in bodies] == [True, False]
        assert b"remove" in bodies[1]

    def test_an_unknown_member_is_not_removed(self, engine: Laurels, new_board: NewBoard):
        board = new_board()
        engine.submit(board, "ada", 1)
        assert not engine.remove(board, "bob")
        assert scores(engine, board) == {"ada": 1}

    def test_a_removed_member_who_returns_starts_from_zero(self, engine: Laurels, new_board: NewBoard):
        board = new_board(aggregate="sum", ties="earliest", dense=True)
        engine.submit(board, "ada", 5, metadata={"level": 1})
        engine.remove(board, "ada")
        answer = engine.submit(board, "ada", 2)
        assert (answer.score, answer.previous_score, answer.previous_rank) == (2, None, None)
        assert engine.standing(board, "ada").metadata is None


class TestDropping:
    @pytest.mark.parametrize("layout", [{}, {"score": "int64"}])
    @on_node
    def test_it_leaves_no_key(
        self,
        engine: Laurels,
        new_board: NewBoard,
        clock: FixedClock,
        raw: RawValkey,
        layout: dict[str, Any],
    ):
        board = new_board(**TestRemoval.EVERYTHING, **layout)
        for day in range(3):
            groups = {"country": f"c{day}", "city": "x"}
            engine.submit(board, "ada", day, groups=groups, metadata={"n": 1}, id=f"id-{day}")
            engine.page(board, period="rolling_3d")
            clock.advance(timedelta(hours=23))
        assert len(raw.keys(board)) > 30
        engine.drop(board, allow_drop="all")
        # What was submitted in other days than the real ones has not expired here.
        assert [key for key in raw.keys(board) if b":ids:" not in key and b":calls:" not in key] == []

    @on_node
    def test_not_even_what_was_submitted_two_days_or_twenty_minutes_ago(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock, raw: RawValkey
    ):
        clock.now = moment("2025-10-24T23:59:59Z")
        board = new_board()
        engine.submit(board, "ada", 1, id="x")
        raw.client.delete(*(key for key in raw.keys(board) if b":calls:" in key))  # expired by then
        clock.now = moment("2025-10-25T23:50:00Z")
        engine.submit(board, "ada", 2)
        clock.now = moment("2025-10-26T00:09:00Z")
        engine.drop(board, allow_drop="all")
        assert raw.keys(board) == []

    def test_a_board_defined_again_under_the_name_is_empty(
        self, engine: Laurels, other_engine: Laurels, new_board: NewBoard
    ):
        definition: dict[str, Any] = {"aggregate": "sum", "groups": [["c"]]}
        board = new_board(**definition)
        engine.submit(board, "ada", 5, groups={"c": "x"}, id="a", metadata={"n": 1})
        other_engine.drop(board, allow_drop="all")
        with pytest.raises(NotFound):
            engine.page(board)
        other_engine.define(board, definition)
        assert scores(engine, board) == scores(engine, board, group="c=x") == {}
        answer = engine.submit(board, "ada", 3, groups={"c": "x"}, id="a")
        assert (answer.score, answer.applied) == (3, True)
        assert engine.standing(board, "ada").metadata is None

    def test_a_board_that_is_not_there_cannot_be_dropped(self, engine: Laurels):
        with pytest.raises(NotFound, match="there is no board tests/nowhere"):
            engine.drop("tests/nowhere", allow_drop="all")


class TestEdits:
    @pytest.mark.parametrize(
        ("changed", "named"),
        [
            ({"score": "int64"}, "score"),
            ({"ties": "earliest"}, "ties"),
            ({"ties": "member"}, "ties"),
            ({"aggregate": "sum"}, "aggregate"),
            ({"order": "asc"}, "order"),
            ({"shards": 2}, "shards"),
            ({"dense": True}, "dense"),
            ({"keys": {"daily": "edited:{slot}"}}, "keys"),
            ({"windows": [{"period": "weekly", "name": "day"}, {"period": "daily"}]}, "'day'"),
            ({"windows": [{"period": "daily"}, {"period": "weekly", "sum_of": "daily"}]}, "'weekly'"),
            ({"windows": [{"period": "daily"}, {"period": "rolling", "days": 7}]}, "'rolling_7d'"),
        ],
    )
    @on_node
    def test_a_change_that_entries_forbid_is_a_conflict_that_says_what_to_do(
        self, engine: Laurels, new_board: NewBoard, changed: dict[str, Any], named: str
    ):
        windows = [{"period": "daily"}, {"period": "daily", "name": "day"}]
        board = new_board(windows=windows)
        engine.define(board, {"windows": windows} | changed)
        engine.define(board, {"windows": windows})
        engine.submit(board, "ada", 1)
        with pytest.raises(Conflict) as refused:
            engine.define(board, {"windows": windows} | changed)
        assert refused.value.status == 409
        assert named in refused.value.detail
        assert "drop this one first" in refused.value.detail
        assert scores(engine, board) == {"ada": 1}
        engine.remove(board, "ada")
        engine.define(board, {"windows": windows} | changed)

    def test_a_longer_keep_brings_no_window_back(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        def keep(days: int) -> list[dict[str, Any]]:
            return [{"period": "daily", "keep": days}]

        board = new_board(windows=keep(5))
        engine.submit(board, "ada", 1)
        clock.advance(timedelta(days=2))
        engine.define(board, {"windows": keep(2)}, allow_drop="daily")
        engine.define(board, {"windows": keep(5)})
        assert engine.page(board, slot="2025-10-24").total == 0
        engine.submit(board, "ada", 1)
        clock.advance(timedelta(days=5))  # what is over lingers for a while
        engine.define(board, {"windows": keep(20)})
        assert engine.page(board, slot="2025-10-26").total == 0

    @on_node
    def test_a_changed_keep_applies_to_existing_windows(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        def define(keep: object) -> None:
            engine.define(board, {"windows": [{"period": "daily", "keep": keep}], "groups": [["c"]]})

        board = new_board(windows=[{"period": "daily", "keep": 2}], groups=[["c"]])
        engine.submit(board, "ada", 1, groups={"c": "x"}, metadata={"n": 1})
        keys = raw.keys(f"{board}}}:daily:")
        assert len(keys) == 4
        for keep, seconds in ((7, DAY // 2 + 6 * DAY), ("P1D", DAY // 2 + DAY), (1, DAY // 2)):
            define(keep)
            for key in [*keys, f"lb:{{{board}}}:cuts:daily|2025-10-24".encode()]:
                assert seconds - 60 < raw.client.ttl(key) - LINGER <= seconds
        define(None)
        assert {raw.client.ttl(key) for key in keys} == {-1}
        engine.submit(board, "ada", 2, groups={"c": "x"})
        assert {raw.client.ttl(key) for key in raw.keys(f"{board}}}:daily:")} == {-1}

    @on_node
    def test_a_window_that_is_removed_and_added_again_is_empty(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        both = [{"period": "daily"}, {"period": "all_time"}]
        board = new_board(windows=both, groups=[["c"]])
        engine.submit(board, "ada", 1, groups={"c": "x"})
        engine.define(board, {"windows": both[:1], "groups": [["c"]]}, allow_drop="all_time")
        assert raw.keys(f"{board}}}:all_time") == []
        assert scores(engine, board, group="c=x") == {"ada": 1}
        engine.define(board, {"windows": both, "groups": [["c"]]})
        assert scores(engine, board, period="all_time") == {}
        engine.submit(board, "bob", 1)
        assert scores(engine, board, period="all_time") == {"bob": 1}
        assert scores(engine, board) == {"ada": 1, "bob": 1}

    @on_node
    def test_a_group_that_is_removed_and_added_again_is_empty(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        board = new_board(groups=[["country"], ["mode"]], archive={"journal": False})
        engine.submit(board, "ada", 1, groups={"country": "BR", "mode": "solo"})
        changed = {"groups": [["mode"]], "archive": {"journal": False}}
        engine.define(board, changed, allow_drop="all_time")
        assert raw.holding(board, b"country=BR") == []
        assert scores(engine, board, group="mode=solo") == {"ada": 1}
        engine.define(board, {"groups": [["country"], ["mode"]], "archive": {"journal": False}})
        assert scores(engine, board, group="country=BR") == {}
        assert scores(engine, board, group="mode=solo") == {"ada": 1}
        assert engine.remove(board, "ada")
        assert raw.holding(board, b"ada") == []

    @on_node
    def test_a_group_whose_dimensions_change_places_leaves_nothing_behind(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        board = new_board(groups=[["region", "city"]], archive={"journal": False})
        engine.submit(board, "ada", 1, groups={"region": "asia", "city": "tokyo"})
        turned = {"groups": [["city", "region"]], "archive": {"journal": False}}
        engine.define(board, turned, allow_drop="all_time")
        engine.remove(board, "ada")
        assert raw.holding(board, b"ada") == []
        engine.drop(board, allow_drop="all")
        assert raw.keys(board) == []

    @on_node
    def test_the_days_of_a_rolling_window_stay_when_they_are_no_longer_shown(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        rolling = {"period": "rolling", "days": 3}
        board = new_board(windows=[rolling, {"period": "daily"}], aggregate="sum")
        engine.submit(board, "ada", 1)
        engine.define(board, {"windows": [rolling], "aggregate": "sum"}, allow_drop="daily")
        clock.advance(timedelta(days=1))
        engine.submit(board, "bob", 1)
        engine.submit(board, "ada", 1)
        assert scores(engine, board) == {"ada": 2, "bob": 1}
        clock.advance(timedelta(days=1))
        assert scores(engine, board) == {"ada": 2, "bob": 1}

    @on_node
    def test_the_days_of_a_rolling_window_cannot_be_exchanged(self, engine: Laurels, new_board: NewBoard):
        rolling = {"period": "rolling", "days": 3}
        board = new_board(windows=[rolling])
        engine.submit(board, "ada", 1)
        with pytest.raises(Conflict, match="rolling_3d"):
            engine.define(board, {"windows": [rolling, {"period": "daily", "name": "day"}]})
        engine.define(board, {"windows": [rolling, {"period": "daily"}]})
        assert scores(engine, board) == {"ada": 1}

    @on_node
    def test_dense_ranks_that_are_given_up_are_forgotten(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        board = new_board(dense=True)
        for member, score in (("ada", 3), ("bob", 2)):
            engine.submit(board, member, score)
        engine.define(board, {})
        assert [key for key in raw.keys(board) if key.endswith((b"|scores", b"|counts"))] == []
        engine.remove(board, "ada")
        engine.remove(board, "bob")
        engine.define(board, {"dense": True})
        engine.submit(board, "cid", 1)
        assert engine.standing(board, "cid").dense_rank == 1

    def test_they_count_at_once_for_every_process(
        self, engine: Laurels, other_engine: Laurels, new_board: NewBoard
    ):
        board = new_board(limits={"max": 10})
        engine.submit(board, "ada", 1)
        edited = {
            "limits": {"max": 100},
            "groups": [["c"]],
            "windows": [{"period": "all_time"}, {"period": "daily"}],
        }
        other_engine.define(board, edited)
        assert [window.period for window in engine.windows(board)] == ["daily", "all_time"]
        other_engine.define(board, edited | {"limits": {"max": 200}})
        assert scores(engine, board, period="daily") == {}
        other_engine.define(board, edited | {"limits": {"max": 300}})
        assert scores(engine, board, group="c=x") == {}
        other_engine.define(board, edited | {"limits": {"max": 400}})
        assert engine.submit(board, "ada", 400).applied
        other_engine.define(board, edited | {"limits": {"max": 500}})
        assert engine.submit_many(board, [Submission("ada", 500, groups={"c": "x"})]).accepted == 1
        other_engine.define(board, edited | {"limits": {"max": 5}})
        with pytest.raises(InvalidInput):
            engine.submit(board, "ada", 6)
        assert engine.submit_many(board, [Submission("ada", 6)]).accepted == 0

    def test_a_drop_counts_at_once_for_every_process(
        self, engine: Laurels, other_engine: Laurels, new_board: NewBoard
    ):
        asks: list[Callable[[str], object]] = [
            engine.page,
            engine.windows,
            engine.distribution,
            lambda board: engine.submit(board, "ada", 2),
            lambda board: engine.submit_many(board, [Submission("ada", 2)]),
            lambda board: engine.standing(board, "ada"),
            lambda board: engine.remove(board, "ada"),
        ]
        for ask in asks:
            board = new_board()
            engine.submit(board, "ada", 1)
            other_engine.drop(board, allow_drop="all")
            with pytest.raises(NotFound, match="there is no board"):
                ask(board)

    @on_node
    def test_no_two_boards_share_the_keys_of_a_template(self, new_board: NewBoard):
        new_board(windows=[{"period": "monthly"}], keys={"monthly": "shared:{yyyymm}"})
        for period, template in (("monthly", "shared:{yyyymm}"), ("weekly", "shared:{yyyyww}")):
            with pytest.raises(InvalidInput, match=r"can make a key of tests/board-\d+"):
                new_board(windows=[{"period": period}], keys={period: template})
        new_board(windows=[{"period": "weekly"}], keys={"weekly": "shared:{slot}"})

    @on_node
    def test_the_same_definition_again_changes_nothing(self, engine: Laurels, new_board: NewBoard):
        board = new_board(windows=[{"period": "daily", "keep": 3}])
        engine.submit(board, "ada", 1)
        page = engine.page(board, limit=1)
        first = engine.define(board, {"windows": [{"period": "daily", "keep": 3}]})
        again = engine.define(board, {"windows": [{"period": "daily", "keep": 3}]})
        assert (first.version, first.created) == (again.version, False)
        assert engine.page(board, limit=1) == page


def test_a_window_that_valkey_lost_from_its_list_is_listed_again(endpoints: Endpoints):
    with (
        running_valkey() as server,
        Laurels(valkey_url=server.url, postgres_url=endpoints.postgres_url, jobs=False) as engine,
    ):
        engine.define("lost/list", {"windows": [{"period": "daily"}]})
        engine.submit("lost/list", "ada", 1)
        # As where the machine fails: the last that was written is gone, and so are all connections.
        server.client.delete("lb:{lost/list}:windows")
        server.client.execute_command("CLIENT", "KILL", "TYPE", "normal")
        for score in (2, 3):
            engine.submit("lost/list", "ada", score)
        assert server.client.zcard("lb:{lost/list}:windows") == 1
        assert engine.remove("lost/list", "ada")
        engine.drop("lost/list")
