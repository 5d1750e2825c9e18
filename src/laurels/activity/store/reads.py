"""Reads finalized days: tables that have expired in Valkey, streaks, badges and calendars."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from laurels.activity.store.days import StreakRow
from laurels.activity.store.people import any_of
from laurels.postgres.tables import badges, lb_counters, lb_daily, streaks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Subquery

    from laurels.postgres.engine import Postgres


class RankedUser(NamedTuple):
    rank: int
    user_id: str
    score: float


class EarnedBadge(NamedTuple):
    kind: str
    earned_ymd: int


class ActiveDay(NamedTuple):
    ymd: int
    overall: float
    streak: int


class CampusReads:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def table(
        self, scope: str, campus_id: str, days: Sequence[int], limit: int, offset: int
    ) -> tuple[int, list[RankedUser]]:
        """The number of users in the sum of these days, and one page of them, best first."""
        ranked = _ranked(scope, campus_id, days)
        rows = select(ranked).order_by(ranked.c.rank, ranked.c.user_id.desc()).limit(limit).offset(offset)
        async with self._postgres.reading() as connection:
            total = (await connection.execute(select(func.count()).select_from(ranked))).scalar_one()
            found = await connection.execute(rows)
            return total, [RankedUser(row.rank, row.user_id, float(row.score)) for row in found]

    async def places(
        self, scope: str, campus_id: str, days: Sequence[int], users: Sequence[str]
    ) -> dict[str, RankedUser]:
        """The places of these users in the sum of these days; users without an entry are left out."""
        ranked = _ranked(scope, campus_id, days)
        async with self._postgres.reading() as connection:
            rows = await connection.execute(select(ranked).where(ranked.c.user_id == any_of(users)))
            return {row.user_id: RankedUser(row.rank, row.user_id, float(row.score)) for row in rows}

    async def streak(self, user_id: str) -> StreakRow | None:
        columns = (streaks.c[name] for name in StreakRow._fields)
        async with self._postgres.reading() as connection:
            found = await connection.execute(select(*columns).where(streaks.c.user_id == user_id))
            row = found.one_or_none()
            return None if row is None else StreakRow(*row)

    async def badges(self, user_id: str) -> list[EarnedBadge]:
        """The user's badges, newest first."""
        found = (
            select(badges.c.kind, badges.c.earned_ymd)
            .where(badges.c.user_id == user_id)
            .order_by(badges.c.earned_ymd.desc(), badges.c.kind)
        )
        async with self._postgres.reading() as connection:
            return [EarnedBadge(*row) for row in await connection.execute(found)]

    async def active_days(self, user_id: str, first: int, last: int) -> list[ActiveDay]:
        """The finalized days on which the user was active, oldest first."""
        found = (
            select(lb_daily.c.ymd, lb_daily.c.overall, lb_counters.c.streak)
            .join(
                lb_counters,
                (lb_counters.c.ymd == lb_daily.c.ymd)
                & (lb_counters.c.campus_id == lb_daily.c.campus_id)
                & (lb_counters.c.user_id == lb_daily.c.user_id),
            )
            .where(lb_daily.c.user_id == user_id, lb_daily.c.ymd.between(first, last))
            .order_by(lb_daily.c.ymd)
        )
        async with self._postgres.reading() as connection:
            rows = await connection.execute(found)
            return [ActiveDay(row.ymd, float(row.overall), row.streak) for row in rows]


def _ranked(scope: str, campus_id: str, days: Sequence[int]) -> Subquery:
    score = func.sum(lb_daily.c[scope])
    return (
        select(
            func.rank().over(order_by=score.desc()).label("rank"), lb_daily.c.user_id, score.label("score")
        )
        .where(lb_daily.c.campus_id == campus_id, lb_daily.c.ymd.in_(days))
        .group_by(lb_daily.c.user_id)
        .subquery()
    )
