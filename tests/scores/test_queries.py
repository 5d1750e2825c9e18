from __future__ import annotations

import base64
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import NullPool, create_engine, text
from topologies import on_node

from laurels.errors import InvalidInput, NotFound, StaleCursor
from laurels.scores.shards import ShardedWindow
from laurels.scores.submission import Submission
from laurels.valkey import functions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from raw_valkey import RawValkey

    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints
    from laurels.scores.results import Page
    from laurels.sync import Laurels
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import CountReply, ReadHeader

NewBoard = Callable[..., str]
LAYOUTS: list[dict[str, Any]] = [{}, {"score": "int64"}, {"ties": "earliest"}, {"ties": "member"}]
fuzzing = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def fill(engine: Laurels, board: str, scores: dict[str, int]) -> None:
    answer = engine.submit_many(board, [Submission(member, score) for member, score in scores.items()])
    assert answer.rejected == []


def numbered(scores: Iterable[int]) -> dict[str, int]:
    """These scores, of members who are called by their place."""
    return {f"m{number:04}": score for number, score in enumerate(scores)}


def members(page: Page) -> list[str]:
    return [entry.member for entry in page.entries]


class TestAgainstSql:
    @pytest.mark.parametrize("order", ["desc", "asc"])
    @pytest.mark.parametrize("score", ["number", "int64"])
    def test_ranks_are_those_of_window_functions(
        self, engine: Laurels, new_board: NewBoard, endpoints: Endpoints, order: str, score: str
    ):
        chance = random.Random(f"{order} {score}")  # noqa: S311  # no secret
        held = {f"m{number}": chance.randint(-20, 20) for number in range(300)}
        board = new_board(order=order, score=score, dense=True)
        fill(engine, board, held)
        question = text(f"""
            SELECT member, rank() OVER (ORDER BY score {order}), dense_rank() OVER (ORDER BY score {order}),
                row_number() OVER (ORDER BY score {order}, member COLLATE "C" {order}),
                1 - (rank() OVER (ORDER BY score {order}) - 1)::double precision / count(*) OVER ()
            FROM unnest(CAST(:members AS text[]), CAST(:scores AS int[])) AS held (member, score)
        """)  # noqa: S608  # the order is one of two words
        server = create_engine(endpoints.postgres_url, poolclass=NullPool)
        with server.connect() as connection:
            given = {"members": list(held), "scores": list(held.values())}
            expected = {row[0]: tuple(row[1:]) for row in connection.execute(question, given)}
        found = {member: engine.standing(board, member) for member in held}
        for member, (rank, dense, row, percentile) in expected.items():
            stood = found[member]
            assert (stood.rank, stood.dense_rank, stood.ordinal) == (rank, dense, row)
            assert stood.percentile == pytest.approx(percentile)
        page = engine.page(board, limit=300)
        assert [(entry.member, entry.rank) for entry in page.entries] == sorted(
            ((member, row[0]) for member, row in expected.items()), key=lambda each: expected[each[0]][2]
        )

    @pytest.mark.parametrize("order", ["desc", "asc"])
    @on_node
    def test_unique_ranks_are_row_numbers(
        self, engine: Laurels, new_board: NewBoard, endpoints: Endpoints, clock: FixedClock, order: str
    ):
        chance = random.Random(order)  # noqa: S311  # no secret
        held = {f"m{number}": (chance.randint(0, 9), number // 7) for number in range(100)}
        boards = {ties: new_board(order=order, ties=ties) for ties in ("earliest", "member")}
        for member, (score, moment) in held.items():
            clock.now += moment - clock.now % 1_000_000
            for board in boards.values():
                engine.submit(board, member, score)
        question = text(f"""
            SELECT member, row_number() OVER (ORDER BY score {order}, arrival),
                row_number() OVER (ORDER BY score {order}, member COLLATE "C")
            FROM unnest(CAST(:members AS text[]), CAST(:scores AS int[])) WITH ORDINALITY
                AS held (member, score, arrival)
        """)  # noqa: S608  # the order is one of two words
        server = create_engine(endpoints.postgres_url, poolclass=NullPool)
        with server.connect() as connection:
            given = {"members": list(held), "scores": [score for score, _ in held.values()]}
            for member, earliest, by_member in connection.execute(question, given):
                stood = engine.standing(boards["earliest"], member)
                assert (stood.rank, stood.ordinal) == (earliest, earliest)
                assert engine.standing(boards["member"], member).rank == by_member


@on_node
class TestPercentiles:
    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_of_a_hundred_different_scores(
        self, engine: Laurels, new_board: NewBoard, layout: dict[str, Any]
    ):
        board = new_board(**layout)
        fill(engine, board, numbered(range(1, 101)))
        # At least p of the entries are no better than it; the worst such entry.
        expected = {
            0: 1,
            0.000001: 1,
            0.01: 1,
            0.010001: 2,
            0.07: 7,
            0.29: 29,
            0.5: 50,
            0.57: 57,
            0.99: 99,
            1: 100,
        }
        for share, score in expected.items():
            found = engine.percentile(board, share)
            assert (found.score, found.total, found.percentile) == (score, 100, share)

    def test_on_an_ascending_board_the_best_is_the_smallest(self, engine: Laurels, new_board: NewBoard):
        board = new_board(order="asc")
        fill(engine, board, numbered(range(1, 101)))
        assert [engine.percentile(board, share).score for share in (0, 0.07, 0.5, 1)] == [100, 94, 51, 1]

    def test_a_standing_tells_the_share_that_it_is_no_worse_than(self, engine: Laurels, new_board: NewBoard):
        board = new_board()
        fill(engine, board, {"a": 40, "b": 30, "c": 30, "d": 10})
        found = [engine.standing(board, member).percentile for member in "abcd"]
        assert found == [1.0, 0.75, 0.75, 0.25]

    def test_ties_share_one_and_unique_ranks_do_not(self, engine: Laurels, new_board: NewBoard):
        board = new_board(ties="member")
        fill(engine, board, {"a": 40, "b": 30, "c": 30, "d": 10})
        assert [engine.standing(board, member).percentile for member in "abcd"] == [1.0, 0.75, 0.5, 0.25]

    @fuzzing
    @given(scores=st.lists(st.integers(0, 5), min_size=1, max_size=12), millionths=st.integers(0, 10**6))
    def test_it_is_the_worst_score_that_this_share_is_no_better_than(
        self, engine: Laurels, new_board: NewBoard, scores: list[int], millionths: int
    ):
        board = new_board()
        fill(engine, board, numbered(scores))
        share = Fraction(millionths, 10**6)
        rising = sorted(scores)
        expected = next(
            score for place, score in enumerate(rising, 1) if Fraction(place, len(scores)) >= share
        )
        assert engine.percentile(board, millionths / 10**6).score == expected

    @pytest.mark.parametrize(
        "share", [-0.1, 1.1, float("nan"), float("inf"), "half", "", 1 / 3, "1e-7", True]
    )
    def test_a_share_is_from_0_to_1_with_six_digits(
        self,
        engine: Laurels,
        new_board: NewBoard,
        share: Any,  # noqa: ANN401  # anything
    ):
        board = new_board()
        fill(engine, board, numbered([1]))
        with pytest.raises(InvalidInput) as refused:
            engine.percentile(board, share)
        assert [field.field for field in refused.value.fields] == ["p"]

    def test_nobody_has_no_percentile(self, engine: Laurels, new_board: NewBoard):
        with pytest.raises(NotFound, match="no member has an entry"):
            engine.percentile(new_board(), 0.5)


@on_node
class TestDistributions:
    @pytest.mark.parametrize("order", ["desc", "asc"])
    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_buckets_hold_what_lies_within_them(
        self, engine: Laurels, new_board: NewBoard, order: str, layout: dict[str, Any]
    ):
        board = new_board(order=order, **layout)
        scores = [0, 0, 1, 9, 10, 10, 19, 20, 39, 40]
        fill(engine, board, numbered(scores))
        found = engine.distribution(board, 4)
        assert [(bucket.low, bucket.high, bucket.count) for bucket in found.buckets] == [
            (0, 10, 4),
            (10, 20, 3),
            (20, 30, 1),
            (30, 40, 2),
        ]
        assert found.total == 10

    def test_equal_scores_are_one_bucket(self, engine: Laurels, new_board: NewBoard):
        board = new_board()
        fill(engine, board, numbered([7, 7, 7]))
        found = engine.distribution(board, 20)
        assert [(bucket.low, bucket.high, bucket.count) for bucket in found.buckets] == [(7, 7, 3)]

    @pytest.mark.parametrize("order", ["desc", "asc"])
    def test_int64_extremes_are_counted_exactly(self, engine: Laurels, new_board: NewBoard, order: str):
        board = new_board(score="int64", order=order)
        fill(engine, board, numbered([-(2**63), -1, 0, 1, 2**63 - 1]))
        found = engine.distribution(board, 2)
        assert [(bucket.low, bucket.high, bucket.count) for bucket in found.buckets] == [
            (-(2**63), -1, 1),
            (-1, 2**63 - 1, 4),
        ]

    def test_no_edge_lies_outside_the_scores_however_close_they_are(
        self, engine: Laurels, new_board: NewBoard
    ):
        board = new_board()
        low, high = 0.4888633165689939, 0.48886331656899396
        engine.submit_many(board, [Submission("a", low), Submission("b", high)])
        found = engine.distribution(board, 19).buckets
        assert [(bucket.low, bucket.high, bucket.count) for bucket in found] == [(low, high, 2)]

    @pytest.mark.parametrize("order", ["desc", "asc"])
    def test_many_buckets_are_counted_in_several_calls_and_none_has_fewer_than_no_entries(
        self, engine: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch, order: str
    ):
        board = new_board(order=order)
        fill(engine, board, numbered(range(1001)))
        asked: list[int] = []
        count = functions.count

        async def leaving(
            valkey: Valkey, keys: Sequence[str], header: ReadHeader, places: Sequence[tuple[bytes, bytes]]
        ) -> tuple[int, list[CountReply]]:
            """As if ten entries had left after every other call."""
            asked.append(len(places))
            gone = 10 * (len(asked) % 2)
            total, found = await count(valkey, keys, header, places)
            return total, [each._replace(before=each.before + gone) for each in found]

        monkeypatch.setattr(functions, "count", leaving)
        found = engine.distribution(board, 1000)
        assert (sum(asked), max(asked)) == (999, 250)
        assert min(bucket.count for bucket in found.buckets) == 0
        assert sum(bucket.count for bucket in found.buckets) == found.total == 1001

    def test_an_empty_window_has_none(self, engine: Laurels, new_board: NewBoard):
        found = engine.distribution(new_board())
        assert (found.total, found.buckets) == (0, [])

    @fuzzing
    @given(
        scores=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8),
        buckets=st.integers(1, 30),
        order=st.sampled_from(["desc", "asc"]),
    )
    def test_every_entry_is_in_the_bucket_of_its_score(
        self, engine: Laurels, new_board: NewBoard, scores: list[float], buckets: int, order: str
    ):
        board = new_board(order=order)
        engine.submit_many(board, [Submission(str(number), score) for number, score in enumerate(scores)])
        found = engine.distribution(board, buckets).buckets
        assert (found[0].low, found[-1].high) == (min(scores), max(scores))
        for bucket in found[:-1]:
            assert bucket.count == sum(bucket.low <= score < bucket.high for score in scores)
        assert found[-1].count == sum(found[-1].low <= score <= found[-1].high for score in scores)
        assert len(found) <= buckets


class TestCursors:
    @pytest.fixture
    def board(self, engine: Laurels, new_board: NewBoard) -> str:
        board = new_board(windows=[{"period": "daily"}, {"period": "all_time"}], groups=[["c"]])
        batch = [Submission(f"m{number}", number, groups={"c": "x"}) for number in range(10)]
        engine.submit_many(board, batch)
        return board

    def cursor(self, engine: Laurels, board: str, **paging: Any) -> str:  # noqa: ANN401  # keyword arguments
        cursor = engine.page(board, limit=3, **paging).next
        assert cursor is not None
        return cursor

    def test_a_cursor_remembers_its_window(self, engine: Laurels, board: str):
        cursor = self.cursor(engine, board, period="all_time", group="c=x")
        page = engine.page(board, limit=3, cursor=cursor)
        assert (page.period, members(page)) == ("all_time", ["m6", "m5", "m4"])
        assert members(engine.page(board, limit=3, cursor=cursor, group="c=x")) == ["m6", "m5", "m4"]

    @pytest.mark.parametrize("elsewhere", [{"period": "all_time"}, {"slot": "2025-10-23"}, {"group": "c=x"}])
    def test_it_is_stale_for_another_window_or_group(
        self, engine: Laurels, board: str, elsewhere: dict[str, Any]
    ):
        with pytest.raises(StaleCursor):
            engine.page(board, cursor=self.cursor(engine, board), **elsewhere)

    def test_it_is_stale_for_another_board(self, engine: Laurels, board: str, new_board: NewBoard):
        other = new_board(windows=[{"period": "daily"}])
        with pytest.raises(StaleCursor):
            engine.page(other, cursor=self.cursor(engine, board))

    def test_it_is_stale_after_an_edit(self, engine: Laurels, other_engine: Laurels, board: str):
        cursor = self.cursor(engine, board)
        edited = {"windows": [{"period": "daily", "keep": 3}, {"period": "all_time"}], "groups": [["c"]]}
        other_engine.define(board, edited)
        with pytest.raises(StaleCursor):
            engine.page(board, cursor=cursor)

    def test_it_is_stale_after_the_board_was_dropped_and_made_again(
        self, engine: Laurels, other_engine: Laurels, board: str
    ):
        cursor = self.cursor(engine, board)
        other_engine.drop(board, allow_drop="all")
        other_engine.define(
            board, {"windows": [{"period": "daily"}, {"period": "all_time"}], "groups": [["c"]]}
        )
        other_engine.submit(board, "ada", 1)
        with pytest.raises(StaleCursor):
            engine.page(board, cursor=cursor)

    @pytest.mark.parametrize(
        "field",
        [
            (2, "weekly"),
            (2, "a\0b"),
            (3, "2025-W43"),
            (3, ""),
            (4, "c"),
            (4, "planet=mars"),
            (5, "middle"),
            (6, "beside"),
            (7, b"nan"),
            (7, b"0x10"),
            (7, b""),
            (7, b"\xff"),
            (7, "５".encode()),  # noqa: RUF001
        ],
    )
    @on_node
    def test_a_part_that_no_page_wrote_is_refused(self, engine: Laurels, board: str, field: tuple[int, Any]):
        contents = msgspec.msgpack.decode(base64.urlsafe_b64decode(self.cursor(engine, board) + "=="))
        place, value = field
        contents[place] = value
        forged = base64.urlsafe_b64encode(msgspec.msgpack.encode(contents)).rstrip(b"=").decode()
        with pytest.raises(StaleCursor):
            engine.page(board, cursor=forged)

    @pytest.mark.parametrize("cursor", ["", "x", "é", "====", "\ud800", "A" * 10_000, "kZA=", "gICAgA"])
    @on_node
    def test_what_is_no_cursor_is_refused(self, engine: Laurels, board: str, cursor: str):
        with pytest.raises(StaleCursor):
            engine.page(board, cursor=cursor)

    @pytest.fixture(params=LAYOUTS)
    def five(self, request: pytest.FixtureRequest, engine: Laurels, new_board: NewBoard) -> tuple[str, bytes]:
        """A board of five entries, in each layout, and a cursor of it without its coat."""
        board = new_board(**request.param)
        fill(engine, board, numbered([1, 2, 3, 4, 5]))
        return board, base64.urlsafe_b64decode(self.cursor(engine, board) + "==")

    @fuzzing
    @given(changes=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 255)), min_size=1, max_size=3))
    @on_node
    def test_a_tampered_cursor_is_refused_or_harmless(
        self, engine: Laurels, five: tuple[str, bytes], changes: list[tuple[int, int]]
    ):
        board, packed = five
        tampered = bytearray(packed)
        for from_the_end, byte in changes:
            tampered[-1 - from_the_end] = byte
        cursor = base64.urlsafe_b64encode(bytes(tampered)).rstrip(b"=").decode()
        with suppress(StaleCursor, NotFound):
            assert engine.page(board, cursor=cursor).total == 5


