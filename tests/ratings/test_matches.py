"""Matches on real servers, with concurrent players and lost data."""

from __future__ import annotations

import asyncio
import math
import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from supported_servers import lacks_waitaof
from topologies import on_node

from laurels.boards.keys import BoardRef
from laurels.errors import Conflict, InvalidInput, NotFound, OutcomeUnknown
from laurels.moments import datetime_of
from laurels.ratings import elo
from laurels.ratings.state import RatingState
from laurels.scores.submission import Submission
from laurels.valkey import functions, hashes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from laurels.clock import FixedClock
    from laurels.engine import Laurels
    from laurels.journal.entry import JournalRow
    from laurels.ratings.match import Matched

    NewBoard = Callable[..., Awaitable[str]]


async def scores(laurels: Laurels, board: str, **where: Any) -> dict[str, int | float]:  # noqa: ANN401  # a window
    page = await laurels.page(board, limit=1000, **where)
    return {entry.member: entry.score for entry in page.entries}


async def states(laurels: Laurels, board: str) -> dict[str, RatingState]:
    compiled = await laurels._catalog.board(BoardRef.parse(board))  # pyright: ignore[reportPrivateUsage]  # its keys
    found = await laurels.valkey.run(hashes.get_all(compiled.keys.of_board(0, "ratings")))
    return {member.decode(): RatingState.parse(text) for member, text in found.items()}


async def journal(laurels: Laurels, board: str) -> list[JournalRow]:
    await laurels.archived(board)
    (stream,) = await laurels.drain.journal_streams.of_board(BoardRef.parse(board))
    return await laurels.drain.store.rows(stream.board_id, limit=100_000)


async def keys_of(laurels: Laurels, pattern: str) -> list[bytes]:
    nodes = await laurels.valkey._primaries()  # pyright: ignore[reportPrivateUsage]  # every key there is
    found = [await node.execute_command("KEYS", pattern) for node in nodes]
    return [key for of_node in found for key in of_node]


async def forget_everything(laurels: Laurels, board: str) -> None:
    """Deletes every key of one board."""
    for key in await keys_of(laurels, f"*{board}*"):
        await laurels.valkey.command("DEL", key)


def told(matched: Matched) -> list[tuple[str, int | float, int | None, int | None]]:
    return [(each.member, each.rating, each.rank, each.previous_rank) for each in matched.players]


