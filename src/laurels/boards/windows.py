"""Time: which slot of a window a moment lies in, where that slot begins and ends, and what it is called.

A moment is a point in time; a wall is what the clock on the wall of a zone shows at it. Both count
microseconds, so every bound is exact. Two rules make the slots of a window tile time in every zone, without
gap or overlap, whatever its clock was ever made to do:

- A day, and so a week, a month and a year, begins at the first moment at which the zone's clock shows its
  midnight or later. A midnight that was skipped begins where the clock lands; a day that was skipped has no
  slot; a clock set back over midnight does not reopen the day that had ended.
- An hour ends when the clock shows another hour, or is set back. The hour shown for the second time has the
  same text with a ``b``, as timetables write 2A and 2B: ``2025-10-26T01``, then ``2025-10-26T01b``.

A calendar spans the years 1 to 9999, in UTC and on the zone's own clock. Moments outside are refused; a
bound that would lie on or beyond the edge is None, as if the slot had always been, or never ended.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from calendar import isleap, monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from laurels.boards.definition import Period, Window

Moment = int  # microseconds since 1970-01-01T00:00Z; negative before
Wall = int  # microseconds since 1970-01-01T00:00 on a zone's own clock

MICROSECOND = timedelta(microseconds=1)
SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_WALL = EPOCH.replace(tzinfo=None)
EPOCH_ORDINAL = EPOCH.toordinal()

EARLIEST = (date.min.toordinal() - EPOCH_ORDINAL) * DAY
LATEST = (date.max.toordinal() + 1 - EPOCH_ORDINAL) * DAY  # the first moment that a datetime cannot hold
OUTSIDE = "lies outside the years 1 to 9999"

HINTS: dict[Period, str] = {
    "hourly": "write it like 2025-10-24T13, or 2025-10-26T01b for an hour that the clock repeats",
    "daily": "write it like 2025-10-24",
    "weekly": "write it like 2025-w43, by the ISO year and week",
    "monthly": "write it like 2025-10",
    "yearly": "write it like 2025",
    "rolling": "write it like 2025-10-24, the last of its days",
    "every": "write it like 19750, the Unix time in seconds divided by the window's length, rounded down",
    "all_time": "there is only one, so leave it empty",
}

# The numbers in a slot's text, in their order, by the names that key templates have for them.
PARTS: dict[Period, tuple[str, ...]] = {
    "hourly": ("yyyy", "mm", "dd"),
    "daily": ("yyyy", "mm", "dd"),
    "weekly": ("yyyy", "ww"),
    "monthly": ("yyyy", "mm"),
    "yearly": ("yyyy",),
    "rolling": ("yyyy", "mm", "dd"),
}

RANGE_CODES: dict[str, Period] = {"d": "daily", "w": "weekly", "m": "monthly", "a": "all_time"}

REMEMBERED_SLOTS = 4
REMEMBERED_ENDS = 1024


def moment_of(when: datetime) -> Moment:
    if when.utcoffset() is None:
        raise InvalidInput.at("at", "has no UTC offset; write it like 2025-10-24T12:00:00Z")
    return (when - EPOCH) // MICROSECOND


def datetime_of(moment: Moment) -> datetime:
    if not EARLIEST <= moment < LATEST:
        raise InvalidInput.at("at", OUTSIDE)
    return EPOCH + timedelta(microseconds=moment)


@dataclass(frozen=True, slots=True)
class Slot:
    """A stretch of time that is ranked by itself: every moment from `starts` on that is before `ends`."""

    text: str  # "2025-10-24"; "" for all_time
    starts: Moment | None  # None: always was
    ends: Moment | None  # None: never ends

    @property
    def starts_at(self) -> datetime | None:
        return None if self.starts is None else datetime_of(self.starts)

    @property
    def ends_at(self) -> datetime | None:
        return None if self.ends is None else datetime_of(self.ends)


class Calendar:
    """One window definition in one timezone."""

    def __init__(self, window: Window, zone: ZoneInfo) -> None:
        self._window = window
        self._tiling = _tiling(window, zone)
        self._latest_answer: tuple[Moment, Moment, Slot] = (0, 0, Slot("", None, None))
        self._answers: tuple[tuple[Moment, Moment, Slot], ...] = ()
        self._kept: dict[Moment, Moment] = {}

    def at(self, moment: Moment) -> Slot:
        """The slot that the moment lies in; in one of the last few that were asked for, at once."""
        begins, ends, slot = self._latest_answer
        if begins <= moment < ends:
            return slot
        for answer in self._answers:
            if answer[0] <= moment < answer[1]:
                self._latest_answer = answer
                return answer[2]
        answer = self._answer(self._tile(moment))
        self._latest_answer = answer
        self._answers = (answer, *self._answers[: REMEMBERED_SLOTS - 1])
        return answer[2]

    def parse(self, text: str) -> Slot:
        """The slot whose text this is, to the letter; anything else is refused."""
        try:
            moment = self._tiling.locate(text)
        except ValueError:
            period = self._window.period
            raise InvalidInput.at(
                "slot", f"{text[:40]!r} is not the slot of a window of period {period}; {HINTS[period]}"
            ) from None
        tile = self._tile(min(max(moment, self._tiling.earliest), self._tiling.latest - 1))
        if tile.text != text:
            raise InvalidInput.at("slot", self._tiling.absence(text))
        return self._slot(tile)

    def previous(self, slot: Slot) -> Slot | None:
        """The slot before; None before the first."""
        begins = self._own(slot).begins
        return self._slot(self._tile(begins - 1)) if begins > self._tiling.earliest else None

    def following(self, slot: Slot) -> Slot | None:
        """The slot after; None after the last."""
        return None if slot.ends is None else self._slot(self._tile(slot.ends))

    def slots(self, starts: Moment, ends: Moment) -> list[Slot]:
        """Those that overlap the time from `starts` to `ends`, oldest first; rolling ones by the last day."""
        moment, ends = max(starts, self._tiling.earliest), min(ends, self._tiling.latest)
        found: list[Slot] = []
        while moment < ends:
            tile = self._tile(moment)
            found.append(self._slot(tile))
            moment = tile.ends
        return found

    def kept_until(self, slot: Slot) -> Moment | None:
        """The first moment at which the slot can no longer be asked for; None: it always can.

        A `keep` of n lasts until the end of the slot n - 1 later: at every moment n slots can be asked for.
        """
        if slot.ends is None or self._window.keep is None:
            return None
        until = self._kept.get(slot.ends)
        if until is None:
            until = self._end_of_keeping(slot.ends, self._window.keep)
            if len(self._kept) >= REMEMBERED_ENDS:
                self._kept.clear()
            self._kept[slot.ends] = until
        return self._bound(until)

    def days(self, slot: Slot) -> list[str]:
        """The texts of the daily slots in a rolling slot, oldest first; a day that was skipped has none."""
        if not isinstance(self._tiling, _Days) or self._window.period != "rolling":
            raise ValueError(f"a window of period {self._window.period!r} is not made of days")
        return self._tiling.texts_up_to(self._own(slot))

    def placeholders(self, slot: Slot) -> dict[str, str]:
        """What key templates may name of the slot: of a week the ISO year, of a rolling slot its last day."""
        return _placeholders(self._window.period, slot)

    def _tile(self, moment: Moment) -> _Tile:
        if not self._tiling.earliest <= moment < self._tiling.latest:
            raise InvalidInput.at("at", OUTSIDE)
        return self._tiling.find(moment)

    def _own(self, slot: Slot) -> _Tile:
        return self._tiling.find((self._tiling.latest if slot.ends is None else slot.ends) - 1)

    def _answer(self, tile: _Tile) -> tuple[Moment, Moment, Slot]:
        begins, ends = max(tile.begins, self._tiling.earliest), min(tile.ends, self._tiling.latest)
        return begins, ends, self._slot(tile)

    def _slot(self, tile: _Tile) -> Slot:
        return Slot(tile.text, self._bound(tile.starts), self._bound(tile.ends))

    def _bound(self, moment: Moment) -> Moment | None:
        return moment if self._tiling.earliest < moment < self._tiling.latest else None

    def _end_of_keeping(self, ends: Moment, keep: int | timedelta) -> Moment:
        if isinstance(keep, timedelta):
            return ends + keep // MICROSECOND
        return self._tiling.skip(ends, keep - 1)


def leaders_slot(code: str, slot: Slot) -> str:
    """The slot as the keys of the leaders service spell it: yyyymmdd, yyyyww, yyyymm, or ``a``."""
    period = RANGE_CODES[code]
    return "a" if period == "all_time" else _placeholders(period, slot)["".join(PARTS[period])]


def _placeholders(period: Period, slot: Slot) -> dict[str, str]:
    names = PARTS.get(period, ())
    values = re.split("-w?", slot.text[:10])
    alone = dict(zip(names, values, strict=False))
    joined = dict(zip(accumulate(names), accumulate(values), strict=False))
    return {"slot": slot.text, **alone, **joined}


class _Tile(NamedTuple):
    """A slot's own share of time; a rolling slot also reaches back over the tiles before it, to `starts`."""

    text: str
    starts: Moment
    begins: Moment
    ends: Moment


