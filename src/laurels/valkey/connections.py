"""Connections to one node: exchanging commands, and noticing when the node may have lost writes."""

from __future__ import annotations

import asyncio
import re
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
# How long WAITAOF and WAIT may each take.
WAIT_SECONDS = 5

# Valkey does not end a `WAIT` whose primary is replaced. If that node becomes the primary again, the `WAIT`
# counts replicas of the new history, which lacks the write. The id of the history, read before the write and
# after the `WAIT`, tells the two apart: a node that is promoted takes a new id. Reading it costs Valkey 2 µs.
_REPLICATION: Final = ("INFO", "replication")
_HISTORY: Final = re.compile(rb"master_replid:(\w+)")

# hiredis types it for a single word. It packs in C: a call may have hundreds of words.
pack = cast("Callable[[tuple[Value, ...]], bytes]", hiredis.pack_command)  # pyright: ignore[reportUnknownMemberType]


class NotSent(exceptions.ConnectionError):
    """The call was not sent, because there was no connection. The cause says why."""


@dataclass(slots=True)
class ConnectionLosses:
    """Counts lost connections and replaced nodes. Unconfirmed writes may be gone with each, so a cache of
    what Valkey holds is stale once the count has changed.
    """

    count: int = 0


class Pool(redis.ConnectionPool):
    """Counts a loss whenever a connection is made again."""

    losses: ConnectionLosses
    _made: WeakSet[Any]

    def watched(self, losses: ConnectionLosses) -> Pool:
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
    """Sends commands and returns their replies. `seconds`: for each reply, besides the command's own wait."""
    waits = [seconds and seconds + (WAIT_SECONDS if words[0] in WAITS else 0) for words in commands]
    try:
        connection = await pool.get_connection()
    except UNANSWERED as error:
        raise NotSent(str(error)) from error
    try:
        await connection.send_packed_command(b"".join(map(pack, commands)))
        return [await _reply(connection, wait) for wait in waits]
    finally:
        # redis-py closes a connection with unread replies, or the next caller would get them.
        await pool.release(connection)


async def converse_in_one_history(
    pool: Any,  # noqa: ANN401  # as above
    commands: Sequence[tuple[Value, ...]],
    seconds: float | None = None,
) -> list[Reply]:
    """As `converse`, for commands that end with `WAIT`: fails the WAIT if the node was replaced meanwhile."""
    before, *replies, after = await converse(pool, [_REPLICATION, *commands, _REPLICATION], seconds)
    if _history(before) is None or _history(before) != _history(after):
        replies[-1] = exceptions.ResponseError("the primary was replaced before its replicas had the write")
    return replies


def _history(reply: Reply) -> bytes | None:
    found = _HISTORY.search(reply) if isinstance(reply, bytes) else None
    return found and found[1]
