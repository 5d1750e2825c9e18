"""Engines for the board tests: one over a single Valkey, one over a cluster of three primaries."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from raw_valkey import RawValkey
from valkey_cluster import running_cluster

from laurels.clock import FixedClock
from laurels.moments import moment_of
from laurels.sync import Laurels

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from laurels.embedded import Endpoints

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def cluster_url() -> Generator[str]:
    """A Valkey Cluster of three primaries on loopback."""
    with running_cluster(primaries=3) as url:
        yield url


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(moment_of(datetime(2025, 10, 24, 12, tzinfo=UTC)))


@pytest.fixture(params=["node", "cluster"])
def engine(request: pytest.FixtureRequest, endpoints: Endpoints, clock: FixedClock) -> Generator[Laurels]:
    """Every test that asks for it runs twice: on one node, and on a cluster."""
    url = endpoints.valkey_url if request.param == "node" else request.getfixturevalue("cluster_url")
    with Laurels(valkey_url=url, postgres_url=endpoints.postgres_url, clock=clock) as laurels:
        yield laurels


@pytest.fixture
def new_board(engine: Laurels) -> Callable[..., str]:
    """Defines a board of its own and tells its name."""

    def define(**definition: object) -> str:
        board = f"tests/board-{next(_numbers)}"
        engine.define(board, definition)
        return board

    return define


@pytest.fixture
def raw(endpoints: Endpoints) -> Generator[RawValkey]:
    """The single node, as any Redis client sees it."""
    valkey = RawValkey(endpoints.valkey_url)
    yield valkey
    valkey.close()


@pytest.fixture
def other_engine(engine: Laurels, clock: FixedClock) -> Generator[Laurels]:
    """Another process on the same servers and clock, as far as they can tell."""
    settings = engine.engine.settings
    with Laurels(valkey_url=settings.valkey_url, postgres_url=settings.postgres_url, clock=clock) as laurels:
        yield laurels
