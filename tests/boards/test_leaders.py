from __future__ import annotations

from datetime import UTC, datetime

import pytest

from laurels.boards.board import Board, WindowAddress
from laurels.boards.definition import BoardDefinition, parse_definition
from laurels.boards.keys import WHOLE, BoardRef
from laurels.boards.leaders import LeadersBoard
from laurels.errors import InvalidInput
from laurels.moments import moment_of

NOW = moment_of(datetime(2025, 10, 24, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    ("code", "on_a_node", "on_a_cluster"),
    [
        ("d", "/leaders/acme/high.score/d/20251024", "{/leaders/acme/high.score/d}/20251024"),
        ("w", "/leaders/acme/high.score/w/202543", "{/leaders/acme/high.score/w}/202543"),
        ("m", "/leaders/acme/high.score/m/202510", "{/leaders/acme/high.score/m}/202510"),
        ("a", "/leaders/acme/high.score/a/a", "{/leaders/acme/high.score/a/a}"),
    ],
)
def test_every_range_has_exactly_its_documented_key(code: str, on_a_node: str, on_a_cluster: str):
    of = LeadersBoard.of("high.score", code)
    for cluster, key in ((False, on_a_node), (True, on_a_cluster)):
        board = Board(BoardRef("acme", of.name), of.definition, 1, cluster=cluster)
        address = WindowAddress(board.zoned_window(None).label, of.current(NOW).text, WHOLE)
        assert board.window_key(0, address) == key


@pytest.mark.parametrize("code", "dwma")
def test_a_range_is_recognized_by_name_and_shape(code: str):
    of = LeadersBoard.of("x.d", code)
    assert LeadersBoard.named(of.name, of.definition) == of
    assert LeadersBoard.named("other.d", of.definition) is None
    assert LeadersBoard.named(of.name, BoardDefinition()) is None
    assert LeadersBoard.named("x", of.definition) is None


@pytest.mark.parametrize("edited", [{"limits": {"max": 9}}, {"lateness": "P2D"}, {"player_writes": True}])
def test_fields_that_do_not_affect_entries_may_be_edited(edited: dict[str, object]):
    of = LeadersBoard.of("highscore", "d")
    fields = of.definition.model_dump(mode="json") | edited
    assert of.is_like(parse_definition(fields))


@pytest.mark.parametrize(
    "edited",
    [
        {"aggregate": "sum"},
        {"order": "asc"},
        {"ties": "earliest"},
        {"timezone": "Asia/Tokyo"},
        {"keys": None},
    ],
)
def test_a_board_with_other_entry_rules_is_not_a_leaders_board(edited: dict[str, object]):
    of = LeadersBoard.of("highscore", "d")
    fields = of.definition.model_dump(mode="json") | edited
    assert not of.is_like(parse_definition(fields))


@pytest.mark.parametrize(("board", "code"), [("", "d"), ("a b", "d"), ("b" * 63, "d"), ("b", "x"), ("b", "")])
def test_names_that_there_cannot_be_are_refused(board: str, code: str):
    with pytest.raises(InvalidInput):
        LeadersBoard.of(board, code)
