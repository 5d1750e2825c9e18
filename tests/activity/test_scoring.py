from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laurels.activity.counters import Counters
from laurels.activity.policy import POLICIES, CampusPolicy, policy_on
from laurels.activity.scoring import Scores, score

POLICY = CampusPolicy(version=1)
COUNTERS = [name for name in Counters.__dataclass_fields__ if name != "touched"]
DAYS = st.builds(Counters, **dict.fromkeys(COUNTERS, st.integers(0, 500)))


def of_first_day(**counters: int) -> Scores:
    return score(Counters(**counters), 1, POLICY)


@pytest.mark.parametrize(
    ("counters", "social"),
    [
        ({"invites_accepted": 4}, 12),
        ({"friends_new": 2}, 10),
        ({"dm_sent": 3}, 0.9),
        ({"dm_sent": 60}, 18),
        ({"dm_sent": 61}, 18),
        ({"dm_sent": 1000}, 18),
        ({"room_sent": 7}, 1.05),
        ({"room_sent": 80}, 12),
        ({"room_sent": 81}, 12),
        ({"invites_accepted": 1, "friends_new": 1, "dm_sent": 10, "room_sent": 10}, 12.5),
    ],
)
def test_social_by_hand(counters: dict[str, int], social: float):
    assert of_first_day(**counters) == (social, 0, 0, social)


@pytest.mark.parametrize(
    ("counters", "engagement"),
    [
        ({"acts_played": 5}, 10),
        ({"acts_played": 5, "acts_won": 2}, 16),
        ({"rooms_joined": 6}, 6),
        ({"rooms_joined": 7}, 6),
        ({"rooms_created": 2}, 4),
        ({"rooms_created": 3}, 4),
        ({"acts_played": 1, "acts_won": 1, "rooms_joined": 1, "rooms_created": 1}, 8),
    ],
)
def test_engagement_by_hand(counters: dict[str, int], engagement: float):
    assert of_first_day(**counters) == (0, engagement, 0, engagement)


@pytest.mark.parametrize(
    ("counters", "popularity"),
    [
        ({"uniq_senders": 20}, 20),
        ({"uniq_senders": 21}, 20),
        ({"uniq_invite_accept_from": 10}, 20),
        ({"uniq_invite_accept_from": 11}, 20),
        ({"uniq_senders": 3, "uniq_invite_accept_from": 2}, 7),
    ],
)
def test_popularity_by_hand(counters: dict[str, int], popularity: float):
    assert of_first_day(**counters) == (0, 0, popularity, popularity)


@pytest.mark.parametrize(
    ("days", "multiplier"),
    [
        (0, 1.0),
        (1, 1.0),
        (2, 1 + 0.5 / 29),
        (15, 1 + 0.5 * 14 / 29),
        (29, 1 + 0.5 * 28 / 29),
        (30, 1.5),
        (31, 1.5),
    ],
)
def test_the_multiplier_rises_from_the_first_day_to_the_thirtieth(days: int, multiplier: float):
    assert float(POLICY.streak_multiplier(days)) == pytest.approx(multiplier, rel=1e-15)
    overall = score(Counters(acts_played=29), days, POLICY).overall
    assert overall == pytest.approx(58 * multiplier, rel=1e-15)


@pytest.mark.parametrize(
    ("at_30", "most", "days", "overall"), [(1.3, 1.5, 30, 2.6), (1.5, 1.2, 30, 2.4), (1.58, 1.3, 11, 2.4)]
)
def test_the_multiplier_rises_to_its_value_of_the_thirtieth_day_but_not_above_the_maximum(
    at_30: float, most: float, days: int, overall: float
):
    policy = CampusPolicy(version=2, STREAK_AT_30=at_30, STREAK_MULT_MAX=most)
    assert score(Counters(acts_played=1), days, policy).overall == overall


def test_overall_is_the_sum_of_the_pillars_times_the_multiplier_by_hand():
    day = Counters(
        invites_accepted=2, friends_new=1, dm_sent=100, room_sent=20,
        acts_played=3, acts_won=1, rooms_joined=9, rooms_created=1,
        uniq_senders=4, uniq_invite_accept_from=3,
    )  # fmt: skip
    # 6 + 5 + 18 + 3; 6 + 3 + 6 + 2; 4 + 6; and 59 * (1 + 0.5 * 14 / 29)
    assert score(day, 15, POLICY) == (32, 17, 10, 59 * 72 / 58)
    assert score(day, 30, POLICY).overall == 88.5


def test_users_who_earned_the_same_have_the_same_score():
    by_messages = score(Counters(dm_sent=7, room_sent=6), 1, POLICY)
    by_invites = score(Counters(invites_accepted=1), 1, POLICY)
    assert by_messages.social == by_invites.social == 3


@given(DAYS, st.integers(0, 100))
def test_scores_are_the_documented_formula(day: Counters, streak: int):
    found = score(day, streak, POLICY)
    exact = (
        Fraction(3) * day.invites_accepted
        + 5 * day.friends_new
        + Fraction("0.3") * min(day.dm_sent, 60)
        + Fraction("0.15") * min(day.room_sent, 80),
        Fraction(
            2 * day.acts_played + 3 * day.acts_won + min(day.rooms_joined, 6) + 2 * min(day.rooms_created, 2)
        ),
        Fraction(min(day.uniq_senders, 20) + 2 * min(day.uniq_invite_accept_from, 10)),
    )
    assert found[:3] == tuple(map(float, exact))
    assert found.overall == float(sum(exact) * POLICY.streak_multiplier(streak))


@given(DAYS, st.sampled_from(COUNTERS), st.integers(1, 50), st.integers(0, 40))
def test_doing_more_never_scores_less(day: Counters, name: str, more: int, streak: int):
    before = score(day, streak, POLICY)
    after = score(replace(day, **{name: getattr(day, name) + more}), streak, POLICY)
    assert all(now >= then for now, then in zip(after, before, strict=True))


@given(DAYS, st.integers(0, 40))
def test_a_longer_streak_never_scores_less_and_changes_no_pillar(day: Counters, streak: int):
    before, after = score(day, streak, POLICY), score(day, streak + 1, POLICY)
    assert before[:3] == after[:3]
    assert before.overall <= after.overall <= 1.5 * sum(before[:3]) + 1e-9


def test_a_past_day_is_scored_under_its_own_rules(monkeypatch: pytest.MonkeyPatch):
    generous = CampusPolicy(version=2, W_ACT_PLAYED=4.0, W_DM_SENT=0.07, CAP_DM_SENT=3)
    monkeypatch.setattr("laurels.activity.policy.POLICIES", (*POLICIES, (20251101, generous)))
    assert (policy_on(20251031).version, policy_on(20251101).version) == (1, 2)
    day = Counters(acts_played=2, dm_sent=9)
    assert score(day, 1, policy_on(20251031)) == (2.7, 4, 0, 6.7)
    assert score(day, 1, policy_on(20251101)) == (0.21, 8, 0, 8.21)
