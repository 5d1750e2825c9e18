"""Streaks: how many days in a row a user was active. Pure.

A streak includes its last day. Days follow each other by date, so zones and clock changes break no streak.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Mapping


@dataclass(frozen=True, slots=True)
class Streak:
    """A user's streak as of the last finalized day."""

    current: int = 0
    best: int = 0
    last_active_ymd: int = 0


def date_of(ymd: int) -> date:
    """Raises ValueError when there is no such date.

    >>> date_of(20251024)
    datetime.date(2025, 10, 24)
    """
    return date(ymd // 10_000, ymd // 100 % 100, ymd % 100)


def ymd_of(day: date) -> int:
    return day.year * 10_000 + day.month * 100 + day.day


def days_from(ymd: int, days: int) -> int:
    """The date that many days later; earlier if `days` is negative.

    >>> days_from(20251101, -1)
    20251031
    """
    return ymd_of(date.fromordinal(date_of(ymd).toordinal() + days))


def streak_on(ymd: int, known: Streak, finalized: Mapping[int, int], active: Container[int]) -> int:
    """The streak on a day on which the user is active.

    `finalized`: the streaks of earlier days that are finalized. `active`: the active days that are not.
    """
    days = 1
    while (before := days_from(ymd, -days)) in active and before not in finalized:
        days += 1
    if before in finalized:
        return days + finalized[before]
    return days + (known.current if known.last_active_ymd == before else 0)
