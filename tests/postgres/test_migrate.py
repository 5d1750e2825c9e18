from __future__ import annotations

import re
import subprocess
import sys

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, make_url, text

from laurels.errors import StartupError, Unavailable
from laurels.postgres import tables
from laurels.postgres.engine import Postgres
from laurels.postgres.migrate import current_revision, expected_revision, migrate


async def revision_at(url: str) -> str | None:
    async with Postgres(url) as postgres:
        return await current_revision(postgres)


def execute(url: str, *statements: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


async def test_an_empty_database_is_brought_to_the_expected_revision(empty_postgres_url: str):
    assert await revision_at(empty_postgres_url) is None
    migrate(empty_postgres_url)
    assert await revision_at(empty_postgres_url) == expected_revision()


async def test_migrating_again_changes_nothing(migrated_postgres_url: str):
    migrate(migrated_postgres_url)
    assert await revision_at(migrated_postgres_url) == expected_revision()


def test_a_database_that_is_up_to_date_is_opened_without_alembic(migrated_postgres_url: str):
    program = f"""
import sys
from laurels.postgres.migrate import migrate
migrate({migrated_postgres_url!r})
assert "alembic" not in sys.modules
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def is_compared(name: str | None, kind: str, _: object) -> bool:
    if kind == "schema":
        return name in (None, tables.SCHEMA)
    return kind != "table" or re.fullmatch(r"journal_\d{4}_\d\d|alembic_version", name or "") is None


def test_the_migrations_make_what_the_tables_declare(migrated_postgres_url: str):
    # The role has the name of the schema, which would then be the default one.
    url = make_url(migrated_postgres_url).update_query_dict({"options": "-csearch_path=public"})
    engine = create_engine(url)
    with engine.connect() as connection:
        opts = {"compare_server_default": True, "include_schemas": True, "include_name": is_compared}
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, tables.metadata) == []
        sequences = (
            connection.execute(text("SELECT schemaname || '.' || sequencename FROM pg_sequences"))
            .scalars()
            .all()
        )
    engine.dispose()
    assert list(sequences) == ["laurels.board_version"]


async def test_processes_that_start_together_all_succeed(empty_postgres_url: str):
    command = [
        sys.executable,
        "-c",
        f"from laurels.postgres.migrate import migrate; migrate({empty_postgres_url!r})",
    ]
    processes = [subprocess.Popen(command) for _ in range(4)]  # noqa: ASYNC220  # waited for below
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    assert await revision_at(empty_postgres_url) == expected_revision()


def test_a_newer_schema_is_refused_in_one_line(migrated_postgres_url: str):
    execute(migrated_postgres_url, "UPDATE laurels.alembic_version SET version_num = '0042'")
    with pytest.raises(StartupError) as caught:
        migrate(migrated_postgres_url)
    assert str(caught.value) == (
        "the database was made by a newer Laurels (revision 0042); "
        "upgrade Laurels or point LAURELS_POSTGRES_URL elsewhere"
    )


async def test_a_migration_that_fails_leaves_nothing_behind(empty_postgres_url: str):
    execute(empty_postgres_url, "CREATE SCHEMA laurels", "CREATE TABLE laurels.api_keys (mine text)")
    with pytest.raises(
        StartupError, match=r'cannot be migrated: relation "api_keys" already exists'
    ) as caught:
        migrate(empty_postgres_url)
    assert "\n" not in str(caught.value)
    assert await revision_at(empty_postgres_url) is None


def test_a_database_that_is_not_there_is_said_in_one_line(migrated_postgres_url: str):
    url = make_url(migrated_postgres_url).set(database="nowhere").render_as_string(hide_password=False)
    with pytest.raises(Unavailable, match='database "nowhere" does not exist') as caught:
        migrate(url)
    assert "\n" not in str(caught.value)
    assert str(make_url(url).password) not in str(caught.value)
