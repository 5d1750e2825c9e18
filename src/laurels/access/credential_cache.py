"""Caches what PostgreSQL says about keys and secrets, until it is revoked.

While the process receives revocations, an entry is valid until it is revoked, and is still looked up again
every few seconds. While it does not receive them, every request looks its credential up. If PostgreSQL does
not answer, entries that were not revoked stay valid.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from laurels.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from laurels.access.revocations import Revocations

FRESH_SECONDS: Final = 5.0
MOST_ENTRIES: Final = 10_000

Key = TypeVar("Key", str, bytes)
Value = TypeVar("Value")


@dataclass(slots=True)
class _Entry(Generic[Value]):
    value: Value
    name: str
    """Under which a revocation names it."""
    fresh_until: float
    gaps: int
    """`Revocations.gaps` when it was looked up."""
    is_excused: bool = False
    """PostgreSQL did not answer when it was due to be looked up again."""


class CredentialCache(Generic[Key, Value]):
    def __init__(self, revocations: Revocations, now: Callable[[], float] = time.monotonic) -> None:
        self._revocations = revocations
        self._now = now
        self._entries: dict[Key, _Entry[Value]] = {}
        revocations.subscribe(self._forget)

    def recall(self, key: Key) -> Value | None:
        """The cached value, unless it has to be looked up."""
        entry = self._entries.get(key)
        return entry.value if entry and self._is_valid(entry) else None

    def knows(self, key: Key) -> bool:
        """Whether there is an entry, even one that has to be looked up again."""
        return key in self._entries

    async def find(
        self, key: Key, look_up: Callable[[], Awaitable[tuple[str, Value] | None]]
    ) -> Value | None:
        """The value, from the cache or from `look_up`, which also returns the name that revocations use."""
        self._revocations.listen()
        entry = self._entries.get(key)
        if entry and self._is_valid(entry):
            return entry.value
        count, gaps = self._revocations.count, self._revocations.gaps
        if entry and self._revocations.is_listening and entry.gaps == gaps:
            # Other requests go on with the entry instead of waiting for this lookup.
            entry.fresh_until = self._now() + FRESH_SECONDS
        try:
            found = await look_up()
        except Unavailable:
            if entry is None or self._entries.get(key) is not entry:
                raise
            entry.fresh_until, entry.is_excused = self._now() + FRESH_SECONDS, True
            return entry.value
        if found is None:
            self._entries.pop(key, None)
            return None
        if len(self._entries) >= MOST_ENTRIES:
            self._entries.clear()
        name, value = found
        if self._revocations.count == count:  # otherwise this one may have been revoked during the lookup
            self._entries[key] = _Entry(value, name, self._now() + FRESH_SECONDS, gaps)
        return value

    def _is_valid(self, entry: _Entry[Value]) -> bool:
        if self._now() >= entry.fresh_until:
            return False
        revocations = self._revocations
        return entry.is_excused or (revocations.is_listening and entry.gaps == revocations.gaps)

    def _forget(self, name: str) -> None:
        for key in [key for key, entry in self._entries.items() if entry.name == name]:
            del self._entries[key]
