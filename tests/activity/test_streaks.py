from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laurels.activity.streaks import Streak, date_of, days_from, streak_on, ymd_of

NOBODY = Streak()


@pytest.mark.parametrize(
    ("ymd", "before"),
    [
        (20251024, 20251023),
        (20251101, 20251031),
        (20260101, 20251231),
        (20240301, 20240229),
        (20250301, 20250228),
    ],
)
def test_the_day_before_is_the_date_before(ymd: int, before: int):
    assert days_from(ymd, -1) == before
    assert days_from(before, 1) == ymd


@given(st.dates(date(1900, 1, 1), date(9990, 1, 1)), st.integers(-400, 400))
def test_dates_are_counted_as_the_calendar_does(day: date, days: int):
    assert date_of(ymd_of(day)) == day
    assert date_of(days_from(ymd_of(day), days)).toordinal() == day.toordinal() + days


@pytest.mark.parametrize("ymd", [0, 20251301, 20250229, 20251100, 20251131, -20251024])
def test_an_impossible_date_is_refused(ymd: int):
    with pytest.raises(ValueError, match=r".+"):
        date_of(ymd)


def test_a_first_day_is_a_streak_of_one():
    assert streak_on(20251024, NOBODY, {}, ()) == 1


def test_a_streak_goes_on_from_the_day_before():
    assert streak_on(20251101, Streak(4, 9, 20251031), {20251031: 4}, ()) == 5
    assert streak_on(20251101, Streak(4, 9, 20251031), {}, ()) == 5


def test_a_missed_day_begins_a_new_streak():
    assert streak_on(20251102, Streak(4, 9, 20251031), {20251031: 4}, ()) == 1


def test_days_that_are_not_finalized_yet_count():
    assert streak_on(20251103, Streak(4, 9, 20251031), {20251031: 4}, {20251101, 20251102}) == 7
    assert streak_on(20251103, NOBODY, {}, {20251102}) == 2
    assert streak_on(20251103, Streak(4, 9, 20251031), {20251031: 4}, {20251102}) == 2


def test_a_day_before_one_that_is_finalized_has_its_own_streak():
    known = Streak(8, 9, 20251105)
    assert streak_on(20251102, known, {20251101: 3}, {20251101}) == 4
    assert streak_on(20251102, known, {}, ()) == 1
