from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laurels.activity import badges
from laurels.activity.policy import CampusPolicy

POLICY = CampusPolicy(version=1)


def test_equal_scores_share_a_rank():
    assert badges.ranked({"a": 5, "b": 9, "c": 5, "d": 1}) == {"b": 1, "a": 2, "c": 2, "d": 4}


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 9)))
def test_a_rank_is_one_more_than_the_number_of_better_scores(scores: dict[str, float]):
    assert badges.ranked(scores) == {
        user: 1 + sum(other > score for other in scores.values()) for user, score in scores.items()
    }


def test_the_ten_best_ranks_earn_a_badge_ties_included():
    scores = {f"user-{n:02}": float(min(n, 18)) for n in range(1, 31)}  # 13 of them have 18
    earned = {badge.user_id for badge in badges.top("daily_top10", 20251024, "north", scores, POLICY)}
    assert earned == {f"user-{n:02}" for n in range(18, 31)}
    scores = {f"user-{n:02}": float(n) for n in range(1, 31)}
    found = list(badges.top("daily_top10", 20251024, "north", scores, POLICY))
    assert [badge.user_id for badge in found] == [f"user-{n:02}" for n in range(30, 20, -1)]
    assert found[0].meta == {"campus_id": "north", "rank": 1, "score": 30.0}
    assert (found[0].kind, found[0].earned_ymd) == ("daily_top10", 20251024)


def test_a_score_of_zero_earns_no_badge():
    assert list(badges.top("daily_top10", 20251024, "north", {"a": 0.0, "b": 0.0}, POLICY)) == []
    assert [badge.user_id for badge in badges.top("daily_top10", 1, "n", {"a": 0.0, "b": 1.0}, POLICY)] == [
        "b"
    ]


@pytest.mark.parametrize(("streak", "earns"), [(29, False), (30, True), (31, True), (300, True)])
def test_thirty_days_in_a_row_earn_a_badge_once(streak: int, earns: bool):  # noqa: FBT001  # a case
    assert bool(list(badges.long_streaks(20251024, "north", {"a": streak}, (), POLICY))) == earns
    assert list(badges.long_streaks(20251024, "north", {"a": streak}, {"a"}, POLICY)) == []


@pytest.mark.parametrize(("peers", "earns"), [(14, False), (15, True), (99, True)])
def test_fifteen_peers_in_a_week_earn_a_badge(peers: int, earns: bool):  # noqa: FBT001  # a case
    assert bool(list(badges.butterflies(20251024, "north", [("a", peers)], (), POLICY))) == earns
    assert list(badges.butterflies(20251024, "north", [("a", peers)], {"a"}, POLICY)) == []


def test_a_week_ends_on_sunday():
    assert [ymd for ymd in range(20251020, 20251028) if badges.ends_week(ymd)] == [20251026]
