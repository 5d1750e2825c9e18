"""Reads a campus's table, and one user's summary, streak and days.

A table comes from the board in Valkey, or, once it has expired there, from the finalized days in PostgreSQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from laurels.activity.days import Day, day_at, day_of
from laurels.activity.rankings import DAYS, PERIODS, board_of, is_sound, slot_of
from laurels.activity.scoring import SCOPES
from laurels.activity.store.people import User
from laurels.activity.store.reads import RankedUser
from laurels.activity.streaks import Streak, date_of, days_from
from laurels.errors import InvalidInput, NotFound
from laurels.moments import datetime_of
from laurels.scores.page_query import PageQuery, WindowQuery
from laurels.scores.queries import AMONG_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from laurels.activity.campus_people import CampusPeople
    from laurels.activity.campuses import UserCampuses
    from laurels.activity.rankings import Period
    from laurels.activity.scoring import Scope
    from laurels.activity.store.people import Campus
    from laurels.activity.store.reads import ActiveDay, CampusReads, EarnedBadge
    from laurels.clock import Clock
    from laurels.scores.queries import Reader

MOST_DAYS = 400
"""The most days that one request for a user's days may span."""


@dataclass(frozen=True)
class TableQuery:
    scope: Scope
    period: Period
    campus_id: str
    ymd: int | None = None
    limit: int = 100
    offset: int = 0
    deltas: bool = False
    user_id: str | None = None
    """A user whose row is returned too, at any rank."""


class Delta(NamedTuple):
    """The change since the day before; None for a user who was not in that table."""

    rank: int | None
    """Ranks gained."""
    score: float | None


class RankingRow(NamedTuple):
    placed: RankedUser
    user: User | None
    delta: Delta | None


@dataclass(frozen=True)
class CampusTable:
    campus: Campus
    ymd: int
    total: int
    next_reset_at: datetime
    rows: list[RankingRow]
    user: RankingRow | None = None


@dataclass(frozen=True)
class Summary:
    user: User
    campus: Campus
    ymd: int
    places: dict[Scope, RankedUser | None]
    streak: Streak
    badges: list[EarnedBadge]