@on_node
class TestPages:
    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_from_the_bottom_they_list_the_worst_first(
        self, engine: Laurels, new_board: NewBoard, layout: dict[str, Any]
    ):
        board = new_board(**layout)
        fill(engine, board, {"a": 1, "b": 2, "c": 3})
        page = engine.page(board, limit=2, start="bottom")
        assert [(entry.member, entry.rank) for entry in page.entries] == [("a", 3), ("b", 2)]
        assert page.next is not None
        assert members(engine.page(board, limit=2, cursor=page.next)) == ["c"]

    def test_equal_scores_share_a_rank_across_pages(self, engine: Laurels, new_board: NewBoard):
        board = new_board()
        fill(engine, board, numbered([5] * 10 + [9, 1]))
        ranks: list[int] = []
        page = engine.page(board, limit=3)
        while True:
            ranks += [entry.rank for entry in page.entries]
            if page.next is None:
                break
            page = engine.page(board, limit=3, cursor=page.next)
        assert ranks == [1] + [2] * 10 + [12]

    @pytest.mark.parametrize("rank", [4, 5, 5000, 2**53])
    def test_beyond_the_end_they_are_empty(self, engine: Laurels, new_board: NewBoard, rank: int):
        board = new_board()
        fill(engine, board, numbered([1, 2, 3]))
        page = engine.page(board, rank=rank)
        assert (page.total, page.entries, page.next, page.previous) == (3, [], None, None)

    def test_an_empty_window_is_an_empty_page(self, engine: Laurels, new_board: NewBoard):
        board = new_board(windows=[{"period": "daily"}])
        for start in ("top", "bottom"):
            page = engine.page(board, start=start)
            assert (page.total, page.entries, page.next, page.previous) == (0, [], None, None)
        with pytest.raises(NotFound):
            engine.standing(board, "ada")
        with pytest.raises(NotFound):
            engine.around(board, "ada")

    @pytest.mark.parametrize(
        ("paging", "field"),
        [
            ({"limit": 0}, "limit"),
            ({"limit": 1001}, "limit"),
            ({"rank": 0}, "rank"),
            ({"rank": 2, "start": "bottom"}, "rank"),
            ({"period": "hourly"}, "period"),
            ({"slot": "tomorrow"}, "slot"),
            ({"group": "country=BR"}, "group"),
        ],
    )
    def test_what_cannot_be_asked_is_refused(
        self, engine: Laurels, new_board: NewBoard, paging: dict[str, Any], field: str
    ):
        board = new_board(windows=[{"period": "daily"}])
        with pytest.raises(InvalidInput) as refused:
            engine.page(board, **paging)
        assert [each.field for each in refused.value.fields] == [field]

    def test_they_tell_their_window_and_the_next_reset(self, engine: Laurels, new_board: NewBoard):
        board = new_board(windows=[{"period": "daily"}], timezone="America/Sao_Paulo")
        page = engine.page(board)
        assert (page.period, page.slot) == ("daily", "2025-10-24")
        assert page.starts_at is not None
        assert page.starts_at.isoformat() == "2025-10-24T03:00:00+00:00"
        assert page.ends_at == page.next_reset_at == page.starts_at + timedelta(days=1)
        yesterday = engine.page(board, slot="2025-10-23")
        assert yesterday.ends_at == page.starts_at
        assert yesterday.next_reset_at == page.ends_at

    def test_an_answer_that_takes_past_midnight_speaks_of_one_moment(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
    ):
        board = new_board(windows=[{"period": "daily"}])
        engine.submit(board, "ada", 1)
        read = ShardedWindow.from_start

        async def read_over_midnight(*given: Any) -> Any:  # noqa: ANN401  # as `from_start`
            clock.advance(timedelta(days=1))
            return await read(*given)

        monkeypatch.setattr(ShardedWindow, "from_start", read_over_midnight)
        page = engine.page(board)
        assert (page.slot, page.total) == ("2025-10-24", 1)
        assert page.next_reset_at == page.ends_at
        assert engine.page(board).slot == "2025-10-25"

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_who_does_not_move_is_seen_once_while_others_do(
        self, engine: Laurels, new_board: NewBoard, layout: dict[str, Any]
    ):
        board = new_board(aggregate="last", **layout)
        chance = random.Random(7)  # noqa: S311  # no secret
        still = {f"still-{number}": number * 10 for number in range(60)}
        moving = [f"moving-{number}" for number in range(30)]
        fill(engine, board, still | {member: chance.randint(0, 600) for member in moving})
        seen: list[str] = []
        page = engine.page(board, limit=7)
        while True:
            seen += members(page)
            fill(engine, board, {member: chance.randint(0, 600) for member in moving[:15]})
            engine.remove(board, moving.pop())
            if page.next is None or not moving:
                break
            page = engine.page(board, limit=7, cursor=page.next)
        assert [member for member in seen if member in still] == sorted(still, key=lambda m: -still[m])

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_the_entry_that_a_cursor_stands_on_may_fall_behind_it(
        self, engine: Laurels, new_board: NewBoard, layout: dict[str, Any]
    ):
        board = new_board(aggregate="last", **layout)
        fill(engine, board, {"a": 40, "b": 30, "c": 20, "d": 10})
        page = engine.page(board, limit=2)
        assert members(page) == ["a", "b"]
        fill(engine, board, {"b": 25})
        assert members(engine.page(board, limit=2, cursor=page.next)) == ["b", "c"]

    def test_the_entry_that_a_cursor_stands_on_may_go(self, engine: Laurels, new_board: NewBoard):
        board = new_board()
        fill(engine, board, numbered([5] * 9))
        page = engine.page(board, limit=3)
        engine.remove(board, page.entries[-1].member)
        assert page.next is not None
        behind = engine.page(board, limit=3, cursor=page.next)
        assert members(behind) == ["m0005", "m0004", "m0003"]
        assert behind.previous is not None
        assert members(engine.page(board, limit=5, cursor=behind.previous)) == ["m0008", "m0007"]


