"""Finalized campus days: scores and ranks, counters, streaks, badges, and the events about them.

One transaction replaces a day, and only one runs at a time, so a reader sees the old day or the new one. Rows
that would stay the same are not written, so finalizing again changes nothing, `created_at` included.

`asked` counts the requests to finalize a day, `answered` those that were fulfilled. A day is opened before
its counters are read; from then on a change of the counters requests it again.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from uuid import UUID, uuid4, uuid5

from sqlalchemy import func, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from laurels.activity.store.people import any_of
from laurels.postgres.engine import take_turn
from laurels.postgres.tables import badges, lb_counters, lb_daily, lb_days, lb_outbox, streaks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.postgres.engine import Postgres

# The namespace of badge ids (UUID version 5); any constant would do.
_NAMESPACE: Final = UUID("0f6a6c0e-3f0b-5a51-8a0e-9f4d6d2c1b70")
# How long finalizing one day may take, in seconds; a million users take a small part of it.
LONGEST_SECONDS: Final = 3600.0

COUNTERS: Final = (
    "invites_accepted", "friends_new", "dm_sent", "room_sent", "acts_played", "acts_won",
    "rooms_joined", "rooms_created", "uniq_senders", "uniq_invite_accept_from",
)  # fmt: skip
_KEY: Final = (lb_days.c.ymd, lb_days.c.campus_id)
_SCORES: Final = ("social", "engagement", "popularity", "overall", "rank_overall")
_COUNTED: Final = (*COUNTERS, "peers", "streak")

_STAGING: Final = f"""
CREATE TEMPORARY TABLE campus_day (
    user_id uuid PRIMARY KEY, {", ".join(f"{name} int NOT NULL" for name in _COUNTED)},
    social numeric, engagement numeric, popularity numeric, overall numeric, rank_overall int
) ON COMMIT DROP
"""


class DayKey(NamedTuple):
    ymd: int
    campus_id: str


class DayCounts(NamedTuple):
    """The input of a user's score."""

    counters: tuple[int, ...]
    """In the order of `COUNTERS`."""
    peers: int


class DayRow(NamedTuple):
    user_id: str
    counted: DayCounts
    streak: int
    scores: tuple[float, float, float, float]
    """Social, engagement, popularity, overall."""
    rank: int


class StreakRow(NamedTuple):
    user_id: str
    current: int
    best: int
    last_active_ymd: int


KnownStreak: TypeAlias = tuple[StreakRow | None, dict[int, int]]
"""A user's row in the table of streaks, and the streaks of finalized days by date."""


class BadgeRow(NamedTuple):
    user_id: str
    kind: str
    earned_ymd: int
    meta: dict[str, Any]


@dataclass
class Changes:
    """What finalizing a day has changed."""

    rows: int = 0
    streaks: list[StreakRow] = field(default_factory=list[StreakRow])
    awarded: list[BadgeRow] = field(default_factory=list[BadgeRow])
    revoked: list[BadgeRow] = field(default_factory=list[BadgeRow])

    def __bool__(self) -> bool:
        return bool(self.rows or self.streaks or self.awarded or self.revoked)


