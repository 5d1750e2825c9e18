"""Clients that submit without pause, and remember what they were told."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from journal_rows import sums

from laurels.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from laurels.client import AsyncClient

DEADLINE = 120.0


@dataclass
class Load:
    """What was acknowledged: for each id, its member and score."""

    board: str
    members: int = 5
    acknowledged: dict[str, tuple[str, int]] = field(default_factory=dict)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until_acknowledged(self, more: int) -> None:
        wanted = len(self.acknowledged) + more
        async with asyncio.timeout(DEADLINE), self._news:
            await self._news.wait_for(lambda: len(self.acknowledged) >= wanted)

    @asynccontextmanager
    async def running(self, clients: list[AsyncClient]) -> AsyncGenerator[Load]:
        """Submits until the block ends; then what is under way comes to its end."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for number, client in enumerate(clients):
                group.create_task(self._submit(number, client, stop))
            yield self
            stop.set()

    async def _submit(self, number: int, client: AsyncClient, stop: asyncio.Event) -> None:
        count = 0
        while not stop.is_set():
            count += 1
            member, score = f"m{(number + count) % self.members}", 1 + count % 7
            submission = f"{number}-{count}"
            try:
                answer = await client.submit(self.board, member, score, id=submission)
            except Unavailable:  # of a client that does not try again
                continue
            assert answer.score is not None
            async with self._news:
                self.acknowledged[submission] = (member, score)
                self._news.notify_all()

    def rows(self) -> list[tuple[str, str, int]]:
        """What was acknowledged, as `journal` tells of it."""
        return sorted(
            (submission, member, score) for submission, (member, score) in self.acknowledged.items()
        )

    def sums(self) -> dict[str, int]:
        return sums(self.rows())
