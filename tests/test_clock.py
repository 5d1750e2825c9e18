from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from laurels.clock import Clock, FixedClock, system_clock
from laurels.errors import InvalidInput
from laurels.moments import datetime_of, moment_of

AT = datetime(2025, 10, 24, 12, 0, 0, 123_457, tzinfo=UTC)


def test_the_system_clock_counts_microseconds_since_the_epoch():
    before, now, after = time.time(), system_clock(), time.time()
    assert before - 0.001 <= now / 1_000_000 <= after + 0.001


def test_a_fixed_clock_stands_until_it_is_moved():
    fixed = FixedClock(moment_of(AT))
    clock: Clock = fixed
    assert clock() == clock() == moment_of(AT)
    fixed.advance(timedelta(days=1, microseconds=1))
    assert datetime_of(clock()) == AT + timedelta(days=1, microseconds=1)
    fixed.now = 7
    assert clock() == 7


@pytest.mark.parametrize(
    "at", [AT, datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)]
)
def test_a_moment_is_exact_to_the_microsecond(at: datetime):
    assert datetime_of(moment_of(at)) == at


def test_a_moment_does_not_depend_on_the_zone_that_it_is_written_in():
    assert moment_of(AT.astimezone(timezone(timedelta(hours=-3)))) == moment_of(AT)


def test_a_datetime_without_a_zone_is_no_moment():
    with pytest.raises(InvalidInput):
        moment_of(AT.replace(tzinfo=None))
