"""Questions that many ask alike are asked once for all who wait: everybody looks at the same top of a board.

Nobody hears of a moment before their own question: while one is under way, all who come with its like wait
together for the next.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

Told = TypeVar("Told")


class _Asked(Generic[Told]):
    """A question under way; and, once somebody waits for it to end, the next of its like."""

    __slots__ = ("ended", "next")

    def __init__(self) -> None:
        self.ended: asyncio.Future[None] | None = None
        self.next: asyncio.Task[Told] | None = None


class Questions(Generic[Told]):
    def __init__(self) -> None:
        self._under_way: dict[Hashable, _Asked[Told]] = {}

    async def ask(self, what: Hashable, ask: Callable[[], Awaitable[Told]]) -> Told:
        """The answer to `what`, by the `ask` of whoever came first; what it raises is raised to all."""
        before = self._under_way.get(what)
        if before is None:
            return await self._ask(what, ask)
        if before.next is None:
            before.ended = asyncio.get_running_loop().create_future()
            before.next = asyncio.create_task(self._ask_after(before.ended, what, ask))
        # Whoever leaves does not take the answer from the others.
        return await asyncio.shield(before.next)

    async def _ask_after(
        self, before: asyncio.Future[None], what: Hashable, ask: Callable[[], Awaitable[Told]]
    ) -> Told:
        await before
        return await self._ask(what, ask)

    async def _ask(self, what: Hashable, ask: Callable[[], Awaitable[Told]]) -> Told:
        asked = self._under_way[what] = _Asked[Told]()
        try:
            return await ask()
        finally:
            if asked.ended:  # the next takes its place; until then, all who come join that
                asked.ended.set_result(None)
            else:
                del self._under_way[what]
