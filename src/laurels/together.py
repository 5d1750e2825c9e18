"""Asks together what several callers ask at the same time: single questions get the speed of a batch.

Questions that come while calls are in progress go out together in the next call, so there is no timer to
wait for, and no answer is older than its question.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

Question = TypeVar("Question")
Answer = TypeVar("Answer")

# How many questions share a call at most; and how many calls run at once, so that this process prepares one
# and reads the answers of another while Valkey works.
MOST: Final = 64
CALLS_AT_ONCE: Final = 2


class Together(Generic[Question, Answer]):
    def __init__(self, ask: Callable[[Sequence[Question]], Awaitable[Sequence[Answer]]]) -> None:
        """`ask` answers several questions, in their order."""
        self._ask = ask
        self._waiting: deque[tuple[Question, asyncio.Future[Answer]]] = deque()
        self._calls = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, question: Question) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        if self._calls < CALLS_AT_ONCE:
            self._calls += 1
            task = asyncio.create_task(self._run())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await answer

    async def _run(self) -> None:
        try:
            await self._answer_waiting()
        finally:
            # At once: a callback of the task would come after questions that its answers bring about.
            self._calls -= 1

    async def _answer_waiting(self) -> None:
        while self._waiting:
            taken = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
            try:
                answers = await self._ask([question for question, _ in taken])
            except Exception as error:  # noqa: BLE001  # every waiting caller must get an answer
                for _, answer in taken:
                    if not answer.done():
                        answer.set_exception(error)
            else:
                for (_, answer), found in zip(taken, answers, strict=True):
                    if not answer.done():  # otherwise the caller has gone
                        answer.set_result(found)