class CampusReader:
    def __init__(
        self,
        reader: Reader,
        store: CampusPeople,
        user_campuses: UserCampuses,
        reads: CampusReads,
        clock: Clock,
    ) -> None:
        self._reader = reader
        self._store = store
        self._user_campuses = user_campuses
        self._reads = reads
        self._clock = clock

    async def campuses(self) -> list[tuple[Campus, int]]:
        """Every campus, by name, with its present date."""
        now, campuses = self._clock(), await self._store.campuses()
        return [(campus, day_at(campus.timezone, now).ymd) for campus in campuses if is_sound(campus)]

    async def table(self, asked: TableQuery) -> CampusTable:
        campus = await self._store.campus(asked.campus_id)
        if campus is None or not is_sound(campus):
            raise NotFound(f"there is no campus {asked.campus_id}, or its timezone is unknown")
        today = day_at(campus.timezone, self._clock())
        day = today if asked.ymd is None else _day(campus, asked.ymd, today)
        total, placed = await self._placed(asked, day, today)
        own = await self._places(asked, day, [asked.user_id]) if asked.user_id else {}
        shown = [*placed, *own.values()]
        users = await self._store.users([each.user_id for each in shown])
        deltas = await self._deltas(asked, campus, day, shown) if asked.deltas and shown else {}
        rows = [RankingRow(each, users.get(each.user_id), deltas.get(each.user_id)) for each in shown]
        user = rows.pop() if own else None
        return CampusTable(campus, day.ymd, total, datetime_of(today.ends), rows, user)

    async def summary(self, user_id: str) -> Summary:
        """The summary of a user today."""
        user = (await self._store.users([user_id])).get(user_id, User(user_id))
        campus = (await self._user_campuses.of([user_id])).get(user_id)
        if campus is None or not is_sound(campus):
            raise NotFound(f"the user {user_id} belongs to no campus")
        today = day_at(campus.timezone, self._clock())
        places: dict[Scope, RankedUser | None] = {}
        for scope in SCOPES:
            asked = TableQuery(scope, "daily", campus.id)
            places[scope] = (await self._places(asked, today, [user_id])).get(user_id)
        badges = await self._reads.badges(user_id)
        return Summary(user, campus, today.ymd, places, await self.streak(user_id), badges)

    async def streak(self, user_id: str) -> Streak:
        """The streak as of the last finalized day; zeros for an unknown user."""
        row = await self._reads.streak(user_id)
        return Streak(row.current, row.best, row.last_active_ymd) if row else Streak()

    async def days(self, user_id: str, first: int, last: int) -> list[ActiveDay]:
        """The finalized days on which the user was active, from `first` to `last`."""
        for field, ymd in (("from", first), ("to", last)):
            _check_date(field, ymd)
        if not first <= last < days_from(first, MOST_DAYS):
            raise InvalidInput.at("to", f"must be `from` or later, by less than {MOST_DAYS} days")
        return await self._reads.active_days(user_id, first, last)

    async def _placed(self, asked: TableQuery, day: Day, today: Day) -> tuple[int, list[RankedUser]]:
        query = PageQuery(PERIODS[asked.period], slot_of(day.ymd), limit=asked.limit, rank=asked.offset + 1)
        try:
            page = await self._reader.page(board_of(asked.scope, asked.campus_id), query)
        except NotFound:  # the window never had entries, or is past its `keep`
            page = None
        if page and (page.total or day == today):
            users = (each for each in page.entries if _is_user(each.member))
            return page.total, [RankedUser(each.rank, each.member, float(each.score)) for each in users]
        return await self._reads.table(
            asked.scope, asked.campus_id, _days(asked.period, day.ymd), asked.limit, asked.offset
        )

    async def _places(self, asked: TableQuery, day: Day, users: Sequence[str]) -> dict[str, RankedUser]:
        query = WindowQuery(PERIODS[asked.period], slot_of(day.ymd))
        board, found = board_of(asked.scope, asked.campus_id), dict[str, RankedUser]()
        for first in range(0, len(users), AMONG_LIMIT):
            chunk = users[first : first + AMONG_LIMIT]
            try:
                among = (await self._reader.among(board, query, chunk)).entries
            except NotFound:
                among = []
            found |= {
                each.member: RankedUser(each.board_rank, each.member, float(each.score)) for each in among
            }
        if found:
            return found
        return await self._reads.places(asked.scope, asked.campus_id, _days(asked.period, day.ymd), users)

    async def _deltas(
        self, asked: TableQuery, campus: Campus, day: Day, placed: Sequence[RankedUser]
    ) -> dict[str, Delta]:
        before = day_at(campus.timezone, day.begins - 1)
        then = await self._places(asked, before, [each.user_id for each in placed])
        return {each.user_id: _delta(then.get(each.user_id), each) for each in placed}


def _delta(before: RankedUser | None, now: RankedUser) -> Delta:
    return Delta(before.rank - now.rank, now.score - before.score) if before else Delta(None, None)


def _is_user(member: str) -> bool:
    """False for entries that other programs have left in the sorted set."""
    try:
        return str(UUID(member)) == member
    except ValueError:
        return False


def _days(period: Period, ymd: int) -> list[int]:
    return [days_from(ymd, -ago) for ago in range(DAYS[period])]


def _day(campus: Campus, ymd: int, today: Day) -> Day:
    _check_date("ymd", ymd)
    if ymd > today.ymd:
        raise InvalidInput.at("ymd", f"has not begun at this campus: today is {today.ymd} there")
    try:
        return day_of(campus.timezone, ymd)
    except ValueError as error:
        raise InvalidInput.at("ymd", f"is a day that the timezone {campus.timezone} skipped") from error


def _check_date(field: str, ymd: int) -> None:
    try:
        date_of(ymd)
    except ValueError as error:
        raise InvalidInput.at(field, f"{ymd} is not a date; write it like 20251024") from error
    if ymd < 1900_01_01:
        raise InvalidInput.at(field, "must be 19000101 or later")
