"""The days of a campus, which begin and end at midnight in its timezone. Pure."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final, NamedTuple

from laurels.boards.recurrence import Days, WallClock
from laurels.boards.timezones import zone
from laurels.moments import HOUR, Moment

KEPT: Final = 48 * HOUR
"""How long counters are kept after the end of their day."""


class Day(NamedTuple):
    ymd: int
    begins: Moment
    ends: Moment

    @property
    def expires(self) -> Moment:
        return self.ends + KEPT


@cache
def _days(timezone: str) -> Days:
    return Days(WallClock(zone(timezone)), "daily")


@lru_cache(maxsize=10_000)
def _days_around(timezone: str, number: int) -> tuple[Day, Day]:
    """The days in which an hour (counted from 1970) begins and ends; no day is shorter than an hour."""
    found = (_days(timezone).find(moment) for moment in (number * HOUR, (number + 1) * HOUR - 1))
    first, last = (Day(int(each.text.replace("-", "")), each.begins, each.ends) for each in found)
    return first, last


def day_at(timezone: str, moment: Moment) -> Day:
    first, last = _days_around(timezone, moment // HOUR)
    return first if moment < first.ends else last


def day_of(timezone: str, ymd: int) -> Day:
    """The day with this date; raises ValueError when the zone's calendar skipped it."""
    year, rest = divmod(ymd, 10_000)
    month, day = divmod(rest, 100)
    found = day_at(timezone, _days(timezone).locate(f"{year:04}-{month:02}-{day:02}"))
    if found.ymd != ymd:
        raise ValueError(f"{timezone} had no {ymd}")
    return found
