"""Positions: a record's places after a change."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

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

MOVE = PositionRule(DAY, 3, "move")
KEEP = PositionRule(DAY, 3, "keep")


def put(day: int, score: int, *groups: str) -> RecordChange:
    return RecordChange("put", day * DAY, score, groups)


def test_an_update_moves_the_entry_to_its_window():
    position = folded(MOVE, NOWHERE, [put(1, 5, "asia"), put(2, 7, "eu")], 2 * DAY)
    assert MOVE.windows(position, 2 * DAY) == {(2, ()): 7, (2, ("eu",)): 7}


def test_an_update_leaves_the_entries_of_earlier_windows_where_each_is_kept():
    position = folded(KEEP, NOWHERE, [put(1, 5, "asia"), put(2, 6, "asia"), put(2, 7, "eu")], 2 * DAY)
    assert KEEP.windows(position, 2 * DAY) == {
        (1, ()): 5, (1, ("asia",)): 5, (2, ()): 7, (2, ("eu",)): 7
    }  # fmt: skip


def test_becoming_nil_removes_all_of_a_move_and_this_window_of_a_kept_one():
    changes = [put(1, 5), put(2, 6), RecordChange("nil", 2 * DAY)]
    assert folded(MOVE, NOWHERE, changes, 2 * DAY) == NOWHERE
    assert KEEP.windows(folded(KEEP, NOWHERE, changes, 2 * DAY), 2 * DAY) == {(1, ()): 5}


def test_a_deleted_record_leaves_every_window():
    changes = [put(1, 5), put(2, 6), RecordChange("gone", 2 * DAY)]
    assert folded(KEEP, NOWHERE, changes, 2 * DAY) == NOWHERE


def test_windows_past_their_keep_are_left_out_and_only_the_last_place_is_remembered():
    position = folded(KEEP, NOWHERE, [put(1, 5), put(2, 6)], 9 * DAY)
    assert position == (Placement(2 * DAY, 6, ()),)
    assert KEEP.windows(position, 9 * DAY) == {}
    assert KEEP.windows(position, 4 * DAY) == {(2, ()): 6}
    assert KEEP.windows(position, 5 * DAY) == {}


def test_a_moment_outside_all_windows_counts_as_no_score():
    assert MOVE.after(NOWHERE, RecordChange("put", LATEST, 5), 0) == NOWHERE


def test_a_rebuild_takes_the_score_from_the_table_and_the_moment_from_the_capture():
    captured = folded(MOVE, NOWHERE, [put(1, 5)], DAY)
    assert MOVE.settled(captured, Placement(DAY, 6, ("eu",)), DAY) == (Placement(DAY, 6, ("eu",)),)
    assert MOVE.settled(captured, None, DAY) == NOWHERE


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
