"""Connections to one node, and a count of the times at which it may have lost something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import redis.asyncio as redis


@dataclass(slots=True)
class Losses:
    """How often a node went away, or another one took its place. What was written before, and not waited for,
    may be gone: whoever remembers that something is there looks again when the count has changed.
    """

    count: int = 0


class Pool(redis.ConnectionPool):
    """Counts a loss whenever a connection has to be made again."""

    losses: Losses
    _made: WeakSet[Any]

    def watched(self, losses: Losses) -> Pool:
        self.losses, self._made = losses, WeakSet()
        return self

    def make_connection(self) -> Any:  # noqa: ANN401  # redis-py types its connections only in part
        connection: Any = super().make_connection()
        connection.register_connect_callback(self._connected)
        return connection

    async def _connected(self, connection: Any) -> None:  # noqa: ANN401  # as above
        if connection in self._made:
            self.losses.count += 1
        self._made.add(connection)
