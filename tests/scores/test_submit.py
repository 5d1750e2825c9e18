from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from topologies import on_node

from laurels.boards.keys import BoardRef
from laurels.errors import InvalidInput, OutcomeUnknown
from laurels.moments import datetime_of, moment_of
from laurels.scores.submission import Submission
from laurels.valkey import functions, messages

if TYPE_CHECKING:
    from raw_valkey import RawValkey

    from laurels.clock import FixedClock
    from laurels.scores.submission import Submitted
    from laurels.sync import Laurels

NewBoard = Callable[..., str]

INT64S = [-(2**63), -1, 0, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1]


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(InvalidInput) as refused:
        act()
    return refused.value.detail


def scores(engine: Laurels, board: str, **where: Any) -> dict[str, int | float]:  # noqa: ANN401  # keyword arguments
    return {entry.member: entry.score for entry in engine.page(board, **where).entries}


class TestAggregates:
    @pytest.mark.parametrize(
        ("aggregate", "order", "after_each"),
        [
            ("best", "desc", [5, 5, 9, 9, 9]),
            ("best", "asc", [5, 3, 3, 3, 3]),
            ("last", "desc", [5, 3, 9, 9, 4]),
            ("last", "asc", [5, 3, 9, 9, 4]),
            ("first", "desc", [5, 5, 5, 5, 5]),
            ("first", "asc", [5, 5, 5, 5, 5]),
            ("sum", "desc", [5, 8, 17, 26, 30]),
            ("sum", "asc", [5, 8, 17, 26, 30]),
        ],
    )
    def test_each_makes_of_an_entry_what_it_says(
        self, engine: Laurels, new_board: NewBoard, aggregate: str, order: str, after_each: list[int]
    ):
        for exact in ({}, {"score": "int64"}, {"ties": "earliest"}):
            board = new_board(aggregate=aggregate, order=order, **exact)
            given = [5, 3, 9, 9, 4]
            answers = [engine.submit(board, "ada", score) for score in given]
            assert [answer.score for answer in answers] == after_each
            assert [answer.previous_score for answer in answers] == [None, *after_each[:-1]]
            assert [answer.applied for answer in answers] == [
                before != after for before, after in zip([None, *after_each], after_each, strict=False)
            ]

    @pytest.mark.parametrize("aggregate", ["best", "last", "first", "sum"])
    @pytest.mark.parametrize("order", ["desc", "asc"])
    @on_node
    def test_a_batch_leaves_what_single_submissions_leave(
        self, engine: Laurels, new_board: NewBoard, aggregate: str, order: str
    ):
        given = [("a", 5), ("b", 1), ("a", 3), ("a", 9), ("b", 1), ("a", 4), ("c", -2), ("c", 0)]
        one, many = (new_board(aggregate=aggregate, order=order) for _ in range(2))
        for member, score in given:
            engine.submit(one, member, score)
        engine.submit_many(many, [Submission(member, score) for member, score in given])
        assert scores(engine, one) == scores(engine, many)

    def test_an_op_of_its_own_needs_allow_op(self, engine: Laurels, new_board: NewBoard):
        fixed, free = new_board(), new_board(allow_op=True)
        assert refusal(lambda: engine.submit(fixed, "ada", 1, op="sum")).startswith("op: is not allowed")
        assert refusal(lambda: engine.submit(free, "ada", 1, op="max")).startswith(
            "op: must be best, last, first or sum"
        )
        ops = ["best", "sum", "last", "first", None]
        assert [engine.submit(free, "ada", 3, op=op).score for op in ops] == [3, 6, 3, 3, 3]
        assert engine.submit(free, "ada", 2, op="last").score == 2
        assert engine.submit(free, "ada", 1).score == 2


