"""The slots of a window: which one contains a moment, its bounds, its text, and how long it is kept. Pure.

A calendar spans the years 1 to 9999, in UTC and on the zone's own clock. Moments outside are refused. A bound
on or beyond the edge is None, as if the slot had no beginning or no end.

The nouns, from the definition to Valkey:

- `Window` (definition.py): one entry of a board's `windows`, such as «weekly, keep 8».
- `ZonedWindow` (board.py): a window in one timezone, with its calendar and how long Valkey keeps its slots.
- `Recurrence` (recurrence.py): the rule by which a window's slots follow each other. It yields `Interval`s.
- `Calendar`: a window's recurrence with bounds, texts and `keep` applied. It yields `Slot`s.
- `Slot`: one stretch of time that is ranked by itself, such as 2025-w43.
- `Cut` (keys.py): the whole board, or one group of it, such as `country=GB`.
- `WindowAddress` (board.py): label, slot and cut; names one ranked list of the board.
- `Target` (board.py): a ranked list that a submission writes; `Targets` are all those of one cut.
- `WindowQuery`, `PageQuery` (scores/page_query.py): what a caller asks for, before it is resolved.
- `ShardedWindow` (scores/shards.py): a ranked list as it is read, over all shards.
- `View` (scores/live.py): what a live follower watches: a page, and perhaps a member.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from laurels.boards.recurrence import Days, Interval, recurrence_of
from laurels.errors import InvalidInput
from laurels.moments import MICROSECOND, OUTSIDE, Moment, datetime_of

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from laurels.boards.definition import Period, Window

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


@dataclass(frozen=True, slots=True)
class Slot:
    """A stretch of time that is ranked by itself: from `starts` up to, but not including, `ends`."""

    text: str  # "2025-10-24"; "" for all_time
    starts: Moment | None  # None: always was
    ends: Moment | None  # None: never ends

    def holds(self, moment: Moment) -> bool:
        starts, ends = self.starts, self.ends
        return (starts is None or starts <= moment) and (ends is None or moment < ends)

    @property
    def starts_at(self) -> datetime | None:
        return None if self.starts is None else datetime_of(self.starts)

    @property
    def ends_at(self) -> datetime | None:
        return None if self.ends is None else datetime_of(self.ends)


class WindowInfo(msgspec.Struct, frozen=True):
    """One window: when it is, and how many entries it has."""

    period: str
    slot: str
    starts_at: datetime | None
    ends_at: datetime | None
    entries: int


class Calendar:
    """One window definition in one timezone."""

    def __init__(self, window: Window, zone: ZoneInfo) -> None:
        self._window = window
        self._recurrence = recurrence_of(window, zone)
        self._latest_answer: tuple[Moment, Moment, Slot] = (0, 0, Slot("", None, None))
        self._answers: tuple[tuple[Moment, Moment, Slot], ...] = ()
        self._kept: dict[Moment, Moment] = {}

    def at(self, moment: Moment) -> Slot:
        """The slot that contains the moment. The latest slots are cached."""
        begins, ends, slot = self._latest_answer
        if begins <= moment < ends:
            return slot
        for answer in self._answers:
            if answer[0] <= moment < answer[1]:
                self._latest_answer = answer
                return answer[2]
        answer = self._answer(self._interval(moment))
        self._latest_answer = answer
        self._answers = (answer, *self._answers[: REMEMBERED_SLOTS - 1])
        return answer[2]

    def parse(self, text: str) -> Slot:
        """The slot with exactly this text; raises `InvalidInput`."""
        try:
            moment = self._recurrence.locate(text)
        except ValueError:
            period = self._window.period
            raise InvalidInput.at(
                "slot", f"{text[:40]!r} is not the slot of a window of period {period}; {HINTS[period]}"
            ) from None
        interval = self._interval(min(max(moment, self._recurrence.earliest), self._recurrence.latest - 1))
        if interval.text != text:
            raise InvalidInput.at("slot", self._recurrence.absence(text))
        return self._slot(interval)

    def previous(self, slot: Slot) -> Slot | None:
        """The slot before this one; None for the first."""
        begins = self._own(slot).begins
        return self._slot(self._interval(begins - 1)) if begins > self._recurrence.earliest else None

    def following(self, slot: Slot) -> Slot | None:
        """The slot after this one; None for the last."""
        return None if slot.ends is None else self._slot(self._interval(slot.ends))

    def slots(self, starts: Moment, ends: Moment) -> list[Slot]:
        """Those that overlap the time from `starts` to `ends`, oldest first; rolling ones by the last day."""
        moment, ends = max(starts, self._recurrence.earliest), min(ends, self._recurrence.latest)
        found: list[Slot] = []
        while moment < ends:
            interval = self._interval(moment)
            found.append(self._slot(interval))
            moment = interval.ends
        return found

    def kept_until(self, slot: Slot) -> Moment | None:
        """The first moment at which queries refuse the slot; None: never.

        A `keep` of n lasts until the end of the slot n - 1 later, so that n slots can be read at any moment.
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
        """The texts of the daily slots in a rolling slot, oldest first, without days that the clock skips."""
        if not isinstance(self._recurrence, Days) or self._window.period != "rolling":
            raise ValueError(f"a window of period {self._window.period!r} is not made of days")
        return self._recurrence.texts_up_to(self._own(slot))

    def placeholders(self, slot: Slot) -> dict[str, str]:
        """The slot's placeholders in key templates. A week has its ISO year, a rolling slot its last day."""
        return _placeholders(self._window.period, slot)

    def _interval(self, moment: Moment) -> Interval:
        if not self._recurrence.earliest <= moment < self._recurrence.latest:
            raise InvalidInput.at("at", OUTSIDE)
        return self._recurrence.find(moment)

    def _own(self, slot: Slot) -> Interval:
        return self._recurrence.find((self._recurrence.latest if slot.ends is None else slot.ends) - 1)

    def _answer(self, interval: Interval) -> tuple[Moment, Moment, Slot]:
        begins, ends = (
            max(interval.begins, self._recurrence.earliest),
            min(interval.ends, self._recurrence.latest),
        )
        return begins, ends, self._slot(interval)

    def _slot(self, interval: Interval) -> Slot:
        return Slot(interval.text, self._bound(interval.starts), self._bound(interval.ends))

    def _bound(self, moment: Moment) -> Moment | None:
        return moment if self._recurrence.earliest < moment < self._recurrence.latest else None

    def _end_of_keeping(self, ends: Moment, keep: int | timedelta) -> Moment:
        if isinstance(keep, timedelta):
            return ends + keep // MICROSECOND
        return self._recurrence.skip(ends, keep - 1)


def leaders_slot(code: str, slot: Slot) -> str:
    """The slot as spelled in keys of the Leaders service: yyyymmdd, yyyyww, yyyymm, or ``a``."""
    period = RANGE_CODES[code]
    return "a" if period == "all_time" else _placeholders(period, slot)["".join(PARTS[period])]


def _placeholders(period: Period, slot: Slot) -> dict[str, str]:
    names = PARTS.get(period, ())
    values = re.split("-w?", slot.text[:10])
    alone = dict(zip(names, values, strict=False))
    joined = dict(zip(accumulate(names), accumulate(values), strict=False))
    return {"slot": slot.text, **alone, **joined}
