"""Migrates a database to the schema that this code expects. Processes may start it concurrently."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import NullPool, create_engine, exc, text

from laurels.errors import StartupError
from laurels.masking import masked
from laurels.postgres.engine import CONNECT_SECONDS, NO_ANSWER, unavailable

if TYPE_CHECKING:
    from collections.abc import Generator

    from sqlalchemy import Connection, Engine

    from laurels.postgres.engine import Postgres

OLDEST_SERVER = 16
# How long to wait for the migration of another process, in seconds.
LOCK_SECONDS = 300
# "laurels" in ASCII, because the name of an advisory lock is a number.
_LOCK = int.from_bytes(b"laurels")


def migrate(url: str) -> None:
    """Runs the missing migrations in one transaction. Of concurrent processes, one migrates."""
    engine = create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": CONNECT_SECONDS})
    try:
        with engine.connect() as connection:
            _refuse_old_server(connection)
            if _revision(connection) == expected_revision():
                return
        with _locked(engine), engine.begin() as connection:
            _refuse_newer(connection)
            _upgrade(connection)
    except NO_ANSWER as error:
        raise unavailable(masked(url), error) from error
    except exc.ProgrammingError as error:
        raise StartupError(
            f"the database at {masked(url)} cannot be migrated: {error.orig}".splitlines()[0]
        ) from error
    finally:
        engine.dispose()


@cache
def expected_revision() -> str:
    """The revision that this code needs."""
    return max(_revisions())


async def current_revision(postgres: Postgres) -> str | None:
    """The revision of the database; None before the first migration."""
    async with postgres.reading() as connection:
        return await connection.run_sync(_revision)


def _revision(connection: Connection) -> str | None:
    if connection.execute(text("SELECT to_regclass('alembic_version')")).scalar_one() is None:
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()


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


def _refuse_newer(connection: Connection) -> None:
    current = _revision(connection)
    if current is not None and current not in _revisions():
        raise StartupError(
            f"the database was made by a newer Laurels (revision {current}); "
            "upgrade Laurels or point LAURELS_POSTGRES_URL elsewhere"
        )


def _revisions() -> set[str]:
    """Those of the package's migrations: r0009_journal.py has 0009."""
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
