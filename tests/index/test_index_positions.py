"""Positions: a record's places after a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from index_models import score_model

from laurels.index.declare import declared
from laurels.index.positions import (
    NOWHERE,
    Placement,
    PositionRule,
    RecordChange,
    folded,
    read_position,
    write_position,
)
from laurels.moments import DAY, LATEST

if TYPE_CHECKING:
    from laurels.index.positions import Position


def rule_of(**fields: Any) -> PositionRule:  # noqa: ANN401  # of a LeaderboardIndex
    (index,) = declared(score_model(group_by=["region"], keep=3, **fields))
    return index.rule


MOVE = rule_of()
KEEP = rule_of(on_update="keep")


def put(day: int, score: int, group: str = "eu") -> RecordChange:
    return RecordChange("put", day * DAY, score, (group,))


def shown(rule: PositionRule, position: Position, day: int) -> dict[tuple[str, str], int | None]:
    """The score in each slot and group."""
    found = rule.windows(position, day * DAY)
    return {(at.slot, at.cut.value("region") or ""): each.placement.score for at, each in found.items()}


def test_an_update_moves_the_entry_to_its_window():
    position = folded(MOVE, NOWHERE, [put(1, 5, "asia"), put(2, 7)], 2 * DAY)
    assert shown(MOVE, position, 2) == {("2", ""): 7, ("2", "eu"): 7}


def test_an_update_leaves_the_entries_of_earlier_windows_where_each_is_kept():
    position = folded(KEEP, NOWHERE, [put(1, 5, "asia"), put(2, 6, "asia"), put(2, 7)], 2 * DAY)
    assert shown(KEEP, position, 2) == {("1", ""): 5, ("1", "asia"): 5, ("2", ""): 7, ("2", "eu"): 7}
    assert len(position) == 2


def test_becoming_nil_removes_all_of_a_move_and_this_window_of_a_kept_one():
    changes = [put(1, 5), put(2, 6), RecordChange("nil", 2 * DAY)]
    assert folded(MOVE, NOWHERE, changes, 2 * DAY) == NOWHERE
    position = folded(KEEP, NOWHERE, changes, 2 * DAY)
    assert shown(KEEP, position, 2) == {("1", ""): 5, ("1", "eu"): 5}
    assert folded(KEEP, NOWHERE, [put(2, 6), RecordChange("nil", 2 * DAY)], 2 * DAY) == NOWHERE


def test_becoming_nil_hides_earlier_places_in_longer_windows_too():
    rule = rule_of(on_update="keep", windows=["daily", "all_time"])
    position = folded(rule, NOWHERE, [put(1, 5), RecordChange("nil", 2 * DAY)], 2 * DAY)
    assert shown(rule, position, 2) == {("1", ""): 5, ("1", "eu"): 5}
    again = folded(rule, position, [put(2, 6)], 2 * DAY)
    assert shown(rule, again, 2)["", ""] == 6


def test_a_deleted_record_leaves_every_window():
    changes = [put(1, 5), put(2, 6), RecordChange("gone", 2 * DAY)]
    assert folded(KEEP, NOWHERE, changes, 2 * DAY) == NOWHERE


def test_windows_past_their_keep_are_left_out_and_only_the_last_place_is_remembered():
    position = folded(KEEP, NOWHERE, [put(1, 5), put(2, 6)], 9 * DAY)
    assert position == (Placement(2 * DAY, 6, ("eu",)),)
    assert shown(KEEP, position, 9) == {}
    assert shown(KEEP, position, 4) == {("2", ""): 6, ("2", "eu"): 6}
    assert shown(KEEP, position, 5) == {}


def test_places_that_no_window_shows_are_forgotten():
    rule = rule_of(on_update="keep", windows=["daily", "all_time"])
    position = folded(rule, NOWHERE, [put(day, day) for day in range(1, 50)], 50 * DAY)
    assert [each.score for each in position] == [48, 49]


def test_a_moment_outside_all_windows_counts_as_no_score():
    assert MOVE.after(NOWHERE, RecordChange("put", LATEST, 5), 0) == NOWHERE
    assert shown(MOVE, (Placement(LATEST, 5, ()),), 0) == {}


def test_a_rebuild_takes_the_score_from_the_table_and_the_moment_from_the_capture():
    captured = folded(MOVE, NOWHERE, [put(1, 5)], DAY)
    assert MOVE.settled(captured, Placement(DAY, 6, ("eu",)), DAY) == (Placement(DAY, 6, ("eu",)),)
    assert MOVE.settled(captured, None, DAY) == NOWHERE


def test_one_moment_is_in_every_declared_window():
    rule = rule_of(windows=["daily", "weekly", "monthly", "all_time"], timezone="Asia/Tokyo")
    found = rule.windows((Placement(20_000 * DAY, 5, ("eu",)),), 20_000 * DAY)
    assert {(at.label, at.slot) for at in found} == {
        ("daily", "2024-10-04"), ("weekly", "2024-w40"), ("monthly", "2024-10"), ("all_time", ""),
    }  # fmt: skip


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-(10**18), 10**18), st.integers(-(2**63), 2**63 - 1), st.lists(st.text())),
        max_size=3,
    )
)
def test_a_position_comes_back_as_it_was_written(places: list[tuple[int, int, list[str]]]):
    position = tuple(Placement(moment, score, tuple(groups)) for moment, score, groups in places)
    assert read_position(write_position(position)) == position
