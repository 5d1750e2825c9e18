from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laurels.boards.definition import Period, Window
from laurels.boards.windows import RANGE_CODES, Calendar, Slot, leaders_slot
from laurels.errors import InvalidInput
from laurels.moments import DAY, EARLIEST, HOUR, LATEST, SECOND, Moment, datetime_of, moment_of

if TYPE_CHECKING:
    from collections.abc import Callable

CALENDAR_PERIODS: tuple[Period, ...] = ("hourly", "daily", "weekly", "monthly", "yearly")


def window(**fields: object) -> Window:
    return Window.model_validate(fields)


def calendar(period: Period, zone: str = "UTC", **fields: object) -> Calendar:
    """By default a rolling window has seven days, and a fixed one a minute."""
    needed: dict[Period, dict[str, object]] = {"rolling": {"days": 7}, "every": {"seconds": 60}}
    return Calendar(window(period=period, **(needed.get(period, {}) | fields)), ZoneInfo(zone))


def moment(text: str) -> Moment:
    return moment_of(datetime.fromisoformat(text))


def length(slot: Slot) -> timedelta:
    assert slot.starts_at is not None
    assert slot.ends_at is not None
    return slot.ends_at - slot.starts_at


def bounds(slot: Slot) -> tuple[str, str]:
    assert slot.starts_at is not None
    assert slot.ends_at is not None
    return slot.starts_at.isoformat(), slot.ends_at.isoformat()


def slot_contains(slot: Slot, when: Moment) -> bool:
    return (slot.starts is None or slot.starts <= when) and (slot.ends is None or when < slot.ends)


def refusal(act: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(InvalidInput) as refused:
        act()
    (field,) = refused.value.fields
    return field.field, field.detail


class TestMoments:
    def test_a_moment_counts_microseconds_from_1970_in_utc(self):
        assert moment("1970-01-01T00:00:00Z") == 0
        assert moment("1970-01-01T01:00:00.000001+01:00") == 1
        assert moment("1969-12-31T23:59:59.999999Z") == -1
        assert moment("2024-01-28T12:00:00Z") == 1_706_443_200 * SECOND

    def test_no_microsecond_is_lost_however_far_away(self):
        for when in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
            assert datetime_of(moment_of(when)) == when

    def test_the_occurrences_of_a_repeated_hour_are_an_hour_apart(self):
        new_york = ZoneInfo("America/New_York")
        first = datetime(2025, 11, 2, 1, 30, tzinfo=new_york)
        assert moment_of(first.replace(fold=1)) - moment_of(first) == HOUR

    def test_a_datetime_without_an_offset_is_refused(self):
        field, detail = refusal(lambda: moment_of(datetime(2025, 10, 24)))  # noqa: DTZ001  # the point
        assert field == "at"
        assert "write it like 2025-10-24T12:00:00Z" in detail

    @pytest.mark.parametrize("outside", [EARLIEST - 1, LATEST, 10**30, -(10**30)])
    def test_a_moment_outside_the_years_1_to_9999_is_no_datetime(self, outside: Moment):
        assert refusal(lambda: datetime_of(outside)) == ("at", "lies outside the years 1 to 9999")


class TestTheExamplesOfTheDocuments:
    def test_a_daily_index_window_of_january_28_2024_has_the_id_19750(self):
        slot = calendar("every", seconds=86_400).at(1_706_443_200 * SECOND)
        assert slot == Slot("19750", 1_706_400_000 * SECOND, 1_706_486_400 * SECOND)

    @pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "America/Sao_Paulo"])
    def test_the_id_of_a_fixed_window_does_not_depend_on_the_zone(self, zone: str):
        assert calendar("every", zone, seconds=86_400).at(1_706_443_200 * SECOND).text == "19750"

    @pytest.mark.parametrize(
        ("period", "text"),
        [
            ("hourly", "2025-10-24T13"),
            ("daily", "2025-10-24"),
            ("weekly", "2025-w43"),
            ("monthly", "2025-10"),
            ("yearly", "2025"),
            ("all_time", ""),
        ],
    )
    def test_slots_are_written_as_the_contract_writes_them(self, period: Period, text: str):
        assert calendar(period).at(moment("2025-10-24T13:14:15Z")).text == text
        assert calendar(period).parse(text) == calendar(period).at(moment("2025-10-24T13:14:15Z"))

    def test_week_8_of_2025_contains_february_22(self):
        slot = calendar("weekly").at(moment("2025-02-22T12:00:00Z"))
        assert slot.text == "2025-w08"
        assert bounds(slot) == ("2025-02-17T00:00:00+00:00", "2025-02-24T00:00:00+00:00")

    def test_week_43_of_2025_is_october_20_to_26(self):
        slot = calendar("weekly").parse("2025-w43")
        assert bounds(slot) == ("2025-10-20T00:00:00+00:00", "2025-10-27T00:00:00+00:00")

    @pytest.mark.parametrize(
        ("code", "expected"), [("d", "20251024"), ("w", "202543"), ("m", "202510"), ("a", "a")]
    )
    def test_the_leaders_service_spells_slots_without_marks(self, code: str, expected: str):
        slot = calendar(RANGE_CODES[code]).at(moment("2025-10-24T13:14:15Z"))
        assert leaders_slot(code, slot) == expected

    def test_the_leaders_service_pads_the_week_and_uses_the_iso_year(self):
        assert leaders_slot("w", calendar("weekly").at(moment("2024-12-30T00:00:00Z"))) == "202501"

    def test_a_week_key_of_framedle_can_be_built_from_placeholders(self):
        weekly = calendar("weekly")
        names = weekly.placeholders(weekly.at(moment("2025-02-22T12:00:00Z")))
        assert "lb:daily_frame:week:{yyyy}-W{ww}".format(**names) == "lb:daily_frame:week:2025-W08"


