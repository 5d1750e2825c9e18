from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from laurels.together import CALLS_AT_ONCE, MOST, Together

if TYPE_CHECKING:
    from collections.abc import Sequence


class Doubles:
    """Doubles numbers once it is let go; refuses calls with a negative one."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.go = asyncio.Event()

    async def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.calls.append(list(numbers))
        await self.go.wait()
        if min(numbers) < 0:
            raise ValueError(f"negative: {min(numbers)}")
        return [2 * number for number in numbers]


async def test_questions_of_one_turn_share_a_call():
    doubles = Doubles()
    doubles.go.set()
    together = Together(doubles)
    assert await asyncio.gather(*map(together.ask, range(5))) == [0, 2, 4, 6, 8]
    assert doubles.calls == [[0, 1, 2, 3, 4]]


async def test_while_calls_are_under_way_questions_wait_for_the_next():
    doubles = Doubles()
    together = Together(doubles)
    asked: list[asyncio.Task[int]] = []
    for number in range(CALLS_AT_ONCE + 3):
        asked.append(asyncio.create_task(together.ask(number)))
        await asyncio.sleep(0)  # the question waits
        await asyncio.sleep(0)  # its call runs, if it gets one
    first = [[number] for number in range(CALLS_AT_ONCE)]
    assert doubles.calls == first
    doubles.go.set()
    assert await asyncio.gather(*asked) == [2 * number for number in range(CALLS_AT_ONCE + 3)]
    assert doubles.calls == [*first, list(range(CALLS_AT_ONCE, CALLS_AT_ONCE + 3))]


async def test_a_question_that_comes_as_the_last_calls_end_is_answered():
    doubles = Doubles()
    together = Together(doubles)
    asked: list[asyncio.Task[int]] = []
    for number in range(CALLS_AT_ONCE):
        asked.append(asyncio.create_task(together.ask(number)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    doubles.go.set()  # the calls go on in the next turn, and then, in the same one:
    late = asyncio.create_task(together.ask(9))
    async with asyncio.timeout(30):
        assert await late == 18
    assert await asyncio.gather(*asked) == [2 * number for number in range(CALLS_AT_ONCE)]


async def test_a_call_takes_a_bounded_number():
    doubles = Doubles()
    doubles.go.set()
    together = Together(doubles)
    answers = await asyncio.gather(*map(together.ask, range(2 * MOST + 1)))
    assert answers == [2 * number for number in range(2 * MOST + 1)]
    assert max(map(len, doubles.calls)) == MOST


async def test_an_error_reaches_everybody_who_shares_the_call_and_nobody_else():
    doubles = Doubles()
    doubles.go.set()
    together = Together(doubles)
    failed = await asyncio.gather(together.ask(-1), together.ask(1), return_exceptions=True)
    assert [str(each) for each in failed] == ["negative: -1", "negative: -1"]
    assert await together.ask(1) == 2


async def test_who_leaves_takes_no_answer_from_others():
    doubles = Doubles()
    together = Together(doubles)
    leaving, staying = (asyncio.create_task(together.ask(number)) for number in (1, 2))
    await asyncio.sleep(0)
    leaving.cancel()
    doubles.go.set()
    assert await staying == 4
    with pytest.raises(asyncio.CancelledError):
        await leaving
