"""What every test may ask for: the real servers, started once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from places import fast_place, folder_that_anybody_may_pass
from supported_servers import programs

from laurels import embedded

if TYPE_CHECKING:
    from collections.abc import Generator

    from laurels.embedded import Endpoints


@pytest.fixture(scope="session")
def endpoints() -> Generator[Endpoints]:
    """Where the tests' own Valkey and PostgreSQL answer."""
    with (
        folder_that_anybody_may_pass(fast_place()) as folder,
        folder_that_anybody_may_pass() as copies,
        embedded.start(folder / "data", programs=programs(copies)) as servers,
    ):
        yield servers.endpoints
