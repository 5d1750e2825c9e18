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

# Too many requests; and what a server, or the proxy before it, says while a store or the server is away.
PASSING: Final = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Retries:
    """How often and how long a call is tried. Pauses double, and are drawn from nothing to all of it.

    >>> Retries(attempts=1)  # doctest: +ELLIPSIS
    Retries(attempts=1, deadline=60.0, ...)
    """

    attempts: int = 6
    """Tries in all, the first included."""
    deadline: float = 60.0
    """Seconds from the first try within which the last one begins."""
    first_pause: float = 0.1
    """Seconds: the longest that the first pause may be."""
    longest_pause: float = 10.0
    """Seconds: the longest that any pause may be, but for what the server asks for."""
    chance: Callable[[], float] = random.random
    """From 0 to 1: which part of a pause is waited."""
    clock: Callable[[], float] = time.monotonic
    """Seconds, from anywhere."""


class Tries:
    """The tries of one call."""

    def __init__(self, retries: Retries, attempts: int | None = None) -> None:
        """Of `attempts`, None means as many as there is time for."""
        self._retries = retries
        self._attempts = attempts
        self.begin()

    def begin(self) -> None:
        """Counts from here."""
        self._failed = 0
        self._ends = self._retries.clock() + self._retries.deadline

    @property
    def left(self) -> float:
        """Seconds."""
        return self._ends - self._retries.clock()

    def pause(self, error: LaurelsError, at_least: float = 0.0) -> float:
        """How many seconds to wait before the next try; raises the error when there is none."""
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
    """Whether the same request may fare better later."""
    return isinstance(reply, Lost) or reply.status in PASSING


def asked_pause(reply: Reply | Lost) -> float:
    """The seconds of `Retry-After`; of a date, as far from the answer's own."""
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
