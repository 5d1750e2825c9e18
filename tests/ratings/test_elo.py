"""Elo by values computed by hand, and by properties of all results."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laurels.boards.rating import Elo
from laurels.ratings import elo
from laurels.ratings.state import RatingState
from laurels.ratings.systems import newcomer, outcomes

RATINGS = st.floats(-3000, 5000)
RESULTS = st.sampled_from([0, 0.5, 1])
DUELS = Elo(system="elo")


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [(1000, 1000, 1 / 2), (1400, 1000, 10 / 11), (1000, 1400, 1 / 11), (1800, 1000, 100 / 101)],
)
def test_400_points_are_odds_of_ten_to_one(own: float, other: float, expected: float):
    assert elo.expected(own, other) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("ratings", "ranks", "left"),
    [
        ((1000, 1000), (1, 2), (1016, 984)),
        ((1000, 1000), (1, 1), (1000, 1000)),
        ((1000, 1000), (2, 1), (984, 1016)),
        # 1 / (1 + 10^-0.5) is 0.759746926647958 to expect of who is 200 points ahead.
        ((1200, 1000), (1, 2), (1207.688098347265, 992.311901652735)),
        ((1200, 1000), (1, 1), (1191.688098347265, 1008.311901652735)),
        ((1200, 1000), (2, 1), (1175.688098347265, 1024.311901652735)),
        ((1400, 1000), (2, 1), (1400 - 320 / 11, 1000 + 320 / 11)),
    ],
)
def test_ratings_by_hand(ratings: tuple[int, int], ranks: tuple[int, int], left: tuple[float, float]):
    players = [RatingState(float(rating)) for rating in ratings]
    assert [each.after.rating for each in outcomes(DUELS, players, ranks)] == pytest.approx(left, abs=1e-9)


def test_a_newcomer_has_the_boards_initial_rating_and_no_games():
    assert newcomer(Elo(system="elo", initial=1200)) == RatingState(1200.0, 0)


def test_each_match_is_a_game():
    first, second = outcomes(DUELS, [RatingState(1000.0, 4), RatingState(1000.0)], [1, 2])
    assert (first.after.games, second.after.games) == (5, 1)


@given(RATINGS, RATINGS)
def test_the_expected_scores_of_two_are_one_together(own: float, other: float):
    assert elo.expected(own, other) + elo.expected(other, own) == pytest.approx(1, abs=1e-12)


@given(RATINGS, RATINGS, st.sampled_from([(1, 2), (1, 1), (2, 1)]), st.floats(1, 100))
def test_the_other_player_loses_the_same_points(own: float, other: float, ranks: tuple[int, int], k: float):
    first, second = outcomes(Elo(system="elo", k=k), [RatingState(own), RatingState(other)], ranks)
    assert first.change == -second.change
    assert first.after.rating + second.after.rating == pytest.approx(own + other, abs=1e-9)


@given(RATINGS, RATINGS, st.sampled_from([(1, 2), (1, 1), (2, 1)]))
def test_it_does_not_matter_who_is_named_first(own: float, other: float, ranks: tuple[int, int]):
    there = outcomes(DUELS, [RatingState(own), RatingState(other)], ranks)
    back = outcomes(DUELS, [RatingState(other), RatingState(own)], ranks[::-1])
    assert [each.after.rating for each in there] == pytest.approx([each.after.rating for each in back][::-1])


@given(RATINGS, RATINGS, RESULTS)
def test_a_better_result_is_never_worth_less(own: float, other: float, result: float):
    assert (
        elo.change(own, other, 1, 32) >= elo.change(own, other, result, 32) >= elo.change(own, other, 0, 32)
    )
    assert elo.change(own, other, 1, 32) >= 0 >= elo.change(own, other, 0, 32)
    assert abs(elo.change(own, other, result, 32)) <= 32


@given(RATINGS, RATINGS, st.floats(0, 1000), RESULTS)
def test_a_stronger_opponent_is_never_worth_less(own: float, other: float, more: float, result: float):
    assert elo.change(own, other + more, result, 32) >= elo.change(own, other, result, 32)


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12), RESULTS)
def test_no_distance_is_too_great(own: float, other: float, result: float):
    assert math.isfinite(elo.change(own, other, result, 32))


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 10**9), st.floats(0, 1e6))
def test_a_state_is_read_as_it_was_written_to_the_last_bit(rating: float, games: int, deviation: float):
    state = RatingState(rating, games, deviation, deviation / 3)
    assert RatingState.parse(state.text()) == state
