"""What every test may ask for: the real servers, started once, and engines on them at noon of a fixed day."""

from __future__ import annotations

import gc
import signal
from contextlib import AsyncExitStack, ExitStack
from datetime import UTC, datetime
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

import psycopg
import pytest
from places import fast_place, folder_that_anybody_may_pass
from raw_valkey import RawValkey
from scheduling import RoomScheduling, place_of
from sqlalchemy import make_url
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
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs]

    from laurels.embedded import Endpoints

NOON = datetime(2025, 10, 24, 12, tzinfo=UTC)

_numbers = count(1)

# A shell has what it starts in the background ignore SIGINT, and so the processes that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected here lives until the end: garbage collection need not visit it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: place_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> RoomScheduling:
    return RoomScheduling(config, log)


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


@pytest.fixture(scope="session")
def only_clock() -> FixedClock:
    return FixedClock(moment_of(NOON))


@pytest.fixture
def clock(only_clock: FixedClock) -> FixedClock:
    """At noon again, for each test."""
    only_clock.now = moment_of(NOON)
    return only_clock


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
def empty_postgres_url(endpoints: Endpoints) -> Generator[str]:
    """A database of its own without any tables."""
    name = f"tests_{next(_numbers)}"
    _administer(endpoints, f"CREATE DATABASE {name} STRATEGY FILE_COPY")
    yield _database(endpoints, name)
    _administer(endpoints, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def template(endpoints: Endpoints) -> str:
    """The name of a database with Laurels' tables."""
    name = "laurels_template"
    _administer(endpoints, f"CREATE DATABASE {name}")
    migrate(_database(endpoints, name))
    return name


@pytest.fixture
def migrated_postgres_url(endpoints: Endpoints, template: str) -> Generator[str]:
    """A database of its own with Laurels' tables: copied, which is sooner than to migrate one."""
    name = f"tests_{next(_numbers)}"
    _administer(endpoints, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    # A setting of the role is not copied; without it, the first to open the database would migrate.
    _administer(endpoints, f"ALTER ROLE CURRENT_USER IN DATABASE {name} SET search_path = public")
    yield _database(endpoints, name)
    _administer(endpoints, f"DROP DATABASE {name} WITH (FORCE)")


def _database(endpoints: Endpoints, name: str) -> str:
    return make_url(endpoints.postgres_url).set(database=name).render_as_string(hide_password=False)


def _administer(endpoints: Endpoints, statement: str) -> None:
    url = endpoints.postgres_url.replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)  # pyright: ignore[reportArgumentType, reportCallIssue]  # names of our own


@pytest.fixture
async def postgres(migrated_postgres_url: str) -> AsyncGenerator[Postgres]:
    """Connections to a database that no other test uses."""
    async with Postgres(migrated_postgres_url) as postgres:
        yield postgres


@pytest.fixture(scope="session")
def engines(endpoints: Endpoints, only_clock: FixedClock) -> Generator[Callable[[str, int], sync.Laurels]]:
    """Engines by the URL of their Valkey, and a number: to open one takes as long as many a test."""
    with ExitStack() as stack:

        @cache
        def engine_at(valkey_url: str, _number: int) -> sync.Laurels:
            engine = sync.Laurels(
                valkey_url=valkey_url, postgres_url=endpoints.postgres_url, clock=only_clock
            )
            return stack.enter_context(engine)

        yield engine_at


@pytest.fixture
def engine(engines: Callable[[str, int], sync.Laurels], valkey_url: str, clock: FixedClock) -> sync.Laurels:
    """One for all tests: each has boards of its own."""
    return engines(valkey_url, 1)


@pytest.fixture
def other_engine(
    engines: Callable[[str, int], sync.Laurels], valkey_url: str, clock: FixedClock
) -> sync.Laurels:
    """Another process on the same servers and clock, as far as they can tell."""
    return engines(valkey_url, 2)


@pytest.fixture
def new_board(engine: sync.Laurels) -> Callable[..., str]:
    """Defines a board of its own and tells its name."""

    def define(**definition: object) -> str:
        board = f"tests/board-{next(_numbers)}"
        engine.define(board, definition)
        return board

    return define


@pytest.fixture(scope="session")
async def async_engines(
    endpoints: Endpoints, only_clock: FixedClock
) -> AsyncGenerator[Callable[[str], Awaitable[laurels_engine.Laurels]]]:
    async with AsyncExitStack() as stack:
        opened: dict[str, laurels_engine.Laurels] = {}

        async def engine_at(valkey_url: str) -> laurels_engine.Laurels:
            if valkey_url not in opened:
                engine = laurels_engine.Laurels(
                    valkey_url=valkey_url, postgres_url=endpoints.postgres_url, clock=only_clock
                )
                opened[valkey_url] = await stack.enter_async_context(engine)
            return opened[valkey_url]

        yield engine_at


@pytest.fixture
async def laurels(
    async_engines: Callable[[str], Awaitable[laurels_engine.Laurels]], valkey_url: str, clock: FixedClock
) -> laurels_engine.Laurels:
    """One for all tests, as `engine`."""
    return await async_engines(valkey_url)
