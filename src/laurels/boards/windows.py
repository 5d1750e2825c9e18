"""Windows: which slot a moment lies in, where it begins and ends, what it is called, how long it is kept.

Pure. A calendar spans the years 1 to 9999, in UTC and on the zone's own clock. Moments outside are refused; a
bound that would lie on or beyond the edge is None, as if the slot had always been, or never ended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from laurels.boards.tiling import Days, Tile, tiling_of
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
        self._tiling = tiling_of(window, zone)
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
        if not isinstance(self._tiling, Days) or self._window.period != "rolling":
            raise ValueError(f"a window of period {self._window.period!r} is not made of days")
        return self._tiling.texts_up_to(self._own(slot))

    def placeholders(self, slot: Slot) -> dict[str, str]:
        """What key templates may name of the slot: of a week the ISO year, of a rolling slot its last day."""
        return _placeholders(self._window.period, slot)

    def _tile(self, moment: Moment) -> Tile:
        if not self._tiling.earliest <= moment < self._tiling.latest:
            raise InvalidInput.at("at", OUTSIDE)
        return self._tiling.find(moment)

    def _own(self, slot: Slot) -> Tile:
        return self._tiling.find((self._tiling.latest if slot.ends is None else slot.ends) - 1)

    def _answer(self, tile: Tile) -> tuple[Moment, Moment, Slot]:
        begins, ends = max(tile.begins, self._tiling.earliest), min(tile.ends, self._tiling.latest)
        return begins, ends, self._slot(tile)

    def _slot(self, tile: Tile) -> Slot:
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
