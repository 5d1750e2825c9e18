from __future__ import annotations

from datetime import UTC, datetime, timedelta

from laurels import demo
from laurels.boards.definition import parse_definition
from laurels.moments import moment_of

NOW = datetime(2025, 10, 24, 0, 0, 30, tzinfo=UTC)


def test_the_players_are_the_same_each_time_and_each_is_one():
    plays = list(demo.plays(moment_of(NOW)))
    assert plays == list(demo.plays(moment_of(NOW)))
    assert len({play.member for play in plays}) == demo.MEMBERS
    countries = {(play.member, play.groups["country"]) for play in plays if play.groups}
    assert len(countries) == demo.MEMBERS


def test_every_play_is_within_the_lateness_and_some_are_of_today():
    lateness = parse_definition(demo.DEFINITION).lateness
    moments = [play.at for play in demo.plays(moment_of(NOW)) if play.at]
    assert all(timedelta(0) <= NOW - at < lateness for at in moments)
    assert sum(at.date() == NOW.date() for at in moments) > 10


def test_scores_have_a_long_tail():
    best: dict[str, float] = {}
    for play in demo.plays(moment_of(NOW)):
        best[play.member] = max(best.get(play.member, 0), float(play.score))
    ordered = sorted(best.values())
    assert ordered[-1] > 8 * ordered[len(ordered) // 2]
