from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laurels.jobs.agenda import AGENDA
from laurels.jobs.schedule import LONGEST_BACKOFF_SECONDS, backoff, due, following, latest
from laurels.moments import SECOND, Moment, moment_of

if TYPE_CHECKING:
    from laurels.jobs.job import PeriodicJob

moments = st.integers(
    moment_of(datetime(2020, 1, 1, tzinfo=UTC)), moment_of(datetime(2030, 1, 1, tzinfo=UTC))
)


@pytest.mark.parametrize("seconds", [10, 3600])
@given(moment=moments)
def test_latest_and_following_are_the_moments_around_a_moment(seconds: int, moment: Moment):
    next_, last = following(seconds, moment), latest(seconds, moment)
    assert last <= moment < next_
    assert following(seconds, last) == next_
    assert latest(seconds, next_ - 1) == last
    assert latest(seconds, next_) == next_


class TestDue:
    def test_is_the_latest_when_the_clock_was_set_back(self):
        assert due(10, 3600 * SECOND, 35 * SECOND) == 30 * SECOND

    def test_is_not_what_a_worker_did_whose_clock_is_a_little_ahead(self):
        assert due(10, 40 * SECOND, 35 * SECOND) is None

    def test_is_the_latest_for_all_that_were_missed(self):
        assert due(10, 0, 35 * SECOND) == 30 * SECOND
        assert due(10, 30 * SECOND, 35 * SECOND) is None

    def test_is_at_once_for_a_job_that_never_ran(self):
        assert due(10, None, 35 * SECOND) == 30 * SECOND


def test_failures_are_retried_less_and_less_often():
    waits = [backoff(attempts) for attempts in range(1, 40)]
    assert waits == sorted(waits)
    assert waits[0] == 2 * SECOND
    assert waits[-1] == LONGEST_BACKOFF_SECONDS * SECOND == timedelta(minutes=5) // timedelta(microseconds=1)


@pytest.mark.parametrize("job", AGENDA, ids=[job.name for job in AGENDA])
def test_frequent_jobs_resume_within_seconds_after_an_outage(job: PeriodicJob):
    if job.seconds <= 10:
        assert job.longest_backoff <= 10
