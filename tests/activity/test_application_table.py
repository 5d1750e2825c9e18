"""Users and campuses in tables, views and queries of the application."""

# ruff: noqa: S608  # statements made of constants

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from sqlalchemy import text

from laurels.activity.store.application_table import among
from laurels.activity.store.people import Campus, CampusSources, CampusStore, User
from laurels.engine import Laurels
from laurels.errors import InvalidInput, StartupError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from laurels.activity.store.application_table import Kind
    from laurels.embedded import Endpoints
    from laurels.postgres.engine import Postgres

    Run = Callable[..., Awaitable[None]]

NORTH, ADA, BOB, EVE = (str(UUID(int=number * 0xABCDEF0123456789ABCDEF)) for number in (1, 11, 12, 13))


@pytest.fixture
def run(postgres: Postgres) -> Run:
    async def execute(*statements: str) -> None:
        async with postgres.writing() as connection:
            for statement in statements:
                await connection.exec_driver_sql(statement, execution_options={"no_parameters": True})

    return execute


async def test_without_any_tables_nobody_is_known(postgres: Postgres):
    store = CampusStore(postgres)
    await store.require()
    assert await store.problems() == []
    assert await store.users([ADA]) == {}
    assert await store.campuses() == []
    assert await store.campus(NORTH) is None
    assert await store.campuses_of([ADA]) == {}


async def test_tables_are_found_when_the_application_has_made_them(postgres: Postgres, run: Run):
    store = CampusStore(postgres)
    assert await store.users([ADA]) == {}
    await run(
        "CREATE TABLE users (id uuid PRIMARY KEY, campus_id uuid)",
        f"INSERT INTO users VALUES ('{ADA}', '{NORTH}')",
    )
    assert await store.users([ADA]) == {ADA: User(ADA, NORTH)}


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        ("uuid", ADA),
        ("text", ADA),
        ("text", ADA.upper()),
        ("text", ADA.replace("-", "")),
        ("varchar(36)", ADA),
        ("char(40)", ADA),
    ],
)
async def test_ids_are_uuids_however_they_are_stored(postgres: Postgres, run: Run, kind: str, stored: str):
    await run(
        f"CREATE TABLE users (id {kind}, campus_id {kind}, handle varchar(9), avatar_url text, age int)",
        f"INSERT INTO users VALUES ('{stored}', '{NORTH}', 'ada', NULL, 20)",
        f"INSERT INTO users VALUES ('{EVE}', NULL, NULL, '/e.png', 21)",
    )
    found = await CampusStore(postgres).users([ADA, BOB, EVE, "no id of a user"])
    assert found == {ADA: User(ADA, NORTH, "ada"), EVE: User(EVE, None, "", "/e.png")}


async def test_integers_are_ids_too(postgres: Postgres, run: Run):
    await run(
        "CREATE TABLE users (id int PRIMARY KEY, campus_id bigint)",
        "INSERT INTO users VALUES (7, 3)",
        "CREATE TABLE campuses (id bigint PRIMARY KEY, name text, timezone text)",
        "INSERT INTO campuses VALUES (3, 'North', 'Europe/Oslo')",
    )
    store = CampusStore(postgres)
    assert await store.users(["7", "8", ADA, "9" * 30, "x"]) == {"7": User("7", "3")}
    assert await store.campuses_of(["7"]) == {"7": Campus("3", "North", "Europe/Oslo")}


@pytest.mark.parametrize(
    ("kind", "value"), [("uuid", "gen_random_uuid()"), ("text", "gen_random_uuid()::text"), ("int", "n")]
)
async def test_the_index_of_the_ids_is_used(postgres: Postgres, run: Run, kind: str, value: str):
    await run(
        f"CREATE TABLE users (id {kind} PRIMARY KEY)",
        f"INSERT INTO users SELECT {value} FROM generate_series(1, 5000) n",
        "ANALYZE users",
    )
    known: dict[str, Kind] = {"uuid": "uuid", "text": "text", "int": "bigint"}
    condition, ids = among(known[kind], [ADA, "7"])
    async with postgres.reading() as connection:
        asked = text(f"EXPLAIN SELECT id FROM users WHERE {condition}")
        plan = "\n".join((await connection.execute(asked, {"ids": ids})).scalars())
    assert "users_pkey" in plan