class _Tiling(ABC):
    """One way to cut the moments from `earliest` up to `latest` into tiles. The outermost may overhang."""

    earliest: Moment = EARLIEST
    latest: Moment = LATEST

    @abstractmethod
    def find(self, moment: Moment) -> _Tile:
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


def _tiling(window: Window, zone: ZoneInfo) -> _Tiling:
    match window.period:
        case "all_time":
            return _Always()
        case "every":
            return _Every(window.seconds or 1)
        case "hourly":
            return _Hours(_Clock(zone))
        case "rolling":
            return _Days(_Clock(zone), "daily", reach=(window.days or 1) - 1)
        case period:
            return _Days(_Clock(zone), period)


class _Always(_Tiling):
    def find(self, moment: Moment) -> _Tile:  # noqa: ARG002  # whatever the moment
        return _Tile("", self.earliest, self.earliest, self.latest)

    def locate(self, text: str) -> Moment:
        if text:
            raise ValueError(text)
        return 0


class _Every(_Tiling):
    def __init__(self, seconds: int) -> None:
        self._length = seconds * SECOND

    def find(self, moment: Moment) -> _Tile:
        number = moment // self._length
        begins = number * self._length
        return _Tile(str(number), begins, begins, begins + self._length)

    def locate(self, text: str) -> Moment:
        number = int(text)
        if str(number) != text:
            raise ValueError(text)
        return number * self._length

    def skip(self, boundary: Moment, count: int) -> Moment:
        return boundary + count * self._length


