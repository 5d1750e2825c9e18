"""Waiting for what has no event, because it happens in a server or in another process."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, Final

import redis

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

DEADLINE: Final = 60.0
"""Seconds; more than anything takes on a busy machine."""
PAUSE: Final = 0.01
NOT_IN_TIME: Final = "the condition did not come true in time"


def until(holds: Callable[[], object], failure: Callable[[], str] = lambda: NOT_IN_TIME) -> None:
    """A Valkey that does not answer yet is waited for too."""
    deadline = time.monotonic() + DEADLINE
    while not _answers(holds):
        assert time.monotonic() < deadline, failure()
        time.sleep(PAUSE)


async def eventually(holds: Callable[[], object | Awaitable[object]]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not (await found if inspect.isawaitable(found := holds()) else found):  # noqa: ASYNC110  # see above
            await asyncio.sleep(PAUSE)


def _answers(holds: Callable[[], object]) -> object:
    try:
        return holds()
    except redis.ConnectionError:
        return False
