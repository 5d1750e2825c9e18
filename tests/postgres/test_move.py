"""A database of before Laurels had a schema of its own, brought to the newest revision."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import NullPool, create_engine, exc, make_url, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from laurels.errors import StartupError
from laurels.index import LeaderboardIndex, ddl
from laurels.postgres import move, tables
from laurels.postgres.engine import Postgres
from laurels.postgres.migrate import current_revision, expected_revision, migrate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection

# What the migrations up to 0009 did, as Alembic writes it.
STEPS = (Path(__file__).parent / "schema_0009.sql").read_text().split("-- Running upgrade ")
REVISIONS = [f"{number:04}" for number in range(1, 10)]

ROWS = (
    "INSERT INTO boards (project, board, definition, id) VALUES ('acme', 'score', '{}', 1)",
    (
        "INSERT INTO retired_definitions (number, project, board, id, version, definition, whole) "
        "VALUES (2, 'acme', 'old', 1, 1, '{}', true)"
    ),
    (
        "INSERT INTO api_keys (id, prefix, digest, project, scopes) "
        "VALUES (gen_random_uuid(), 'lk_1', 'x', '*', ARRAY['admin'])"
    ),
    (
        "INSERT INTO project_secrets (id, project, use, algorithm, key) "
        "VALUES ('s1', 'acme', 'players', 'HS256', 'k')"
    ),
    (
        "CREATE TABLE journal_2025_10 PARTITION OF journal "
        "FOR VALUES FROM ('2025-10-01 00:00:00+00') TO ('2025-11-01 00:00:00+00')"
    ),
    (
        "CREATE TABLE journal_2025_11 PARTITION OF journal "
        "FOR VALUES FROM ('2025-11-01 00:00:00+00') TO ('2025-12-01 00:00:00+00')"
    ),
    (
        "INSERT INTO journal (board_id, recorded_at, seq, shard, index, kind, call, now, member, at) "
        "SELECT 1, '2025-10-24 12:00:00+00'::timestamptz + n * interval '1 day', n, 0, 0, 'submit', 'c', 0, "
        "'m', 0 FROM generate_series(1, 20) n"
    ),
    "INSERT INTO journal_cursors (board_id, stream) VALUES (1, 'lb:{acme/score}:journal')",
    (
        "INSERT INTO snapshots (id, board_id, period, slot, cut, taken_for, taken_at, total, entries) "
        "VALUES (gen_random_uuid(), 1, 'daily', '2025-10-24', '', now(), now(), 1, 1)"
    ),
    (
        "INSERT INTO snapshot_entries (snapshot, ordinal, rank, dense_rank, member, score) "
        "VALUES (gen_random_uuid(), 1, 1, 1, 'm', 1)"
    ),
    "INSERT INTO jobs (name) VALUES ('retention')",
    "INSERT INTO lb_days (ymd, campus_id) VALUES (20251024, gen_random_uuid())",
    "INSERT INTO lb_counters SELECT 20251024, id, id, 1,1,1,1,1,1,1,1,1,1,1,1 FROM gen_random_uuid() id",
    "INSERT INTO lb_outbox (id, event, payload, place) VALUES (gen_random_uuid(), 'day:finalized', '{}', 0)",
    "INSERT INTO lb_totals VALUES ('m', 'l', 1)",
    "INSERT INTO lb_daily VALUES (20251024, gen_random_uuid(), gen_random_uuid(), 1, 1, 1, 3, 1)",
    "INSERT INTO streaks (user_id, current) VALUES (gen_random_uuid(), 7)",
    (
        "INSERT INTO badges (id, user_id, kind, earned_ymd) "
        "VALUES (gen_random_uuid(), gen_random_uuid(), 'streak_30', 20251024)"
    ),
    "INSERT INTO campuses VALUES (gen_random_uuid(), 'Oslo', 'Europe/Oslo')",
    "INSERT INTO users (id, handle) VALUES (gen_random_uuid(), 'ada')",
)
MOVED = [name for some in move._CREATED.values() for name in some]  # pyright: ignore[reportPrivateUsage]
STAYING = ("lb_daily", "streaks", "badges", "campuses", "users")


@pytest.fixture
def in_public(empty_postgres_url: str) -> str:
    """The role has the name of the schema. Like this, its path does not."""
    url = make_url(empty_postgres_url).update_query_dict({"options": "-csearch_path=public"})
    return url.render_as_string(hide_password=False)


def run(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """The rows of the last statement."""
    engine = create_engine(url, poolclass=NullPool)
    rows: list[tuple[Any, ...]] = []
    with engine.begin() as connection:
        for statement in statements:
            result = connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
            rows = [tuple(row) for row in result] if result.returns_rows else []
    return rows


def one(url: str, asked: str) -> Any:  # noqa: ANN401  # a value of a row
    return run(url, asked)[0][0]


def build_old(url: str, revision: str = "0009") -> None:
    run(url, STEPS[0], *map(_step, STEPS[1 : REVISIONS.index(revision) + 2]))


def _step(step: str) -> str:
    return step.partition("\n")[2]


@pytest.fixture(params=["with a role of another name", "with a role called laurels"])
def old(request: pytest.FixtureRequest, in_public: str, empty_postgres_url: str) -> str:
    """A database of revision 0009 with a row in each table, and the URL of one that starts on it."""
    build_old(in_public)
    run(in_public, *ROWS)
    return in_public if "another" in request.param else empty_postgres_url


def schemas(url: str) -> dict[str, str]:
    found = "SELECT relname, nspname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
    return dict(run(url, f"{found} WHERE nspname IN ('public', 'laurels') AND relkind IN ('r', 'p')"))


def counts(url: str) -> dict[str, int]:
    where = schemas(url)
    counted = {name: f"SELECT count(*) FROM {where[name]}.{name}" for name in (*MOVED, *STAYING)}  # noqa: S608
    return {name: one(url, asked) for name, asked in counted.items()}


async def revision_at(url: str) -> str | None:
    async with Postgres(url) as postgres:
        return await current_revision(postgres)


async def test_every_table_moves_with_its_rows(old: str):
    before = counts(old)
    assert min(before.values()) == 1
    assert before["journal"] == 20
    assert await revision_at(old) == "0009"
    migrate(old)
    assert await revision_at(old) == expected_revision()
    assert counts(old) == before
    where = schemas(old)
    assert {where[name] for name in MOVED} == {"laurels"}
    assert {where[f"journal_2025_{month}"] for month in (10, 11)} == {"laurels"}
    assert {where[name] for name in STAYING} == {"public"}
    assert where["alembic_version"] == "laurels"


def test_versions_of_boards_go_on(old: str):
    version = one(old, "SELECT nextval('public.board_version')")
    migrate(old)
    inserted = "INSERT INTO laurels.boards (project, board, definition, id) VALUES ('acme', 'b', '{}', 9)"
    assert one(old, f"{inserted} RETURNING version") == version + 1
    assert one(old, "SELECT nextval('laurels.board_version')") == version + 2


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_earlier_revision_becomes_the_newest(in_public: str, revision: str):
    build_old(in_public, revision)
    migrate(in_public)
    engine = create_engine(in_public, poolclass=NullPool)
    with engine.connect() as connection:
        assert differences(connection) == []


def differences(connection: Connection) -> list[Any]:
    def is_compared(name: str | None, kind: str, _: object) -> bool:
        if kind == "schema":
            return name in (None, "laurels")
        return name not in ("users", "campuses", "alembic_version")

    opts = {"compare_server_default": True, "include_schemas": True, "include_name": is_compared}
    return list(compare_metadata(MigrationContext.configure(connection, opts=opts), tables.metadata))


def test_an_interrupted_move_changes_nothing(in_public: str, monkeypatch: pytest.MonkeyPatch):
    build_old(in_public)
    run(in_public, *ROWS)
    before, rows = schemas(in_public), counts(in_public)
    execute: Callable[[Connection, str], None] = move._run  # pyright: ignore[reportPrivateUsage]
    reached = 0
    while True:
        steps = iter(range(reached, -1, -1))

        def until_interrupted(connection: Connection, statement: str, steps: Iterator[int] = steps) -> None:
            if next(steps) == 0:
                raise KeyboardInterrupt
            execute(connection, statement)

        monkeypatch.setattr(move, "_run", until_interrupted)
        try:
            migrate(in_public)
        except KeyboardInterrupt:
            assert schemas(in_public) == before
        else:
            break
        reached += 1
    assert reached > len(MOVED)
    assert counts(in_public) == rows


async def test_processes_that_start_together_move_the_tables_once(in_public: str):
    build_old(in_public)
    run(in_public, *ROWS)
    before = counts(in_public)
    command = [sys.executable, "-c", f"from laurels.postgres.migrate import migrate; migrate({in_public!r})"]
    processes = [subprocess.Popen(command) for _ in range(3)]  # noqa: ASYNC220  # waited for below
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert await revision_at(in_public) == expected_revision()
    assert counts(in_public) == before


async def test_triggers_of_an_index_go_on(old: str):
    class Base(DeclarativeBase):
        pass

    class Game(Base):
        __tablename__ = "games"
        __leaderboards__ = (LeaderboardIndex(score="score"),)
        id: Mapped[int] = mapped_column(primary_key=True)
        score: Mapped[int]

    run(old, "CREATE TABLE public.games (id int PRIMARY KEY, score int)", *ddl(Game))
    run(old, "INSERT INTO public.games VALUES (1, 10)")
    migrate(old)
    run(old, "INSERT INTO public.games VALUES (2, 20)", *ddl(Game), "DELETE FROM public.games WHERE id = 1")
    changes = "SELECT key, op FROM laurels_index.outbox ORDER BY seq"
    assert run(old, changes) == [("1", "put"), ("2", "put"), ("1", "gone")]


def test_tables_in_use_are_reported(in_public: str, monkeypatch: pytest.MonkeyPatch):
    build_old(in_public)
    monkeypatch.setattr(move, "LOCK_SECONDS", 0.05)
    engine = create_engine(in_public, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("SELECT * FROM jobs"))
        with pytest.raises(StartupError, match=r"are in use .*; stop the processes of the older Laurels"):
            migrate(in_public)
    migrate(in_public)


def test_the_older_version_cannot_start_on_moved_tables(old: str):
    migrate(old)
    without_path = make_url(old).update_query_dict({"options": "-csearch_path=public"})
    with pytest.raises(exc.ProgrammingError, match='relation "board_version" already exists'):
        build_old(without_path.render_as_string(hide_password=False))


async def test_an_unknown_revision_of_our_tables_is_a_newer_one(in_public: str):
    build_old(in_public)
    run(in_public, "UPDATE alembic_version SET version_num = '0042'")
    with pytest.raises(StartupError, match=r"made by a newer Laurels \(revision 0042\)"):
        migrate(in_public)
    assert set(schemas(in_public).values()) == {"public"}


async def test_two_sets_of_tables_are_refused(in_public: str):
    migrate(in_public)
    run(in_public, "DROP TABLE lb_daily, streaks, badges")
    build_old(in_public)
    with pytest.raises(StartupError, match="two sets of Laurels' tables") as caught:
        migrate(in_public)
    assert "\n" not in str(caught.value)
    run(in_public, "DROP TABLE public.alembic_version")
    migrate(in_public)


class TestBesideAnApplication:
    @pytest.mark.parametrize("revision", ["0003", "4f1c0d9e2a77"])
    async def test_its_own_alembic_is_left_alone(self, in_public: str, revision: str):
        run(
            in_public,
            "CREATE TABLE alembic_version (version_num text PRIMARY KEY)",
            f"INSERT INTO alembic_version VALUES ('{revision}')",  # noqa: S608  # constants
            "CREATE TABLE boards (id int PRIMARY KEY, title text)",
            "CREATE TABLE api_keys (id int)",
            "CREATE TABLE jobs (id int)",
        )
        before = schemas(in_public)
        migrate(in_public)
        migrate(in_public)
        assert await revision_at(in_public) == expected_revision()
        assert one(in_public, "SELECT version_num FROM public.alembic_version") == revision
        found = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        documented = {"lb_daily", "streaks", "badges"}
        assert {row[0] for row in run(in_public, found)} == set(before) | documented

    def test_it_may_use_alembic_from_now_on(self, old: str, in_public: str):
        migrate(old)
        run(
            in_public,
            "CREATE TABLE alembic_version (version_num text PRIMARY KEY)",
            "INSERT INTO alembic_version VALUES ('0001')",
        )
        migrate(old)
        assert one(in_public, "SELECT version_num FROM public.alembic_version") == "0001"

    def test_it_keeps_its_default_schema_where_its_role_is_called_laurels(self, empty_postgres_url: str):
        migrate(empty_postgres_url)
        assert run(empty_postgres_url, "SELECT current_user, current_schema()") == [("laurels", "public")]
        migrate(empty_postgres_url)
        assert run(empty_postgres_url, "SHOW search_path") == [("public",)]
        database = make_url(empty_postgres_url).database
        run(
            empty_postgres_url,
            f'ALTER ROLE laurels IN DATABASE {database} SET search_path = app, "$user", public',
        )
        migrate(empty_postgres_url)
        assert run(empty_postgres_url, "SHOW search_path") == [("app, public",)]

    def test_its_table_of_another_shape_is_named(self, in_public: str):
        run(in_public, "CREATE TABLE badges (id int, title text)")
        with pytest.raises(
            StartupError, match=r"public\.badges .* has no column user_id, kind, earned_ymd"
        ) as said:
            migrate(in_public)
        assert "ALTER ROLE … SET search_path = laurels" in str(said.value)

    def test_a_default_schema_of_its_own_keeps_it_apart(self, in_public: str, empty_postgres_url: str):
        run(in_public, "CREATE TABLE badges (id int, title text)")
        alone = make_url(empty_postgres_url).update_query_dict({"options": "-csearch_path=laurels"})
        migrate(alone.render_as_string(hide_password=False))
        assert one(in_public, "SELECT count(*) FROM laurels.badges") == 0
        columns = "SELECT count(*) FROM information_schema.columns WHERE table_name = 'badges'"
        assert one(in_public, f"{columns} AND table_schema = 'public'") == 2
