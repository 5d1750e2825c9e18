"""Valkey servers that a test may empty, break and refill without harm to the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from valkey_cluster import running_cluster
from valkey_servers import running_valkey

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture(scope="session")
def own_valkey_url() -> Generator[str]:
    """A Valkey on a socket of its own, with nothing in it."""
    with running_valkey() as server:
        yield server.url


@pytest.fixture(scope="session")
def own_cluster_url() -> Generator[str]:
    with running_cluster(3) as url:
        yield url