class _Clock:
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


class _Days(_Tiling):
    """Days, and the weeks, months and years made of them. `reach`: how many days before it a slot spans."""

    def __init__(self, clock: _Clock, period: Period, reach: int = 0) -> None:
        self._clock = clock
        self._period: Period = period
        self._reach = reach
        self.earliest, self.latest = clock.earliest, clock.latest

    def find(self, moment: Moment) -> _Tile:
        day = _ordinal(moment + self._clock.offset(moment))
        first, length = _span(self._period, day)
        ends = self._midnight(first + length)
        while ends <= moment:  # the clock was set back over the boundary, and shows a day that has ended
            first, length = _span(self._period, first + length)
            ends = self._midnight(first + length)
        begins = self._midnight(first)
        starts = self._midnight(first - self._reach) if self._reach else begins
        return _Tile(_text(self._period, _wall(first)), starts, begins, ends)

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

    def texts_up_to(self, tile: _Tile) -> list[str]:
        last = _ordinal(_parse(self._period, tile.text))
        days = range(last - self._reach, last + 1)
        shown = [day for day in days if self._midnight(day) < self._midnight(day + 1)]
        return [_text(self._period, _wall(day)) for day in shown]

    def _midnight(self, day: int) -> Moment:
        return self._clock.first(_wall(day))


class _Hours(_Tiling):
    def __init__(self, clock: _Clock) -> None:
        self._clock = clock
        self.earliest, self.latest = clock.earliest, clock.latest

    def find(self, moment: Moment) -> _Tile:
        offset = self._clock.offset(moment)
        wall = (moment + offset) // HOUR * HOUR
        begins = self._begins(moment, wall, offset)
        ends = self._ends(moment, wall + HOUR, offset)
        shown_before = self._clock.first(wall) < begins
        return _Tile(_text("hourly", wall) + "b" * shown_before, begins, begins, ends)

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