class CampusDays:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def open_day(self, key: DayKey) -> None:
        """Requests that the day is finalized."""
        opened = insert(lb_days).values(ymd=key.ymd, campus_id=key.campus_id).on_conflict_do_nothing()
        async with self._postgres.writing() as connection:
            await connection.execute(opened)

    async def ask_again(self, keys: Collection[DayKey]) -> set[DayKey]:
        """Requests the opened ones of these days again, and returns them."""
        if not keys:
            return set()
        chosen = update(lb_days).where(tuple_(*_KEY).in_(sorted(keys)))
        again = chosen.values(asked=lb_days.c.asked + 1).returning(*_KEY)
        async with self._postgres.writing() as connection:
            return {DayKey(*row) for row in await connection.execute(again)}

    async def opened(self, keys: Collection[DayKey]) -> set[DayKey]:
        """Which of these days are opened."""
        if not keys:
            return set()
        found = select(*_KEY).where(tuple_(*_KEY).in_(sorted(keys)))
        async with self._postgres.reading() as connection:
            return {DayKey(*row) for row in await connection.execute(found)}

    async def unanswered(self) -> list[DayKey]:
        """Days that were requested after they were last finalized, oldest first."""
        found = select(*_KEY).where(lb_days.c.asked > lb_days.c.answered).order_by(*_KEY)
        async with self._postgres.reading() as connection:
            return [DayKey(*row) for row in await connection.execute(found)]

    async def newest(self) -> dict[str, int]:
        """The newest opened day of each campus."""
        found = select(lb_days.c.campus_id, func.max(lb_days.c.ymd)).group_by(lb_days.c.campus_id)
        async with self._postgres.reading() as connection:
            return {row[0]: row[1] for row in await connection.execute(found)}

    async def streaks(self, users: Sequence[str], days: Sequence[int]) -> dict[str, KnownStreak]:
        """For each user the row of streaks, and the streaks on finalized ones of these days."""
        async with self._postgres.reading() as connection:
            return await _streaks(connection, users, days)

    @asynccontextmanager
    async def finalizing(self, key: DayKey) -> AsyncGenerator[Finalizing]:
        """One transaction, after those of other workers have ended."""
        async with self._postgres.writing(seconds=LONGEST_SECONDS) as connection:
            await connection.execute(text("SET LOCAL statement_timeout = 0"))
            await take_turn(connection, "campus:finalize")
            yield Finalizing(connection, key)


