"""Boards of duels."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from laurels.engine import Laurels

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints

_numbers = count(1)


@pytest.fixture
async def other(valkey_url: str, endpoints: Endpoints, clock: FixedClock) -> AsyncGenerator[Laurels]:
    """A second engine on the same servers and clock, like another process."""
    async with Laurels(valkey_url=valkey_url, postgres_url=endpoints.postgres_url, clock=clock) as opened:
        yield opened


@pytest.fixture
def new_board(laurels: Laurels) -> Callable[..., Awaitable[str]]:
    """Defines a new board, by default of Elo, and returns its name."""

    async def define(**definition: Any) -> str:  # noqa: ANN401  # fields of a definition
        board = f"ratings/board-{next(_numbers)}"
        await laurels.define(board, {"rating": {"system": "elo"}, **definition})
        return board

    return define
