from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laurels.jobs.agenda import AGENDA
from laurels.jobs.schedule import (
    LONGEST_BACKOFF_SECONDS,
    MOST_CAUGHT_UP,
    Cron,
    Every,
    Rule,
    backoff,
    due,
    missed,
)
from laurels.moments import SECOND, Moment, datetime_of, moment_of

if TYPE_CHECKING:
    from laurels.jobs.runner import Job

RULES = [
    Every(10),
    Every(3600),
    Cron("0 0 * * *"),
    Cron("30 2 * * *", "Europe/Berlin"),
    Cron("0 0 * * *", "Africa/Cairo"),
    Cron("*/15 * * * *", "America/New_York"),
]
moments = st.integers(
    moment_of(datetime(2020, 1, 1, tzinfo=UTC)), moment_of(datetime(2030, 1, 1, tzinfo=UTC))
)


def at(text: str) -> Moment:
    return moment_of(datetime.fromisoformat(text))


def shown(moment: Moment) -> str:
    return datetime_of(moment).strftime("%m-%d %H:%M")


@pytest.mark.parametrize("rule", RULES, ids=str)
@given(moment=moments)
def test_the_next_moment_is_the_first_behind_and_the_latest_the_last_before(rule: Rule, moment: Moment):
    following, latest = rule.following(moment), rule.latest(moment)
    assert latest <= moment < following
    assert rule.following(latest) == following
    assert rule.latest(following - 1) == latest
    assert rule.latest(following) == following


@pytest.mark.parametrize(
    ("zone", "start", "expected"),
    [
        ("Europe/Berlin", "2025-10-25T00:00Z", ["10-25 22:00", "10-26 23:00", "10-27 23:00"]),
        ("America/New_York", "2025-11-01T12:00Z", ["11-02 04:00", "11-03 05:00", "11-04 05:00"]),
        ("Africa/Cairo", "2025-04-23T00:00Z", ["04-23 22:00", "04-24 22:00", "04-25 21:00"]),
    ],
)
def test_midnights_follow_the_clock_of_the_zone(zone: str, start: str, expected: list[str]):
    rule, moment, found = Cron("0 0 * * *", zone), at(start), list[str]()
    for _ in expected:
        moment = rule.following(moment)
        found.append(shown(moment))
    assert found == expected


def test_a_time_that_the_clock_skips_is_due_where_it_lands():
    assert shown(Cron("30 2 * * *", "Europe/Berlin").following(at("2025-03-29T12:00Z"))) == "03-30 01:00"


def test_a_time_that_the_clock_shows_twice_is_due_once():
    rule = Cron("30 2 * * *", "Europe/Berlin")
    first = rule.following(at("2025-10-25T12:00Z"))
    assert (shown(first), shown(rule.following(first))) == ("10-26 00:30", "10-27 01:30")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Africa/Cairo", "America/Havana"])
def test_a_year_has_a_midnight_a_day(zone: str):
    found = missed(Cron("0 0 * * *", zone), at("2025-01-01T12:00Z"), at("2026-01-01T12:00Z"))
    assert len(found) == 365
    lengths = {after - before for before, after in pairwise(found)}
    assert lengths <= {hours * 3600 * SECOND for hours in (23, 24, 25)}


class TestDue:
    def test_is_the_latest_when_the_clock_was_set_back(self):
        assert due(Every(10), 3600 * SECOND, 35 * SECOND, each=False) == [30 * SECOND]
        assert due(Every(10), 3600 * SECOND, 35 * SECOND, each=True) == []

    def test_is_not_what_a_worker_did_whose_clock_is_a_little_ahead(self):
        assert due(Every(10), 40 * SECOND, 35 * SECOND, each=False) == []

    def test_is_the_latest_for_all_that_were_missed(self):
        assert due(Every(10), 0, 35 * SECOND, each=False) == [30 * SECOND]
        assert due(Every(10), 30 * SECOND, 35 * SECOND, each=False) == []

    def test_is_each_that_was_missed_in_order_where_each_counts(self):
        assert due(Every(10), 0, 35 * SECOND, each=True) == [10 * SECOND, 20 * SECOND, 30 * SECOND]

    def test_is_at_once_for_a_job_that_never_ran_unless_each_counts(self):
        assert due(Every(10), None, 35 * SECOND, each=False) == [30 * SECOND]
        assert due(Every(10), None, 35 * SECOND, each=True) == []

    def test_is_bounded(self):
        assert len(missed(Every(1), 0, 10**6 * SECOND)) == MOST_CAUGHT_UP


def test_failures_are_tried_again_less_and_less_often():
    waits = [backoff(attempts) for attempts in range(1, 40)]
    assert waits == sorted(waits)
    assert waits[0] == 2 * SECOND
    assert waits[-1] == LONGEST_BACKOFF_SECONDS * SECOND == timedelta(minutes=5) // timedelta(microseconds=1)


@pytest.mark.parametrize("job", AGENDA, ids=[job.name for job in AGENDA])
def test_what_runs_every_few_seconds_goes_on_as_soon_after_an_outage(job: Job):
    if isinstance(job.rule, Every) and job.rule.seconds <= 10:
        assert job.longest_backoff <= 10
