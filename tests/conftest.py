"""What every test may ask for: the real servers, started once, and engines on them at noon of a fixed day."""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

import pytest
from places import fast_place, folder_that_anybody_may_pass
from raw_valkey import RawValkey
from sqlalchemy import NullPool, create_engine, make_url, text
from supported_servers import programs
from valkey_cluster import running_cluster
from valkey_servers import running_valkey

from laurels import embedded, sync
from laurels import engine as laurels_engine
from laurels.clock import FixedClock
from laurels.moments import moment_of
from laurels.postgres.engine import Postgres
from laurels.postgres.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from laurels.embedded import Endpoints

NOON = datetime(2025, 10, 24, 12, tzinfo=UTC)

_numbers = count(1)

# A shell has what it starts in the background ignore SIGINT, and so the processes that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def endpoints() -> Generator[Endpoints]:
    """Where the tests' own Valkey and PostgreSQL answer."""
    with (
        folder_that_anybody_may_pass(fast_place()) as folder,
        folder_that_anybody_may_pass() as copies,
        embedded.start(folder / "data", programs=programs(copies)) as servers,
    ):
        yield servers.endpoints


@pytest.fixture(scope="session")
def cluster_url() -> Generator[str]:
    """A Valkey Cluster of three primaries on loopback."""
    with running_cluster(primaries=3) as url:
        yield url


@pytest.fixture(scope="session")
def own_valkey_url() -> Generator[str]:
    """A Valkey on a socket of its own, with nothing in it: a test may break, empty and refill it."""
    with running_valkey() as server:
        yield server.url


@pytest.fixture(scope="session")
def own_cluster_url() -> Generator[str]:
    """The same as a cluster."""
    with running_cluster(primaries=3) as url:
        yield url


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(moment_of(NOON))


@pytest.fixture
def raw(endpoints: Endpoints) -> Generator[RawValkey]:
    """The single node, as any Redis client sees it."""
    valkey = RawValkey(endpoints.valkey_url)
    yield valkey
    valkey.close()


@pytest.fixture(params=["node", "cluster"])
def valkey_url(request: pytest.FixtureRequest, endpoints: Endpoints) -> str:
    """Every test that asks for it runs twice: on one node, and on a cluster."""
    return endpoints.valkey_url if request.param == "node" else request.getfixturevalue("cluster_url")


@pytest.fixture
def empty_postgres_url(endpoints: Endpoints) -> str:
    """A schema of its own: as good as a database, and made in milliseconds."""
    schema = f"tests_{next(_numbers)}"
    server = create_engine(endpoints.postgres_url, poolclass=NullPool)
    with server.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    url = make_url(endpoints.postgres_url).update_query_dict({"options": f"-csearch_path={schema}"})
    return url.render_as_string(hide_password=False)


@pytest.fixture
def migrated_postgres_url(empty_postgres_url: str) -> str:
    """The same with Laurels' tables."""
    migrate(empty_postgres_url)
    return empty_postgres_url


@pytest.fixture
async def postgres(migrated_postgres_url: str) -> AsyncGenerator[Postgres]:
    """Connections to a schema that no other test uses."""
    async with Postgres(migrated_postgres_url) as postgres:
        yield postgres


@pytest.fixture
def engine(valkey_url: str, endpoints: Endpoints, clock: FixedClock) -> Generator[sync.Laurels]:
    with sync.Laurels(valkey_url=valkey_url, postgres_url=endpoints.postgres_url, clock=clock) as opened:
        yield opened


@pytest.fixture
def other_engine(valkey_url: str, endpoints: Endpoints, clock: FixedClock) -> Generator[sync.Laurels]:
    """Another process on the same servers and clock, as far as they can tell."""
    with sync.Laurels(valkey_url=valkey_url, postgres_url=endpoints.postgres_url, clock=clock) as opened:
        yield opened


@pytest.fixture
def new_board(engine: sync.Laurels) -> Callable[..., str]:
    """Defines a board of its own and tells its name."""

    def define(**definition: object) -> str:
        board = f"tests/board-{next(_numbers)}"
        engine.define(board, definition)
        return board

    return define


@pytest.fixture
async def laurels(
    valkey_url: str, endpoints: Endpoints, clock: FixedClock
) -> AsyncGenerator[laurels_engine.Laurels]:
    async with laurels_engine.Laurels(
        valkey_url=valkey_url, postgres_url=endpoints.postgres_url, clock=clock
    ) as opened:
        yield opened
