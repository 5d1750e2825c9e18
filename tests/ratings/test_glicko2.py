"""Glicko-2 by the example of its paper, and by properties of all results."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laurels.boards.rating import Glicko2
from laurels.ratings.glicko2 import Game, Glicko2Player, rated
from laurels.ratings.state import RatingState
from laurels.ratings.systems import newcomer, outcomes

DUELS = Glicko2(system="glicko2")
PLAYERS = st.builds(Glicko2Player, st.floats(0, 3500), st.floats(10, 350), st.floats(0.01, 0.12))
STATES = st.builds(
    RatingState, st.floats(-1e5, 1e5), st.integers(0, 99), st.floats(1e-3, 350), st.floats(1e-4, 0.12)
)


def test_the_papers_example():
    games = [
        Game(Glicko2Player(1400, 30, 0.06), 1),
        Game(Glicko2Player(1550, 100, 0.06), 0),
        Game(Glicko2Player(1700, 300, 0.06), 0),
    ]
    after = rated(Glicko2Player(1500, 200, 0.06), games, tau=0.5)
    # The paper rounds on its way: 1464.06, 151.52 and 0.05999.
    assert after.rating == pytest.approx(1464.06, abs=0.02)
    assert after.deviation == pytest.approx(151.52, abs=0.005)
    assert after.volatility == pytest.approx(0.05999, abs=0.000006)


def test_a_newcomer_is_as_the_board_says():
    assert newcomer(DUELS) == RatingState(1500.0, 0, 350.0, 0.06)


def test_two_newcomers_move_by_the_same_and_become_more_certain():
    first, second = outcomes(DUELS, [newcomer(DUELS)] * 2, [1, 2])
    assert first.change == pytest.approx(-second.change) == pytest.approx(162.31, abs=0.01)
    assert first.after.deviation == second.after.deviation == pytest.approx(290.32, abs=0.01)
    assert (first.after.games, second.after.games) == (1, 1)


def test_results_against_opponents_of_low_deviation_weigh_more():
    player = Glicko2Player(1500, 100, 0.06)
    of_certain, of_uncertain = (
        rated(player, [Game(Glicko2Player(1500, rd, 0.06), 1)], 0.5) for rd in (30, 300)
    )
    assert of_certain.rating > of_uncertain.rating > 1500
    assert of_certain.deviation < of_uncertain.deviation


@given(PLAYERS, PLAYERS, st.floats(0.2, 1.2))
def test_a_better_result_is_worth_more(player: Glicko2Player, opponent: Glicko2Player, tau: float):
    lost, drawn, won = (rated(player, [Game(opponent, result)], tau).rating for result in (0, 0.5, 1))
    assert lost <= drawn <= won
    assert lost <= player.rating <= won


@given(STATES, STATES, st.sampled_from([(1, 2), (1, 1), (2, 1)]))
def test_no_match_leaves_the_range_of_numbers(
    first: RatingState, second: RatingState, ranks: tuple[int, int]
):
    for _, after, change in outcomes(DUELS, [first, second], ranks):
        assert all(map(math.isfinite, (*after, change)))
        assert 0 < after.deviation <= 350
        assert after.volatility > 0


@given(STATES, STATES, st.sampled_from([(1, 2), (1, 1), (2, 1)]))
def test_it_does_not_matter_who_comes_first(first: RatingState, second: RatingState, ranks: tuple[int, int]):
    there = outcomes(DUELS, [first, second], ranks)
    back = outcomes(DUELS, [second, first], ranks[::-1])
    assert there == back[::-1]
