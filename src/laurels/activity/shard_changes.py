"""Builds the call that applies effects to one shard of users. Pure; `activity.lua` describes its message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from laurels.activity.guard import LENGTH, RATE
from laurels.moments import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laurels.activity.accumulate import DayChange, FoldedEffects
    from laurels.activity.valkey_keys import ActivityKeys
    from laurels.moments import Moment


class ShardCall:
    """Collects the keys of a call; its effects name them by index."""

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

    def effects(self, folded: FoldedEffects) -> tuple[Any, ...]:
        """The part of the message that every kind of call begins with."""
        days = [self._day(change) for change in folded.days.values()]
        return (RATE, LENGTH), _flat(folded.late.items()), days

    def parked(self, folded: FoldedEffects) -> list[Any]:
        return _flat(
            (self.key(self._names.parked_of(user)), user, effects) for user, effects in folded.parked.items()
        )

    def _day(self, change: DayChange) -> tuple[Any, ...]:
        ymd, user, names = change.day.ymd, change.user, self._names
        seconds = _flat((second, *sent) for second, sent in change.seconds.items())
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


def _flat(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    return [value for row in rows for value in row]
