"""Migrates a database to the schema that this code expects. Processes may start it concurrently."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import NullPool, create_engine, exc, inspect, text

from laurels.errors import LaurelsError, StartupError
from laurels.masking import masked
from laurels.postgres.engine import CONNECT_SECONDS, NO_ANSWER, unavailable
from laurels.postgres.move import find_earlier, move
from laurels.postgres.schemas import ensure_own_schema, path_without_own_schema, set_path
from laurels.postgres.tables import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Generator

    from sqlalchemy import Connection, Engine

    from laurels.postgres.engine import Postgres

OLDEST_SERVER = 16
# How long to wait for the migration of another process, in seconds.
LOCK_SECONDS = 300
# "laurels" in ASCII, because the name of an advisory lock is a number.
_LOCK = int.from_bytes(b"laurels")
# PostgreSQL's codes for a lock that is not given in time, and for a privilege that is lacking.
_LOCKED, _DENIED = "55P03", "42501"


def migrate(url: str) -> None:
    """Runs the missing migrations in one transaction. Of concurrent processes, one migrates."""
    engine = create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": CONNECT_SECONDS})
    try:
        with engine.connect() as connection:
            _refuse_old_server(connection)
            # In this order, because until then another process may be moving the tables.
            is_current = _own_revision(connection) == expected_revision() == _revision(connection)
            if is_current and not path_without_own_schema(connection):
                return
        with _locked(engine), engine.begin() as connection:
            _refuse_newer(_revision(connection))
            ensure_own_schema(connection)
            if earlier := find_earlier(connection):
                move(connection, earlier)
            if path := path_without_own_schema(connection):
                set_path(connection, path)
            _upgrade(connection)
    except exc.DBAPIError as error:
        raise _explained(masked(url), error) from error
    finally:
        engine.dispose()


@cache
def expected_revision() -> str:
    """The revision that this code needs."""
    return max(_revisions())


async def current_revision(postgres: Postgres) -> str | None:
    """The revision of the database; None before the first migration."""
    async with postgres.reading() as connection:
        try:
            return await connection.run_sync(_revision)
        except exc.ProgrammingError:  # another process has moved the tables meanwhile
            return await connection.run_sync(_revision)


def _own_revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version", schema=SCHEMA):
        return None
    return connection.exec_driver_sql(f"SELECT version_num FROM {SCHEMA}.alembic_version").scalar()  # noqa: S608


def _revision(connection: Connection) -> str | None:
    """The revision in Laurels' schema, or that of an older version's tables, which are not moved yet."""
    own, earlier = _own_revision(connection), find_earlier(connection)
    if own and earlier:
        raise StartupError(
            f"there are two sets of Laurels' tables in this database: a new one in the schema {SCHEMA}, and "
            f"one of an older version in {earlier.schema}. To go on with the first, drop the table "
            f"{earlier.schema}.alembic_version; to go on with the second, drop the schema {SCHEMA}"
        )
    return earlier.revision if earlier else own


@contextmanager
def _locked(engine: Engine) -> Generator[None]:
    # A session lock on a connection of its own: PostgreSQL releases it if this process dies.
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"SET lock_timeout = '{LOCK_SECONDS}s'"))
        connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _LOCK})
        yield


def _refuse_old_server(connection: Connection) -> None:
    major = connection.execute(text("SELECT current_setting('server_version_num')::int / 10000")).scalar_one()
    if major < OLDEST_SERVER:
        raise StartupError(f"PostgreSQL {major} is too old: Laurels needs {OLDEST_SERVER} or newer")


def _refuse_newer(current: str | None) -> None:
    if current is not None and current not in _revisions():
        raise StartupError(
            f"the database was made by a newer Laurels (revision {current}); "
            "upgrade Laurels or point LAURELS_POSTGRES_URL elsewhere"
        )


def _explained(address: str, error: exc.DBAPIError) -> LaurelsError:
    state = getattr(error.orig, "sqlstate", None)
    if state == _LOCKED:
        return StartupError(
            f"the tables in the database at {address} are in use or being migrated; stop the processes of "
            "the older Laurels, and start again"
        )
    if isinstance(error, NO_ANSWER):
        return unavailable(address, error)
    advice = "; docs/how-to/own-database.md lists what the role needs" if state == _DENIED else ""
    reason = str(error.orig).splitlines()[0]
    return StartupError(f"the database at {address} cannot be migrated: {reason}{advice}")


def _revisions() -> set[str]:
    """Those of the package's migrations: r0003_journal.py has 0003."""
    versions = Path(__file__).parent / "migrations" / "versions"
    return {path.name.partition("_")[0].removeprefix("r") for path in versions.glob("r*.py")}


def _upgrade(connection: Connection) -> None:
    # Alembic takes a tenth of the time to start: a process on a database that is up to date does without it.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", "laurels.postgres:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
