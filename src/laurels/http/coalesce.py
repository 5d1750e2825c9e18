"""Coalesces identical concurrent reads: many clients read the same top of a board.

No answer is older than its request: a request that comes during a read shares the next one with all others.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

Answer = TypeVar("Answer")


class _PendingRead:
    """A running read and, if requests wait for its end, the next one."""

    __slots__ = ("ended", "next")

    def __init__(self) -> None:
        self.ended: asyncio.Future[None] | None = None
        self.next: asyncio.Task[Any] | None = None


class Coalescer(Generic[Answer]):
    def __init__(self) -> None:
        self._under_way: dict[Hashable, _PendingRead] = {}

    async def ask(self, what: Hashable, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer to `what`. All requests that share a read get its result or its exception."""
        before = self._under_way.get(what)
        if before is None:
            pending = self._under_way[what] = _PendingRead()
            try:
                return await ask()
            finally:
                self._end(what, pending)
        if before.next is None:
            before.ended = asyncio.get_running_loop().create_future()
            before.next = asyncio.create_task(self._ask_after(before.ended, what, ask))
        # A cancelled request must not cancel the shared read.
        return await asyncio.shield(before.next)

    async def _ask_after(
        self, before: asyncio.Future[None], what: Hashable, ask: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        await before
        pending = self._under_way[what] = _PendingRead()
        try:
            return await ask()
        finally:
            self._end(what, pending)

    def _end(self, what: Hashable, pending: _PendingRead) -> None:
        if pending.ended:  # the next read replaces this one; until it starts, requests join it
            pending.ended.set_result(None)
        else:
            del self._under_way[what]
