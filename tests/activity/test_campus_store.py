from __future__ import annotations

from uuid import UUID

import pytest
from sqlalchemy import NullPool, create_engine, text

from laurels.activity.store.people import Campus, CampusStore, User
from laurels.activity.store.reads import CampusReads
from laurels.postgres.engine import Postgres
from laurels.postgres.migrate import migrate

NORTH = Campus(str(UUID(int=1)), "North", "Europe/Oslo")
SOUTH = Campus(str(UUID(int=2)), "South", "Pacific/Auckland")
ADA, BOB, EVE = (str(UUID(int=number)) for number in (11, 12, 13))


@pytest.fixture
def campuses(postgres: Postgres) -> CampusStore:
    return CampusStore(postgres)


async def test_campuses_are_listed_by_name(campuses: CampusStore):
    await campuses.put_campuses([SOUTH, NORTH])
    assert await campuses.campuses() == [NORTH, SOUTH]
    assert await campuses.campus(SOUTH.id) == SOUTH
    assert await campuses.campus(ADA) is None


async def test_a_campus_stored_again_is_changed(campuses: CampusStore):
    await campuses.put_campuses([NORTH])
    renamed = Campus(NORTH.id, "Far North", "Arctic/Longyearbyen")
    await campuses.put_campuses([renamed, SOUTH, SOUTH])
    assert await campuses.campuses() == [renamed, SOUTH]


async def test_users_belong_to_the_campus_stored_last(campuses: CampusStore):
    await campuses.put_campuses([NORTH, SOUTH])
    await campuses.put_users([User(ADA, NORTH.id, "ada"), User(BOB, NORTH.id), User(EVE)])
    await campuses.put_users([User(BOB, SOUTH.id, "bob", "https://example.org/bob.png")])
    assert await campuses.campuses_of([ADA, BOB, EVE, NORTH.id]) == {ADA: NORTH, BOB: SOUTH}
    assert await campuses.campuses_of([]) == {}
    assert await campuses.users([BOB, EVE]) == {
        BOB: User(BOB, SOUTH.id, "bob", "https://example.org/bob.png"),
        EVE: User(EVE),
    }


async def test_thousands_of_users_are_stored_at_once(campuses: CampusStore):
    await campuses.put_campuses([NORTH])
    users = [User(str(UUID(int=number)), NORTH.id, f"user-{number}") for number in range(5_001)]
    await campuses.put_users(users)
    assert len(await campuses.campuses_of([user.id for user in users])) == 5_001


OWN_TABLES = (
    "CREATE TABLE users (id uuid PRIMARY KEY, campus_id uuid, email text NOT NULL)",
    f"INSERT INTO users VALUES ('{ADA}', '{NORTH.id}', 'ada@example.org')",  # noqa: S608  # constants
    """
    CREATE TABLE streaks (
        user_id uuid primary key, current int not null default 0, best int not null default 0,
        last_active_ymd int not null default 0, updated_at timestamptz not null default now()
    )
    """,
    f"INSERT INTO streaks VALUES ('{ADA}', 7, 9, 20251023)",  # noqa: S608  # constants
)


async def test_existing_tables_of_an_application_are_used(empty_postgres_url: str):
    engine = create_engine(empty_postgres_url, poolclass=NullPool)
    with engine.begin() as connection:
        for statement in OWN_TABLES:
            connection.execute(text(statement))
    migrate(empty_postgres_url)
    async with Postgres(empty_postgres_url) as postgres:
        campuses = CampusStore(postgres)
        await campuses.put_campuses([NORTH])
        assert await campuses.campuses_of([ADA]) == {ADA: NORTH}
        assert await campuses.users([ADA]) == {ADA: User(ADA, NORTH.id, "")}
        found = await CampusReads(postgres).streak(ADA)
        assert found == (ADA, 7, 9, 20251023)
