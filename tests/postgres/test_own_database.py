"""What a role needs that has few privileges, as `docs/how-to/own-database.md` lists it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from sqlalchemy import make_url

from laurels.activity.store.people import CampusStore
from laurels.errors import StartupError
from laurels.journal.store.rows import JournalStore
from laurels.postgres.engine import Postgres
from laurels.postgres.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from laurels.clock import FixedClock

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "own-database.md").read_text()


def block(title: str) -> str:
    return PAGE.partition(f'```sql title="{title}"\n')[2].partition("```")[0]


@pytest.fixture
def run(empty_postgres_url: str) -> Callable[[str], None]:
    """Runs SQL as the owner of the database."""

    def as_owner(statements: str) -> None:
        url = empty_postgres_url.replace("+psycopg", "")
        with psycopg.connect(url, options="-csearch_path=public") as connection:
            connection.execute(statements)  # pyright: ignore[reportArgumentType, reportCallIssue]

    return as_owner


@pytest.fixture
def scores(run: Callable[[str], None], empty_postgres_url: str) -> Generator[str]:
    """The URL of a role that may only connect, to a database with users and campuses."""
    run("CREATE ROLE scores LOGIN PASSWORD 'scores'; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    run("CREATE TABLE users (id uuid, campus_id uuid); CREATE TABLE campuses (id uuid)")
    url = make_url(empty_postgres_url).set(username="scores", password="scores")
    yield url.render_as_string(hide_password=False)
    run("DROP OWNED BY scores CASCADE; DROP ROLE scores")


def test_the_error_says_who_creates_the_schema(scores: str):
    with pytest.raises(StartupError, match='let its owner run: CREATE SCHEMA laurels AUTHORIZATION "scores"'):
        migrate(scores)


def test_the_error_names_the_page_with_the_privileges(run: Callable[[str], None], scores: str):
    run("CREATE SCHEMA laurels AUTHORIZATION scores")
    with pytest.raises(StartupError, match=r"permission denied for schema public; .*own-database") as caught:
        migrate(scores)
    assert "\n" not in str(caught.value)


async def test_the_privileges_of_the_page_suffice(run: Callable[[str], None], scores: str, clock: FixedClock):
    run(block("Before the first start"))
    migrate(scores)
    run(block("After the first start"))
    migrate(scores)
    async with Postgres(scores) as postgres:
        await JournalStore(postgres).ensure_partitions(clock())
        assert await CampusStore(postgres).problems() == []
        await postgres.require_writes()


async def test_documented_tables_may_belong_to_another_role(run: Callable[[str], None], scores: str):
    with pytest.raises(StartupError):
        migrate(scores)
    run("CREATE SCHEMA laurels; GRANT USAGE, CREATE ON SCHEMA laurels TO scores")
    run(
        """
        CREATE TABLE lb_daily (
            ymd int, campus_id uuid, user_id uuid, social numeric, engagement numeric, popularity numeric,
            overall numeric, rank_overall int, created_at timestamptz, primary key (ymd, campus_id, user_id)
        );
        CREATE TABLE streaks (
            user_id uuid primary key, current int, best int, last_active_ymd int, updated_at timestamptz
        );
        CREATE TABLE badges (
            id uuid primary key, user_id uuid, kind text, earned_ymd int, meta jsonb, created_at timestamptz
        );
        GRANT SELECT, INSERT, UPDATE, DELETE ON lb_daily, streaks, badges TO scores
        """
    )
    migrate(scores)
    migrate(scores)


async def test_users_that_may_not_be_read_are_named(run: Callable[[str], None], scores: str):
    run(block("Before the first start"))
    run("REVOKE SELECT ON users FROM scores; GRANT SELECT (id) ON users TO scores")
    migrate(scores)
    async with Postgres(scores) as postgres:
        ((is_given, problem),) = await CampusStore(postgres).problems()
    assert not is_given
    assert problem.startswith(
        "campus_users: Laurels' role may not read campus_id of users; run: GRANT SELECT"
    )
