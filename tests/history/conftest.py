"""Engines with an archive, at noon of a fixed day: on one Valkey and on a cluster of three primaries."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import NullPool, create_engine, make_url, text
from valkey_cluster import running_cluster

from laurels.clock import FixedClock
from laurels.engine import Laurels
from laurels.moments import moment_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from laurels.embedded import Endpoints

_numbers = count(1)


@pytest.fixture(scope="session")
def cluster_url() -> Generator[str]:
    """A Valkey Cluster of three primaries on loopback."""
    with running_cluster(primaries=3) as url:
        yield url


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(moment_of(datetime(2025, 10, 24, 12, tzinfo=UTC)))


@pytest.fixture(params=["node", "cluster"])
async def laurels(
    request: pytest.FixtureRequest, endpoints: Endpoints, clock: FixedClock
) -> AsyncGenerator[Laurels]:
    """Every test that asks for it runs twice: on one node, and on a cluster."""
    url = endpoints.valkey_url if request.param == "node" else request.getfixturevalue("cluster_url")
    async with Laurels(valkey_url=url, postgres_url=endpoints.postgres_url, clock=clock) as opened:
        yield opened


@pytest.fixture
def own_postgres_url(endpoints: Endpoints) -> str:
    """A schema of its own: as good as a database, and made in milliseconds."""
    schema = f"history_{next(_numbers)}"
    server = create_engine(endpoints.postgres_url, poolclass=NullPool)
    with server.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    url = make_url(endpoints.postgres_url).update_query_dict({"options": f"-csearch_path={schema}"})
    return url.render_as_string(hide_password=False)


@pytest.fixture(params=["node", "cluster"])
async def alone(
    request: pytest.FixtureRequest, endpoints: Endpoints, own_postgres_url: str, clock: FixedClock
) -> AsyncGenerator[Laurels]:
    """An engine whose archive no other test has used: for work that concerns every board there is."""
    url = endpoints.valkey_url if request.param == "node" else request.getfixturevalue("cluster_url")
    async with Laurels(valkey_url=url, postgres_url=own_postgres_url, clock=clock) as opened:
        # Valkey is shared, and remembers for a while how far the versions of dropped boards came.
        async with opened.archive.writing() as connection:
            await connection.execute(text(f"SELECT setval('board_version', {next(_numbers) * 10_000})"))
        yield opened


@pytest.fixture
def new_board(laurels: Laurels) -> Callable[..., Awaitable[str]]:
    """Defines a board of its own and tells its name."""

    async def define(**definition: Any) -> str:  # noqa: ANN401  # fields of a definition
        board = f"history/board-{next(_numbers)}"
        await laurels.define(board, definition)
        return board

    return define
