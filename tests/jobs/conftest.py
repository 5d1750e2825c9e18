"""An engine with tables of its own, because jobs work on every board that exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laurels.engine import Laurels

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints


@pytest.fixture
async def laurels(
    endpoints: Endpoints, migrated_postgres_url: str, clock: FixedClock
) -> AsyncGenerator[Laurels]:
    async with Laurels(
        valkey_url=endpoints.valkey_url, postgres_url=migrated_postgres_url, clock=clock
    ) as opened:
        yield opened