class TestSettings:
    async def test_name_a_view(self, postgres: Postgres, run: Run):
        await run(
            "CREATE SCHEMA app",
            "CREATE TABLE app.accounts (uid uuid PRIMARY KEY, school uuid, nick text)",
            f"INSERT INTO app.accounts VALUES ('{ADA}', '{NORTH}', 'ada')",
            'CREATE VIEW app."People" AS '
            "SELECT uid AS id, school AS campus_id, nick AS handle FROM app.accounts",
        )
        store = CampusStore(postgres, CampusSources(users='app."People"'))
        await store.require()
        assert await store.users([ADA]) == {ADA: User(ADA, NORTH, "ada")}

    async def test_may_be_queries(self, postgres: Postgres, run: Run):
        await run(
            "CREATE TABLE students (number text, school text, tags jsonb)",
            f"INSERT INTO students VALUES ('{ADA}', '{NORTH}', '{{\"nick\": \"a:b %\"}}')",
            f"CREATE TABLE schools (number text); INSERT INTO schools VALUES ('{NORTH}')",
        )
        users = (
            "SELECT number::uuid AS id, school::uuid AS campus_id, tags ->> 'nick' AS handle "
            "-- a comment: :x %s\n"
            "FROM students WHERE tags ->> 'nick' LIKE '%:b %';"
        )
        given = CampusSources(users, "select number as id, 'North' as name from schools", "Europe/Oslo")
        store = CampusStore(postgres, given)
        await store.require()
        assert await store.users([ADA, BOB]) == {ADA: User(ADA, NORTH, "a:b %")}
        assert await store.campuses() == [Campus(NORTH, "North", "Europe/Oslo")]

    @pytest.mark.parametrize(
        ("users", "problem"),
        [
            ("members", "campus_users: there is no table members"),
            ("app.members", "campus_users: there is no table app.members"),
            ("students", "campus_users: students has id, email, but lacks campus_id"),
            ("SELECT id FROM students", "campus_users: the query has id, but lacks campus_id"),
            ("SELECT id, FROM students", "campus_users: the query fails: syntax error"),
            ("SELECT 1 AS id; DROP TABLE students", "campus_users: the query fails: syntax error"),
            ("students; DROP TABLE students", "is neither the name of a table nor a query"),
        ],
    )
    async def test_that_cannot_be_read_stop_the_start(
        self, postgres: Postgres, run: Run, users: str, problem: str
    ):
        await run("CREATE TABLE students (id uuid, email text)")
        store = CampusStore(postgres, CampusSources(users=users))
        with pytest.raises(StartupError) as caught:
            await store.require()
        assert problem in str(caught.value)
        assert "\n" not in str(caught.value)
        with pytest.raises(Unavailable):
            await store.users([ADA])
        await run("SELECT * FROM students")

    async def test_an_unknown_timezone_stops_the_start(self, postgres: Postgres):
        store = CampusStore(postgres, CampusSources(timezone="Europe/Osloo"))
        with pytest.raises(StartupError, match=r"campus_timezone: 'Europe/Osloo' is not an IANA timezone"):
            await store.require()

    async def test_are_checked_by_the_engine(
        self, endpoints: Endpoints, migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("LAURELS_CAMPUS_CAMPUSES", "schools")
        with pytest.raises(StartupError, match="campus_campuses: there is no table schools"):
            await Laurels(valkey_url=endpoints.valkey_url, postgres_url=migrated_postgres_url).open()


async def test_another_programs_users_are_ignored_and_reported(postgres: Postgres, run: Run):
    await run("CREATE TABLE users (id int PRIMARY KEY, email text)")
    store = CampusStore(postgres)
    await store.require()
    assert await store.users(["1"]) == {}
    ((is_given, problem),) = await store.problems()
    assert not is_given
    assert "users has id, email, but lacks campus_id" in problem


async def test_campuses_without_a_name_or_timezone_get_the_default(postgres: Postgres, run: Run):
    await run(
        "CREATE TABLE campuses (id uuid PRIMARY KEY, name text, timezone text)",
        f"INSERT INTO campuses VALUES ('{NORTH}', NULL, NULL)",
        f"INSERT INTO campuses VALUES ('{ADA}', 'B', ''), ('{BOB}', 'a', 'Asia/Tokyo')",
    )
    store = CampusStore(postgres, CampusSources(timezone="Europe/Oslo"))
    assert await store.campus(NORTH) == Campus(NORTH, NORTH, "Europe/Oslo")
    assert [campus.timezone for campus in await store.campuses()] == [
        "Europe/Oslo",
        "Asia/Tokyo",
        "Europe/Oslo",
    ]


async def test_a_table_that_changes_is_read_as_it_is_now(postgres: Postgres, run: Run):
    await run(
        "CREATE TABLE users (id text PRIMARY KEY, campus_id text, handle text)",
        f"INSERT INTO users VALUES ('{ADA}', '{NORTH}', 'ada')",
    )
    store = CampusStore(postgres)
    assert await store.users([ADA]) == {ADA: User(ADA, NORTH, "ada")}
    await run(
        "ALTER TABLE users DROP COLUMN handle",
        "ALTER TABLE users ALTER id TYPE uuid USING id::uuid",
    )
    assert await store.users([ADA]) == {ADA: User(ADA, NORTH)}
    await run("DROP TABLE users")
    assert await store.users([ADA]) == {}


async def test_invented_people_go_into_no_table_of_a_setting(postgres: Postgres):
    store = CampusStore(postgres, CampusSources(users="students"))
    with pytest.raises(InvalidInput, match="unset the setting campus_users"):
        await store.put_users([User(ADA)])


async def test_invented_people_that_do_not_fit_are_refused(postgres: Postgres, run: Run):
    await run("CREATE TABLE users (id uuid PRIMARY KEY, campus_id uuid, email text NOT NULL)")
    with pytest.raises(InvalidInput, match="invented people do not fit the table users: column"):
        await CampusStore(postgres).put_users([User(ADA)])