class Finalizing:
    """A day in the transaction that replaces it."""

    def __init__(self, connection: AsyncConnection, key: DayKey) -> None:
        self._connection = connection
        self._key = key
        self.changes = Changes()

    async def asked(self) -> int:
        """How often the day was requested. Read it before the counters."""
        return (await self._connection.execute(select(lb_days.c.asked).where(_is(self._key)))).scalar_one()

    async def counted(self) -> dict[str, DayCounts]:
        """The input of the last run, by user."""
        columns = [lb_counters.c[name] for name in COUNTERS]
        found = select(lb_counters.c.user_id, lb_counters.c.peers, *columns).where(
            lb_counters.c.ymd == self._key.ymd, lb_counters.c.campus_id == self._key.campus_id
        )
        rows = (await self._connection.execute(found)).mappings()
        return {
            row["user_id"]: DayCounts(tuple(row[name] for name in COUNTERS), row["peers"]) for row in rows
        }

    async def streaks(self, users: Sequence[str], days: Sequence[int]) -> dict[str, KnownStreak]:
        """Like `CampusDays.streaks`, in this transaction."""
        return await _streaks(self._connection, users, days)

    async def replace(self, rows: Sequence[DayRow]) -> None:
        """Replaces the day's scores, ranks, counters and streaks."""
        await self._connection.execute(text(_STAGING))
        columns = ("user_id", *_COUNTED, *_SCORES)
        await self._copy(
            f"COPY campus_day ({', '.join(columns)}) FROM STDIN",
            (
                (
                    row.user_id,
                    *row.counted.counters,
                    row.counted.peers,
                    row.streak,
                    *map(repr, row.scores),
                    row.rank,
                )
                for row in rows
            ),
        )
        for table, names in ((lb_daily, _SCORES), (lb_counters, _COUNTED)):
            for statement in _replace(table.fullname, names):
                done = await self._connection.execute(text(statement), self._parameters)
                self.changes.rows += done.rowcount
        changed = await self._connection.execute(text(_STREAKS), self._parameters)
        self.changes.streaks = [StreakRow(*row) for row in changed]

    async def sums(self, days: Sequence[int]) -> dict[str, float]:
        """The sum of `overall` over these days, for each user of the campus."""
        found = await self._connection.execute(
            text(
                "SELECT user_id::text, sum(overall) FROM lb_daily "
                "WHERE campus_id = CAST(:campus_id AS uuid) AND ymd = ANY(:days) GROUP BY user_id"
            ),
            {**self._parameters, "days": list(days)},
        )
        return {user: float(overall) for user, overall in found}

    async def peers(self, days: Sequence[int], least: int) -> list[tuple[str, int]]:
        """The users of this day with `least` peers or more in these days, and their number of peers."""
        found = await self._connection.execute(
            text(
                f"SELECT c.user_id::text, sum(c.peers) FROM {lb_counters.fullname} c "  # noqa: S608  # its name
                "JOIN campus_day d USING (user_id) WHERE c.ymd = ANY(:days) GROUP BY c.user_id "
                "HAVING sum(c.peers) >= :least ORDER BY c.user_id"
            ),
            {"days": list(days), "least": least},
        )
        return [(user, met) for user, met in found]

    async def holders(self, kind: str, users: Sequence[str], since: int) -> set[str]:
        """Which of these users earned such a badge from `since` on and before this day."""
        found = select(badges.c.user_id).where(
            badges.c.kind == kind,
            badges.c.earned_ymd >= since,
            badges.c.earned_ymd < self._key.ymd,
            badges.c.user_id == any_of(users),
        )
        return set((await self._connection.execute(found)).scalars())

    async def put_badges(self, earned: Iterable[BadgeRow], once: str) -> None:
        """Replaces the day's badges. A user who earns the kind `once` on this day loses it on later days."""
        wanted = {(badge.user_id, badge.kind): badge for badge in earned}
        own = await self._connection.execute(text(_BADGES), self._parameters)
        found = {(row.user_id, row.kind): BadgeRow(*row) for row in own}
        self.changes.revoked = [badge for name, badge in found.items() if name not in wanted]
        self.changes.awarded = [badge for name, badge in wanted.items() if name not in found]
        moved = [badge for name, badge in wanted.items() if name in found and found[name].meta != badge.meta]
        gone = [badge_id(badge) for badge in (*self.changes.revoked, *moved)]
        if gone:
            await self._connection.execute(badges.delete().where(badges.c.id == any_of(gone)))
        new = [{"id": badge_id(badge), **badge._asdict()} for badge in (*self.changes.awarded, *moved)]
        for first in range(0, len(new), 5_000):
            rows = insert(badges).values(new[first : first + 5_000])
            await self._connection.execute(rows.on_conflict_do_nothing())
        holders = [user for user, kind in wanted if kind == once]
        if holders:
            later = badges.delete().where(
                badges.c.kind == once,
                badges.c.earned_ymd > self._key.ymd,
                badges.c.user_id == any_of(holders),
            )
            deleted = later.returning(*(badges.c[name] for name in BadgeRow._fields))
            self.changes.revoked += [BadgeRow(*row) for row in await self._connection.execute(deleted)]

    async def finish(self, asked: int, policy: int, active: int, until: int, now: datetime) -> None:
        """Marks requests up to `asked` as answered. If the day changed, requests the days up to `until`."""
        is_first = (
            await self._connection.execute(select(lb_days.c.revision).where(_is(self._key)))
        ).scalar_one() == 0
        values: dict[str, Any] = {"answered": asked}
        if self.changes or is_first:
            values |= {
                "policy": policy,
                "active": active,
                "revision": lb_days.c.revision + 1,
                "finalized_at": now,
            }
            if self.changes:
                await self._connection.execute(text(_FOLLOWING), {**self._parameters, "until": until})
        done = update(lb_days).where(_is(self._key)).values(values).returning(lb_days.c.revision)
        revision = (await self._connection.execute(done)).scalar_one()
        if self.changes or is_first:
            await self._add_events(revision, policy, active)

    async def _add_events(self, revision: int, policy: int, active: int) -> None:
        changes, day = self.changes, self._parameters
        finalized = {**day, "revision": revision, "policy": policy, "active": active}
        events: list[tuple[str, dict[str, Any]]] = [("day:finalized", finalized)]
        events += [("streak:changed", {**day, **row._asdict()}) for row in changes.streaks]
        for kind, badges_ in (("badge:awarded", changes.awarded), ("badge:revoked", changes.revoked)):
            events += [(kind, {**badge._asdict(), "campus_id": self._key.campus_id}) for badge in badges_]
        await self._copy(
            f"COPY {lb_outbox.fullname} (id, event, payload, place) FROM STDIN",
            (
                (str(uuid4()), event, json.dumps(payload), place)
                for place, (event, payload) in enumerate(events)
            ),
        )

    async def _copy(self, into: str, rows: Iterable[tuple[object, ...]]) -> None:
        raw = await self._connection.get_raw_connection()
        driver: Any = raw.driver_connection
        async with driver.cursor() as cursor, cursor.copy(into) as copy:
            for row in rows:
                await copy.write_row(row)

    @property
    def _parameters(self) -> dict[str, Any]:
        return {"ymd": self._key.ymd, "campus_id": self._key.campus_id}


