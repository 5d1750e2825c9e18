"""Matches of more than two players need the package `openskill`, and are refused without it."""

from __future__ import annotations

import importlib
import importlib.util
import math
from typing import TYPE_CHECKING

import pytest

from laurels.boards.rating import OpenSkill
from laurels.errors import InvalidInput
from laurels.ratings import openskill
from laurels.ratings.state import RatingState
from laurels.ratings.systems import newcomer, outcomes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from laurels.engine import Laurels

    NewBoard = Callable[..., Awaitable[str]]

GAME = OpenSkill(system="openskill")
installed = pytest.mark.skipif(
    importlib.util.find_spec("openskill") is None, reason="the package openskill is not installed"
)


async def test_a_board_that_needs_the_package_is_refused_without_it(
    new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(openskill, "PACKAGE", "a_package_that_nobody_has")
    with pytest.raises(InvalidInput, match="system: needs the Python package a_package_that_nobody_has"):
        await new_board(rating={"system": "openskill"})


@installed
def test_newcomers_are_told_apart_by_their_ranks():
    first, second, third = outcomes(GAME, [newcomer(GAME)] * 3, [1, 2, 3])
    assert first.after.rating > 25 > third.after.rating
    assert first.after.rating > second.after.rating > third.after.rating
    assert all(each.after.deviation < 25 / 3 and each.after.games == 1 for each in (first, second, third))


@installed
def test_constants_are_those_of_the_package_where_the_board_says_nothing():
    model = importlib.import_module("openskill.models").PlackettLuce()
    expected = model.rate([[model.rating()] for _ in range(4)], ranks=[1, 2, 2, 4])
    found = outcomes(GAME, [newcomer(GAME)] * 4, [1, 2, 2, 4])
    assert [each.after.rating for each in found] == pytest.approx([player.mu for (player,) in expected])
    assert [each.after.deviation for each in found] == pytest.approx([each.sigma for (each,) in expected])


@installed
def test_who_share_a_rank_and_were_alike_stay_alike():
    first, second, third = outcomes(GAME, [RatingState(25.0, 0, 8.0)] * 3, [2, 1, 2])
    assert first == third
    assert second.change > 0 > first.change
    assert all(map(math.isfinite, second.after))


@installed
async def test_a_match_of_five_moves_all_of_them_at_once(laurels: Laurels, new_board: NewBoard):
    board = await new_board(rating={"system": "openskill"})
    players = ["ada", "bob", "eve", "joe", "zoe"]
    matched = await laurels.match(board, players, ranks=[3, 1, 2, 5, 4], id="game-1")
    assert [each.rank for each in matched.players] == [3, 1, 2, 5, 4]
    assert not (await laurels.match(board, players, ranks=[1, 2, 3, 4, 5], id="game-1")).applied
    page = await laurels.page(board)
    assert [entry.member for entry in page.entries] == ["bob", "eve", "ada", "zoe", "joe"]
    assert (await laurels.verify(board)).differences == []
    with pytest.raises(InvalidInput, match="ranks: give a rank for each"):
        await laurels.match(board, players, "ada")
    with pytest.raises(InvalidInput, match="openskill rates matches of up to 64"):
        await laurels.match(board, [str(number) for number in range(65)], ranks=[1] * 65)
