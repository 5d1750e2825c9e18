"""What a process remembers of PostgreSQL's answers about keys and secrets, and for how long it may.

As long as this process hears of every withdrawal, an answer holds until it is withdrawn, and is looked up
again every few seconds all the same. While it does not hear, every answer is looked up each time. Where
PostgreSQL does not answer, what was known and not withdrawn goes on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from laurels.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from laurels.access.revocations import Withdrawals

# How long until an answer is looked up again, in seconds.
FRESH_SECONDS: Final = 5.0
MOST_REMEMBERED: Final = 10_000

Asked = TypeVar("Asked", str, bytes)
Known = TypeVar("Known")


@dataclass(slots=True)
class _Remembered(Generic[Known]):
    known: Known
    name: str
    fresh_until: float
    gaps: int
    is_excused: bool = False
    """PostgreSQL did not answer when it was to be looked up."""


class Memory(Generic[Asked, Known]):
    """Answers by what was asked; each has the name that it is withdrawn by."""

    def __init__(self, withdrawals: Withdrawals, now: Callable[[], float] = time.monotonic) -> None:
        self._withdrawals = withdrawals
        self._now = now
        self._remembered: dict[Asked, _Remembered[Known]] = {}
        withdrawals.tell(self._forget)

    def recall(self, asked: Asked) -> Known | None:
        """The answer, if it need not be looked up."""
        found = self._remembered.get(asked)
        return found.known if found and self._holds(found) else None

    def knows(self, asked: Asked) -> bool:
        """Whether there is an answer, though it may have to be looked up again."""
        return asked in self._remembered

    async def find(
        self, asked: Asked, look_up: Callable[[], Awaitable[tuple[str, Known] | None]]
    ) -> Known | None:
        """The answer, looked up unless it is remembered; `look_up` gives it with its name."""
        self._withdrawals.listen()
        found = self._remembered.get(asked)
        if found and self._holds(found):
            return found.known
        count, gaps = self._withdrawals.count, self._withdrawals.gaps
        if found and self._withdrawals.is_heard and found.gaps == gaps:
            # Nobody else waits for this lookup, nor for a PostgreSQL that does not answer it.
            found.fresh_until = self._now() + FRESH_SECONDS
        try:
            answer = await look_up()
        except Unavailable:
            if found is None or self._remembered.get(asked) is not found:
                raise
            found.fresh_until, found.is_excused = self._now() + FRESH_SECONDS, True
            return found.known
        if answer is None:
            self._remembered.pop(asked, None)
            return None
        if len(self._remembered) >= MOST_REMEMBERED:
            self._remembered.clear()
        name, known = answer
        if self._withdrawals.count == count:  # else it may be this very one that was withdrawn meanwhile
            self._remembered[asked] = _Remembered(known, name, self._now() + FRESH_SECONDS, gaps)
        return known

    def _holds(self, found: _Remembered[Known]) -> bool:
        if self._now() >= found.fresh_until:
            return False
        heard = self._withdrawals
        return found.is_excused or (heard.is_heard and found.gaps == heard.gaps)

    def _forget(self, name: str) -> None:
        for asked in [asked for asked, found in self._remembered.items() if found.name == name]:
            del self._remembered[asked]
