"""Coalesces identical concurrent reads: many clients read the same top of a board.

No answer is older than its request: a request that comes during a read shares the next one with all others.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

Answer = TypeVar("Answer")


class _PendingRead(Generic[Answer]):
    """A running read and, if requests wait for its end, the next one."""

    __slots__ = ("ended", "next")

    def __init__(self) -> None:
        self.ended: asyncio.Future[None] | None = None
        self.next: asyncio.Task[Answer] | None = None


class Coalescer(Generic[Answer]):
    def __init__(self) -> None:
        self._under_way: dict[Hashable, _PendingRead[Answer]] = {}

    async def ask(self, what: Hashable, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer to `what`. All requests that share a read get its result or its exception."""
        before = self._under_way.get(what)
        if before is None:
            return await self._ask(what, ask)
        if before.next is None:
            before.ended = asyncio.get_running_loop().create_future()
            before.next = asyncio.create_task(self._ask_after(before.ended, what, ask))
        # A cancelled request must not cancel the shared read.
        return await asyncio.shield(before.next)

    async def _ask_after(
        self, before: asyncio.Future[None], what: Hashable, ask: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        await before
        return await self._ask(what, ask)

    async def _ask(self, what: Hashable, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        pending = self._under_way[what] = _PendingRead[Answer]()
        try:
            return await ask()
        finally:
            if pending.ended:  # the next read replaces this one; until it starts, requests join it
                pending.ended.set_result(None)
            else:
                del self._under_way[what]