class TestAnswers:
    def test_ranks_before_and_after_are_told_exactly(self, engine: Laurels, new_board: NewBoard):
        board = new_board(aggregate="last")
        for member, score in (("ada", 10), ("bob", 20), ("cid", 20)):
            engine.submit(board, member, score)
        answer = engine.submit(board, "ada", 30)
        assert (answer.member, answer.score, answer.previous_score) == ("ada", 30, 10)
        assert (answer.rank, answer.previous_rank, answer.applied) == (1, 3, True)
        answer = engine.submit(board, "ada", 20)
        assert (answer.rank, answer.previous_rank) == (1, 1)
        answer = engine.submit(board, "dan", 5)
        assert (answer.rank, answer.previous_rank, answer.previous_score) == (4, None, None)

    def test_a_score_that_changes_nothing_is_not_applied(self, engine: Laurels, new_board: NewBoard):
        board = new_board()
        engine.submit(board, "ada", 10)
        engine.submit(board, "bob", 20)
        answer = engine.submit(board, "ada", 9)
        assert (answer.applied, answer.score, answer.previous_score) == (False, 10, 10)
        assert (answer.rank, answer.previous_rank) == (2, 2)

    def test_they_speak_of_the_first_window(self, engine: Laurels, new_board: NewBoard, clock: FixedClock):
        board = new_board(windows=[{"period": "daily"}, {"period": "all_time"}], aggregate="sum")
        engine.submit(board, "ada", 10)
        clock.advance(timedelta(days=1))
        answer = engine.submit(board, "ada", 1)
        assert (answer.score, answer.previous_score) == (1, None)
        assert engine.standing(board, "ada", period="all_time").score == 11

    def test_a_missing_score_is_refused(self, engine: Laurels, new_board: NewBoard):
        board = new_board()
        missing: Any = None
        assert refusal(lambda: engine.submit(board, "ada", missing)) == "score: must be a number, not null"
        batch = engine.submit_many(board, [Submission("ada", missing)])
        assert [rejected.index for rejected in batch.rejected] == [0]

    @on_node
    def test_an_unexpected_failure_reaches_whoever_asked(
        self, engine: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        board = new_board()

        async def fail(*_: object) -> None:
            raise RuntimeError("as if a key held something else")

        monkeypatch.setattr(functions, "submit", fail)
        work = asyncio.wait_for(engine.engine.submit(board, "ada", 1), timeout=5)
        with pytest.raises(RuntimeError, match="something else"):
            engine.run(work)
        monkeypatch.undo()
        assert engine.submit(board, "ada", 1).applied


class TestMetadata:
    @pytest.mark.parametrize("exact", [{}, {"ties": "earliest"}])
    def test_it_belongs_to_the_submission_that_set_the_entry(
        self, engine: Laurels, new_board: NewBoard, exact: dict[str, Any]
    ):
        board = new_board(windows=[{"period": "daily"}, {"period": "all_time"}], **exact)
        engine.submit(board, "ada", 10, metadata={"level": 1})
        assert engine.standing(board, "ada").metadata == {"level": 1}
        engine.submit(board, "ada", 5, metadata={"level": 2})
        assert engine.standing(board, "ada").metadata == {"level": 1}
        engine.submit(board, "ada", 20, metadata={"level": 3})
        assert engine.page(board).entries[0].metadata == {"level": 3}
        assert engine.standing(board, "ada", period="all_time").metadata == {"level": 3}
        engine.submit(board, "ada", 30)
        assert engine.standing(board, "ada").metadata is None
        assert engine.page(board, period="all_time").entries[0].metadata is None

    @pytest.mark.parametrize("exact", [{}, {"ties": "earliest"}, {"dense": True}])
    def test_the_same_score_corrects_it_where_the_last_submission_counts(
        self, engine: Laurels, new_board: NewBoard, exact: dict[str, Any]
    ):
        windows = [{"period": "daily"}, {"period": "all_time"}, {"period": "weekly", "sum_of": "daily"}]
        board = new_board(aggregate="last", windows=windows, **exact)
        engine.submit(board, "ada", 10, metadata={"level": 1})
        engine.submit(board, "bob", 10)
        corrected = engine.submit(board, "ada", 10, metadata={"level": 2})
        assert (corrected.applied, corrected.rank, corrected.previous_score) == (True, 1, 10)
        assert not engine.submit(board, "ada", 10).applied
        for period in ("daily", "all_time", "weekly"):
            stands = engine.standing(board, "ada", period=period)
            assert (stands.rank, stands.score, stands.metadata) == (1, 10, {"level": 2})
        engine.submit_many(board, [Submission("ada", 11), Submission("ada", 11, metadata={"level": 3})])
        assert engine.standing(board, "ada").metadata == {"level": 3}

    def test_the_same_score_corrects_it_only_where_the_last_submission_counts(
        self, engine: Laurels, new_board: NewBoard
    ):
        board = new_board(allow_op=True)
        engine.submit(board, "ada", 10, metadata={"level": 1})
        for op in ("best", "first"):
            assert not engine.submit(board, "ada", 10, op=op, metadata={"level": 2}).applied
        assert engine.standing(board, "ada").metadata == {"level": 1}
        assert engine.submit(board, "ada", 10, op="last", metadata={"level": 2}).applied
        assert engine.standing(board, "ada").metadata == {"level": 2}

    def test_it_goes_when_a_batch_without_any_sets_the_entry(
        self, engine: Laurels, other_engine: Laurels, new_board: NewBoard
    ):
        board = new_board(aggregate="last")
        other_engine.submit(board, "bob", 1)
        engine.submit(board, "ada", 10, metadata={"level": 1})
        # This process has never seen metadata on the board.
        other_engine.submit_many(board, [Submission("ada", 11), Submission("bob", 2)])
        assert engine.standing(board, "ada").metadata is None

    def test_4096_bytes_of_json_are_accepted_and_one_more_is_not(self, engine: Laurels, new_board: NewBoard):
        board = new_board()
        most = {"x": "é" * 2044}
        assert len('{"x":""}') + 2 * 2044 == 4096
        assert engine.submit(board, "ada", 1, metadata=most).applied
        assert engine.standing(board, "ada").metadata == most
        told = refusal(lambda: engine.submit(board, "bob", 1, metadata={"x": "é" * 2044 + "a"}))
        assert told == "metadata: must have at most 4096 bytes of JSON, not 4097"
        unencodable: Any = {"x": object()}
        assert refusal(lambda: engine.submit(board, "bob", 1, metadata=unencodable)).startswith("metadata: ")
        assert scores(engine, board) == {"ada": 1}


@on_node
class TestLimits:
    @pytest.mark.parametrize("score", ["number", "int64"])
    def test_scores_outside_min_and_max_are_refused(self, engine: Laurels, new_board: NewBoard, score: str):
        board = new_board(score=score, limits={"min": -5, "max": 100})
        assert "below the board's min of -5" in refusal(lambda: engine.submit(board, "ada", -6))
        assert "above the board's max of 100" in refusal(lambda: engine.submit(board, "ada", 101))
        assert [engine.submit(board, "ada", each).applied for each in (-5, 100)] == [True, True]

    def test_fractions_just_outside_are_refused(self, engine: Laurels, new_board: NewBoard):
        board = new_board(limits={"max": 0.3})
        assert refusal(lambda: engine.submit(board, "ada", 0.1 + 0.2))
        assert engine.submit(board, "ada", 0.3).applied

    @pytest.mark.parametrize("score", ["number", "int64"])
    def test_an_entry_moves_by_max_change_at_most(self, engine: Laurels, new_board: NewBoard, score: str):
        board = new_board(score=score, aggregate="last", limits={"max_change": 10})
        assert engine.submit(board, "ada", 1000).applied  # nothing to move yet
        for far in (1011, 989):
            told = refusal(lambda far=far: engine.submit(board, "ada", far))
            assert told == "score: moves the entry by more than the board's max_change"
        assert engine.submit(board, "ada", 1010).applied
        assert engine.submit(board, "ada", 1000).applied

    def test_a_sum_is_limited_by_what_it_adds(self, engine: Laurels, new_board: NewBoard):
        board = new_board(aggregate="sum", limits={"max_change": 10})
        engine.submit(board, "ada", 500)
        assert refusal(lambda: engine.submit(board, "ada", 11))
        assert engine.submit(board, "ada", -10).score == 490

    def test_max_change_of_an_int64_board_is_exact_to_the_last_bit(
        self, engine: Laurels, new_board: NewBoard
    ):
        board = new_board(score="int64", aggregate="last", limits={"max_change": 2**63 - 1})
        engine.submit(board, "ada", -1)
        assert engine.submit(board, "ada", 2**63 - 2).applied
        assert engine.submit(board, "ada", -1).applied
        assert refusal(lambda: engine.submit(board, "ada", 2**63 - 1))

    def test_a_limit_beyond_64_bits_works_on_a_board_of_doubles(self, engine: Laurels, new_board: NewBoard):
        board = new_board(aggregate="last", limits={"max_change": 10**30, "max": 10**40})
        engine.submit(board, "ada", 0)
        assert refusal(lambda: engine.submit(board, "ada", 2e30))
        assert engine.submit(board, "ada", 1e30).applied

    def test_what_is_refused_leaves_nothing(self, engine: Laurels, new_board: NewBoard, raw: RawValkey):
        board = new_board(aggregate="last", dense=True, groups=[["c"]], limits={"max_change": 10})
        engine.submit(board, "ada", 0, groups={"c": "x"})
        before = raw.dump(board)
        refusal(lambda: engine.submit(board, "ada", 11, groups={"c": "x"}, id="one"))
        assert raw.dump(board) == before
        assert engine.submit(board, "ada", 10, id="one").applied


@on_node
class TestMoments:
    def test_at_may_be_as_old_as_lateness_to_the_microsecond(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(lateness="PT1H")
        oldest = datetime_of(clock.now) - timedelta(hours=1)
        assert engine.submit(board, "ada", 1, at=oldest).applied
        told = refusal(lambda: engine.submit(board, "bob", 1, at=oldest - timedelta(microseconds=1)))
        assert told == "at: is older than the board's lateness allows"

    def test_a_day_is_the_lateness_unless_said(self, engine: Laurels, new_board: NewBoard, clock: FixedClock):
        board = new_board()
        oldest = datetime_of(clock.now) - timedelta(days=1)
        assert engine.submit(board, "ada", 1, at=oldest).applied
        assert refusal(lambda: engine.submit(board, "bob", 1, at=oldest - timedelta(microseconds=1)))

    def test_at_may_be_a_minute_ahead_to_the_microsecond(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board()
        newest = datetime_of(clock.now) + timedelta(minutes=1)
        assert engine.submit(board, "ada", 1, at=newest).applied
        told = refusal(lambda: engine.submit(board, "bob", 1, at=newest + timedelta(microseconds=1)))
        assert told == "at: lies in the future"

    def test_at_needs_a_timezone(self, engine: Laurels, new_board: NewBoard, clock: FixedClock):
        board = new_board()
        naive = datetime_of(clock.now).replace(tzinfo=None)
        assert refusal(lambda: engine.submit(board, "ada", 1, at=naive)).startswith("at: needs a timezone")

    def test_it_decides_the_window(self, engine: Laurels, new_board: NewBoard, clock: FixedClock):
        board = new_board(windows=[{"period": "daily"}])
        midnight = datetime_of(clock.now).replace(hour=0)
        engine.submit(board, "ada", 1, at=midnight - timedelta(microseconds=1))
        engine.submit(board, "bob", 2, at=midnight)
        assert scores(engine, board) == {"bob": 2}
        assert scores(engine, board, slot="2025-10-23") == {"ada": 1}


class TestIds:
    @on_node
    def test_one_id_sent_a_hundred_times_at_once_counts_once(
        self, engine: Laurels, other_engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        board = new_board(aggregate="sum")

        def submit(laurels: Laurels) -> Submitted:
            return laurels.submit(board, "ada", 5, id="round-1")

        with ThreadPoolExecutor(20) as threads:
            answers = list(threads.map(submit, [engine, other_engine] * 50))
        assert sorted(answer.applied for answer in answers) == [False] * 99 + [True]
        told = {(answer.member, answer.score, answer.rank, answer.id) for answer in answers}
        assert told == {("ada", 5, 1, "round-1")}
        assert engine.standing(board, "ada").score == 5
        assert len(raw.journal(board)) == 1

    def test_a_repeated_id_tells_the_present_entry(self, engine: Laurels, new_board: NewBoard):
        board = new_board(aggregate="sum")
        engine.submit(board, "ada", 5, id="a")
        engine.submit(board, "ada", 7, id="b")
        again = engine.submit(board, "ada", 5, id="a")
        assert (again.applied, again.score, again.rank, again.id) == (False, 12, 1, "a")

    @pytest.mark.parametrize("shards", [1, 3])
    def test_a_made_id_that_comes_back_does_not_count_twice(
        self, engine: Laurels, new_board: NewBoard, shards: int
    ):
        board = new_board(aggregate="sum", shards=shards)
        first = engine.submit(board, "ada", 5)
        assert first.id.startswith("~")
        for _ in range(2):
            again = engine.submit(board, "ada", 5, id=first.id)
            assert (again.applied, again.score, again.id) == (False, 5, first.id)

    @on_node
    def test_the_id_that_an_unknown_outcome_names_is_safe_to_send_again(
        self, engine: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        board = new_board(aggregate="sum")
        submit = functions.submit

        async def answer_lost(*words: Any) -> None:  # noqa: ANN401  # passed on
            await submit(*words)
            raise OutcomeUnknown("the connection broke before the answer came")

        monkeypatch.setattr(functions, "submit", answer_lost)
        members = [f"m{number}" for number in range(20)]

        async def submit_all() -> list[Any]:
            work = (engine.engine.submit(board, member, 5) for member in members)
            return await asyncio.gather(*work, return_exceptions=True)

        unknown = engine.run(submit_all())
        monkeypatch.undo()
        assert all(isinstance(error, OutcomeUnknown) for error in unknown)
        assert len({error.retry_with for error in unknown}) == 20
        for member, error in zip(members, unknown, strict=True):
            assert engine.submit(board, member, 5, id=error.retry_with).score == 5
        assert engine.submit(board, "m0", 5).score == 10

    @pytest.mark.parametrize(
        "step", [timedelta(seconds=-5), timedelta(hours=-1), timedelta(hours=1), timedelta(days=3)]
    )
    def test_an_id_counts_once_whatever_the_clocks_of_processes_show(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock, step: timedelta
    ):
        board = new_board(aggregate="sum", lateness="P7D")
        clock.now = moment_of(datetime(2025, 10, 24, 0, 0, 2, tzinfo=UTC))
        made = engine.submit(board, "ada", 5).id
        engine.submit(board, "ada", 5, id="a")
        clock.advance(step)
        for given in ("a", made):
            assert not engine.submit(board, "ada", 5, id=given).applied
        assert engine.standing(board, "ada").score == 10

    @on_node
    def test_a_given_id_is_remembered_for_24_hours_of_valkeys_clock(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        board = new_board(aggregate="sum")
        engine.submit(board, "ada", 5, id="a")
        for other in ("b", "c"):
            raw.age(board, "ids", 12 * 3600)
            engine.submit(board, "ada", 1, id=other)
            assert not engine.submit(board, "ada", 5, id="a").applied

    @on_node
    def test_ids_that_an_earlier_version_remembered_by_day_are_taken_over(
        self, other_engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        board = new_board(aggregate="sum")
        key = f"lb:{{{board}}}"
        raw.client.hdel(f"{key}:board", "ids", "calls", "once")
        today, bucket, call = int(time.time()) // 86400, int(time.time()) // 600, "c" * 22
        raw.client.sadd(f"{key}:ids:{today - 1}", "a")
        raw.client.sadd(f"{key}:ids:{today}", "b")
        raw.client.sadd(f"{key}:calls:{bucket}", call)
        for given in ("a", "b", f"~{call}.0"):
            assert not other_engine.submit(board, "ada", 5, id=given).applied
        assert other_engine.submit(board, "ada", 5, id="c").applied

    @on_node
    def test_given_ids_stay_in_valkey_for_more_than_a_day(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        board = new_board()
        engine.submit(board, "ada", 5, id="a")
        key = f"lb:{{{board}}}:ids:0"
        assert raw.client.smembers(key) == {b"a"}
        assert 86_400 < raw.client.ttl(key) <= 2 * 86_400

    def test_one_id_twice_in_a_batch_counts_once(self, engine: Laurels, new_board: NewBoard):
        board = new_board(aggregate="sum")
        batch = [Submission("ada", 5, id="a"), Submission("ada", 5, id="a"), Submission("ada", 1, id="b")]
        assert engine.submit_many(board, batch).accepted == 3
        assert engine.standing(board, "ada").score == 6
        assert engine.submit_many(board, batch).accepted == 3
        assert engine.standing(board, "ada").score == 6

    @pytest.mark.parametrize(
        ("given", "told"), [("", "not 0"), ("x" * 257, "not 257"), ("\ud800", "Unicode")]
    )
    @on_node
    def test_an_id_has_1_to_256_bytes(self, engine: Laurels, new_board: NewBoard, given: str, told: str):
        board = new_board()
        assert told in refusal(lambda: engine.submit(board, "ada", 1, id=given))

    def test_an_edit_between_the_calls_of_one_batch_counts_nothing_twice(
        self, engine: Laurels, other_engine: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        board = new_board(aggregate="sum")
        calls = 0
        submit = functions.submit

        async def edit_before_the_second(*words: Any) -> messages.SubmitReply:  # noqa: ANN401  # passed on
            nonlocal calls
            calls += 1
            if calls == 2:
                edited = {"aggregate": "sum", "lateness": "PT2H"}
                await asyncio.to_thread(other_engine.define, board, edited)
            return await submit(*words)

        monkeypatch.setattr(functions, "submit", edit_before_the_second)
        batch = [Submission(f"m{number}", 1) for number in range(1000)]
        assert engine.submit_many(board, batch).accepted == 1000
        assert calls > 2
        assert engine.percentile(board, 1).score == 1
        assert engine.percentile(board, 0).score == 1

    def test_an_edit_that_only_some_shards_know_counts_nothing_twice(
        self, engine: Laurels, other_engine: Laurels, new_board: NewBoard
    ):
        definition: dict[str, Any] = {"aggregate": "sum", "shards": 4}
        board = new_board(**definition)
        batch = [Submission(f"m{number}", 1) for number in range(40)]
        engine.submit_many(board, batch)
        inside: Any = engine.engine
        known = engine.run(inside._catalog.board(BoardRef.parse(board))).version
        assert other_engine.define(board, definition | {"lateness": "PT2H"}).version > known
        for shard in (0, 1, 3):  # as if the process that edits had reached one shard only
            key = f"lb:{{{board}/{shard}}}:board"
            engine.run(engine.engine.valkey.command("HSET", key, "version", known))
        engine.submit_many(board, batch)
        assert set(scores(engine, board).values()) == {2}


class TestBatches:
    def test_a_bad_line_harms_no_other(self, engine: Laurels, new_board: NewBoard):
        board = new_board(groups=[["country"]], limits={"max": 100}, aggregate="sum")
        bad: Any = "ten"
        batch = [
            Submission("ada", 1),
            Submission("", 1),
            Submission("bob", bad),
            Submission("cid", 101),
            Submission("dan", 2, groups={"planet": "mars"}),
            Submission("eve", float("nan")),
            Submission("fay", 3, groups={"country": "BR"}),
            Submission("gus", 1, op="sum"),
            Submission("ada", 1),
        ]
        answer = engine.submit_many(board, batch)
        assert answer.accepted == 3
        assert [rejected.index for rejected in answer.rejected] == [1, 2, 3, 4, 5, 7]
        fields = [rejected.detail.partition(":")[0] for rejected in answer.rejected]
        assert fields == ["member", "score", "score", "groups.planet", "score", "op"]
        assert scores(engine, board) == {"ada": 2, "fay": 3}

    def test_what_only_the_store_refuses_harms_no_other(self, engine: Laurels, new_board: NewBoard):
        board = new_board(score="int64", aggregate="sum")
        engine.submit(board, "ada", 2**63 - 1)
        answer = engine.submit_many(
            board, [Submission("ada", 1), Submission("bob", 5), Submission("ada", -1)]
        )
        assert (answer.accepted, [rejected.index for rejected in answer.rejected]) == (2, [0])
        assert scores(engine, board) == {"ada": 2**63 - 2, "bob": 5}

    @pytest.mark.parametrize(
        "windows", [[{"period": "all_time"}], [{"period": "daily"}, {"period": "all_time"}]]
    )
    def test_the_order_of_a_members_submissions_is_kept(
        self, engine: Laurels, new_board: NewBoard, windows: list[Any]
    ):
        board = new_board(aggregate="last", windows=windows)
        batch = [Submission(f"m{n % 7}", n) for n in range(3000)]
        assert engine.submit_many(board, batch).accepted == 3000
        assert scores(engine, board) == {f"m{n % 7}": n for n in range(2993, 3000)}

    @pytest.mark.parametrize("known", [True, False])
    def test_single_submissions_at_once_are_applied_in_the_order_they_came(
        self,
        engine: Laurels,
        other_engine: Laurels,
        new_board: NewBoard,
        known: bool,  # noqa: FBT001
    ):
        board = new_board(aggregate="last")
        sender = engine if known else other_engine  # who defines a board knows it; another must read it first

        async def submit_all() -> list[Any]:
            return await asyncio.gather(*(sender.engine.submit(board, "ada", n) for n in range(200)))

        answers = sender.run(submit_all())
        assert [answer.score for answer in answers] == list(range(200))
        assert [answer.previous_score for answer in answers] == [None, *range(199)]

    def test_an_empty_batch_is_accepted(self, engine: Laurels, new_board: NewBoard):
        answer = engine.submit_many(new_board(), [])
        assert (answer.accepted, answer.rejected) == (0, [])


class TestInt64:
    @pytest.mark.parametrize("ties", ["shared", "earliest", "member"])
    @pytest.mark.parametrize("order", ["desc", "asc"])
    def test_every_bit_is_kept_and_ordered(self, engine: Laurels, new_board: NewBoard, ties: str, order: str):
        board = new_board(score="int64", ties=ties, order=order)
        for score in INT64S:
            assert engine.submit(board, str(score), str(score)).score == score
        listed = [entry.score for entry in engine.page(board).entries]
        assert listed == sorted(INT64S, reverse=order == "desc")
        assert [entry.rank for entry in engine.page(board).entries] == list(range(1, 8))
        assert all(engine.standing(board, str(score)).score == score for score in INT64S)

    def test_sums_are_exact_beyond_53_bits(self, engine: Laurels, new_board: NewBoard):
        board = new_board(
            score="int64", aggregate="sum", windows=[{"period": "daily"}, {"period": "all_time"}]
        )
        added = [2**53, 1, 1, -(2**63), 2**62, 2**62, 2**62, -1, 2**32, -(2**32) + 1]
        totals = [sum(added[: end + 1]) for end in range(len(added))]
        assert [engine.submit(board, "ada", score).score for score in added] == totals

    @pytest.mark.parametrize(("start", "step"), [(2**63 - 1, 1), (-(2**63), -1), (2**62, 2**62)])
    @on_node
    def test_a_sum_that_overflows_is_refused_and_nothing_is_written(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey, start: int, step: int
    ):
        windows = [
            {"period": "daily"},
            {"period": "weekly", "sum_of": "daily"},
            {"period": "rolling", "days": 3},
            {"period": "all_time"},
        ]
        board = new_board(score="int64", aggregate="sum", dense=True, groups=[["c"]], windows=windows)
        engine.submit(board, "ada", start, groups={"c": "x"}, metadata={"n": 1})
        engine.page(board, period="rolling_3d")
        engine.run(asyncio.sleep(0))
        before = _without_completion(raw.dump(board))
        told = refusal(
            lambda: engine.submit(board, "ada", step, groups={"c": "x"}, id="i", metadata={"n": 2})
        )
        assert told == "score: the total would leave the range of the board's scores"
        assert _without_completion(raw.dump(board)) == before

    def test_a_sum_that_overflows_only_over_the_week_is_refused_whole(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        windows = [{"period": "daily"}, {"period": "weekly", "sum_of": "daily"}]
        board = new_board(score="int64", windows=windows)
        clock.advance(timedelta(days=-2))
        engine.submit(board, "ada", 2**62)
        clock.advance(timedelta(days=1))
        assert refusal(lambda: engine.submit(board, "ada", 2**62))
        assert scores(engine, board) == {}
        assert engine.submit(board, "ada", 2**62 - 1).applied
        assert scores(engine, board, period="weekly") == {"ada": 2**63 - 1}


def _without_completion(dump: dict[bytes, Any]) -> dict[bytes, Any]:
    """Tomorrow's rolling window may be completed in the background at any time."""
    return {key: held for key, held in dump.items() if b":built:" not in key and b"2025-10-25" not in key}


@on_node
class TestNumbers:
    def test_a_tenth_ten_times_is_as_doubles_add(self, engine: Laurels, new_board: NewBoard):
        board = new_board(aggregate="sum")
        assert [engine.submit(board, "ada", 0.1).score for _ in range(10)][-1] == 0.9999999999999999
        engine.submit_many(board, [Submission("bob", 0.1)] * 10)
        assert engine.standing(board, "bob").score == 0.9999999999999999

    def test_minus_zero_ranks_with_zero(self, engine: Laurels, new_board: NewBoard):
        for definition in ({}, {"dense": True}, {"aggregate": "sum"}):
            board = new_board(**definition)
            engine.submit(board, "ada", -0.0)
            engine.submit(board, "bob", 0)
            engine.submit_many(board, [Submission("cid", -0.0)])
            page = engine.page(board)
            assert [(entry.rank, str(entry.score)) for entry in page.entries] == [(1, "0")] * 3

    @pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
    def test_what_is_not_finite_is_refused(self, engine: Laurels, new_board: NewBoard, score: float):
        board = new_board()
        assert refusal(lambda: engine.submit(board, "ada", score)).startswith(
            "score: must be a finite number"
        )
        assert len(engine.submit_many(board, [Submission("ada", score)]).rejected) == 1
        assert engine.page(board).total == 0

    def test_a_sum_to_infinity_is_refused_and_nothing_is_written(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey
    ):
        board = new_board(aggregate="sum", windows=[{"period": "daily"}, {"period": "all_time"}])
        engine.submit(board, "ada", 1.5e308)
        before = raw.dump(board)
        assert "range" in refusal(lambda: engine.submit(board, "ada", 1e308))
        assert raw.dump(board) == before

    @pytest.mark.parametrize(
        "score", [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -2.5, 2**53, -(2**53), 123456789.123456789]
    )
    def test_every_digit_comes_back(self, engine: Laurels, new_board: NewBoard, score: float):
        for definition in ({}, {"aggregate": "sum"}, {"ties": "earliest"}, {"dense": True}):
            board = new_board(**definition)
            assert engine.submit(board, "ada", score).score == score
            assert engine.standing(board, "ada").score == score
            assert engine.percentile(board, 0.5).score == score

    def test_a_week_of_one_day_is_exactly_that_day(self, engine: Laurels, new_board: NewBoard):
        windows = [{"period": "daily"}, {"period": "weekly", "sum_of": "daily"}]
        board = new_board(aggregate="last", windows=windows)
        for score in (1e16, 0.1, 0.7, 3.3, 1e-9, 0.3):
            engine.submit(board, "ada", score)
            assert engine.standing(board, "ada", period="weekly").score == score
