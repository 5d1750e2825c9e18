"""Which indexes a database has, and what its roles may do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import text

from laurels.errors import StartupError
from laurels.index.description import Description
from laurels.index.triggers import EVENTS, SCHEMA, version_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.index.declare import DeclaredIndex

# Triggers of partitions have an argument; those of the table itself count.
INSTALLED: Final = f"""
SELECT obj_description(p.oid, 'pg_proc') AS version,
       (SELECT obj_description(oid, 'pg_trigger') FROM pg_trigger
        WHERE tgfoid = p.oid AND obj_description(oid, 'pg_trigger') IS NOT NULL LIMIT 1) AS description,
       (SELECT count(*) FROM pg_trigger WHERE tgfoid = p.oid AND tgnargs = 0 AND tgenabled IN ('O', 'A'))
           AS triggers
FROM pg_proc p
WHERE p.pronamespace = to_regnamespace('{SCHEMA}') AND obj_description(p.oid, 'pg_proc') LIKE 'leaderboard %'
ORDER BY 1
"""  # noqa: S608  # our own name

_RIGHTS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")
_MISSING: Final = f"""
WITH tables AS (
    SELECT oid, relnamespace, '{", ".join(_RIGHTS)}' AS rights FROM pg_class
    WHERE relnamespace = to_regnamespace('{SCHEMA}') AND relkind IN ('r', 'p')
    UNION ALL
    SELECT c.oid, relnamespace, 'SELECT' FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    JOIN unnest(CAST(:schemas AS text[]), CAST(:names AS text[])) AS named (schema, name) ON relname = name
    WHERE nspname = schema OR (schema IS NULL AND (pg_table_is_visible(c.oid) OR nspname = 'public'))
)
SELECT format('GRANT USAGE ON SCHEMA %I TO %I;', nspname, current_user)
FROM pg_namespace n
WHERE n.oid IN (SELECT relnamespace FROM tables) AND NOT has_schema_privilege(n.oid, 'USAGE')
UNION
SELECT format('GRANT %s ON %s TO %I;', rights, oid::regclass, current_user)
FROM tables
WHERE EXISTS (
    SELECT FROM unnest(string_to_array(rights, ', ')) AS needed (r) WHERE NOT has_table_privilege(oid, r)
)
ORDER BY 1 DESC
"""  # noqa: S608  # our own names


class Installed(NamedTuple):
    """One index as its database has it."""

    name: str
    version: str
    description: Description | None
    """What its triggers read; None if they are gone, or came with an earlier version of Laurels."""
    triggers: int
    """How many of its triggers are there and enabled."""

    @property
    def is_orphan(self) -> bool:
        """Whether its table is gone, and its triggers with it."""
        return self.description is None and not self.triggers

    def is_of(self, index: DeclaredIndex[Any]) -> bool:
        """Whether it is installed as this declaration needs it."""
        return self.version == version_of(index) and self.triggers == len(EVENTS)


def installed(connection: Connection) -> dict[str, Installed]:
    """The indexes of a database, by name."""
    return read_installed(connection.execute(text(INSTALLED)))


def read_installed(rows: Iterable[Iterable[Any]]) -> dict[str, Installed]:
    """From the rows of the query `INSTALLED`."""
    found = (_read(*row) for row in rows)
    return {each.name: each for each in found}


async def missing_grants(connection: AsyncConnection, indexes: Iterable[DeclaredIndex[Any]]) -> list[str]:
    """The statements that give the connected role the rights to maintain these indexes, if it lacks some."""
    tables = [index.table for index in indexes]
    given = {"schemas": [each.schema for each in tables], "names": [each.name for each in tables]}
    return list((await connection.execute(text(_MISSING), given)).scalars())


async def check_grants(connection: AsyncConnection, indexes: Iterable[DeclaredIndex[Any]]) -> None:
    """Raises `StartupError` with the statements that are missing."""
    if missing := await missing_grants(connection, indexes):
        raise StartupError(
            "this role of PostgreSQL may not maintain the leaderboards; as the owner of the tables, run: "
            + " ".join(missing)
        )


def _read(version: str, description: str | None, triggers: int) -> Installed:
    name = version.removeprefix("leaderboard ").rpartition(", ")[0]
    return Installed(name, version, None if description is None else Description.read(description), triggers)
