"""Campuses and their users, in the application's tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Column, MetaData, Table, Text, Uuid, any_, cast, exc, text
from sqlalchemy.dialects.postgresql import ARRAY, insert

from laurels.activity.store.application_table import ApplicationTable, TableNeeds, canonical, reason_of
from laurels.boards.timezones import zone_names
from laurels.errors import InvalidInput, StartupError
from laurels.postgres.engine import take_turn
from laurels.postgres.schemas import default_schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.postgres.engine import Postgres

# A statement of PostgreSQL takes 65,535 values at most.
ROWS_A_STATEMENT = 5_000

_ID: Final = Uuid(as_uuid=False)

# The document's tables, for invented people. Laurels creates and writes them for these only.
_documented = MetaData()
_campuses = Table("campuses", _documented, Column("id", _ID), Column("name", Text), Column("timezone", Text))
_users = Table(
    "users",
    _documented,
    Column("id", _ID),
    Column("campus_id", _ID),
    Column("handle", Text),
    Column("avatar_url", Text),
)
_CREATE: Final = {
    _campuses: """
        id uuid primary key, name text not null, timezone text not null,
        created_at timestamptz not null default now()
    """,
    _users: """
        id uuid primary key, campus_id uuid, handle text not null default '', avatar_url text,
        created_at timestamptz not null default now()
    """,
}

_USERS: Final = TableNeeds("campus_users", "users", ("id", "campus_id"), ("handle", "avatar_url"))
_CAMPUSES: Final = TableNeeds("campus_campuses", "campuses", ("id",), ("name", "timezone"))


@dataclass(frozen=True)
class Campus:
    """Ids that are UUIDs have hyphens and lower case."""

    id: str
    name: str
    timezone: str


@dataclass(frozen=True)
class User:
    id: str
    campus_id: str | None = None
    handle: str = ""
    avatar_url: str | None = None


@dataclass(frozen=True)
class CampusSources:
    """Where campuses and users are read: tables or queries. By default the document's tables."""

    users: str | None = None
    campuses: str | None = None
    timezone: str = "UTC"
    """Of a campus whose row has none."""


class CampusStore:
    def __init__(self, postgres: Postgres, sources: CampusSources | None = None) -> None:
        given = sources or CampusSources()
        self.postgres = postgres
        self._timezone = given.timezone
        self._users = ApplicationTable(postgres, given.users, _USERS)
        self._campuses = ApplicationTable(postgres, given.campuses, _CAMPUSES)

    async def require(self) -> None:
        """Raises `StartupError` if the settings name what cannot be read."""
        if wrong := [problem for is_given, problem in await self.problems() if is_given]:
            raise StartupError("; ".join(wrong))

    async def problems(self) -> list[tuple[bool, str]]:
        """What cannot be read, and whether a setting names it."""
        found = [(each.is_given, await each.problem()) for each in (self._users, self._campuses)]
        if self._timezone not in zone_names():
            found.append(
                (True, f"campus_timezone: {self._timezone!r} is not an IANA timezone like Europe/Oslo")
            )
        return [(is_given, problem) for is_given, problem in found if problem]

    async def put_campuses(self, given: Iterable[Campus]) -> None:
        """Stores invented campuses."""
        await self._upsert(self._campuses, _campuses, [asdict(campus) for campus in given])

    async def put_users(self, given: Iterable[User]) -> None:
        """Stores invented users."""
        await self._upsert(self._users, _users, [asdict(user) for user in given])

    async def campuses(self) -> list[Campus]:
        """Every campus, by name."""
        found = await self._campuses_of(None)
        return sorted(found, key=lambda campus: (campus.name.casefold(), campus.id))

    async def campus(self, campus_id: str) -> Campus | None:
        return next(iter(await self._campuses_of([campus_id])), None)

    async def campuses_of(self, user_ids: Iterable[str]) -> dict[str, Campus]:
        """The campus of each of these users; users without one are left out."""
        users = await self.users(user_ids)
        wanted = {user.campus_id for user in users.values() if user.campus_id}
        known = {campus.id: campus for campus in await self._campuses_of(wanted)}
        return {user.id: known[user.campus_id] for user in users.values() if user.campus_id in known}

    async def users(self, user_ids: Iterable[str]) -> dict[str, User]:
        """The ones of these users that exist."""
        found: dict[str, User] = {}
        for id_, campus_id, handle, avatar_url in await self._users.rows(user_ids):
            user = canonical(id_ or "")
            found[user] = User(user, canonical(campus_id) if campus_id else None, handle or "", avatar_url)
        return found

    async def _campuses_of(self, ids: Iterable[str] | None) -> list[Campus]:
        return [
            Campus(canonical(id_ or ""), name or id_ or "", timezone or self._timezone)
            for id_, name, timezone in await self._campuses.rows(ids)
        ]

    async def _upsert(self, read: ApplicationTable, table: Table, rows: list[dict[str, Any]]) -> None:
        if read.is_given:
            raise InvalidInput(
                f"people can be invented only in the table {table.name}: unset the setting {read.setting}"
            )
        by_id = {row["id"]: row for row in rows}
        rows = [by_id[id_] for id_ in sorted(by_id)]  # always in the same order, against deadlocks
        try:
            async with self.postgres.writing(seconds=60) as connection:
                await _ensure(connection, table)
                for first in range(0, len(rows), ROWS_A_STATEMENT):
                    stored = insert(table).values(rows[first : first + ROWS_A_STATEMENT])
                    changes = {name: stored.excluded[name] for name in rows[0] if name != "id"}
                    await connection.execute(
                        stored.on_conflict_do_update(index_elements=["id"], set_=changes)
                    )
        except (exc.ProgrammingError, exc.IntegrityError) as error:
            raise InvalidInput(
                f"invented people do not fit the table {table.name}: {reason_of(error)}"
            ) from error


async def _ensure(connection: AsyncConnection, table: Table) -> None:
    if await connection.scalar(text("SELECT to_regclass(:table)"), {"table": table.name}) is None:
        await take_turn(connection, f"campus:{table.name}")
        named = f"{await connection.run_sync(default_schema)}.{table.name}"
        await connection.execute(text(f"CREATE TABLE IF NOT EXISTS {named} ({_CREATE[table]})"))


def any_of(ids: Iterable[str]) -> ColumnElement[Any]:
    """An array of UUIDs, to compare a column with."""
    return any_(cast(list(ids), ARRAY(_ID)))
