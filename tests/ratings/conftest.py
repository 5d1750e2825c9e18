"""Engines at noon of a fixed day, and boards of duels: on one Valkey and on a cluster of three primaries."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
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
async def other(laurels: Laurels, clock: FixedClock) -> AsyncGenerator[Laurels]:
    """Another process on the same servers and clock, as far as they can tell."""
    settings = laurels.settings
    async with Laurels(
        valkey_url=settings.valkey_url, postgres_url=settings.postgres_url, clock=clock
    ) as opened:
        yield opened


@pytest.fixture
def new_board(laurels: Laurels) -> Callable[..., Awaitable[str]]:
    """Defines a board of its own, of Elo unless it says otherwise, and tells its name."""

    async def define(**definition: Any) -> str:  # noqa: ANN401  # fields of a definition
        board = f"ratings/board-{next(_numbers)}"
        await laurels.define(board, {"rating": {"system": "elo"}, **definition})
        return board

    return define
