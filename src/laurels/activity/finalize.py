"""Finalizes campus days: scores with ranks, streaks, badges, and the events about them.

A day is due five minutes after its end. It is computed from the counters in Valkey, and for users without any
from those of the last run. So any worker can finalize it again at any time, with the same result. An event
that comes late, while the counters still live, marks the day, and the day is corrected.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from laurels.activity import badges
from laurels.activity.counters import Counters
from laurels.activity.days import Day, day_at, day_of
from laurels.activity.dirty_days import DirtyDays
from laurels.activity.policy import policy_on
from laurels.activity.rankings import PERIODS, is_sound
from laurels.activity.scoring import SCOPES, Scores, score
from laurels.activity.store.days import COUNTERS, BadgeRow, CampusDays, DayCounts, DayKey, DayRow
from laurels.activity.store.totals import RunTotals, Totals
from laurels.activity.streaks import days_from
from laurels.activity.valkey_keys import SHARDS, ActivityKeys
from laurels.errors import LaurelsError
from laurels.moments import SECOND, datetime_of
from laurels.valkey import hashes, sets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from laurels.activity.campus_people import CampusPeople
    from laurels.activity.policy import CampusPolicy
    from laurels.activity.rankings import Rankings
    from laurels.activity.store.days import Finalizing, KnownStreak, StreakRow
    from laurels.activity.store.people import Campus
    from laurels.clock import Clock
    from laurels.moments import Moment
    from laurels.valkey.client import Valkey

    Report = Callable[[str], Awaitable[None]]

DUE_AFTER: Final = 5 * 60 * SECOND
"""How long after its end a day is finalized: at 00:05 in the campus's timezone."""
FIRST_DAYS: Final = 2
"""How many days back a new campus begins: older counters have expired."""

USERS_A_CALL: Final = 500


@dataclass(frozen=True)
class Finalizer:
    valkey: Valkey
    campuses: CampusPeople
    days: CampusDays
    rankings: Rankings
    totals: Totals
    clock: Clock

    async def run_due(self, report: Report) -> str:
        """Finalizes every day that is due or needs a correction, oldest first; returns a summary."""
        campuses = {campus.id: campus for campus in await self.campuses.campuses() if is_sound(campus)}
        for campus in campuses.values():
            await self.rankings.ensure(campus)
        done = active = 0
        failed: dict[DayKey, LaurelsError] = {}
        while work := [key for key in await self._due(campuses, self.clock()) if key not in failed]:
            for key in work:
                try:
                    active += await self.finalize(campuses[key.campus_id], key.ymd)
                except LaurelsError as error:  # a failure in one campus must not stop the others
                    failed[key] = error
                    continue
                done += 1
                await report(f"{done} days, {active} users")
        if failed:
            key, error = next(iter(failed.items()))
            raise LaurelsError(
                f"{len(failed)} days not finalized; {key.ymd} of {key.campus_id}: {error.detail}"
            )
        return f"{done} days of {active} users finalized"

    async def finalize(self, campus: Campus, ymd: int) -> int:
        """Finalizes or corrects one day; returns the number of active users."""
        began = time.monotonic()
        key, day = DayKey(ymd, campus.id), day_of(campus.timezone, ymd)
        await self.days.open_day(key)
        async with self.days.finalizing(key) as day_rows:
            asked = await day_rows.asked()
            counted = {**await day_rows.counted(), **await self._live(key)}
            policy = policy_on(ymd)
            rows = await _ranked(day_rows, ymd, counted, policy)
            await day_rows.replace(rows)
            await day_rows.put_badges(await _earned(day_rows, key, rows, policy), once="streak_30")
            await self.rankings.place(campus, day, {row.user_id: Scores(*row.scores) for row in rows})
            await self._keep_streaks(day_rows.changes.streaks)
            until = days_from(ymd, policy.BADGE_PEER_DAYS - 1)
            now = datetime_of(self.clock())
            # Last, because a request to finalize the day again waits from here on for the commit.
            await day_rows.finish(asked, policy.version, len(rows), until, now)
        awarded = [badge.kind for badge in day_rows.changes.awarded]
        await self.totals.add(RunTotals(PERIODS, SCOPES, 1, time.monotonic() - began, awarded))
        return len(rows)

    async def _due(self, campuses: Mapping[str, Campus], now: Moment) -> list[DayKey]:
        newest = await self.days.newest()
        due = {
            DayKey(ymd, campus.id)
            for campus in campuses.values()
            for ymd in _ended(campus.timezone, newest.get(campus.id), now)
        }
        return sorted(due | {key for key in await self.days.unanswered() if key.campus_id in campuses})

    async def _live(self, key: DayKey) -> dict[str, DayCounts]:
        """The counters of the day in Valkey, with the peers."""
        keys = ActivityKeys(cluster=self.valkey.is_cluster)
        dirty_days = DirtyDays(self.valkey, keys)
        found: dict[str, DayCounts] = {}
        for shard in range(SHARDS):
            users = await self._users(keys.campus_users(shard, key.ymd, key.campus_id))
            for first in range(0, len(users), USERS_A_CALL):
                chunk = users[first : first + USERS_A_CALL]
                held = await dirty_days.held([(key.ymd, user) for user in chunk])
                present = {
                    user: each.counters
                    for user, each in zip(chunk, held, strict=True)
                    if each.campus == key.campus_id
                }
                peers = await _peers(dirty_days, key.ymd, present)
                found |= {
                    user: DayCounts(tuple(getattr(counters, name) for name in COUNTERS), peers[user])
                    for user, counters in present.items()
                }
        return found

    async def _users(self, key: str) -> list[str]:
        return sorted({user async for users in sets.scan(self.valkey, key, USERS_A_CALL) for user in users})

    async def _keep_streaks(self, changed: Sequence[StreakRow]) -> None:
        """Copies changed streaks to Valkey, where the documented clients read them."""
        keys = ActivityKeys(cluster=self.valkey.is_cluster)
        for first in range(0, len(changed), USERS_A_CALL):
            await self.valkey.run_all(
                hashes.put(
                    keys.streak(row.user_id),
                    {"current": row.current, "best": row.best, "last_active_ymd": row.last_active_ymd},
                )
                for row in changed[first : first + USERS_A_CALL]
            )


