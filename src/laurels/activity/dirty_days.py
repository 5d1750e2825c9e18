"""Which users' days changed since somebody last looked, and what they hold.

The call that changes a day marks it with a number that only grows. Whoever has worked on a day settles its
mark; a mark that got another number meanwhile stays. So nothing that changes is missed, whoever dies when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from laurels.activity.counters import CAMPUS, Counters
from laurels.valkey import activity, hashes, sets, sorted_sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from laurels.activity.valkey_keys import ActivityKeys
    from laurels.valkey.client import Valkey


class Mark(NamedTuple):
    ymd: int
    user: str
    number: int


class UserDay(NamedTuple):
    """What a day holds, and the campus that it is pinned to; `` when the day has expired."""

    campus: str
    counters: Counters


class Marks:
    def __init__(self, valkey: Valkey, keys: ActivityKeys) -> None:
        self._valkey = valkey
        self._keys = keys

    async def changed(self, shard: int, limit: int) -> list[Mark]:
        """The days of this shard that changed, those first that changed longest ago."""
        found = await self._valkey.run(sorted_sets.lowest_scores(self._keys.changed(shard), limit))
        return [Mark(int(name[:8]), name[9:], int(number)) for name, number in found]

    async def settle(self, shard: int, marks: Iterable[Mark]) -> int:
        """How many were: those that did not change again."""
        named = [(f"{mark.ymd}:{mark.user}", mark.number) for mark in marks]
        return await activity.unmark(self._valkey, self._keys.changed(shard), named) if named else 0

    async def held(self, days: Sequence[tuple[int, str]]) -> list[UserDay]:
        """What each day (ymd, user) holds."""
        keys = [self._keys.counters(ymd, user) for ymd, user in days]
        found = await self._valkey.run_all(map(hashes.get_texts, keys))
        return [UserDay(fields.get(CAMPUS, ""), Counters.of_hash(fields)) for fields in found]

    async def peers(self, days: Sequence[tuple[int, str]]) -> list[int]:
        """How many others wrote to the user on a day, or accepted its invitations: each counts once."""
        pairs = [(self._keys.senders(ymd, user), self._keys.accepts(ymd, user)) for ymd, user in days]
        return await sets.union_cardinalities(self._valkey, pairs)
