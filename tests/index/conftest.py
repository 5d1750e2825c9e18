"""Indexes on real servers, at noon of a fixed day: the clock sets the moments of writes and of the engine."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from index_models import drop
from sqlalchemy.ext.asyncio import create_async_engine

from laurels.clock import FixedClock
from laurels.engine import Laurels
from laurels.index.triggers import follow_clock
from laurels.moments import moment_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.embedded import Endpoints


NOON = moment_of(datetime(2025, 10, 24, 12, tzinfo=UTC))


@pytest.fixture(scope="session")
def only_clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def clock(only_clock: FixedClock) -> FixedClock:
    """Noon for each test."""
    only_clock.now = NOON
    return only_clock


@pytest.fixture(scope="session")
async def only_laurels(endpoints: Endpoints, only_clock: FixedClock) -> AsyncGenerator[Laurels]:
    async with Laurels(
        valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=only_clock
    ) as opened:
        yield opened


@pytest.fixture
def laurels(only_laurels: Laurels, clock: FixedClock) -> Laurels:
    """One engine for all tests; each test has tables and boards of its own."""
    return only_laurels


@pytest.fixture
async def clustered(endpoints: Endpoints, cluster_url: str, clock: FixedClock) -> AsyncGenerator[Laurels]:
    async with Laurels(valkey_url=cluster_url, postgres_url=endpoints.postgres_url, clock=clock) as opened:
        yield opened


@pytest.fixture
async def engine(endpoints: Endpoints, clock: FixedClock) -> AsyncGenerator[AsyncEngine]:
    """The database of the records."""
    opened = create_async_engine(endpoints.postgres_url)
    follow_clock(opened, clock)
    yield opened
    await drop(opened)
    await opened.dispose()