class TestPlaceholders:
    @pytest.mark.parametrize(
        ("period", "expected"),
        [
            (
                "hourly",
                {
                    "slot": "2024-12-30T05",
                    "yyyy": "2024",
                    "mm": "12",
                    "dd": "30",
                    "yyyymm": "202412",
                    "yyyymmdd": "20241230",
                },
            ),
            (
                "daily",
                {
                    "slot": "2024-12-30",
                    "yyyy": "2024",
                    "mm": "12",
                    "dd": "30",
                    "yyyymm": "202412",
                    "yyyymmdd": "20241230",
                },
            ),
            ("weekly", {"slot": "2025-w01", "yyyy": "2025", "ww": "01", "yyyyww": "202501"}),
            ("monthly", {"slot": "2024-12", "yyyy": "2024", "mm": "12", "yyyymm": "202412"}),
            ("yearly", {"slot": "2024", "yyyy": "2024"}),
            ("all_time", {"slot": ""}),
        ],
    )
    def test_only_those_that_a_period_has_are_given(self, period: Period, expected: dict[str, str]):
        of_period = calendar(period)
        assert of_period.placeholders(of_period.at(moment("2024-12-30T05:00:00Z"))) == expected

    def test_the_text_of_a_fixed_window_is_its_number(self):
        every = calendar("every", seconds=60)
        assert every.placeholders(every.at(-1)) == {"slot": "-1"}

    def test_a_rolling_window_is_named_by_its_last_day(self):
        rolling = calendar("rolling", days=7)
        names = rolling.placeholders(rolling.at(moment("2025-10-24T12:00:00Z")))
        assert names["yyyymmdd"] == "20251024"

    def test_the_repeated_hour_keeps_its_own_slot(self):
        hourly = calendar("hourly", "Europe/Berlin")
        names = hourly.placeholders(hourly.parse("2025-10-26T02b"))
        assert (names["slot"], names["yyyymmdd"]) == ("2025-10-26T02b", "20251026")


class TestDays:
    @pytest.mark.parametrize(
        ("zone", "day", "hours"),
        [
            ("America/New_York", "2025-03-09", 23),
            ("America/New_York", "2025-03-10", 24),
            ("America/New_York", "2025-11-02", 25),
            ("Australia/Lord_Howe", "2025-10-05", 23.5),
            ("Australia/Lord_Howe", "2025-04-06", 24.5),
            ("Antarctica/Troll", "2025-03-30", 22),
            ("Antarctica/Troll", "2025-10-26", 26),
        ],
    )
    def test_a_day_is_as_long_as_the_clock_makes_it(self, zone: str, day: str, hours: float):
        assert length(calendar("daily", zone).parse(day)) == timedelta(hours=hours)

    @pytest.mark.parametrize(
        ("zone", "day", "starts", "ends"),
        [
            # Each of these clocks goes from 23:59:59 to 01:00:00.
            ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00+00:00", "2026-04-24T21:00:00+00:00"),
            ("America/Havana", "2026-03-08", "2026-03-08T05:00:00+00:00", "2026-03-09T04:00:00+00:00"),
            ("America/Santiago", "2026-09-06", "2026-09-06T04:00:00+00:00", "2026-09-07T03:00:00+00:00"),
            ("Asia/Beirut", "2026-03-29", "2026-03-28T22:00:00+00:00", "2026-03-29T21:00:00+00:00"),
        ],
    )
    def test_a_day_without_a_midnight_begins_where_the_clock_lands(
        self, zone: str, day: str, starts: str, ends: str
    ):
        daily = calendar("daily", zone)
        slot = daily.parse(day)
        assert bounds(slot) == (starts, ends)
        assert daily.at(moment(starts) - 1).ends == moment(starts)

    def test_a_day_whose_midnight_comes_twice_begins_with_the_first(self):
        slot = calendar("daily", "America/Havana").parse("2024-11-03")
        assert bounds(slot) == ("2024-11-03T04:00:00+00:00", "2024-11-04T05:00:00+00:00")

    def test_a_day_whose_last_hour_comes_twice_ends_after_the_second(self):
        slot = calendar("daily", "America/Santiago").parse("2026-04-04")
        assert bounds(slot) == ("2026-04-04T03:00:00+00:00", "2026-04-05T04:00:00+00:00")

    def test_a_midnight_inside_a_skipped_stretch_is_where_the_clock_was_set(self):
        # Toronto, 1919: from 23:30 to 00:30.
        slot = calendar("daily", "America/Toronto").parse("1919-03-31")
        assert bounds(slot) == ("1919-03-31T04:30:00+00:00", "1919-04-01T04:00:00+00:00")

    def test_a_clock_set_back_over_midnight_does_not_reopen_the_day_that_ended(self):
        # St. John's, 2010: from 00:01 on the 7th to 23:01 on the 6th.
        daily = calendar("daily", "America/St_Johns")
        sixth, seventh = daily.parse("2010-11-06"), daily.parse("2010-11-07")
        assert bounds(seventh) == ("2010-11-07T02:30:00+00:00", "2010-11-08T03:30:00+00:00")
        assert sixth.ends == seventh.starts
        assert daily.at(moment("2010-11-07T02:59:00Z")) == seventh

    def test_the_day_that_apia_skipped_has_no_slot(self):
        daily = calendar("daily", "Pacific/Apia")
        before, after = daily.parse("2011-12-29"), daily.parse("2011-12-31")
        assert daily.following(before) == after
        assert daily.previous(after) == before
        assert before.ends == after.starts == moment("2011-12-30T10:00:00Z")
        assert refusal(lambda: daily.parse("2011-12-30")) == (
            "slot",
            "2011-12-30 does not exist in Pacific/Apia: the clock there skips that day",
        )

    def test_the_day_that_juneau_had_twice_is_one_slot(self):
        slot = calendar("daily", "America/Juneau").parse("1867-10-19")
        assert length(slot) == timedelta(hours=48)

    def test_offsets_of_seconds_are_kept_to_the_second(self):
        slot = calendar("daily", "Europe/Amsterdam").at(moment("1800-06-01T12:00:00Z"))
        offset = datetime(1800, 6, 1, tzinfo=ZoneInfo("Europe/Amsterdam")).utcoffset()
        assert slot.starts_at is not None
        assert offset is not None
        assert offset % timedelta(minutes=1) != timedelta(0)
        assert slot.starts_at == datetime(1800, 6, 1, tzinfo=UTC) - offset


