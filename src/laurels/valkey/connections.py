"""Connections to one node: what is said over one of them, and when the node may have lost something."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakSet

import hiredis
import redis.asyncio as redis
from redis import exceptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from laurels.valkey.client import Reply, Value

UNANSWERED: Final = (exceptions.ConnectionError, exceptions.TimeoutError, OSError)
WAITS: Final = ("WAITAOF", "WAIT")
# How long the disk and the replicas may take, each.
WAIT_SECONDS = 5

# hiredis types it for one word.
_pack = cast("Callable[[tuple[Value, ...]], bytes]", hiredis.pack_command)  # pyright: ignore[reportUnknownMemberType]


class NotSent(exceptions.ConnectionError):
    """There was no connection, so the call did not begin. Its cause says why."""


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


async def _reply(connection: Any, seconds: float | None) -> Reply:  # noqa: ANN401  # redis-py types its connections only in part
    try:
        async with asyncio.timeout(seconds):
            return await connection.read_response()
    except exceptions.ResponseError as error:
        return error


async def converse(
    pool: Any,  # noqa: ANN401  # as above
    commands: Sequence[tuple[Value, ...]],
    seconds: float | None = None,
) -> list[Reply]:
    """`seconds`: how long each reply may take, besides what its command waits for."""
    waits = [seconds and seconds + (WAIT_SECONDS if words[0] in WAITS else 0) for words in commands]
    try:
        connection = await pool.get_connection()
    except UNANSWERED as error:
        raise NotSent(str(error)) from error
    is_read = False
    try:
        await connection.send_packed_command(b"".join(map(_pack, commands)))
        replies = [await _reply(connection, wait) for wait in waits]
        is_read = True
        return replies
    finally:
        if not is_read:  # what was not read would be taken for the next answer
            await connection.disconnect(nowait=True)
        await pool.release(connection)
