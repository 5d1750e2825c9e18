"""Indexes that a database remembers, but no table feeds: their table, or its triggers, are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from laurels.errors import Conflict, NotFound
from laurels.index.declaration import board_of
from laurels.index.triggers import SCHEMA, removal_of

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.engine import Laurels

_KNOWN: Final = text(
    f"WITH known AS (SELECT index FROM {SCHEMA}.indexes UNION SELECT index FROM {SCHEMA}.outbox) "  # noqa: S608  # a constant
    "SELECT k.index, "
    f"(SELECT count(*) FROM {SCHEMA}.outbox o WHERE o.index = k.index) AS waiting, "
    "EXISTS (SELECT FROM pg_proc p JOIN pg_trigger t ON t.tgfoid = p.oid "
    f"WHERE p.pronamespace = to_regnamespace('{SCHEMA}') "
    "AND starts_with(obj_description(p.oid, 'pg_proc'), 'leaderboard ' || k.index || ', ')) AS is_fed "
    "FROM known k ORDER BY k.index"
)


class KnownIndex(NamedTuple):
    """An index that a database remembers."""

    name: str
    waiting: int
    """Changes in its outbox."""
    is_fed: bool
    """Whether a table has triggers for it. If not, it is an orphan."""


async def known_indexes(on: AsyncEngine | AsyncConnection) -> list[KnownIndex]:
    """The indexes that were installed in this database and not removed."""
    if not isinstance(on, AsyncConnection):
        async with on.connect() as connection:
            return await known_indexes(connection)
    exists = text(f"SELECT to_regclass('{SCHEMA}.indexes') IS NOT NULL")
    if not (await on.execute(exists)).scalar_one():
        return []
    return [KnownIndex(*row) for row in await on.execute(_KNOWN)]


async def drop_orphan(laurels: Laurels, engine: AsyncEngine, name: str, *, project: str = "index") -> None:
    """Removes what is left of an index: its changes, its function, and its board."""
    known = {each.name: each for each in await known_indexes(engine)}
    if name not in known:
        raise NotFound(f"there is no index {name!r} in this database; it has: {', '.join(known) or 'none'}")
    if known[name].is_fed:
        raise Conflict(
            f"a table feeds the index {name!r}: uninstall its model, `laurels.index.uninstall(engine, Model)`"
        )
    async with engine.begin() as connection:
        for statement in removal_of(name):
            await connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
    ref = board_of(name, project)
    stored = await laurels.store.get(*ref)
    if stored and stored.owner == "index":
        await laurels.index_definer.drop(ref)
