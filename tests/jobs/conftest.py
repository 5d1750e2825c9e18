"""An engine whose archive no other test has used: jobs concern every board there is."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import NullPool, create_engine, make_url, text

from laurels.clock import FixedClock
from laurels.engine import Laurels
from laurels.moments import moment_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from laurels.embedded import Endpoints

_numbers = count(1)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(moment_of(datetime(2025, 10, 24, 12, tzinfo=UTC)))


@pytest.fixture
def own_postgres_url(endpoints: Endpoints) -> str:
    """A schema of its own: as good as a database, and made in milliseconds."""
    schema = f"jobs_{next(_numbers)}"
    server = create_engine(endpoints.postgres_url, poolclass=NullPool)
    with server.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    url = make_url(endpoints.postgres_url).update_query_dict({"options": f"-csearch_path={schema}"})
    return url.render_as_string(hide_password=False)


@pytest.fixture
async def laurels(endpoints: Endpoints, own_postgres_url: str, clock: FixedClock) -> AsyncGenerator[Laurels]:
    async with Laurels(valkey_url=endpoints.valkey_url, postgres_url=own_postgres_url, clock=clock) as opened:
        yield opened
