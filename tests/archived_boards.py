"""Engines with an archive that no other test uses, and boards of their own."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from laurels.engine import Laurels

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from laurels.clock import FixedClock

_numbers = count(1)


@pytest.fixture
async def alone(valkey_url: str, migrated_postgres_url: str, clock: FixedClock) -> AsyncGenerator[Laurels]:
    """An engine whose archive no other test has used: for work that concerns every board there is."""
    async with Laurels(valkey_url=valkey_url, postgres_url=migrated_postgres_url, clock=clock) as opened:
        # Valkey is shared, and remembers for a while how far the versions of dropped boards came.
        async with opened.postgres.writing() as connection:
            await connection.execute(
                text(f"SELECT setval('laurels.board_version', {next(_numbers) * 10_000})")
            )
        yield opened


@pytest.fixture
def new_board(laurels: Laurels) -> Callable[..., Awaitable[str]]:
    """Defines a board of its own and tells its name."""

    async def define(**definition: Any) -> str:  # noqa: ANN401  # fields of a definition
        board = f"history/board-{next(_numbers)}"
        await laurels.define(board, definition)
        return board

    return define
