"""What is to change in one shard of users -> one call. Pure; `activity.lua` says what it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from laurels.activity.guard import LENGTH, RATE
from laurels.moments import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laurels.activity.accumulate import DayChange, Folded
    from laurels.activity.valkey_keys import ActivityKeys
    from laurels.moments import Moment


class ShardCall:
    """Collects the keys of a call, and the effects that name them by index."""

    def __init__(self, keys: ActivityKeys, shard: int, now: Moment) -> None:
        self._names = keys
        self._shard = shard
        self._now = now
        self.keys = [keys.cursors(shard), keys.changed(shard), keys.parked(shard)]
        self._indexes: dict[str, int] = {}

    def key(self, name: str) -> int:
        if name not in self._indexes:
            self.keys.append(name)
            self._indexes[name] = len(self.keys)
        return self._indexes[name]

    def effects(self, folded: Folded) -> tuple[Any, ...]:
        """What every kind of call begins with."""
        late = [part for pair in folded.late.items() for part in pair]
        return (RATE, LENGTH), late, [self._day(change) for change in folded.days.values()]

    def parked(self, folded: Folded) -> list[Any]:
        return [
            part
            for user, waiting in folded.parked.items()
            for part in (self.key(self._names.parked_of(user)), user, waiting)
        ]

    def _day(self, change: DayChange) -> tuple[Any, ...]:
        ymd, user, names = change.day.ymd, change.user, self._names
        seconds = [part for second, sent in change.seconds.items() for part in (second, *sent)]
        return (
            self.key(names.counters(ymd, user)),
            f"{ymd}:{user}",
            change.campus,
            -((self._now - change.day.expires) // SECOND),
            self.key(names.campus_users(self._shard, ymd, change.campus)),
            _flat(change.counts.items()),
            self.key(names.senders(ymd, user)) if change.senders else 0,
            list(change.senders),
            self.key(names.accepts(ymd, user)) if change.accepts else 0,
            list(change.accepts),
            self.key(names.seconds(ymd, user)) if seconds else 0,
            seconds,
        )


def _flat(pairs: Iterable[tuple[Any, ...]]) -> list[Any]:
    return [part for pair in pairs for part in pair]