class TestAMatch:
    async def test_moves_both_players_by_the_same(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        matched = await laurels.match(board, ["ada", "bob"], "ada")
        assert told(matched) == [("ada", 1016, 1, None), ("bob", 984, 2, None)]
        assert [each.change for each in matched.players] == [16, -16]
        assert [each.previous_rating for each in matched.players] == [1000, 1000]
        assert [each.games for each in matched.players] == [1, 1]
        assert matched.applied
        assert await scores(laurels, board) == {"ada": 1016, "bob": 984}

    async def test_tells_ranks_before_and_after(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        await laurels.match(board, ["ada", "bob"], "ada")
        matched = await laurels.match(board, ["ada", "bob"], "bob")
        change = 32 * (1 - 1 / (1 + 10 ** ((1016 - 984) / 400)))
        assert told(matched) == [("ada", 1016 - change, 2, 1), ("bob", 984 + change, 1, 2)]

    async def test_a_draw_moves_towards_each_other(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        await laurels.match(board, ["ada", "bob"], "ada")
        matched = await laurels.match(board, ["bob", "ada"], None)
        assert matched.players[0].change == -matched.players[1].change > 0

    async def test_ranks_say_the_same_as_a_winner(self, laurels: Laurels, new_board: NewBoard):
        one, other = await new_board(), await new_board()
        for winner, ranks in (("ada", [1, 2]), ("bob", [7, 3]), (None, [1, 1])):
            by_winner = await laurels.match(one, ["ada", "bob"], winner)
            by_ranks = await laurels.match(other, ["ada", "bob"], ranks=ranks)
            assert by_winner.players == by_ranks.players

    async def test_enters_every_window_and_group(
        self, laurels: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        windows = [{"period": "daily"}, {"period": "rolling", "days": 2}, {"period": "all_time"}]
        board = await new_board(windows=windows, groups=[["country"]], ties="earliest", dense=True)
        groups = {"ada": {"country": "GB"}, "bob": {"country": "BR"}}
        await laurels.match(board, ["ada", "bob"], "ada", groups=groups, metadata={"map": "dust"})
        clock.advance(timedelta(days=1))
        await laurels.match(board, ["ada", "eve"], "eve")
        by_all = await scores(laurels, board, period="all_time")
        assert by_all["bob"] == 984
        assert await scores(laurels, board) == {name: by_all[name] for name in ("ada", "eve")}
        assert await scores(laurels, board, period="rolling_2d") == by_all
        assert await scores(laurels, board, slot="2025-10-24") == {"ada": 1016, "bob": 984}
        assert await scores(laurels, board, slot="2025-10-24", group="country=BR") == {"bob": 984}
        (entry,) = (await laurels.page(board, period="all_time", group="country=BR")).entries
        assert entry.metadata == {"map": "dust"}

    async def test_that_comes_late_enters_the_window_of_its_time(
        self, laurels: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = await new_board(windows=[{"period": "daily"}, {"period": "all_time"}])
        await laurels.match(board, ["ada", "bob"], "ada")
        await laurels.match(board, ["ada", "bob"], "ada", at=datetime_of(clock.now) - timedelta(hours=13))
        late = await scores(laurels, board, slot="2025-10-23")
        assert late == await scores(laurels, board, period="all_time")
        assert await scores(laurels, board) == {"ada": 1016, "bob": 984}

    @on_node  # the cluster of the tests has no disk to wait for
    @pytest.mark.skipif(lacks_waitaof(), reason="durability `fsync` needs Redis 7.2 or Valkey")
    async def test_is_as_durable_as_it_is_asked_to_be(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        for _ in range(2):
            assert (await laurels.match(board, ["ada", "bob"], "ada", durability="fsync")).applied

    async def test_needs_no_journal(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(archive={"journal": False})
        await laurels.match(board, ["ada", "bob"], "ada")
        assert await scores(laurels, board) == {"ada": 1016, "bob": 984}


class TestAnId:
    async def test_counts_once(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        first = await laurels.match(board, ["ada", "bob"], "ada", id="game-1")
        again = await laurels.match(board, ["ada", "bob"], "ada", id="game-1")
        assert (first.applied, again.applied, again.id) == (True, False, "game-1")
        assert told(again) == [("ada", 1016, 1, 1), ("bob", 984, 2, 2)]
        assert [each.change for each in again.players] == [0, 0]
        assert {name: state.games for name, state in (await states(laurels, board)).items()} == {
            "ada": 1,
            "bob": 1,
        }

    async def test_sent_fifty_times_at_once_counts_once(
        self, laurels: Laurels, other: Laurels, new_board: NewBoard
    ):
        board = await new_board()
        sent = [
            (laurels, other)[number % 2].match(board, ["ada", "bob"], "ada", id="game-1")
            for number in range(50)
        ]
        answers = await asyncio.gather(*sent)
        assert sum(answer.applied for answer in answers) == 1
        assert await scores(laurels, board) == {"ada": 1016, "bob": 984}
        assert len(await journal(laurels, board)) == 2

    async def test_that_was_made_can_be_sent_again(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        made = [(await laurels.match(board, ["ada", "bob"], "ada")).id for _ in range(2)]
        for name in made:
            assert not (await laurels.match(board, ["ada", "bob"], "ada", id=name)).applied

    async def test_of_a_lost_answer_is_told(
        self, laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        board = await new_board()
        match = functions.match

        async def losing(*words: Any) -> Any:  # noqa: ANN401  # passed on
            await match(*words)
            raise OutcomeUnknown("the connection broke")

        with monkeypatch.context() as broken:
            broken.setattr(functions, "match", losing)
            with pytest.raises(OutcomeUnknown) as lost:
                await laurels.match(board, ["ada", "bob"], "ada")
        again = await laurels.match(board, ["ada", "bob"], "ada", id=lost.value.retry_with)
        assert not again.applied
        assert await scores(laurels, board) == {"ada": 1016, "bob": 984}


class TestManyAtOnce:
    @pytest.mark.parametrize("system", ["elo", "glicko2"])
    async def test_a_thousand_are_as_good_as_one_by_one_to_the_last_bit(
        self, laurels: Laurels, other: Laurels, new_board: NewBoard, system: str
    ):
        windows = [{"period": "all_time"}, {"period": "daily"}]
        board = await new_board(rating={"system": system}, windows=windows)
        chosen = random.Random(20)  # noqa: S311  # the same matches each time

        async def play(number: int) -> Matched:
            players = chosen.sample([f"m{each}" for each in range(20)], 2)
            winner = chosen.choice([*players, None])
            return await (laurels, other)[number % 2].match(board, players, winner, id=f"{number} {winner}")

        answers = await asyncio.gather(*map(play, range(1000)))
        assert all(answer.applied for answer in answers)
        rows = await journal(laurels, board)
        assert len(rows) == 2000
        alone = await new_board(rating={"system": system}, windows=windows)
        by_id = {answer.id: answer for answer in answers}
        for first, second in zip(rows[::2], rows[1::2], strict=True):
            winner = first.id.partition(" ")[2]
            players = [first.member.decode(), second.member.decode()]
            matched = await laurels.match(alone, players, None if winner == "None" else winner)
            assert matched.players == by_id[first.id].players, "ranks included"
        found = await states(laurels, board)
        assert found == await states(laurels, alone)
        assert sum(state.games for state in found.values()) == 2000
        for period in ("all_time", "daily"):
            assert await scores(laurels, board, period=period) == {
                name: state.rating for name, state in found.items()
            }
        if system == "elo":
            assert math.isclose(sum(state.rating for state in found.values()), 20_000, rel_tol=1e-12)
            assert {name: state.rating for name, state in found.items()} == _one_by_one(rows)

    async def test_go_out_together(
        self, laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        board = await new_board()
        calls = 0
        match = functions.match

        async def counting(*words: Any) -> Any:  # noqa: ANN401  # passed on
            nonlocal calls
            calls += 1
            return await match(*words)

        monkeypatch.setattr(functions, "match", counting)
        pairs = [["ada", "bob"], ["bob", "eve"], ["eve", "ada"]] * 30
        await asyncio.gather(*(laurels.match(board, pair, pair[0]) for pair in pairs))
        assert calls <= 4
        assert sum(state.games for state in (await states(laurels, board)).values()) == 180


def _one_by_one(rows: list[JournalRow]) -> dict[str, float]:
    """Computes the ratings by the formula, in the order of the journal."""
    ratings: dict[str, float] = {}
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        one, two = first.member.decode(), second.member.decode()
        winner = first.id.partition(" ")[2]
        result = {one: 1.0, two: 0.0}.get(winner, 0.5)
        change = elo.change(ratings.get(one, 1000.0), ratings.get(two, 1000.0), result, 32)
        ratings[one] = ratings.get(one, 1000.0) + change
        ratings[two] = ratings.get(two, 1000.0) - change
    return ratings


class TestProvisionalPlayers:
    async def test_are_marked_for_their_first_games(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(rating={"system": "elo", "provisional": 2})
        marks = [(await laurels.match(board, ["ada", "bob"], "ada")).players[0] for _ in range(3)]
        assert [each.provisional for each in marks] == [True, False, False]
        assert [each.rank for each in marks] == [1, 1, 1]

    async def test_are_in_no_window_where_they_are_not_ranked(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(rating={"system": "elo", "provisional": 2, "rank_provisional": False})
        first = await laurels.match(board, ["ada", "bob"], "ada")
        assert told(first) == [("ada", 1016, None, None), ("bob", 984, None, None)]
        assert await scores(laurels, board) == {}
        second = await laurels.match(board, ["ada", "eve"], "ada")
        rating = second.players[0].rating
        assert rating > 1016
        assert told(second) == [("ada", rating, 1, None), ("eve", second.players[1].rating, None, None)]
        assert await scores(laurels, board) == {"ada": rating}


class TestWhatAJournalTells:
    @pytest.mark.parametrize(
        "rating",
        [
            {"system": "elo", "provisional": 3, "rank_provisional": False},
            {"system": "glicko2"},
        ],
        ids=["elo", "glicko2"],
    )
    async def test_is_all_that_a_lost_board_is_made_of(
        self, laurels: Laurels, new_board: NewBoard, clock: FixedClock, rating: dict[str, Any]
    ):
        windows = [{"period": "all_time"}, {"period": "daily", "keep": 3}, {"period": "rolling", "days": 2}]
        board = await new_board(rating=rating, windows=windows, groups=[["country"]], ties="earliest")
        chosen = random.Random(7)  # noqa: S311  # the same matches each time
        for number in range(80):
            players = chosen.sample([f"m{each}" for each in range(9)], 2)
            groups = {players[0]: {"country": "BR"}} if number % 3 else None
            name = f"game-{number}" if number % 2 else None
            await laurels.match(board, players, players[0], id=name, groups=groups)
            if number % 30 == 29:
                await laurels.remove(board, "m3")
            clock.advance(timedelta(hours=1))
        before = (
            await states(laurels, board),
            [
                await scores(laurels, board, period=period, group=group)
                for period in ("all_time", "daily", "rolling_2d")
                for group in (None, "country=BR")
            ],
        )
        assert (await laurels.verify(board)).differences == []
        await laurels.archived(board)
        await forget_everything(laurels, board)
        await laurels.rebuild(board)
        after = (
            await states(laurels, board),
            [
                await scores(laurels, board, period=period, group=group)
                for period in ("all_time", "daily", "rolling_2d")
                for group in (None, "country=BR")
            ],
        )
        assert after == before
        assert await keys_of(laurels, f"rebuild-*{board}*:ratings") == []
        assert not (await laurels.match(board, ["m1", "m2"], "m1", id="game-79")).applied
        assert (await laurels.match(board, ["m1", "m2"], "m1")).applied

    @on_node
    async def test_is_compared_with_the_ratings_too(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        await laurels.match(board, ["ada", "bob"], "ada")
        (key,) = await keys_of(laurels, f"*{board}*:ratings")
        await laurels.valkey.command("HSET", key, "ada", "1017.0 1 0.0 0.0")
        (difference,) = (await laurels.verify(board)).differences
        assert difference == "rating: ada: has 1017.0 1 0.0 0.0, by the journal 1016.0 1 0.0 0.0"
        await laurels.rebuild(board)
        assert (await states(laurels, board))["ada"] == RatingState(1016.0, 1)

    async def test_tells_of_windows_that_are_gone(
        self, laurels: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        windows = [{"period": "daily", "keep": 1}, {"period": "all_time"}]
        board = await new_board(windows=windows)
        await laurels.match(board, ["ada", "bob"], "ada")
        last = await laurels.match(board, ["ada", "bob"], "ada")
        clock.advance(timedelta(days=2))
        await laurels.archived(board)
        (point,) = (await laurels.history(board, "ada", period="daily")).windows
        assert (point.score, point.rank, point.total) == (last.players[0].rating, 1, 2)


class TestWhoLeaves:
    async def test_begins_anew(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        await laurels.match(board, ["ada", "bob"], "ada")
        assert await laurels.remove(board, "ada")
        assert (await states(laurels, board)).keys() == {"bob"}
        (ada, bob) = (await laurels.match(board, ["ada", "bob"], "ada")).players
        assert (ada.previous_rating, ada.games, bob.previous_rating, bob.games) == (1000, 1, 984, 2)

    async def test_leaves_a_rating_that_is_not_ranked_too(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(rating={"system": "elo", "provisional": 2, "rank_provisional": False})
        await laurels.match(board, ["ada", "bob"], "ada")
        assert await laurels.remove(board, "ada")
        assert not await laurels.remove(board, "ada")
        assert (await states(laurels, board)).keys() == {"bob"}

    async def test_a_dropped_board_leaves_no_ratings(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        await laurels.match(board, ["ada", "bob"], "ada")
        await laurels.drop(board, allow_drop="all")
        assert await keys_of(laurels, f"*{board}*:ratings") == []
        await laurels.define(board, {"rating": {"system": "elo"}})
        assert (await laurels.match(board, ["ada", "bob"], "bob")).players[0].rating == 984


@on_node
class TestWhatCannotBe:
    async def test_scores_are_not_given_to_a_board_that_makes_them(
        self, laurels: Laurels, new_board: NewBoard
    ):
        board = await new_board()
        with pytest.raises(InvalidInput, match="score: the board takes its scores from matches"):
            await laurels.submit(board, "ada", 1200)
        (rejected,) = (await laurels.submit_many(board, [Submission("ada", 1)])).rejected
        assert rejected.detail.startswith("score: the board takes its scores from matches")

    async def test_matches_are_not_played_on_a_board_of_scores(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(rating=None)
        with pytest.raises(InvalidInput, match="players: the board takes scores, not matches"):
            await laurels.match(board, ["ada", "bob"], "ada")
        with pytest.raises(NotFound):
            await laurels.match("ratings/nowhere", ["ada", "bob"], "ada")

    @pytest.mark.parametrize(
        ("match", "field"),
        [
            ({"players": ["ada"], "winner": "ada"}, "players"),
            ({"players": ["ada", "bob", "eve"], "ranks": [1, 2, 3]}, "players"),
            ({"players": ["ada", "ada"], "winner": "ada"}, "players"),
            ({"players": ["ada", ""], "winner": "ada"}, "players[1]"),
            ({"players": ["ada", "b" * 257], "winner": "ada"}, "players[1]"),
            ({"players": ["ada", "bob"]}, "winner"),
            ({"players": ["ada", "bob"], "winner": "eve"}, "winner"),
            ({"players": ["ada", "bob"], "winner": "ada", "ranks": [1, 2]}, "winner"),
            ({"players": ["ada", "bob"], "ranks": [1]}, "ranks"),
            ({"players": ["ada", "bob"], "ranks": [0, 1]}, "ranks"),
            ({"players": ["ada", "bob"], "winner": None, "id": ""}, "id"),
            ({"players": ["ada", "bob"], "winner": None, "groups": {"eve": {}}}, "groups.eve"),
            ({"players": ["ada", "bob"], "winner": None, "groups": {"bob": {"x": "y"}}}, "groups.bob.x"),
            ({"players": ["ada", "bob"], "winner": None, "metadata": {"a": "x" * 5000}}, "metadata"),
        ],
    )
    async def test_what_is_wrong_is_said_by_its_field(
        self, laurels: Laurels, new_board: NewBoard, match: dict[str, Any], field: str
    ):
        board = await new_board()
        with pytest.raises(InvalidInput) as refused:
            await laurels.match(board, **match)
        assert [each.field for each in refused.value.fields] == [field]
        assert await scores(laurels, board) == {}

    async def test_the_system_does_not_change_under_ratings(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(rating={"system": "elo", "provisional": 9, "rank_provisional": False})
        await laurels.match(board, ["ada", "bob"], "ada")
        with pytest.raises(Conflict, match=r"rating\.system cannot change"):
            await laurels.define(board, {"rating": {"system": "glicko2"}})
        await laurels.define(board, {"rating": {"system": "elo", "k": 16}})
        change = (await laurels.match(board, ["ada", "bob"], "bob")).players[1].change
        assert 8 < change < 16

    async def test_nobody_feeds_a_board_of_ratings(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        with pytest.raises(InvalidInput, match="takes its scores from matches alone"):
            await new_board(rating=None, feeds=[board])
        fed = await new_board(rating=None)
        await new_board(rating=None, feeds=[fed])
        with pytest.raises(InvalidInput, match=r"rating: .* feeds this board"):
            await laurels.define(fed, {"aggregate": "last", "rating": {"system": "elo"}})
