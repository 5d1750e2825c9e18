"""Finds the users' days that changed and are not scored yet, and reads their counters.

The call that changes a day marks it with a number that only grows. A worker that has scored the day settles
the mark that it read; a mark with a new number stays. So no change is missed, even if workers die.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from laurels.activity.counters import CAMPUS, Counters
from laurels.valkey import activity, hashes, sets, sorted_sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from laurels.activity.valkey_keys import ActivityKeys
    from laurels.valkey.client import Valkey


class DirtyDay(NamedTuple):
    ymd: int
    user: str
    number: int


class UserDay(NamedTuple):
    """The counters of a day, and the campus that it is pinned to: empty when the day has expired."""

    campus: str
    counters: Counters


class DirtyDays:
    def __init__(self, valkey: Valkey, keys: ActivityKeys) -> None:
        self._valkey = valkey
        self._keys = keys

    async def changed(self, shard: int, limit: int) -> list[DirtyDay]:
        """The days of this shard that changed, the oldest change first."""
        found = await self._valkey.run(sorted_sets.lowest_scores(self._keys.changed(shard), limit))
        return [DirtyDay(int(name[:8]), name[9:], int(number)) for name, number in found]

    async def settle(self, shard: int, marks: Iterable[DirtyDay]) -> int:
        """Removes the marks of days that did not change again; returns their number."""
        named = [(f"{mark.ymd}:{mark.user}", mark.number) for mark in marks]
        return await activity.unmark(self._valkey, self._keys.changed(shard), named) if named else 0

    async def held(self, days: Sequence[tuple[int, str]]) -> list[UserDay]:
        """The counters of each day (ymd, user)."""
        keys = [self._keys.counters(ymd, user) for ymd, user in days]
        found = await self._valkey.run_all(map(hashes.get_texts, keys))
        return [UserDay(fields.get(CAMPUS, ""), Counters.of_hash(fields)) for fields in found]

    async def peers(self, days: Sequence[tuple[int, str]]) -> list[int]:
        """How many distinct users wrote to the user on each day, or accepted an invitation."""
        pairs = [(self._keys.senders(ymd, user), self._keys.accepts(ymd, user)) for ymd, user in days]
        return await sets.union_cardinalities(self._valkey, pairs)