def _ended(timezone: str, newest: int | None, now: Moment) -> Iterator[int]:
    """The due days after the newest one."""
    day = _first(timezone, newest, now)
    while day.ends + DUE_AFTER <= now:
        yield day.ymd
        day = day_at(timezone, day.ends)


def _first(timezone: str, newest: int | None, now: Moment) -> Day:
    if newest is not None:
        try:
            return day_at(timezone, day_of(timezone, newest).ends)
        except ValueError:  # the campus has moved to a timezone that skipped that day
            pass
    day = day_at(timezone, now)
    for _ in range(FIRST_DAYS):
        day = day_at(timezone, day.begins - 1)
    return day


async def _peers(dirty_days: DirtyDays, ymd: int, present: dict[str, Counters]) -> dict[str, int]:
    """The number of distinct peers of each user. Only a user with members in both sets needs their union."""
    peers = {
        user: counters.uniq_senders + counters.uniq_invite_accept_from for user, counters in present.items()
    }
    both = [
        user
        for user, counters in present.items()
        if counters.uniq_senders and counters.uniq_invite_accept_from
    ]
    found = await dirty_days.peers([(ymd, user) for user in both])
    return peers | dict(zip(both, found, strict=True))


async def _ranked(
    day_rows: Finalizing, ymd: int, counted: dict[str, DayCounts], policy: CampusPolicy
) -> list[DayRow]:
    users = sorted(counted)
    before = days_from(ymd, -1)
    known = await day_rows.streaks(users, (before, ymd))
    streaks = {user: _streak(known[user], ymd, before) for user in users}
    scores = {
        user: score(Counters(**dict(zip(COUNTERS, each.counters, strict=True))), streaks[user], policy)
        for user, each in counted.items()
    }
    ranks = badges.ranked({user: each.overall for user, each in scores.items()})
    return [DayRow(user, counted[user], streaks[user], scores[user], ranks[user]) for user in users]


def _streak(known: KnownStreak, ymd: int, before: int) -> int:
    """The streak of an active day. It keeps the streak of its last run if the day before is unknown."""
    row, finalized = known
    if before in finalized:
        return finalized[before] + 1
    if ymd in finalized:
        return finalized[ymd]
    return row.current + 1 if row and row.last_active_ymd == before else 1


async def _earned(
    day_rows: Finalizing, key: DayKey, rows: Sequence[DayRow], policy: CampusPolicy
) -> list[BadgeRow]:
    ymd, campus = key
    week = [days_from(ymd, -ago) for ago in range(policy.BADGE_PEER_DAYS)]
    overall = {row.user_id: row.scores[3] for row in rows}
    earned = [*badges.top("daily_top10", ymd, campus, overall, policy)]
    if badges.ends_week(ymd):
        earned += badges.top("weekly_top10", ymd, campus, await day_rows.sums(week), policy)
    long = {row.user_id: row.streak for row in rows if row.streak >= policy.BADGE_STREAK_DAYS}
    holders = await day_rows.holders("streak_30", list(long), 0)
    earned += badges.long_streaks(ymd, campus, long, holders, policy)
    peers = await day_rows.peers(week, policy.BADGE_PEERS)
    holders = await day_rows.holders("social_butterfly", [user for user, _ in peers], week[-1])
    earned += badges.butterflies(ymd, campus, peers, holders, policy)
    return [BadgeRow(badge.user_id, badge.kind, badge.earned_ymd, badge.meta) for badge in earned]
