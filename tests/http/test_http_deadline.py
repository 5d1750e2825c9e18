from __future__ import annotations

import asyncio

import pytest
from waiting import eventually

from laurels import deadline
from laurels.deadline import Deadline


async def test_what_takes_too_long_is_ended():
    with pytest.raises(TimeoutError), Deadline(0.02):
        await asyncio.Event().wait()
    assert await asyncio.sleep(0, "and the task goes on") == "and the task goes on"


async def test_what_comes_in_time_is_left_alone():
    for _ in range(3):
        with Deadline(60):
            await asyncio.sleep(0)


async def test_what_came_in_time_is_not_ended_later():
    with Deadline(0.01):
        pass
    checked = deadline._next_check  # pyright: ignore[reportPrivateUsage]  # there is no public way
    await eventually(lambda: asyncio.get_running_loop() not in checked)


async def test_a_cancellation_from_elsewhere_stays_one():
    async def wait() -> None:
        with Deadline(60):
            await asyncio.Event().wait()

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_an_error_within_comes_out_as_it_is():
    with pytest.raises(KeyError), Deadline(60):
        raise KeyError


async def test_many_wait_and_each_is_ended_by_its_own_time():
    others_ended = asyncio.Event()

    async def wait(seconds: float) -> str:
        try:
            with Deadline(seconds):
                await others_ended.wait()
        except TimeoutError:
            return "ended"
        return "done"

    first, longest, last = (asyncio.create_task(wait(seconds)) for seconds in (0.01, 60, 0.01))
    assert await asyncio.gather(first, last) == ["ended", "ended"]
    others_ended.set()
    assert await longest == "done"
