"""Campuses and their users."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import any_, cast, select
from sqlalchemy.dialects.postgresql import ARRAY, insert

from laurels.postgres.tables import campuses, users

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import ColumnElement

    from laurels.postgres.engine import Postgres

# A statement of PostgreSQL takes 65,535 values at most.
ROWS_A_STATEMENT = 5_000


@dataclass(frozen=True)
class Campus:
    """Ids are UUIDs in lower case."""

    id: str
    name: str
    timezone: str


@dataclass(frozen=True)
class User:
    id: str
    campus_id: str | None = None
    handle: str = ""
    avatar_url: str | None = None


class CampusStore:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def put_campuses(self, given: Iterable[Campus]) -> None:
        await self._upsert(campuses, [asdict(campus) for campus in given])

    async def put_users(self, given: Iterable[User]) -> None:
        await self._upsert(users, [asdict(user) for user in given])

    async def campuses(self) -> list[Campus]:
        """Every campus, by name."""
        async with self._postgres.reading() as connection:
            rows = await connection.execute(_CAMPUS.order_by(campuses.c.name, campuses.c.id))
            return [Campus(*row) for row in rows]

    async def campus(self, campus_id: str) -> Campus | None:
        async with self._postgres.reading() as connection:
            row = (await connection.execute(_CAMPUS.where(campuses.c.id == campus_id))).one_or_none()
            return None if row is None else Campus(*row)

    async def campuses_of(self, user_ids: Iterable[str]) -> dict[str, Campus]:
        """The campus of each of these users; users without one are left out."""
        found = (
            select(users.c.id, campuses.c.id, campuses.c.name, campuses.c.timezone)
            .join(campuses, campuses.c.id == users.c.campus_id)
            .where(users.c.id == any_of(user_ids))
        )
        async with self._postgres.reading() as connection:
            rows = await connection.execute(found)
            return {user: Campus(id_, name, timezone) for user, id_, name, timezone in rows}

    async def users(self, user_ids: Iterable[str]) -> dict[str, User]:
        """The ones of these users that exist."""
        columns = (users.c.id, users.c.campus_id, users.c.handle, users.c.avatar_url)
        async with self._postgres.reading() as connection:
            rows = await connection.execute(select(*columns).where(users.c.id == any_of(user_ids)))
            return {row.id: User(*row) for row in rows}

    async def _upsert(self, table: Any, rows: list[dict[str, Any]]) -> None:  # noqa: ANN401  # campuses or users
        by_id = {row["id"]: row for row in rows}
        rows = [by_id[id_] for id_ in sorted(by_id)]  # always in the same order, against deadlocks
        async with self._postgres.writing(seconds=60) as connection:
            for first in range(0, len(rows), ROWS_A_STATEMENT):
                stored = insert(table).values(rows[first : first + ROWS_A_STATEMENT])
                changes = {name: stored.excluded[name] for name in rows[0] if name != "id"}
                await connection.execute(stored.on_conflict_do_update(index_elements=["id"], set_=changes))


_CAMPUS = select(campuses.c.id, campuses.c.name, campuses.c.timezone)


def any_of(ids: Iterable[str]) -> ColumnElement[Any]:
    """An array of UUIDs, to compare a column with."""
    return any_(cast(list(ids), ARRAY(users.c.id.type)))
