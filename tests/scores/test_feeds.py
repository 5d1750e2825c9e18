from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from topologies import on_node

from laurels.errors import Conflict, InvalidInput, NotFound, OutcomeUnknown
from laurels.scores.submission import Submission
from laurels.valkey import functions, messages

if TYPE_CHECKING:
    from laurels.sync import Laurels

NewBoard = Callable[..., str]


def scores(engine: Laurels, board: str, **where: Any) -> dict[str, int | float]:  # noqa: ANN401  # keyword arguments
    return {entry.member: entry.score for entry in engine.page(board, **where).entries}


def break_once(monkeypatch: pytest.MonkeyPatch, board: str, *, after: bool) -> None:
    """The next call to this board fails, before it is sent or with its answer lost."""
    submit = functions.submit
    is_broken = False

    async def breaking(valkey: Any, keys: Any, *words: Any) -> messages.SubmitReply:  # noqa: ANN401  # passed on
        nonlocal is_broken
        if f"{{{board}}}" in keys[0] and not is_broken:
            is_broken = True
            if after:
                await submit(valkey, keys, *words)
            raise OutcomeUnknown("the connection broke")
        return await submit(valkey, keys, *words)

    monkeypatch.setattr(functions, "submit", breaking)


class TestSubmissions:
    def test_a_fed_board_takes_them_under_its_own_definition(self, engine: Laurels, new_board: NewBoard):
        total = new_board(aggregate="sum", groups=[["country"]], order="asc", score="int64")
        daily = new_board(windows=[{"period": "daily"}])
        game = new_board(feeds=[total, daily], groups=[["mode"], ["country"]])
        answers = [
            engine.submit(game, "ada", score, groups={"mode": "solo", "country": "BR"}) for score in (5, 3)
        ]
        assert [answer.score for answer in answers] == [5, 5]
        engine.submit(game, "bob", 4)
        assert scores(engine, total) == {"bob": 4, "ada": 8}
        assert scores(engine, total, group="country=BR") == {"ada": 8}
        assert scores(engine, daily) == {"ada": 5, "bob": 4}
        assert list(scores(engine, total)) == ["bob", "ada"]

    def test_batches_are_fed_too(self, engine: Laurels, new_board: NewBoard):
        total = new_board(aggregate="sum")
        game = new_board(feeds=[total])
        batch = [Submission(f"m{n % 10}", 1) for n in range(2000)]
        assert engine.submit_many(game, batch).accepted == 2000
        assert scores(engine, total) == {f"m{n}": 200 for n in range(10)}

    def test_the_same_id_counts_once_on_each(self, engine: Laurels, new_board: NewBoard):
        total = new_board(aggregate="sum")
        games = [new_board(feeds=[total], aggregate="sum") for _ in range(2)]
        for _ in range(2):
            engine.submit(games[0], "ada", 5, id="match-1")
            engine.submit(games[1], "ada", 5, id="match-2")
        assert scores(engine, total) == {"ada": 10}

    def test_an_op_goes_only_to_a_board_that_allows_it(self, engine: Laurels, new_board: NewBoard):
        free, fixed = new_board(allow_op=True), new_board(aggregate="last")
        game = new_board(feeds=[free, fixed], allow_op=True)
        for _ in range(2):
            engine.submit(game, "ada", 5, op="sum")
        assert [scores(engine, board) for board in (game, free, fixed)] == [
            {"ada": 10},
            {"ada": 10},
            {"ada": 5},
        ]

    def test_digits_given_to_an_int64_board_are_a_number_to_the_board_that_it_feeds(
        self, engine: Laurels, new_board: NewBoard
    ):
        doubles = new_board()
        game = new_board(feeds=[doubles], score="int64")
        engine.submit(game, "ada", "12")
        assert scores(engine, doubles) == {"ada": 12}