class TestWeeksMonthsAndYears:
    @pytest.mark.parametrize(
        ("day", "week"),
        [
            ("2024-12-29", "2024-w52"),
            ("2024-12-30", "2025-w01"),
            ("2020-12-31", "2020-w53"),
            ("2021-01-03", "2020-w53"),
            ("2021-01-04", "2021-w01"),
            ("2027-01-01", "2026-w53"),
        ],
    )
    def test_a_week_belongs_to_its_iso_year(self, day: str, week: str):
        assert calendar("weekly").at(moment(f"{day}T12:00:00Z")).text == week

    def test_a_week_with_a_change_of_the_clock_has_an_hour_less(self):
        assert length(calendar("weekly", "Europe/Berlin").parse("2025-w13")) == timedelta(hours=7 * 24 - 1)

    def test_february_has_29_days_in_a_leap_year(self):
        assert length(calendar("monthly").parse("2024-02")) == timedelta(days=29)
        assert length(calendar("monthly").parse("2100-02")) == timedelta(days=28)

    def test_a_month_begins_with_the_day_of_the_zone(self):
        slot = calendar("monthly", "Asia/Tokyo").at(moment("2025-10-31T15:00:00Z"))
        assert slot.text == "2025-11"
        assert slot.starts == moment("2025-10-31T15:00:00Z")

    def test_a_year_ends_where_the_next_begins(self):
        yearly = calendar("yearly", "America/Sao_Paulo")
        slot = yearly.parse("2024")
        assert bounds(slot) == ("2024-01-01T03:00:00+00:00", "2025-01-01T03:00:00+00:00")
        assert yearly.following(slot) == yearly.parse("2025")

    def test_a_week_whose_clock_skipped_a_day_is_six_days_long(self):
        assert length(calendar("weekly", "Pacific/Apia").parse("2011-w52")) == timedelta(days=6)


