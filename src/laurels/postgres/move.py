"""Moves the tables of an installation that has them in the default schema into Laurels' own.

Revisions up to 0009 created them there, with a plain `alembic_version`. The move is part of the transaction
that migrates, so it happens wholly or not at all. What refers to the tables (views, defaults, publications,
privileges) goes with them, since PostgreSQL refers by number and not by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import text

from laurels.postgres.tables import SCHEMA

if TYPE_CHECKING:
    from sqlalchemy import Connection

# Processes of the older version that still run hold locks on the tables.
LOCK_SECONDS: Final = 60

# The tables that each revision had created. Those that a document names stay where they are.
_CREATED: Final = {
    "0001": ("boards", "api_keys"),
    "0002": ("project_secrets",),
    "0003": ("journal", "journal_cursors"),
    "0004": ("snapshots", "snapshot_entries", "jobs"),
    "0005": (),
    "0006": ("lb_days", "lb_counters", "lb_outbox", "lb_totals"),
    "0007": ("retired_definitions",),
    "0008": (),
    "0009": (),
}

# Another program may have `boards` and `api_keys`, but not with these columns and this sequence.
_FIND: Final = text("""
    SELECT quote_ident(name) FROM unnest(current_schemas(false)) WITH ORDINALITY AS path (name, place)
    WHERE name <> :own
    AND to_regclass(format('%I.alembic_version', name)) IS NOT NULL
    AND to_regclass(format('%I.board_version', name)) IS NOT NULL
    AND to_regclass(format('%I.api_keys', name)) IS NOT NULL
    AND (
        SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass(format('%I.boards', name))
        AND attname IN ('project', 'board', 'definition', 'version')
    ) = 4
    ORDER BY place LIMIT 1
""")

_NAMES: Final = text("""
    SELECT oid::regclass::text FROM (
        SELECT to_regclass(:schema || '.' || quote_ident(name)) AS oid
        FROM unnest(CAST(:names AS text[])) AS name
        UNION
        SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass(:schema || '.journal')
    ) AS found WHERE oid IS NOT NULL ORDER BY 1
""")


class EarlierInstallation(NamedTuple):
    schema: str
    """Quoted."""
    revision: str

    @property
    def is_known(self) -> bool:
        return self.revision in _CREATED


def find_earlier(connection: Connection) -> EarlierInstallation | None:
    """The tables of an older Laurels in the default schema."""
    schema = connection.execute(_FIND, {"own": SCHEMA}).scalar_one_or_none()
    if schema is None:
        return None
    revision = connection.exec_driver_sql(f"SELECT version_num FROM {schema}.alembic_version").scalar()  # noqa: S608
    return None if revision is None else EarlierInstallation(schema, revision)


def move(connection: Connection, earlier: EarlierInstallation) -> None:
    """Moves the tables and their revision into the schema, which exists."""
    names = [name for revision, some in _CREATED.items() if revision <= earlier.revision for name in some]
    given = {"schema": earlier.schema, "names": [*names, "alembic_version"]}
    tables = list(connection.execute(_NAMES, given).scalars())
    _run(connection, f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
    _run(connection, f"LOCK TABLE {', '.join(tables)}")
    for table in tables:
        _run(connection, f"ALTER TABLE {table} SET SCHEMA {SCHEMA}")
    _run(connection, f"ALTER SEQUENCE {earlier.schema}.board_version SET SCHEMA {SCHEMA}")
    # The first thing that an older version would create: it fails, and nothing is created.
    _run(connection, f"CREATE SEQUENCE {earlier.schema}.board_version")
    _run(
        connection,
        f"COMMENT ON SEQUENCE {earlier.schema}.board_version IS 'Keeps a Laurels that does not know the "
        f"schema {SCHEMA} from creating its tables here again. It may be dropped.'",
    )


def _run(connection: Connection, statement: str) -> None:
    connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
