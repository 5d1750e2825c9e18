"""Scores the users whose day has changed, and updates their entries on the boards within seconds.

A score is a function of the day's counters and the streak, so two workers that score the same user leave the
same entry. A day that is finalized, or is being finalized, is not scored here: its finalization is requested
again.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from laurels.activity.days import day_of
from laurels.activity.dirty_days import DirtyDays
from laurels.activity.policy import policy_on
from laurels.activity.rankings import PERIODS, is_sound
from laurels.activity.scoring import SCOPES, Scores, score
from laurels.activity.store.days import DayKey
from laurels.activity.store.totals import RunTotals
from laurels.activity.streaks import Streak, days_from, streak_on
from laurels.activity.valkey_keys import SHARDS, ActivityKeys, shard_of
from laurels.logs import get_logger
from laurels.valkey import keyspace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laurels.activity.campus_people import CampusPeople
    from laurels.activity.counters import Counters
    from laurels.activity.dirty_days import DirtyDay
    from laurels.activity.rankings import Rankings
    from laurels.activity.store.days import CampusDays
    from laurels.activity.store.people import Campus
    from laurels.activity.store.totals import Totals
    from laurels.clock import Clock
    from laurels.valkey.client import Valkey

MARKS_A_SHARD: Final = 100
# Counters live for 48 hours after their day, so this many days before it may be active and not finalized.
UNFINALIZED_DAYS: Final = 3

log = get_logger("laurels.campus")


@dataclass(frozen=True)
class Rescorer:
    valkey: Valkey
    campuses: CampusPeople
    days: CampusDays
    rankings: Rankings
    totals: Totals
    clock: Clock

    async def run_once(self) -> int:
        """Scores the days that changed longest ago; returns the number of marks that it settled."""
        began = time.monotonic()
        dirty_days = DirtyDays(self.valkey, ActivityKeys(cluster=self.valkey.is_cluster))
        found = await asyncio.gather(*(dirty_days.changed(shard, MARKS_A_SHARD) for shard in range(SHARDS)))
        changed = [mark for some in found for mark in some]
        if not changed:
            return 0
        settled, tables = await self._rescore(dirty_days, changed)
        by_shard: dict[int, list[DirtyDay]] = {}
        for mark in settled:
            by_shard.setdefault(shard_of(mark.user), []).append(mark)
        await asyncio.gather(*(dirty_days.settle(shard, some) for shard, some in by_shard.items()))
        await self.totals.add(RunTotals(PERIODS, SCOPES, tables, time.monotonic() - began))
        return len(settled)

    async def _rescore(self, dirty_days: DirtyDays, changed: list[DirtyDay]) -> tuple[list[DirtyDay], int]:
        """The marks to settle, and how many campus days were updated."""
        held = await dirty_days.held([(mark.ymd, mark.user) for mark in changed])
        campuses = {campus.id: campus for campus in await self.campuses.campuses() if is_sound(campus)}
        days: dict[DayKey, dict[str, Counters]] = {}
        waiting: set[DirtyDay] = set()
        for mark, each in zip(changed, held, strict=True):
            if not each.campus:
                continue  # it has expired
            campus = campuses.get(each.campus)
            if campus is None:
                log.warning(
                    "day not scored: its campus is gone or has an unknown timezone",
                    campus=each.campus,
                    ymd=mark.ymd,
                )
            elif self.clock() < day_of(campus.timezone, mark.ymd).begins:
                waiting.add(mark)  # its event came from a clock ahead of ours
            else:
                days.setdefault(DayKey(mark.ymd, campus.id), {})[mark.user] = each.counters
        for key in await self.days.ask_again(days.keys()):
            del days[key]
        for key, counters in days.items():
            await self._place(campuses[key.campus_id], key.ymd, counters)
        # A day opened meanwhile may have been finalized from older counters than those placed just now.
        await self.days.ask_again(await self.days.opened(days.keys()))
        return [mark for mark in changed if mark not in waiting], len(days)

    async def _place(self, campus: Campus, ymd: int, counters: dict[str, Counters]) -> None:
        streaks = await self._streaks(ymd, list(counters))
        policy = policy_on(ymd)
        scores: dict[str, Scores] = {
            user: score(each, streaks[user], policy) for user, each in counters.items()
        }
        await self.rankings.place(campus, day_of(campus.timezone, ymd), scores)

    async def _streaks(self, ymd: int, users: list[str]) -> dict[str, int]:
        """The streak that each user will have when the days up to this one are finalized."""
        before = [days_from(ymd, -ago) for ago in range(1, UNFINALIZED_DAYS + 1)]
        known = await self.days.streaks(users, before)
        active = await self._active(users, before)
        streaks: dict[str, int] = {}
        for user in users:
            row, finalized = known[user]
            streak = Streak(row.current, row.best, row.last_active_ymd) if row else Streak()
            streaks[user] = streak_on(ymd, streak, finalized, active[user])
        return streaks

    async def _active(self, users: list[str], days: Iterable[int]) -> dict[str, set[int]]:
        """On which of these days each user was active; days whose counters have expired are left out."""
        keys = ActivityKeys(cluster=self.valkey.is_cluster)
        asked = [(user, ymd) for user in users for ymd in days]
        found = await self.valkey.run_all(keyspace.exists(keys.counters(ymd, user)) for user, ymd in asked)
        active: dict[str, set[int]] = {user: set() for user in users}
        for (user, ymd), is_there in zip(asked, found, strict=True):
            if is_there:
                active[user].add(ymd)
        return active
