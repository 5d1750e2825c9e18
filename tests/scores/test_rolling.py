from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from topologies import on_node
from waiting import eventually

from laurels.errors import NotFound
from laurels.moments import datetime_of, moment_of
from laurels.scores.submission import Submission
from laurels.valkey import functions

if TYPE_CHECKING:
    from raw_valkey import RawValkey

    from laurels.clock import FixedClock
    from laurels.sync import Laurels

NewBoard = Callable[..., str]

SEVEN_DAYS = [{"period": "rolling", "days": 7}]
# Days on which the clock changes there: Cairo skips the midnight of 2025-04-25 and repeats the hour before
# midnight of 2025-10-31; New York has 23 hours on 2025-03-09 and 25 on 2025-11-02.
CHANGES = [
    ("Africa/Cairo", "2025-04-25"),
    ("Africa/Cairo", "2025-10-31"),
    ("America/New_York", "2025-03-09"),
    ("America/New_York", "2025-11-02"),
]


def scores(engine: Laurels, board: str, **where: Any) -> dict[str, int | float]:  # noqa: ANN401  # keyword arguments
    return {entry.member: entry.score for entry in engine.page(board, limit=1000, **where).entries}


def noon(zone: str, day: str, after: int = 0) -> int:
    """Noon there, some days after a day."""
    local = datetime.fromisoformat(f"{day}T12:00:00") + timedelta(days=after)
    return moment_of(local.replace(tzinfo=ZoneInfo(zone)))


def midnight(zone: str, day: str) -> int:
    """The first moment at which the clock there shows the day: found by asking it every second around."""
    local = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    around = [moment_of(local) + second * 1_000_000 for second in range(-7200, 7201)]
    shown = [datetime_of(moment).astimezone(ZoneInfo(zone)).date().isoformat() for moment in around]
    return around[shown.index(day)]


def _inside(engine: Laurels) -> Any:  # noqa: ANN401  # the engine, with what it keeps to itself
    return engine.engine


def _idle(*_: object) -> None:
    """Completes nothing ahead of time."""


