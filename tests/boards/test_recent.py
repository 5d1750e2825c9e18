from __future__ import annotations

from laurels.boards.board import Board
from laurels.boards.definition import BoardDefinition
from laurels.boards.keys import BoardRef
from laurels.boards.recent import RecentBoards

DEFINITION = BoardDefinition()


def made(name: str, version: int = 1) -> Board:
    return Board(BoardRef("game", name), DEFINITION, version, cluster=False)


def names(recent: RecentBoards, *asked: str) -> list[str]:
    return [name for name in asked if recent.get(BoardRef("game", name))]


def test_the_board_that_was_not_used_for_longest_is_forgotten():
    recent = RecentBoards(2)
    recent.add(made("a"))
    recent.add(made("b"))
    assert names(recent, "a") == ["a"]
    recent.add(made("c"))
    assert names(recent, "a", "b", "c") == ["a", "c"]


def test_a_board_that_something_still_uses_is_found():
    recent = RecentBoards(1)
    used = made("a")
    recent.add(used)
    recent.add(made("b"))
    assert recent.get(used.ref) is used
    assert names(recent, "b") == []


def test_a_board_that_is_discarded_is_gone_even_if_something_uses_it():
    recent = RecentBoards(2)
    used = made("a")
    recent.add(used)
    recent.discard(used.ref)
    assert recent.get(used.ref) is None


def test_a_later_version_takes_the_place_of_an_earlier_one():
    recent = RecentBoards(2)
    before, after = made("a"), made("a", 2)
    recent.add(before)
    recent.add(after)
    assert recent.get(before.ref) is after