class TestRefusals:
    def test_a_fed_board_that_would_refuse_refuses_before_anything_is_written(
        self, engine: Laurels, new_board: NewBoard
    ):
        limited, whole = new_board(limits={"max": 10}), new_board(score="int64")
        game = new_board(feeds=[limited, whole])
        for score in (11, 1.5):
            with pytest.raises(InvalidInput):
                engine.submit(game, "ada", score)
        batch = engine.submit_many(
            game, [Submission("ada", 11), Submission("ada", 1.5), Submission("bob", 9)]
        )
        assert (batch.accepted, [rejected.index for rejected in batch.rejected]) == (1, [0, 1])
        assert [scores(engine, board) for board in (game, limited, whole)] == [{"bob": 9}] * 3

    def test_what_the_board_itself_refuses_is_not_fed(self, engine: Laurels, new_board: NewBoard):
        total = new_board(aggregate="sum")
        game = new_board(feeds=[total], aggregate="last", limits={"max_change": 5})
        engine.submit(game, "ada", 1)
        with pytest.raises(InvalidInput):
            engine.submit(game, "ada", 100)
        engine.submit_many(game, [Submission("ada", 100), Submission("ada", 2)])
        assert scores(engine, total) == {"ada": 3}


class TestFailuresInBetween:
    @pytest.mark.parametrize("after", [False, True])
    @pytest.mark.parametrize("given_id", [None, "match-1"])
    @on_node
    def test_a_retry_repairs_the_fed_board_exactly_once(
        self,
        engine: Laurels,
        new_board: NewBoard,
        monkeypatch: pytest.MonkeyPatch,
        after: bool,  # noqa: FBT001
        given_id: str | None,
    ):
        total = new_board(aggregate="sum")
        game = new_board(feeds=[total], aggregate="sum")
        break_once(monkeypatch, total, after=after)
        with pytest.raises(OutcomeUnknown) as unknown:
            engine.submit(game, "ada", 5, id=given_id)
        retry = unknown.value.retry_with
        assert retry is not None
        assert given_id is None or retry == given_id
        for _ in range(2):
            assert engine.submit(game, "ada", 5, id=retry).score == 5
        assert (scores(engine, game), scores(engine, total)) == ({"ada": 5}, {"ada": 5})

    def test_an_edit_of_the_fed_board_by_another_process_counts_nothing_twice(
        self, engine: Laurels, other_engine: Laurels, new_board: NewBoard
    ):
        total = new_board(aggregate="sum")
        game = new_board(feeds=[total], aggregate="sum")
        engine.submit(game, "ada", 5)
        other_engine.define(total, {"aggregate": "sum", "lateness": "PT3H"})
        assert engine.submit(game, "ada", 5).score == 10
        assert (scores(engine, game), scores(engine, total)) == ({"ada": 10}, {"ada": 10})

    def test_many_at_once_reach_both(self, engine: Laurels, new_board: NewBoard):
        total = new_board(aggregate="sum")
        game = new_board(feeds=[total], aggregate="sum")

        async def submit_all() -> None:
            await asyncio.gather(*(engine.engine.submit(game, f"m{n % 5}", 1) for n in range(100)))

        engine.run(submit_all())
        assert scores(engine, game) == scores(engine, total) == {f"m{n}": 20 for n in range(5)}


class TestDefining:
    def refusal(self, engine: Laurels, board: str, *feeds: str) -> str:
        with pytest.raises(InvalidInput) as refused:
            engine.define(board, {"feeds": list(feeds)})
        return refused.value.detail

    @on_node
    def test_a_board_cannot_feed_itself(self, engine: Laurels, new_board: NewBoard):
        board = new_board()
        assert self.refusal(engine, board, board) == "feeds[0]: a board cannot feed itself"

    @on_node
    def test_what_is_fed_must_be_there(self, engine: Laurels, new_board: NewBoard):
        told = self.refusal(engine, new_board(), new_board(), "tests/nowhere")
        assert told == "feeds[1]: there is no board tests/nowhere; define it first"

    @on_node
    def test_chains_and_cycles_are_refused(self, engine: Laurels, new_board: NewBoard):
        last = new_board()
        middle = new_board(feeds=[last])
        assert "feeds others itself" in self.refusal(engine, new_board(), middle)
        assert f"{middle} feeds this board" in self.refusal(engine, last, new_board())
        assert "feeds[0]: " in self.refusal(engine, last, middle)

    @on_node
    def test_a_board_that_is_fed_cannot_be_dropped_from_under_who_feeds_it(
        self, engine: Laurels, new_board: NewBoard
    ):
        total = new_board()
        game = new_board(feeds=[total])
        with pytest.raises(Conflict, match=game):
            engine.drop(total, allow_drop="all")
        assert engine.submit(game, "ada", 1).applied
        engine.define(game, {})
        engine.drop(total, allow_drop="all")
        with pytest.raises(NotFound):
            engine.page(total)
