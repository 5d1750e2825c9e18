"""Time limits, with one timer for all tasks.

`asyncio.timeout` makes a timer for each: 4.1 µs of processor time instead of 0.9, for each piece of a body.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

_until: dict[asyncio.Task[Any], float] = {}
"""When each waiting task times out, by the clock of its loop."""
_ended: set[asyncio.Task[Any]] = set()
_next_check: dict[asyncio.AbstractEventLoop, float] = {}


class Deadline:
    """Raises `TimeoutError` if its block takes longer than this many seconds."""

    __slots__ = ("_seconds", "_task")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None  # noqa: S101  # there is one wherever something is awaited
        self._task = task
        until = _until[task] = loop.time() + self._seconds
        if until < _next_check.get(loop, math.inf):
            _check_at(loop, until)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del _until[self._task]
        if self._task in _ended:
            _ended.discard(self._task)
            if self._task.uncancel() == 0 and kind is asyncio.CancelledError:
                raise TimeoutError from error


def _check_at(loop: asyncio.AbstractEventLoop, moment: float) -> None:
    _next_check[loop] = moment
    loop.call_at(moment, _check, loop, moment)


def _check(loop: asyncio.AbstractEventLoop, moment: float) -> None:
    if _next_check.get(loop) != moment:  # an earlier check replaced this one
        return
    del _next_check[loop]
    waiting = [task for task in _until if task.get_loop() is loop and task not in _ended]
    for task in waiting:
        if _until[task] <= moment:
            _ended.add(task)
            task.cancel()
    left = [_until[task] for task in waiting if task not in _ended]
    if left:
        _check_at(loop, min(left))
