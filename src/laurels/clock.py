"""Time as an argument: code asks a `Clock` for the present; tests and examples pass a `FixedClock`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from laurels.moments import MICROSECOND, Moment

if TYPE_CHECKING:
    from datetime import timedelta


class Clock(Protocol):
    def __call__(self) -> Moment: ...


def system_clock() -> Moment:
    return time.time_ns() // 1_000


@dataclass
class FixedClock:
    """A clock that shows `now` until it is set or advanced."""

    now: Moment = 0

    def __call__(self) -> Moment:
        return self.now

    def advance(self, by: timedelta) -> None:
        self.now += by // MICROSECOND
