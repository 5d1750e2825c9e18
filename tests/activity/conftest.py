"""A schema and a numbered database for these tests only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from accrual_stage import NOON, AccrualStage
from campus_stage import Stage, stores_apart
from sqlalchemy import text

from laurels.clock import FixedClock
from laurels.engine import Laurels
from laurels.moments import moment_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from laurels.embedded import Endpoints

DATABASE = 9
TABLES = """
SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname IN ('laurels', 'public')
AND tablename <> 'alembic_version' AND tablename !~ '^journal_'
"""


@pytest.fixture(scope="session")
def campus_urls(endpoints: Endpoints) -> tuple[str, str]:
    """The URLs of Valkey and PostgreSQL."""
    return stores_apart(endpoints, "campus_tests", DATABASE)


@pytest.fixture
async def stage(campus_urls: tuple[str, str]) -> AsyncGenerator[Stage]:
    """Empty stores."""
    valkey_url, postgres_url = campus_urls
    clock = FixedClock()
    async with Laurels(valkey_url=valkey_url, postgres_url=postgres_url, clock=clock) as laurels:
        await laurels.valkey.command("FLUSHDB")
        async with laurels.postgres.writing() as connection:
            found = await connection.execute(text(TABLES))
            await connection.execute(text(f"TRUNCATE {', '.join(found.scalars())}"))
        yield Stage(laurels, clock)


@pytest.fixture(params=["node", "cluster"])
async def accruing(
    request: pytest.FixtureRequest, campus_urls: tuple[str, str]
) -> AsyncGenerator[AccrualStage]:
    """At noon of a fixed day, with empty streams: on one node, and on a cluster."""
    valkey_url, postgres_url = campus_urls
    if request.param == "cluster":
        valkey_url = request.getfixturevalue("cluster_url")
    clock = FixedClock(moment_of(NOON))
    async with Laurels(valkey_url=valkey_url, postgres_url=postgres_url, clock=clock) as laurels:
        stage = AccrualStage(laurels, clock)
        for primary in await stage.primaries():
            await primary.execute_command("FLUSHDB")
        yield stage