@on_node
class TestChange:
    def test_it_is_the_ranks_gained_since_the_window_before(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(windows=[{"period": "daily"}], groups=[["c"]])
        for member, score in {"a": 3, "b": 2, "c": 1}.items():
            engine.submit(board, member, score, groups={"c": "x"})
        clock.advance(timedelta(days=1))
        for member, score in {"c": 9, "b": 8, "d": 7, "a": 6}.items():
            engine.submit(board, member, score, groups={"c": "x"})
        expected = [("c", 2), ("b", 0), ("d", None), ("a", -3)]
        for group in (None, "c=x"):
            page = engine.page(board, change=True, group=group)
            assert [(entry.member, entry.change) for entry in page.entries] == expected
        assert {entry.change for entry in engine.page(board).entries} == {msgspec.UNSET}

    def test_who_was_not_there_or_in_no_window_before_has_none(
        self, engine: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = new_board(windows=[{"period": "daily", "keep": 1}, {"period": "all_time"}])
        engine.submit(board, "a", 1)
        clock.advance(timedelta(days=1))
        engine.submit(board, "a", 1)
        for period in ("daily", "all_time"):
            assert [entry.change for entry in engine.page(board, change=True, period=period).entries] == [
                None
            ]


class TestAround:
    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("shards", [1, 3])
    def test_it_stops_at_both_ends(
        self, engine: Laurels, new_board: NewBoard, layout: dict[str, Any], shards: int
    ):
        board = new_board(shards=shards, **layout)
        fill(engine, board, {"a": 5, "b": 4, "c": 3, "d": 2, "e": 1})
        around = {
            ("a", 2, 1): "ab",
            ("e", 1, 2): "de",
            ("c", 1, 1): "bcd",
            ("c", 0, 0): "c",
            ("c", 500, 500): "abcde",
            ("b", 5, 0): "ab",
        }
        for (member, above, below), expected in around.items():
            page = engine.around(board, member, above, below)
            assert "".join(members(page)) == expected
            assert page.entries[0].rank == "abcde".index(expected[0]) + 1

    @pytest.mark.parametrize(("above", "below"), [(-1, 0), (0, -1), (501, 0), (0, 501)])
    @on_node
    def test_it_reaches_500_at_most(self, engine: Laurels, new_board: NewBoard, above: int, below: int):
        board = new_board()
        fill(engine, board, {"a": 1})
        with pytest.raises(InvalidInput):
            engine.around(board, "a", above, below)


class TestAmong:
    def test_friends_are_ranked_among_themselves(self, engine: Laurels, new_board: NewBoard):
        board = new_board()
        fill(engine, board, {"a": 9, "b": 8, "c": 8, "d": 7, "e": 1})
        found = engine.among(board, ["e", "c", "b", "nobody", "e"])
        assert [(each.member, each.rank, each.board_rank, each.score) for each in found.entries] == [
            ("c", 1, 2, 8),
            ("b", 1, 2, 8),
            ("e", 3, 5, 1),
        ]
        assert (found.total, found.absent) == (3, ["nobody"])

    @on_node
    def test_a_thousand_of_them_are_asked_for_at_once(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey, monkeypatch: pytest.MonkeyPatch
    ):
        board = new_board()
        fill(engine, board, numbered(range(2000)))
        friends = [f"m{number:04}" for number in range(0, 2000, 2)]
        under_way = most = 0
        standing = functions.standing

        async def counted(*words: Any) -> Any:  # noqa: ANN401  # passed on
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            answer = await standing(*words)
            under_way -= 1
            return answer

        monkeypatch.setattr(functions, "standing", counted)
        for size, calls in ((250, 1), (1000, 4)):
            asked, most = raw.calls("fcall_ro"), 0
            found = engine.among(board, friends[:size])
            assert (raw.calls("fcall_ro") - asked, most) == (calls, calls)
            assert [each.board_rank for each in found.entries] == list(range(2002 - 2 * size, 2001, 2))

    @on_node
    def test_more_than_a_thousand_are_refused(self, engine: Laurels, new_board: NewBoard):
        with pytest.raises(InvalidInput, match="at most 1000, not 1001"):
            engine.among(new_board(), [str(number) for number in range(1001)])

    def test_nobody_asked_for_is_nobody_found(self, engine: Laurels, new_board: NewBoard):
        board = new_board()
        fill(engine, board, {"a": 1})
        found = engine.among(board, [])
        assert (found.total, found.entries, found.absent) == (0, [], [])