class TestByHand:
    @pytest.mark.parametrize(
        ("aggregate", "expected"),
        [
            # Day by day 3 1 4 1 5 9 2 6 5 3; each value is of the last three days.
            ("sum", [3, 4, 8, 6, 10, 15, 16, 17, 13, 14]),
            ("best", [3, 3, 4, 4, 5, 9, 9, 9, 6, 6]),
            ("last", [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]),
            ("first", [3, 3, 3, 1, 4, 1, 5, 9, 2, 6]),
        ],
    )
    @pytest.mark.parametrize(("zone", "change"), CHANGES)
    @on_node
    def test_ten_days_around_a_change_of_the_clock(
        self,
        engine: Laurels,
        new_board: NewBoard,
        clock: FixedClock,
        zone: str,
        change: str,
        aggregate: str,
        expected: list[int],
    ):
        board = new_board(
            windows=[{"period": "rolling", "days": 3}], aggregate=aggregate, timezone=zone, groups=[["c"]]
        )
        found: list[int | float] = []
        for day, score in enumerate([3, 1, 4, 1, 5, 9, 2, 6, 5, 3]):
            clock.now = noon(zone, change, day - 5)
            answer = engine.submit(board, "ada", score, groups={"c": "x"})
            assert answer.score == scores(engine, board)["ada"] == scores(engine, board, group="c=x")["ada"]
            found.append(scores(engine, board)["ada"])
        assert found == expected

    @pytest.mark.parametrize(("zone", "change"), CHANGES)
    def test_the_oldest_day_leaves_at_midnight_there(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock, zone: str, change: str
    ):
        board = new_board(windows=[{"period": "rolling", "days": 2}], aggregate="sum", timezone=zone)
        clock.now = noon(zone, change, -2)
        engine.submit(board, "ada", 1)
        clock.now = noon(zone, change, -1)
        engine.submit(board, "ada", 10)
        turn = midnight(zone, change)
        clock.now = turn - 1
        assert scores(engine, board) == {"ada": 11}
        clock.now = turn
        assert scores(engine, board) == {"ada": 10}
        page = engine.page(board)
        assert (page.slot, page.ends_at) == (change, page.next_reset_at)

    def test_who_submitted_only_six_days_ago_is_there_today_and_gone_tomorrow(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(windows=SEVEN_DAYS)
        engine.submit(board, "ada", 5)
        clock.advance(timedelta(days=6, hours=11, minutes=59))
        assert scores(engine, board) == {"ada": 5}
        clock.advance(timedelta(minutes=1))
        assert scores(engine, board) == {}

    def test_who_submitted_nothing_since_is_carried_from_day_to_day(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(windows=SEVEN_DAYS, aggregate="sum", groups=[["c"]])
        for day in range(10):
            engine.submit(board, f"m{day}", 1, groups={"c": f"g{day % 2}"})
            members = {f"m{number}" for number in range(max(0, day - 6), day + 1)}
            assert scores(engine, board).keys() == members
            even = scores(engine, board, group="c=g0").keys()
            assert even == {member for member in members if int(member[1:]) % 2 == 0}
            clock.advance(timedelta(days=1))

    @on_node
    def test_a_day_that_nobody_asked_about_is_made_when_it_is_asked_for(
        self, engine: Laurels, other_engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(windows=[{"period": "rolling", "days": 7, "keep": 5}], aggregate="sum")
        engine.submit(board, "ada", 1)
        clock.advance(timedelta(days=3))
        for slot, expected in (("2025-10-27", {"ada": 1}), ("2025-10-25", {"ada": 1}), ("2025-10-23", {})):
            assert scores(other_engine, board, slot=slot) == expected

    def test_a_rolling_sum_of_each_days_best(self, engine: Laurels, new_board: NewBoard, clock: FixedClock):
        windows = [{"period": "daily"}, {"period": "rolling", "days": 2, "sum_of": "daily"}]
        board = new_board(windows=windows)
        for day_scores in ([5, 7, 6], [1, 2]):
            for score in day_scores:
                engine.submit(board, "ada", score)
            clock.advance(timedelta(days=1))
        clock.advance(timedelta(days=-1))
        assert scores(engine, board, period="rolling_2d") == {"ada": 9}
        clock.advance(timedelta(days=1))
        assert scores(engine, board, period="rolling_2d") == {"ada": 2}

    def test_a_day_that_is_too_long_ago_is_not_found(self, engine: Laurels, new_board: NewBoard):
        board = new_board(windows=SEVEN_DAYS)
        with pytest.raises(NotFound, match="cannot be computed: its days have expired"):
            engine.page(board, slot="2025-09-01")


@on_node
class TestLateSubmissions:
    def test_they_count_in_every_window_that_their_day_is_in(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(
            windows=[{"period": "rolling", "days": 3, "keep": 5}],
            aggregate="sum",
            lateness="P2D",
            groups=[["c"]],
        )
        engine.submit(board, "bob", 1)
        engine.page(board)
        yesterday = datetime_of(clock.now) - timedelta(days=1)
        answer = engine.submit(board, "ada", 5, at=yesterday, groups={"c": "x"})
        assert (answer.score, answer.rank) == (5, 1)
        assert scores(engine, board, slot="2025-10-23") == {"ada": 5}
        assert scores(engine, board) == {"ada": 5, "bob": 1}
        clock.advance(timedelta(days=1))
        assert scores(engine, board, group="c=x") == {"ada": 5}
        clock.advance(timedelta(days=1))
        assert scores(engine, board) == {"bob": 1}
        assert scores(engine, board, group="c=x") == {}

    def test_the_first_of_the_days_stays_first_when_it_comes_late(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(windows=[{"period": "rolling", "days": 3}], aggregate="first")
        engine.submit(board, "ada", 5)
        engine.submit(board, "ada", 9, at=datetime_of(clock.now) - timedelta(days=1))
        assert scores(engine, board) == {"ada": 9}


class TestZones:
    def test_a_zone_that_is_ahead_does_not_close_a_day_for_one_that_is_behind(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(
            windows=[{"period": "rolling", "days": 3}],
            groups=[["campus"]],
            timezone_by="campus",
            timezones={"tokyo": "Asia/Tokyo", "la": "America/Los_Angeles"},
            aggregate="sum",
        )
        clock.now = moment_of(datetime.fromisoformat("2025-10-24T16:00:00Z"))  # the 25th in Tokyo
        engine.submit(board, "taro", 1, groups={"campus": "tokyo"})
        engine.page(board, group="campus=tokyo")
        # Tomorrow in Tokyo is completed meanwhile.
        engine.run(eventually(lambda: not _inside(engine)._rolling._under_way))
        engine.submit(board, "ada", 5, groups={"campus": "la"})
        clock.now = moment_of(datetime.fromisoformat("2025-10-26T20:00:00Z"))  # the 26th in Los Angeles
        assert scores(engine, board, group="campus=la") == {"ada": 5}
        assert scores(engine, board) == {"taro": 1, "ada": 5}


class TestCompleting:
    MEMBERS = 2000

    @pytest.fixture
    def crowded(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
    ) -> str:
        """A board whose members all submitted yesterday, and whose window of today is not made yet."""
        board = new_board(windows=SEVEN_DAYS, aggregate="sum", groups=[["c"]])
        # The process that submits would also complete tomorrow ahead of time.
        monkeypatch.setattr(_inside(engine)._rolling, "prepare", _idle)
        batch = [Submission(f"m{n}", n, groups={"c": "x"}) for n in range(self.MEMBERS)]
        assert engine.submit_many(board, batch).accepted == self.MEMBERS
        clock.advance(timedelta(days=2))
        return board

    @on_node
    def test_readers_at_a_fresh_day_see_it_whole_or_not_at_all(
        self, engine: Laurels, other_engine: Laurels, crowded: str
    ):
        async def read_all(laurels: Any, group: str | None) -> list[int]:  # noqa: ANN401  # an engine
            pages = await asyncio.gather(*(laurels.page(crowded, limit=1, group=group) for _ in range(50)))
            return [page.total for page in pages]

        with ThreadPoolExecutor() as threads:
            reads = [
                threads.submit(each.run, read_all(each.engine, group))
                for each in (engine, other_engine)
                for group in (None, "c=x")
            ]
            assert {total for read in reads for total in read.result()} == {self.MEMBERS}

    @on_node
    def test_two_crowded_days_of_different_members_are_both_carried_whole(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
    ):
        board = new_board(windows=SEVEN_DAYS, aggregate="sum")
        monkeypatch.setattr(_inside(engine)._rolling, "prepare", _idle)
        for day in ("first", "second"):
            engine.submit_many(board, [Submission(f"{day}-{n}", n) for n in range(600)])
            clock.advance(timedelta(days=1))
        clock.advance(timedelta(days=2))
        assert engine.page(board, limit=1).total == 1200

    @on_node
    def test_submissions_meanwhile_are_neither_lost_nor_counted_twice(
        self, engine: Laurels, other_engine: Laurels, crowded: str
    ):
        async def submit_all() -> None:
            work = (other_engine.engine.submit(crowded, f"m{n}", 1) for n in range(0, self.MEMBERS, 10))
            await asyncio.gather(*work)

        with ThreadPoolExecutor() as threads:
            submitting = threads.submit(lambda: other_engine.run(submit_all()))
            assert engine.page(crowded, limit=1).total == self.MEMBERS
            submitting.result()
        found: dict[str, int | float] = {}
        page = engine.page(crowded, limit=1000)
        while True:
            found |= {entry.member: entry.score for entry in page.entries}
            if page.next is None:
                break
            page = engine.page(crowded, limit=1000, cursor=page.next)
        assert found == {f"m{n}": n + (n % 10 == 0) for n in range(self.MEMBERS)}

    @on_node
    def test_one_process_completes_once_however_many_read(
        self, engine: Laurels, crowded: str, raw: RawValkey, monkeypatch: pytest.MonkeyPatch
    ):
        folds = 0
        fold = functions.fold

        async def counted(*words: Any) -> str:  # noqa: ANN401  # passed on
            nonlocal folds
            folds += 1
            return await fold(*words)

        monkeypatch.setattr(functions, "fold", counted)

        async def read_all() -> None:
            await asyncio.gather(*(engine.engine.page(crowded, limit=1) for _ in range(30)))

        monkeypatch.setattr(_inside(engine)._rolling, "prepare", _idle)
        engine.run(read_all())
        once = folds
        assert once > self.MEMBERS // 250
        engine.run(read_all())
        assert folds == once
        assert raw.keys(f"{crowded}}}:built:rolling_7d|2025-10-26")

    @on_node
    def test_a_process_that_stops_in_the_middle_leaves_it_to_the_next(
        self,
        engine: Laurels,
        other_engine: Laurels,
        crowded: str,
        raw: RawValkey,
        monkeypatch: pytest.MonkeyPatch,
    ):
        fold = functions.fold
        left = 7  # the four days before the crowd came are empty

        async def stop_in_the_middle(*words: Any) -> str:  # noqa: ANN401  # passed on
            nonlocal left
            left -= 1
            if left < 0:
                raise asyncio.CancelledError
            return await fold(*words)

        monkeypatch.setattr(functions, "fold", stop_in_the_middle)
        with pytest.raises(CancelledError):
            engine.page(crowded, limit=1)
        monkeypatch.undo()
        built = f"lb:{{{crowded}}}:rolling_7d:2025-10-26"
        assert 0 < raw.client.zcard(built) < self.MEMBERS
        assert raw.keys(f"{crowded}}}:built:rolling_7d|2025-10-26") == []
        assert other_engine.page(crowded, limit=1).total == self.MEMBERS
        assert other_engine.page(crowded, limit=1, group="c=x").total == self.MEMBERS
        assert engine.page(crowded, limit=1).total == self.MEMBERS

    @on_node
    def test_who_leaves_while_it_is_completed_is_not_in_it(
        self, engine: Laurels, other_engine: Laurels, crowded: str, monkeypatch: pytest.MonkeyPatch
    ):
        remove = functions.remove
        totals: list[int] = []

        async def after_another_completed(*words: Any) -> int:  # noqa: ANN401  # passed on
            if not totals:
                page = await asyncio.to_thread(other_engine.page, crowded, limit=1, group="c=x")
                totals.append(page.total)
            return await remove(*words)

        monkeypatch.setattr(functions, "remove", after_another_completed)
        assert engine.remove(crowded, "m7")
        assert totals == [self.MEMBERS]
        for group in (None, "c=x"):
            assert engine.page(crowded, limit=1, group=group).total == self.MEMBERS - 1
            with pytest.raises(NotFound):
                engine.standing(crowded, "m7", group=group)

    @on_node
    def test_tomorrow_is_complete_before_it_begins(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock, raw: RawValkey
    ):
        board = new_board(windows=SEVEN_DAYS)
        engine.submit_many(board, [Submission(f"m{n}", n) for n in range(100)])
        engine.submit(board, "m0", 500)

        async def idle() -> None:
            await asyncio.gather(*_inside(engine)._rolling._under_way.values())

        engine.run(idle())
        assert raw.client.zcard(f"lb:{{{board}}}:rolling_7d:2025-10-25") == 100
        calls = raw.calls("fcall")
        clock.advance(timedelta(days=1))
        assert engine.page(board, limit=1).total == 100
        engine.run(idle())
        assert raw.calls("fcall") > calls  # only the day after is made now

    @on_node
    def test_metadata_stays_with_the_days(self, engine: Laurels, new_board: NewBoard):
        board = new_board(windows=[{"period": "daily"}, *SEVEN_DAYS])
        engine.submit(board, "ada", 5, metadata={"level": 1})
        assert engine.standing(board, "ada").metadata == {"level": 1}
        assert engine.standing(board, "ada", period="rolling_7d").metadata is None