async def _streaks(
    connection: AsyncConnection, users: Sequence[str], days: Sequence[int]
) -> dict[str, KnownStreak]:
    own, counted = streaks.c, lb_counters.c
    rows = select(*(own[name] for name in StreakRow._fields)).where(own.user_id == any_of(users))
    past = select(counted.user_id, counted.ymd, counted.streak).where(
        counted.user_id == any_of(users), counted.ymd.in_(days)
    )
    found = {row.user_id: StreakRow(*row) for row in await connection.execute(rows)}
    by_day: dict[str, dict[int, int]] = {}
    for user, ymd, streak in await connection.execute(past):
        by_day.setdefault(user, {})[ymd] = streak
    return {user: (found.get(user), by_day.get(user, {})) for user in users}


_OF_DAY: Final = "t.ymd = :ymd AND t.campus_id = CAST(:campus_id AS uuid)"


def _replace(table: str, names: Sequence[str]) -> tuple[str, str]:
    """Deletes rows that have changed or are gone; inserts those that are missing."""
    new, old = (", ".join(f"{row}.{name}" for name in names) for row in "nt")
    listed = ", ".join(names)
    return (
        f"""
        DELETE FROM {table} t WHERE {_OF_DAY} AND NOT EXISTS (
            SELECT 1 FROM campus_day n WHERE n.user_id = t.user_id AND ({new}) = ({old})
        )
        """,  # noqa: S608  # made of the constants above
        f"""
        INSERT INTO {table} (ymd, campus_id, user_id, {listed})
        SELECT :ymd, CAST(:campus_id AS uuid), user_id, {listed} FROM campus_day
        ON CONFLICT DO NOTHING
        """,  # noqa: S608  # made of the constants above
    )


# A later day's streak stays the current one; it is computed again when that day is.
_STREAKS: Final = """
INSERT INTO streaks AS s (user_id, current, best, last_active_ymd)
SELECT user_id, streak, streak, :ymd FROM campus_day ORDER BY user_id
ON CONFLICT (user_id) DO UPDATE SET
    current = CASE WHEN excluded.last_active_ymd < s.last_active_ymd THEN s.current ELSE excluded.current END,
    best = greatest(s.best, excluded.best),
    last_active_ymd = greatest(s.last_active_ymd, excluded.last_active_ymd),
    updated_at = now()
WHERE excluded.last_active_ymd > s.last_active_ymd OR excluded.best > s.best
    OR (excluded.last_active_ymd = s.last_active_ymd AND excluded.current <> s.current)
RETURNING user_id::text, current, best, last_active_ymd
"""

# Badges that other programs award name no campus.
_BADGES: Final = """
SELECT user_id::text, kind, earned_ymd, meta FROM badges
WHERE earned_ymd = :ymd AND meta ->> 'campus_id' = :campus_id
"""

# Days computed from this one: the day after has its streak, the next six have it in their week.
_FOLLOWING: Final = f"""
UPDATE {lb_days.fullname} SET asked = asked + 1
WHERE ymd > :ymd AND ymd <= :until AND (
    campus_id = CAST(:campus_id AS uuid)
    OR (ymd, campus_id) IN (
        SELECT n.ymd, n.campus_id FROM {lb_counters.fullname} n JOIN campus_day d USING (user_id)
        WHERE n.ymd > :ymd AND n.ymd <= :until
    )
)
"""  # noqa: S608  # names of tables


def _is(key: DayKey) -> ColumnElement[bool]:
    return (lb_days.c.ymd == key.ymd) & (lb_days.c.campus_id == key.campus_id)


def badge_id(badge: BadgeRow) -> str:
    return str(uuid5(_NAMESPACE, f"{badge.kind}|{badge.earned_ymd}|{badge.user_id}"))
