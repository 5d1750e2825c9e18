"""How a window's slots recur: cuts time into intervals without gap or overlap, in any timezone. Pure.

A wall time is what a zone's clock shows at a moment. Clocks are set forward and back, so two rules decide
where an interval begins:

- A day, and so a week, a month and a year, begins at the first moment at which the zone's clock shows its
  midnight or later. If the clock skips midnight, the day begins where the clock lands. If the clock skips a
  whole day, that day has no slot. If the clock is set back over midnight, the day that ended stays ended.
- An hour ends when the clock shows another hour, or is set back. The second occurrence of an hour has the
  same text with a ``b``: ``2025-10-26T01``, then ``2025-10-26T01b``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from calendar import isleap, monthrange
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from laurels.moments import (
    DAY,
    EARLIEST,
    EPOCH,
    EPOCH_ORDINAL,
    HOUR,
    LATEST,
    MICROSECOND,
    OUTSIDE,
    SECOND,
    Moment,
    datetime_of,
)

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from laurels.boards.definition import Period, Window

Wall = int  # microseconds since 1970-01-01T00:00, on a zone's own clock

EPOCH_WALL = EPOCH.replace(tzinfo=None)


class Interval(NamedTuple):
    """The time of a slot, from `begins` to `ends`; a rolling slot also covers the time from `starts`."""

    text: str
    starts: Moment
    begins: Moment
    ends: Moment


class Recurrence(ABC):
    """Cuts the moments from `earliest` up to `latest` into intervals. The first and the last may overhang."""

    earliest: Moment = EARLIEST
    latest: Moment = LATEST

    @abstractmethod
    def find(self, moment: Moment) -> Interval:
        """The interval that contains the moment."""

    @abstractmethod
    def locate(self, text: str) -> Moment:
        """A moment in the interval with this text, if there is one; ValueError if the text is malformed."""

    def absence(self, text: str) -> str:
        """Why no interval has this well-formed text."""
        return f"{text[:40]} {OUTSIDE}"

    def skip(self, boundary: Moment, count: int) -> Moment:
        """The boundary that is `count` intervals later."""
        while count > 0 and boundary < self.latest:
            boundary, passed = self.leap(boundary, count)
            count -= passed
        return boundary

    def leap(self, boundary: Moment, count: int) -> tuple[Moment, int]:  # noqa: ARG002  # one interval is the default step
        """A later boundary that is cheap to compute, and how many intervals it skips: at most `count`."""
        return self.find(boundary).ends, 1


def recurrence_of(window: Window, zone: ZoneInfo) -> Recurrence:
    match window.period:
        case "all_time":
            return AllTime()
        case "every":
            return FixedLength(window.seconds or 1)
        case "hourly":
            return Hours(WallClock(zone))
        case "rolling":
            return Days(WallClock(zone), "daily", reach=(window.days or 1) - 1)
        case period:
            return Days(WallClock(zone), period)


class AllTime(Recurrence):
    def find(self, moment: Moment) -> Interval:  # noqa: ARG002  # every moment is in it
        return Interval("", self.earliest, self.earliest, self.latest)

    def locate(self, text: str) -> Moment:
        if text:
            raise ValueError(text)
        return 0


class FixedLength(Recurrence):
    def __init__(self, seconds: int) -> None:
        self._length = seconds * SECOND

    def find(self, moment: Moment) -> Interval:
        number = moment // self._length
        begins = number * self._length
        return Interval(str(number), begins, begins, begins + self._length)

    def locate(self, text: str) -> Moment:
        number = int(text)
        if str(number) != text:
            raise ValueError(text)
        return number * self._length

    def skip(self, boundary: Moment, count: int) -> Moment:
        return boundary + count * self._length


class WallClock:
    """The clock of one timezone."""

    def __init__(self, zone: ZoneInfo) -> None:
        self.zone = zone
        self._epoch = EPOCH_WALL.replace(tzinfo=zone)
        first = _microseconds(datetime.min.replace(tzinfo=zone).utcoffset())
        last = _microseconds(datetime.max.replace(tzinfo=zone).utcoffset())
        self.earliest = max(EARLIEST, EARLIEST - first)
        self.latest = min(LATEST, LATEST - last)

    def offset(self, moment: Moment) -> int:
        """How far the clock is ahead of UTC, in microseconds."""
        inside = min(max(moment, self.earliest), self.latest - 1)
        return _microseconds(datetime_of(inside).astimezone(self.zone).utcoffset())

    def first(self, wall: Wall) -> Moment:
        """The first moment at which the clock shows `wall` or later."""
        if not EARLIEST < wall < LATEST:
            return self.earliest if wall <= EARLIEST else self.latest
        shown = self._epoch + timedelta(microseconds=wall)
        before = _microseconds(shown.utcoffset())
        after = _microseconds(shown.replace(fold=1).utcoffset())
        if after <= before:
            return wall - before
        return self.change(wall - after, wall - before)  # the clock skips this wall

    def last(self, wall: Wall) -> Moment:
        """The last moment at which the clock shows `wall`, if it ever does."""
        shown = self._epoch + timedelta(microseconds=wall)
        return wall - _microseconds(shown.replace(fold=1).utcoffset())

    def change(self, low: Moment, high: Moment) -> Moment:
        """The moment at which the clock was set, somewhere after `low` and at most `high`."""
        before = self.offset(low)
        while high - low > 1:
            middle = (low + high) // 2
            if self.offset(middle) == before:
                low = middle
            else:
                high = middle
        return high


class Days(Recurrence):
    """Days, and weeks, months and years of them. `reach`: how many earlier days a slot also covers."""

    def __init__(self, clock: WallClock, period: Period, reach: int = 0) -> None:
        self._clock = clock
        self._period: Period = period
        self._reach = reach
        self.earliest, self.latest = clock.earliest, clock.latest

    def find(self, moment: Moment) -> Interval:
        day = _ordinal(moment + self._clock.offset(moment))
        first, length = _days_of(self._period, day)
        ends = self._midnight(first + length)
        while ends <= moment:  # the clock was set back over the boundary, into a day that ended
            first, length = _days_of(self._period, first + length)
            ends = self._midnight(first + length)
        begins = self._midnight(first)
        starts = self._midnight(first - self._reach) if self._reach else begins
        return Interval(_text(self._period, _wall(first)), starts, begins, ends)

    def locate(self, text: str) -> Moment:
        return self._clock.first(_parse(self._period, text))

    def absence(self, text: str) -> str:
        return f"{text} does not exist in {self._clock.zone}: the clock there skips that day"

    def leap(self, boundary: Moment, count: int) -> tuple[Moment, int]:
        if self._period == "daily":
            days = min(count, 28)
            later = self._midnight(_ordinal(boundary + self._clock.offset(boundary)) + days)
            if later - boundary > days * DAY - DAY // 2:  # or the clock skipped a whole day
                return later, days
        return super().leap(boundary, count)

    def texts_up_to(self, interval: Interval) -> list[str]:
        last = _ordinal(_parse(self._period, interval.text))
        days = range(last - self._reach, last + 1)
        shown = [day for day in days if self._midnight(day) < self._midnight(day + 1)]
        return [_text(self._period, _wall(day)) for day in shown]

    def _midnight(self, day: int) -> Moment:
        return self._clock.first(_wall(day))


class Hours(Recurrence):
    def __init__(self, clock: WallClock) -> None:
        self._clock = clock
        self.earliest, self.latest = clock.earliest, clock.latest

    def find(self, moment: Moment) -> Interval:
        offset = self._clock.offset(moment)
        wall = (moment + offset) // HOUR * HOUR
        begins = self._begins(moment, wall, offset)
        ends = self._ends(moment, wall + HOUR, offset)
        shown_before = self._clock.first(wall) < begins
        return Interval(_text("hourly", wall) + "b" * shown_before, begins, begins, ends)

    def locate(self, text: str) -> Moment:
        wall = _parse("hourly", text.removesuffix("b"))
        return self._clock.last(wall + HOUR - 1) if text.endswith("b") else self._clock.first(wall)

    def absence(self, text: str) -> str:
        does = "does not repeat" if text.endswith("b") else "skips"
        return f"{text} does not exist in {self._clock.zone}: the clock there {does} that hour"

    def leap(self, boundary: Moment, count: int) -> tuple[Moment, int]:
        offset = self._clock.offset(boundary)
        hours = min(count, 24)
        later = boundary + hours * HOUR
        if (later + offset) % HOUR == 0 and self._clock.offset(later) == offset:
            return later, hours
        return super().leap(boundary, count)

    def _begins(self, moment: Moment, wall: Wall, offset: int) -> Moment:
        unchanged = wall - offset
        before = self._clock.offset(unchanged)
        if before == offset:
            return unchanged
        change = self._clock.change(unchanged, moment)
        return change if before > offset else min(change, wall - before)

    def _ends(self, moment: Moment, wall: Wall, offset: int) -> Moment:
        unchanged = wall - offset
        after = self._clock.offset(unchanged - 1)
        if after == offset:
            return unchanged
        change = self._clock.change(moment, unchanged - 1)
        return change if after < offset else max(change, wall - after)


def _days_of(period: Period, day: int) -> tuple[int, int]:
    """The first day of the week, month or year that contains the day, and its length in days.

    Days are proleptic ordinals: 1 is Monday, 0001-01-01. So the day after the last one is still a number.
    """
    if period == "daily":
        return day, 1
    if period == "weekly":
        return day - (day - 1) % 7, 7
    shown = date.fromordinal(day)
    if period == "monthly":
        return day - shown.day + 1, monthrange(shown.year, shown.month)[1]
    return date(shown.year, 1, 1).toordinal(), 365 + isleap(shown.year)


def _text(period: Period, wall: Wall) -> str:
    shown = _datetime_on(wall)
    if period == "weekly":
        year, week, _ = shown.isocalendar()
        return f"{year:04}-w{week:02}"
    return shown.isoformat()[: {"hourly": 13, "daily": 10, "monthly": 7, "yearly": 4}[period]]


def _parse(period: Period, text: str) -> Wall:
    """The wall time at which the slot with this text begins; ValueError unless `_text` could write it."""
    rest = {"weekly": "-1", "monthly": "-01", "yearly": "-01-01"}.get(period, "")
    shown = datetime.fromisoformat(text.replace("w", "W") + rest).replace(tzinfo=None)
    wall = (shown - EPOCH_WALL) // MICROSECOND
    if _text(period, wall) != text:
        raise ValueError(text)
    return wall


def _wall(day: int) -> Wall:
    return (day - EPOCH_ORDINAL) * DAY


def _ordinal(wall: Wall) -> int:
    return wall // DAY + EPOCH_ORDINAL


def _datetime_on(wall: Wall) -> datetime:
    return EPOCH_WALL + timedelta(microseconds=wall)


def _microseconds(offset: timedelta | None) -> int:
    return 0 if offset is None else (offset.days * 86_400 + offset.seconds) * SECOND + offset.microseconds
