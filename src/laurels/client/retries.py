"""When to try again, and when to give up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable  # noqa: TC003  # the fields of a dataclass
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from laurels.client.steps import Lost

if TYPE_CHECKING:
    from laurels.client.steps import Reply
    from laurels.errors import LaurelsError

# Statuses that pass: too many requests, and what a server or its proxy answers while something is down.
PASSING: Final = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Retries:
    """How often and how long the client tries a call. Pauses double, each cut to a random part.

    >>> Retries(attempts=1)  # doctest: +ELLIPSIS
    Retries(attempts=1, deadline=60.0, ...)
    """

    attempts: int = 6
    """Tries in all, the first included."""
    deadline: float = 60.0
    """Seconds from the first try within which the last one must begin."""
    first_pause: float = 0.1
    """Seconds: the longest that the first pause may be."""
    longest_pause: float = 10.0
    """Seconds: the longest that any pause may be, without what the server asks for."""
    chance: Callable[[], float] = random.random
    """From 0 to 1: the part of a pause that is waited."""
    clock: Callable[[], float] = time.monotonic
    """Seconds, counted from any moment."""


class Tries:
    """The tries of one call."""

    def __init__(self, retries: Retries, attempts: int | None = None) -> None:
        """`attempts` None: as many as there is time for."""
        self._retries = retries
        self._attempts = attempts
        self.begin()

    def begin(self) -> None:
        """Resets the count and the deadline."""
        self._failed = 0
        self._ends = self._retries.clock() + self._retries.deadline

    @property
    def left(self) -> float:
        """Seconds."""
        return self._ends - self._retries.clock()

    def pause(self, error: LaurelsError, at_least: float = 0.0) -> float:
        """The seconds to wait before the next try. Raises the error if there is none."""
        self._failed += 1
        longest = min(
            self._retries.longest_pause, self._retries.first_pause * 2.0 ** min(self._failed - 1, 64)
        )
        pause = at_least + longest * self._retries.chance()
        is_last = self._attempts is not None and self._failed >= self._attempts
        if is_last or pause >= self.left:
            raise error
        return pause


def is_passing(reply: Reply | Lost) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(reply, Lost) or reply.status in PASSING


def asked_pause(reply: Reply | Lost) -> float:
    """The seconds of `Retry-After`; if it is a date, the time from the date of the answer to it."""
    if isinstance(reply, Lost):
        return 0.0
    after = reply.headers.get("retry-after", "")
    if after.isascii() and after.isdigit():
        return float(after)
    try:
        until, said = (parsedate_to_datetime(each) for each in (after, reply.headers.get("date", "")))
        return max(0.0, (until - said).total_seconds())
    except (TypeError, ValueError):
        return 0.0
