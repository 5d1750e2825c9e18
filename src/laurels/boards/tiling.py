"""How time is cut into the slots of a window, in any zone, whatever its clock was ever made to do. Pure.

A wall is what the clock on the wall of a zone shows at a moment. Two rules make slots tile time without gap
or overlap:

- A day, and so a week, a month and a year, begins at the first moment at which the zone's clock shows its
  midnight or later. A midnight that was skipped begins where the clock lands; a day that was skipped has no
  slot; a clock set back over midnight does not reopen the day that had ended.
- An hour ends when the clock shows another hour, or is set back. The hour shown for the second time has the
  same text with a ``b``, as timetables write 2A and 2B: ``2025-10-26T01``, then ``2025-10-26T01b``.
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

Wall = int  # microseconds since 1970-01-01T00:00 on a zone's own clock

EPOCH_WALL = EPOCH.replace(tzinfo=None)


class Tile(NamedTuple):
    """A slot's own share of time; a rolling slot also reaches back over the tiles before it, to `starts`."""

    text: str
    starts: Moment
    begins: Moment
    ends: Moment


class Tiling(ABC):
    """One way to cut the moments from `earliest` up to `latest` into tiles. The outermost may overhang."""

    earliest: Moment = EARLIEST
    latest: Moment = LATEST

    @abstractmethod
    def find(self, moment: Moment) -> Tile:
        """The tile that the moment lies in."""

    @abstractmethod
    def locate(self, text: str) -> Moment:
        """A moment in the tile that has this text, if one has; ValueError for a text that none can have."""

    def absence(self, text: str) -> str:
        """Why there is no tile with a text that is well written."""
        return f"{text[:40]} {OUTSIDE}"

    def skip(self, boundary: Moment, count: int) -> Moment:
        """The boundary between tiles that is `count` tiles later."""
        while count > 0 and boundary < self.latest:
            boundary, passed = self.leap(boundary, count)
            count -= passed
        return boundary

    def leap(self, boundary: Moment, count: int) -> tuple[Moment, int]:  # noqa: ARG002  # one tile always fits
        """A later boundary that is quick to find, and how many tiles later it is: at most `count`."""
        return self.find(boundary).ends, 1


def tiling_of(window: Window, zone: ZoneInfo) -> Tiling:
    match window.period:
        case "all_time":
            return Always()
        case "every":
            return Every(window.seconds or 1)
        case "hourly":
            return Hours(WallClock(zone))
        case "rolling":
            return Days(WallClock(zone), "daily", reach=(window.days or 1) - 1)
        case period:
            return Days(WallClock(zone), period)


class Always(Tiling):
    def find(self, moment: Moment) -> Tile:  # noqa: ARG002  # whatever the moment
        return Tile("", self.earliest, self.earliest, self.latest)

    def locate(self, text: str) -> Moment:
        if text:
            raise ValueError(text)
        return 0


class Every(Tiling):
    def __init__(self, seconds: int) -> None:
        self._length = seconds * SECOND

    def find(self, moment: Moment) -> Tile:
        number = moment // self._length
        begins = number * self._length
        return Tile(str(number), begins, begins, begins + self._length)

    def locate(self, text: str) -> Moment:
        number = int(text)
        if str(number) != text:
            raise ValueError(text)
        return number * self._length

    def skip(self, boundary: Moment, count: int) -> Moment:
        return boundary + count * self._length


class WallClock:
    """The clock on the wall of one zone."""

    def __init__(self, zone: ZoneInfo) -> None:
        self.zone = zone
        self._epoch = EPOCH_WALL.replace(tzinfo=zone)
        first = _microseconds(datetime.min.replace(tzinfo=zone).utcoffset())
        last = _microseconds(datetime.max.replace(tzinfo=zone).utcoffset())
        self.earliest = max(EARLIEST, EARLIEST - first)
        self.latest = min(LATEST, LATEST - last)

    def offset(self, moment: Moment) -> int:
        """How far the clock is ahead of UTC."""
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
        """The moment at which the clock was set, of which `low` is before and `high` at it or after."""
        before = self.offset(low)
        while high - low > 1:
            middle = (low + high) // 2
            if self.offset(middle) == before:
                low = middle
            else:
                high = middle
        return high


class Days(Tiling):
    """Days, and the weeks, months and years made of them. `reach`: how many days before it a slot spans."""

    def __init__(self, clock: WallClock, period: Period, reach: int = 0) -> None:
        self._clock = clock
        self._period: Period = period
        self._reach = reach
        self.earliest, self.latest = clock.earliest, clock.latest

    def find(self, moment: Moment) -> Tile:
        day = _ordinal(moment + self._clock.offset(moment))
        first, length = _span(self._period, day)
        ends = self._midnight(first + length)
        while ends <= moment:  # the clock was set back over the boundary, and shows a day that has ended
            first, length = _span(self._period, first + length)
            ends = self._midnight(first + length)
        begins = self._midnight(first)
        starts = self._midnight(first - self._reach) if self._reach else begins
        return Tile(_text(self._period, _wall(first)), starts, begins, ends)

    def locate(self, text: str) -> Moment:
        return self._clock.first(_parse(self._period, text))

    def absence(self, text: str) -> str:
        return f"{text} does not exist in {self._clock.zone}: the clock there skips that day"

    def leap(self, boundary: Moment, count: int) -> tuple[Moment, int]:
        if self._period == "daily":
            days = min(count, 28)
            later = self._midnight(_ordinal(boundary + self._clock.offset(boundary)) + days)
            if later - boundary > days * DAY - DAY // 2:  # else a whole day is missing
                return later, days
        return super().leap(boundary, count)

    def texts_up_to(self, tile: Tile) -> list[str]:
        last = _ordinal(_parse(self._period, tile.text))
        days = range(last - self._reach, last + 1)
        shown = [day for day in days if self._midnight(day) < self._midnight(day + 1)]
        return [_text(self._period, _wall(day)) for day in shown]

    def _midnight(self, day: int) -> Moment:
        return self._clock.first(_wall(day))


class Hours(Tiling):
    def __init__(self, clock: WallClock) -> None:
        self._clock = clock
        self.earliest, self.latest = clock.earliest, clock.latest

    def find(self, moment: Moment) -> Tile:
        offset = self._clock.offset(moment)
        wall = (moment + offset) // HOUR * HOUR
        begins = self._begins(moment, wall, offset)
        ends = self._ends(moment, wall + HOUR, offset)
        shown_before = self._clock.first(wall) < begins
        return Tile(_text("hourly", wall) + "b" * shown_before, begins, begins, ends)

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


def _span(period: Period, day: int) -> tuple[int, int]:
    """The first day of the week, month or year that the day is in, and how many days that has.

    Days are proleptic ordinals (1 is Monday, 0001-01-01), so that the day after the last one is a number too.
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
    """The first wall of the slot that has this text; ValueError unless `_text` could have written it."""
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
