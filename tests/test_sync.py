"""What the engine without async has of its own: a loop in a thread."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from laurels.sync import Laurels

if TYPE_CHECKING:
    from laurels.embedded import Endpoints


def test_what_is_under_way_is_cancelled_when_it_is_closed(endpoints: Endpoints):
    is_cancelled = threading.Event()

    async def wait_for_ever() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            is_cancelled.set()
            raise

    async def begin() -> asyncio.Task[None]:
        task = asyncio.create_task(wait_for_ever())
        await asyncio.sleep(0)
        return task

    laurels = Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url)
    laurels.open()
    task = laurels.run(begin())
    laurels.close()
    assert is_cancelled.is_set()
    assert task.cancelled()
    assert "laurels" not in {thread.name for thread in threading.enumerate()}


def test_who_cannot_open_leaves_no_thread(endpoints: Endpoints):
    laurels = Laurels(valkey_url="redis://127.0.0.1:1", postgres_url=endpoints.postgres_url)
    with pytest.raises(Exception, match="Valkey"):
        laurels.open()
    assert "laurels" not in {thread.name for thread in threading.enumerate()}