class TestHours:
    @staticmethod
    def texts(zone: str, starts: str, ends: str) -> list[tuple[str, int]]:
        slots = calendar("hourly", zone).slots(moment(starts), moment(ends))
        return [(slot.text[8:], int(length(slot).total_seconds() // 60)) for slot in slots]

    def test_the_repeated_hour_is_its_own_window(self):
        assert self.texts("Europe/London", "2025-10-25T23:00:00Z", "2025-10-26T03:00:00Z") == [
            ("26T00", 60),
            ("26T01", 60),
            ("26T01b", 60),
            ("26T02", 60),
        ]

    def test_the_skipped_hour_is_none(self):
        assert self.texts("Europe/Berlin", "2025-03-30T00:00:00Z", "2025-03-30T02:00:00Z") == [
            ("30T01", 60),
            ("30T03", 60),
        ]

    def test_lord_howe_repeats_half_an_hour(self):
        assert self.texts("Australia/Lord_Howe", "2025-04-05T14:00:00Z", "2025-04-05T16:30:00Z") == [
            ("06T01", 60),
            ("06T01b", 30),
            ("06T02", 60),
        ]

    def test_lord_howe_skips_half_an_hour(self):
        assert self.texts("Australia/Lord_Howe", "2025-10-04T14:30:00Z", "2025-10-04T17:00:00Z") == [
            ("05T01", 60),
            ("05T02", 30),
            ("05T03", 60),
        ]

    def test_troll_repeats_two_hours(self):
        assert self.texts("Antarctica/Troll", "2025-10-25T22:00:00Z", "2025-10-26T04:00:00Z") == [
            ("26T00", 60),
            ("26T01", 60),
            ("26T02", 60),
            ("26T01b", 60),
            ("26T02b", 60),
            ("26T03", 60),
        ]

    def test_an_hour_that_is_set_back_over_midnight_keeps_every_text_unique(self):
        # St. John's, 2010: from 00:01 on the 7th to 23:01 on the 6th.
        assert self.texts("America/St_Johns", "2010-11-07T01:30:00Z", "2010-11-07T05:30:00Z") == [
            ("06T23", 60),
            ("07T00", 1),
            ("06T23b", 59),
            ("07T00b", 60),
            ("07T01", 60),
        ]

    def test_an_hour_that_is_set_forward_inside_itself_is_one_short_hour(self):
        # Athens, 1916: from 00:01:00 to 00:26:08, a minute into the day.
        hourly = calendar("hourly", "Europe/Athens")
        slot = hourly.parse("1916-07-28T00")
        assert bounds(slot) == ("1916-07-27T22:25:08+00:00", "1916-07-27T23:00:00+00:00")
        for when in (*bounds(slot)[:1], "1916-07-27T22:26:07.999999Z", "1916-07-27T22:26:08Z"):
            assert calendar("hourly", "Europe/Athens").at(moment(when)) == slot

    @pytest.mark.parametrize(
        ("zone", "text", "minutes"),
        [
            ("Europe/London", "2025-10-26T01b", 60),
            ("Australia/Lord_Howe", "2025-04-06T01b", 30),
            ("Antarctica/Troll", "2025-10-26T02b", 60),
            ("America/St_Johns", "2010-11-06T23b", 59),
            ("America/St_Johns", "2010-11-07T00", 1),
        ],
    )
    def test_an_hour_is_found_by_its_text_however_short(self, zone: str, text: str, minutes: int):
        slot = calendar("hourly", zone).parse(text)
        assert slot.text == text
        assert length(slot) == timedelta(minutes=minutes)

    def test_hours_begin_on_the_wall_not_on_utc(self):
        slot = calendar("hourly", "Asia/Kathmandu").at(moment("2025-10-24T12:00:00Z"))
        assert slot.text == "2025-10-24T17"
        assert bounds(slot) == ("2025-10-24T11:15:00+00:00", "2025-10-24T12:15:00+00:00")

    def test_every_hour_of_a_day_with_a_change_lies_inside_the_day(self):
        day = calendar("daily", "America/Havana").parse("2024-11-03")
        assert day.starts is not None
        assert day.ends is not None
        hours = calendar("hourly", "America/Havana").slots(day.starts, day.ends)
        assert len(hours) == 25
        assert (hours[0].starts, hours[-1].ends) == (day.starts, day.ends)

    def test_an_hour_that_the_clock_skips_is_refused(self):
        assert refusal(lambda: calendar("hourly", "Europe/Berlin").parse("2025-03-30T02")) == (
            "slot",
            "2025-03-30T02 does not exist in Europe/Berlin: the clock there skips that hour",
        )

    def test_an_hour_that_the_clock_does_not_repeat_is_refused(self):
        assert refusal(lambda: calendar("hourly", "Europe/Berlin").parse("2025-10-24T02b")) == (
            "slot",
            "2025-10-24T02b does not exist in Europe/Berlin: the clock there does not repeat that hour",
        )


class TestFixedWindows:
    def test_ids_are_rounded_down_before_1970_too(self):
        hourly = calendar("every", seconds=3600)
        assert hourly.at(0) == Slot("0", 0, HOUR)
        assert hourly.at(-1) == Slot("-1", -HOUR, 0)
        assert hourly.at(-HOUR) == Slot("-1", -HOUR, 0)
        assert hourly.at(-HOUR - 1).text == "-2"
        assert hourly.parse("-2") == Slot("-2", -2 * HOUR, -HOUR)

    def test_the_windows_before_and_after_have_the_ids_before_and_after(self):
        every = calendar("every", seconds=7)
        slot = every.parse("0")
        assert every.previous(slot) == every.parse("-1")
        assert every.following(slot) == every.parse("1")


class TestRolling:
    def test_a_rolling_slot_ends_with_the_day_that_names_it(self):
        slot = calendar("rolling", days=7).at(moment("2025-10-24T12:00:00Z"))
        assert slot.text == "2025-10-24"
        assert bounds(slot) == ("2025-10-18T00:00:00+00:00", "2025-10-25T00:00:00+00:00")

    def test_its_days_are_the_daily_slots_that_it_sums(self):
        rolling = calendar("rolling", days=3)
        assert rolling.days(rolling.parse("2025-03-01")) == ["2025-02-27", "2025-02-28", "2025-03-01"]

    def test_a_rolling_slot_of_one_day_is_that_day(self):
        rolling, daily = calendar("rolling", days=1), calendar("daily")
        assert rolling.parse("2025-10-24") == daily.parse("2025-10-24")
        assert rolling.days(rolling.parse("2025-10-24")) == ["2025-10-24"]

    def test_the_slots_before_and_after_are_a_day_away(self):
        rolling = calendar("rolling", "America/New_York", days=30)
        slot = rolling.parse("2025-03-09")
        assert rolling.previous(slot) == rolling.parse("2025-03-08")
        assert rolling.following(slot) == rolling.parse("2025-03-10")

    def test_slots_are_those_whose_own_last_day_overlaps(self):
        rolling = calendar("rolling", days=7)
        found = rolling.slots(moment("2025-10-24T12:00:00Z"), moment("2025-10-26T00:00:00Z"))
        assert [slot.text for slot in found] == ["2025-10-24", "2025-10-25"]

    def test_a_day_that_was_skipped_is_not_among_the_days(self):
        rolling = calendar("rolling", "Pacific/Apia", days=3)
        slot = rolling.parse("2011-12-31")
        assert rolling.days(slot) == ["2011-12-29", "2011-12-31"]
        assert slot.starts == calendar("daily", "Pacific/Apia").parse("2011-12-29").starts

    def test_it_is_kept_by_its_days(self):
        rolling = calendar("rolling", days=7, keep=2)
        assert rolling.kept_until(rolling.parse("2025-10-24")) == moment("2025-10-26T00:00:00Z")

    @pytest.mark.parametrize("period", [*CALENDAR_PERIODS, "all_time"])
    def test_only_a_rolling_window_has_days(self, period: Period):
        of_period = calendar(period)
        with pytest.raises(ValueError, match=f"{period!r} is not made of days"):
            of_period.days(of_period.at(0))


class TestAllTime:
    def test_it_always_was_and_never_ends(self):
        all_time = calendar("all_time")
        slot = all_time.parse("")
        assert slot == all_time.at(0) == Slot("", None, None)
        assert slot.starts_at is None
        assert slot.ends_at is None

    def test_nothing_comes_before_or_after_it(self):
        all_time = calendar("all_time")
        slot = all_time.at(0)
        assert all_time.previous(slot) is None
        assert all_time.following(slot) is None
        assert all_time.kept_until(slot) is None
        assert all_time.slots(-DAY, DAY) == [slot]

    def test_it_takes_no_slot(self):
        assert refusal(lambda: calendar("all_time").parse("2025")) == (
            "slot",
            "'2025' is not the slot of a window of period all_time; there is only one, so leave it empty",
        )


class TestKeep:
    def test_null_keeps_all(self):
        daily = calendar("daily")
        assert daily.kept_until(daily.at(0)) is None

    def test_keep_1_keeps_only_the_current_window(self):
        daily = calendar("daily", keep=1)
        slot = daily.at(0)
        assert daily.kept_until(slot) == slot.ends

    def test_seven_days_last_until_the_end_of_the_sixth_day_after(self):
        daily = calendar("daily", keep=7)
        assert daily.kept_until(daily.parse("2025-10-24")) == moment("2025-10-31T00:00:00Z")

    @pytest.mark.parametrize("keep", [1, 2, 24, 60])
    @pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "Australia/Lord_Howe", "Antarctica/Troll"])
    @pytest.mark.parametrize("period", ["hourly", "daily", "rolling", "every"])
    def test_exactly_that_many_can_be_asked_for_at_every_moment(self, period: Period, zone: str, keep: int):
        kept = calendar(period, zone, keep=keep)
        unit = {"every": 60 * SECOND, "hourly": HOUR}.get(period, DAY)
        for text in ("2025-10-26T02:00:00Z", "2025-04-05T16:00:00Z", "2012-01-02T00:00:00Z"):
            now = moment(text)
            current = kept.at(now)
            assert current.ends is not None
            for instant in (now, current.ends - 1, current.ends):
                begun = kept.slots(now - 2 * keep * unit, instant + 1)
                untils = [kept.kept_until(slot) for slot in begun]
                assert sum(until is not None and instant < until for until in untils) == keep

    @pytest.mark.parametrize(
        ("period", "zone", "keep"),
        [
            ("hourly", "Australia/Lord_Howe", 9000),
            ("daily", "Pacific/Apia", 400),
            ("hourly", "Pacific/Apia", 700),
        ],
    )
    def test_a_long_keep_counts_every_slot_once(self, period: Period, zone: str, keep: int):
        kept = calendar(period, zone, keep=keep)
        slot = kept.at(moment("2011-12-20T00:00:00Z"))
        until = kept.kept_until(slot)
        assert slot.starts is not None
        assert until is not None
        assert len(kept.slots(slot.starts, until)) == keep

    def test_a_duration_counts_from_the_end_of_the_window(self):
        weekly = calendar("weekly", keep=timedelta(days=30))
        assert weekly.kept_until(weekly.parse("2025-w08")) == moment("2025-03-26T00:00:00Z")

    @pytest.mark.parametrize("keep", [timedelta.max, timedelta(days=3_000_000), 10**12])
    @pytest.mark.parametrize("period", ["yearly", "every"])
    def test_a_window_that_would_end_after_the_year_9999_never_ends(
        self, period: Period, keep: int | timedelta
    ):
        kept = calendar(period, keep=keep)
        assert kept.kept_until(kept.at(0)) is None

    def test_asking_for_many_slots_forgets_none_of_the_rule(self):
        every = calendar("every", seconds=1, keep=3)
        for second in [*range(3000), 0]:
            assert every.kept_until(every.at(second * SECOND)) == (second + 3) * SECOND


class TestTheEdgesOfTime:
    @pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Kolkata"])
    @pytest.mark.parametrize("period", [*CALENDAR_PERIODS, "rolling", "every", "all_time"])
    def test_the_first_and_last_slots_are_open_and_have_no_neighbours(self, period: Period, zone: str):
        edge = calendar(period, zone, keep=None if period == "all_time" else 3)
        (first, *_), (*_, last) = (
            edge.slots(EARLIEST - DAY, EARLIEST + DAY),
            edge.slots(LATEST - DAY, LATEST + DAY),
        )
        assert first.starts is None
        assert last.ends is None
        assert edge.previous(first) is None
        assert edge.following(last) is None
        assert edge.kept_until(last) is None
        assert edge.parse(first.text) == first
        assert edge.parse(last.text) == last
        if period != "all_time":
            assert edge.previous(edge.following(first) or last) == first
            assert edge.following(edge.previous(last) or first) == last

    @pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"])
    @pytest.mark.parametrize("period", [*CALENDAR_PERIODS, "all_time"])
    def test_moments_outside_the_years_1_to_9999_are_refused(self, period: Period, zone: str):
        edge = calendar(period, zone)
        for inside in (EARLIEST + DAY, LATEST - DAY):
            edge.at(inside)  # a remembered slot must not reach past the edge
        for outside in (EARLIEST - 1, LATEST, 10**30, -(10**30)):
            assert refusal(lambda outside=outside: edge.at(outside)) == (
                "at",
                "lies outside the years 1 to 9999",
            )

    def test_a_moment_that_only_the_zone_sees_in_the_year_10000_is_refused_too(self):
        kiritimati = calendar("daily", "Pacific/Kiritimati")
        assert kiritimati.at(moment("9999-12-31T09:59:59.999999Z")).text == "9999-12-31"
        assert refusal(lambda: kiritimati.at(moment("9999-12-31T10:00:00Z")))[0] == "at"

    @pytest.mark.parametrize("period", ["hourly", "every"])
    def test_a_remembered_slot_that_overhangs_the_edge_answers_for_no_moment_beyond(self, period: Period):
        extra = {"seconds": 7000} if period == "every" else {}
        edge = calendar(period, "Asia/Kolkata", **extra)
        assert edge.at(EARLIEST).starts is None
        assert refusal(lambda: edge.at(EARLIEST - 1))[0] == "at"

    def test_a_rolling_slot_at_the_beginning_has_the_days_that_there_are(self):
        rolling = calendar("rolling", days=7)
        slot = rolling.parse("0001-01-02")
        assert slot.starts is None
        assert rolling.days(slot) == ["0001-01-01", "0001-01-02"]

    def test_the_last_year_in_utc(self):
        yearly = calendar("yearly")
        last = yearly.at(LATEST - 1)
        assert (last.text, last.starts_at, last.ends_at) == ("9999", datetime(9999, 1, 1, tzinfo=UTC), None)

    def test_slots_of_time_outside_are_none(self):
        daily = calendar("daily")
        assert daily.slots(LATEST, LATEST + DAY) == []
        assert daily.slots(EARLIEST - DAY, EARLIEST) == []


class TestSlotsBetween:
    def test_both_ends_are_half_open(self):
        daily = calendar("daily")
        starts, ends = moment("2025-10-24T00:00:00Z"), moment("2025-10-26T00:00:00Z")
        assert [slot.text for slot in daily.slots(starts, ends)] == ["2025-10-24", "2025-10-25"]
        assert [slot.text for slot in daily.slots(starts - 1, ends + 1)] == [
            "2025-10-23",
            "2025-10-24",
            "2025-10-25",
            "2025-10-26",
        ]

    def test_an_empty_stretch_has_no_slots(self):
        daily = calendar("daily")
        assert daily.slots(5, 5) == []
        assert daily.slots(5, 4) == []


class TestRemembering:
    def test_late_events_among_present_ones_ask_the_zone_once_for_each_slot(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        daily = calendar("daily", "America/New_York")
        found: list[Moment] = []
        find = daily._recurrence.find  # pyright: ignore[reportPrivateUsage]

        def counted(when: Moment) -> object:
            found.append(when)
            return find(when)

        monkeypatch.setattr(daily._recurrence, "find", counted)  # pyright: ignore[reportPrivateUsage]
        for second in range(100):
            assert daily.at(moment("2025-10-24T12:00:00Z") + second).text == "2025-10-24"
            assert daily.at(moment("2025-10-23T12:00:00Z") + second).text == "2025-10-23"
        assert len(found) == 2

    def test_a_remembered_slot_answers_for_its_own_day_only(self):
        rolling = calendar("rolling", days=7)
        assert rolling.at(moment("2025-10-24T12:00:00Z")).text == "2025-10-24"
        assert rolling.at(moment("2025-10-23T12:00:00Z")).text == "2025-10-23"


def fullwidth(number: int) -> str:
    return "".join(chr(ord(digit) + 0xFF10 - ord("0")) for digit in str(number))


def arabic(number: int) -> str:
    return "".join(chr(ord(digit) + 0x0660 - ord("0")) for digit in str(number))


DAILY_HINT = "write it like 2025-10-24"
REFUSED: dict[Period, tuple[str, ...]] = {
    "hourly": (
        "",
        "2025-10-24",
        "2025-10-24T1",
        "2025-10-24T24",
        "2025-10-24t13",
        "2025-10-24 13",
        "2025-10-24T13:00",
        "2025-10-24T13Z",
        "2025-10-24T13+00:00",
        "2025-10-24T13B",
        "2025-10-24T13bb",
        "2025-10-24T13 b",
        "2025-10-24Tb",
        "20251024T13",
        "2025-W43-5T13",
        f"2025-10-24T{fullwidth(13)}",
        "b",
    ),
    "daily": (
        "",
        " ",
        "2025-1-1",
        " 2025-10-24",
        "2025-10-24 ",
        "2025-10-24\n",
        "2025-10-24\0",
        f"{fullwidth(2025)}-10-24",
        f"{arabic(2025)}-10-24",
        "20251024",
        "2025/10/24",
        "2025-02-30",
        "2025-02-29",
        "2025-13-01",
        "2025-00-10",
        "0000-01-01",
        "10000-01-01",
        "-2025-10-24",
        "+2025-10-24",
        "2025-w43-5",
        "2025-W43-5",
        "2025-10",
        "2025-10-24T00",
        "2025-10-24T00:00:00Z",
        "2025-10-24b",
        "today",
        "1729728000",
        "\ud800",
        "9" * 10_000,
    ),
    "weekly": (
        "",
        "2025-W43",
        "2025w43",
        "2025-w4",
        "2025-w043",
        "2025-w00",
        "2025-w53",
        "2025-w54",
        "0000-w01",
        f"2025-w{fullwidth(43)}",
        "2025-43",
        "2025-w43-1",
        "2025-w+3",
        "2025-w 3",
        "2025-10-24",
        "w43",
    ),
    "monthly": (
        "",
        "2025",
        "2025-1",
        "2025-13",
        "2025-00",
        "202510",
        "2025-10-01",
        "0000-01",
        f"2025-{fullwidth(10)}",
        "2025-w10",
    ),
    "yearly": (
        "",
        "25",
        "02025",
        "0000",
        "10000",
        "-2025",
        fullwidth(2025),
        "2025 ",
        "2025-01",
        "20_5",
        "1e3",
        "year",
    ),
    "every": (
        "",
        "-",
        "-0",
        "+5",
        "05",
        " 5",
        "5 ",
        "5.0",
        "1e3",
        "1_000",
        "0x10",
        fullwidth(19750),
        arabic(19750),
        "nan",
        "9" * 10_000,
    ),
    "rolling": ("", "2025-10", "2025-1-1", "2025-02-30", "7"),
    "all_time": (" ", "all", "a", "2025", "None", "0"),
}
HINTED: dict[Period, str] = {
    "hourly": "write it like 2025-10-24T13",
    "daily": DAILY_HINT,
    "weekly": "write it like 2025-w43",
    "monthly": "write it like 2025-10",
    "yearly": "write it like 2025",
    "every": "write it like 19750",
    "rolling": DAILY_HINT,
    "all_time": "leave it empty",
}


class TestRefusals:
    @pytest.mark.parametrize(
        ("period", "text"), [(period, text) for period, texts in REFUSED.items() for text in texts]
    )
    def test_a_text_that_no_slot_has_is_refused_with_the_form_that_it_should_have(
        self, period: Period, text: str
    ):
        field, detail = refusal(lambda: calendar(period).parse(text))
        assert field == "slot"
        assert HINTED[period] in detail
        assert period in detail
        assert len(detail) < 300

    @pytest.mark.parametrize("number", [10**12, -(10**12), 10**4000])
    def test_a_fixed_window_beyond_the_years_is_refused(self, number: int):
        field, detail = refusal(lambda: calendar("every", seconds=60).parse(str(number)))
        assert field == "slot"
        assert detail.endswith("lies outside the years 1 to 9999")
        assert len(detail) < 100


# Any moment of 1900 to 2100, and rather often one next to an hour of UTC, where clocks are set.
spans = (moment("1900-01-01T00:00:00Z"), moment("2100-01-01T00:00:00Z"))
moments = st.one_of(
    st.integers(*spans),
    st.tuples(st.integers(spans[0] // HOUR, spans[1] // HOUR), st.integers(-2, 2)).map(
        lambda near: near[0] * HOUR + near[1]
    ),
)
ODD_ZONES = (
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/Monrovia",
    "America/Havana",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Australia/Lord_Howe",
    "Europe/Amsterdam",
    "Europe/Dublin",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "Pacific/Kwajalein",
    "UTC",
)
windows = st.one_of(
    st.sampled_from((*CALENDAR_PERIODS, "all_time")).map(lambda period: window(period=period)),
    st.integers(1, 366).map(lambda days: window(period="rolling", days=days)),
    st.integers(1, 366 * 86_400).map(lambda seconds: window(period="every", seconds=seconds)),
)
zones = st.sampled_from(ODD_ZONES).map(ZoneInfo)
calendars = st.builds(Calendar, windows, zones)


class TestForEveryZoneWindowAndMoment:
    @given(calendars, moments)
    def test_a_moment_lies_in_its_slot(self, of_zone: Calendar, when: Moment):
        assert slot_contains(of_zone.at(when), when)

    @given(calendars, moments)
    def test_a_text_means_the_slot_that_it_was_taken_from(self, of_zone: Calendar, when: Moment):
        slot = of_zone.at(when)
        assert of_zone.parse(slot.text) == slot

    @given(calendars, moments)
    def test_before_and_after_undo_each_other(self, of_zone: Calendar, when: Moment):
        slot = of_zone.at(when)
        before, after = of_zone.previous(slot), of_zone.following(slot)
        assert (before is None) == (after is None) == (slot.text == "")
        if before and after:
            assert of_zone.following(before) == slot
            assert of_zone.previous(after) == slot

    @given(windows, zones, st.lists(moments, max_size=12))
    def test_caching_changes_no_result(self, of: Window, zone: ZoneInfo, many: list[Moment]):
        remembering = Calendar(of, zone)
        for when in (*many, *many[::-1]):
            assert remembering.at(when) == Calendar(of, zone).at(when)

    @given(calendars, moments, st.integers(1, 50))
    def test_slots_are_those_that_follow_one_another(self, of_zone: Calendar, when: Moment, count: int):
        expected = [of_zone.at(when)]
        while len(expected) < count and (after := of_zone.following(expected[-1])):
            expected.append(after)
        ends = expected[-1].ends
        assert of_zone.slots(when, when + 1 if ends is None else ends) == expected

    @given(windows, zones, moments, st.integers(1, 50))
    def test_a_kept_slot_lasts_as_long_as_those_that_follow_it(
        self, of: Window, zone: ZoneInfo, when: Moment, keep: int
    ):
        if of.period == "all_time":
            return
        of_zone = Calendar(of.model_copy(update={"keep": keep}), zone)
        slot = last = of_zone.at(when)
        for _ in range(keep - 1):
            last = of_zone.following(last) or last
        assert of_zone.kept_until(slot) == last.ends

    @given(
        st.sampled_from(("daily", "weekly", "monthly", "yearly")),
        st.sampled_from(ODD_ZONES),
        moments,
        moments,
    )
    def test_texts_sort_as_time_does(self, period: Period, zone: str, one: Moment, other: Moment):
        of_zone = calendar(period, zone)
        earlier, later = sorted((one, other))
        assert of_zone.at(earlier).text <= of_zone.at(later).text

    @given(st.sampled_from(CALENDAR_PERIODS), st.sampled_from(ODD_ZONES), moments)
    def test_whole_days_make_up_every_longer_window(self, period: Period, zone: str, when: Moment):
        shorter = calendar("hourly" if period == "daily" else "daily", zone)
        slot = calendar(period, zone).at(when)
        assert slot.starts is not None
        assert slot.ends is not None
        if period != "hourly":
            assert shorter.at(slot.starts).starts == slot.starts
            assert shorter.at(slot.ends - 1).ends == slot.ends

    @given(st.sampled_from(ODD_ZONES), st.integers(1, 40), moments)
    def test_a_rolling_slot_spans_its_daily_slots(self, zone: str, days: int, when: Moment):
        rolling, daily = calendar("rolling", zone, days=days), calendar("daily", zone)
        slot = rolling.at(when)
        spanned = [daily.parse(text) for text in rolling.days(slot)]
        assert (spanned[0].starts, spanned[-1].ends) == (slot.starts, slot.ends)
        assert all(before.ends == after.starts for before, after in pairwise(spanned))
        first, last = date.fromisoformat(spanned[0].text), date.fromisoformat(spanned[-1].text)
        assert days - 2 <= (last - first).days <= days - 1

    @given(calendars, st.text(alphabet="0123456789-wWTb+ \u0663", max_size=14))
    def test_whatever_is_parsed_is_written_the_same(self, of_zone: Calendar, text: str):
        with suppress(InvalidInput):
            assert of_zone.parse(text).text == text

    @given(st.sampled_from(ODD_ZONES), moments)
    def test_an_hour_shows_one_hour_of_the_clock(self, zone: str, when: Moment):
        slot = calendar("hourly", zone).at(when)
        assert slot.starts is not None
        assert slot.ends is not None
        for inside in (slot.starts, when, slot.ends - 1):
            shown = datetime_of(inside).astimezone(ZoneInfo(zone))
            assert shown.isoformat()[:13] == slot.text.removesuffix("b")
