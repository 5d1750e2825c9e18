"""Time as an argument: the present is asked of a `Clock`, which a test or an example can hold still."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeAlias

Moment: TypeAlias = int
"""Microseconds since 1970-01-01T00:00:00Z."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    def __call__(self) -> Moment: ...


def system_clock() -> Moment:
    return time.time_ns() // 1_000


@dataclass
class FixedClock:
    """A clock that stands at `now` until it is set or advanced."""

    now: Moment = 0

    def __call__(self) -> Moment:
        return self.now

    def advance(self, by: timedelta) -> None:
        self.now += by // _MICROSECOND


def moment_of(at: datetime) -> Moment:
    """The moment of an aware datetime, exact to the microsecond; a naive one raises TypeError."""
    return (at - _EPOCH) // _MICROSECOND


def datetime_of(moment: Moment) -> datetime:
    return _EPOCH + moment * _MICROSECOND
