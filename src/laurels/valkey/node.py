"""One node: the connection that most calls share, and a pool for commands that block a connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import redis.asyncio as redis

from laurels.valkey.connections import WAIT_SECONDS, WAITS, converse, converse_in_one_history
from laurels.valkey.shared_connection import SharedConnection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from laurels.valkey.client import Reply, Value
    from laurels.valkey.connections import Pool


class Node:
    def __init__(self, pool: Pool, connections: int, silent_seconds: float) -> None:
        """`connections`: how many calls may block at once; further ones wait. `silent_seconds`: how long the
        node may leave a call without a reply.
        """
        self.client: Any = redis.Redis.from_pool(pool)  # redis-py types its clients only in part
        self._pool = pool
        self._turns = asyncio.Semaphore(connections)
        self._silent_seconds = silent_seconds
        self._shared = SharedConnection(pool, silent_seconds)
        self._loading: asyncio.Task[list[Reply]] | None = None

    def exchange(
        self, commands: Sequence[tuple[Value, ...]], *, blocks_for: float = 0, asking: bool = False
    ) -> Awaitable[list[Reply]]:
        """The replies to these commands; error replies are returned, not raised. `blocks_for`: how many
        seconds the command may block; `asking`: whether to send `ASKING` first.
        """
        if asking:
            return self._exchange_asking(commands, blocks_for)
        if commands[-1][0] in WAITS or blocks_for:
            return self._exchange_apart(commands, self._silent_seconds + blocks_for)
        return self._shared.exchange(commands)

    async def _exchange_asking(self, commands: Sequence[tuple[Value, ...]], blocks_for: float) -> list[Reply]:
        return (await self.exchange([("ASKING",), *commands], blocks_for=blocks_for))[1:]

    async def _exchange_apart(self, commands: Sequence[tuple[Value, ...]], seconds: float) -> list[Reply]:
        """On a connection of its own. `seconds`: for each reply."""
        waits = WAIT_SECONDS * sum(words[0] in WAITS for words in commands)
        talk = converse_in_one_history if commands[-1][0] == "WAIT" else converse
        async with asyncio.timeout(seconds + waits), self._turns:
            return await talk(self._pool, commands, seconds)

    async def load_functions(self, code: str) -> None:
        """Loads a library. Concurrent callers share one load: after a restart, all of them find none."""
        if self._loading is None or self._loading.done():
            # A task ends after the callers whose replies arrived with its own: they find it under way.
            self._loading = asyncio.create_task(self._load_functions(code))
            self._loading.add_done_callback(_retrieve)
        loading = self._loading
        await asyncio.wait([loading])
        (reply,) = loading.result()
        if isinstance(reply, Exception):
            raise reply

    async def _load_functions(self, code: str) -> list[Reply]:
        return await self.exchange([("FUNCTION", "LOAD", "REPLACE", code)])

    async def renew(self) -> None:
        """Makes the next calls connect again."""
        self._shared.renew()
        await self._pool.disconnect(inuse_connections=False)

    async def close(self) -> None:
        self._shared.close()
        await self.client.aclose()


def _retrieve(loading: asyncio.Task[list[Reply]]) -> None:
    if not loading.cancelled():
        loading.exception()  # its callers may all have left
