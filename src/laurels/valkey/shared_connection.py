"""One connection to a node, which all tasks of a process share.

A call writes its commands at once, behind those of other calls, and Valkey replies in the same order. So no
call waits for a free connection, and the commands of one turn of the event loop travel in one write. Commands
that block a connection need one of their own (`connections.converse`).

redis-py connects and authenticates; then this module reads the connection with hiredis. Decision 0039
compares the alternatives.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final, cast

import hiredis
from redis import exceptions
from redis._parsers import BaseParser

from laurels.valkey.connections import UNANSWERED, NotSent, pack

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from laurels.valkey.client import Reply, Value
    from laurels.valkey.connections import Pool

# How long connecting and authenticating may take.
CONNECT_SECONDS: Final = 5.0
# How old a connection must be to be renewed. A node that refuses all calls is not connected to for each one.
RENEW_SECONDS: Final = 0.1

_CLOSED: Final = "the connection was closed"
_INCOMPLETE: Final = object()
_parse_error = cast("Callable[[str], Exception]", BaseParser.parse_error)  # pyright: ignore[reportUnknownMemberType]  # redis-py has no types for it


class SharedConnection:
    """Connects on the first call, and again after a loss. Sends no call again."""

    def __init__(self, pool: Pool, silent_seconds: float) -> None:
        """`pool`: its options are used to connect. `silent_seconds`: how long the node may send nothing while
        calls wait for replies, before the connection is closed.
        """
        self._pool = pool
        self._silent_seconds = silent_seconds
        self._line: _Line | None = None
        self._connecting: asyncio.Task[_Line] | None = None
        self._is_closed = False

    def exchange(self, commands: Sequence[tuple[Value, ...]]) -> Awaitable[list[Reply]]:
        """Sends commands, one behind the other; their replies are to come. Error replies are values."""
        packed = pack(commands[0]) if len(commands) == 1 else b"".join(map(pack, commands))
        line = self._line
        if line is not None and line.is_open and not line.is_full:
            return line.send(packed, len(commands))
        return self._exchange_later(packed, len(commands))

    async def _exchange_later(self, packed: bytes, count: int) -> list[Reply]:
        while True:
            line = self._line
            if line is None or not line.is_open:
                line = await self._connected()
            if not line.is_full:
                return await line.send(packed, count)
            await line.drained()  # or lost, or renewed

    async def _connected(self) -> _Line:
        """Callers share one attempt, which goes on if one of them leaves."""
        if self._is_closed:
            raise NotSent(_CLOSED)
        connecting = self._connecting
        if connecting is None:
            connecting = self._connecting = asyncio.create_task(self._connect())
            connecting.add_done_callback(self._note_connected)
        await asyncio.wait([connecting])
        if connecting.cancelled():
            raise NotSent(_CLOSED)
        return connecting.result()

    async def _connect(self) -> _Line:
        opened: Any = self._pool.connection_class(**self._pool.connection_kwargs)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await opened.connect()
            writer = _taken_from(opened)
        except UNANSWERED as error:
            await opened.disconnect(nowait=True)
            raise NotSent(str(error) or f"no connection within {CONNECT_SECONDS:g} s") from error
        if self._line is not None:
            self._pool.losses.count += 1
        self._line = _Line(writer, self._silent_seconds)
        return self._line

    def _note_connected(self, done: asyncio.Task[_Line]) -> None:
        self._connecting = None
        if not done.cancelled():
            done.exception()  # its callers may all have left

    def renew(self) -> None:
        """Makes the next calls connect again, or those after `RENEW_SECONDS` if the connection is new."""
        if self._line is not None:
            self._line.renew()

    def close(self) -> None:
        """Fails the calls that wait, and all later ones."""
        self._is_closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._line is not None:
            self._line.abort(_CLOSED)


def _taken_from(opened: Any) -> asyncio.StreamWriter:  # noqa: ANN401  # redis-py types its connections only in part
    """Takes the stream of a connection, which redis-py would close together with its own object."""
    if opened._reader.at_eof() or opened._writer.is_closing():  # noqa: SLF001  # there is no public way
        raise exceptions.ConnectionError("the connection was lost")  # its end is not told to us again
    writer, opened._writer, opened._reader = opened._writer, None, None  # noqa: SLF001  # there is no public way
    return writer


class _Call:
    """A call whose replies are still to come."""

    __slots__ = ("missing", "replies", "settled")

    def __init__(self, settled: asyncio.Future[list[Reply]], missing: int) -> None:
        self.settled = settled
        self.missing = missing
        self.replies: list[Reply] = []


class _Line(asyncio.Protocol):
    """An open connection, and the calls that wait for replies on it."""

    def __init__(self, writer: asyncio.StreamWriter, silent_seconds: float) -> None:
        self._writer = writer  # closes its transport when nothing refers to it
        self._silent_seconds = silent_seconds
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Call] = deque()
        self._unsent: list[bytes] = []
        self._reader: Any = hiredis.Reader(
            protocolError=exceptions.InvalidResponse,
            replyError=_parse_error,
            notEnoughData=_INCOMPLETE,
        )
        self._heard = 0.0
        """When the node last sent something, or the first of the waiting calls was sent."""
        self._watching: asyncio.TimerHandle | None = None
        self._drained: asyncio.Future[None] | None = None
        self._why = "the connection was lost"
        self._began = self._loop.time()
        self._renewing: asyncio.TimerHandle | None = None
        self.is_open = True
        self._transport = cast("asyncio.Transport", writer.transport)
        self._transport.set_protocol(self)

    @property
    def is_full(self) -> bool:
        """Whether the node reads more slowly than calls are sent."""
        return self._drained is not None and self.is_open

    async def drained(self) -> None:
        if self._drained is not None:
            await asyncio.shield(self._drained)

    def send(self, packed: bytes, count: int) -> asyncio.Future[list[Reply]]:
        """Sends `count` packed commands; their replies are to come."""
        if not self.is_open:
            raise NotSent(self._why)
        if not self._waiting:
            self._heard = self._loop.time()
            if self._watching is None:
                self._watching = self._loop.call_later(self._silent_seconds, self._check_silence)
        call = _Call(self._loop.create_future(), count)
        self._waiting.append(call)
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(packed)
        return call.settled

    def _flush(self) -> None:
        """Sends what the calls of this turn of the event loop have to send, in one write."""
        if not self._transport.is_closing():  # otherwise `connection_lost` fails them as not sent
            unsent, self._unsent = self._unsent, []
            self._transport.write(b"".join(unsent))

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        waiting, reader = self._waiting, self._reader
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not _INCOMPLETE:
                if type(reply) is hiredis.PushNotification:
                    continue
                call = waiting[0]
                call.replies.append(reply)
                call.missing -= 1
                if call.missing == 0:
                    waiting.popleft()
                    if not call.settled.done():  # otherwise its caller has left
                        call.settled.set_result(call.replies)
        except exceptions.InvalidResponse as error:
            self.abort(f"this is no reply of Valkey: {error}")
        except IndexError:
            self.abort("Valkey sent a reply that no call waits for")
        if not waiting and not self.is_open:
            self._transport.close()

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self.resume_writing()
        for timer in (self._watching, self._renewing):
            if timer is not None:
                timer.cancel()
        if exc is not None:
            self._why = f"{self._why}: {exc}"
        unsent, self._unsent = len(self._unsent), []  # one piece for each of the last calls
        while self._waiting:
            call = self._waiting.popleft()
            if not call.settled.done():
                kind = NotSent if len(self._waiting) < unsent else exceptions.ConnectionError
                call.settled.set_exception(kind(self._why))

    def _check_silence(self) -> None:
        """One timer for all calls: one for each would cost as much as the call."""
        self._watching = None
        if not self._waiting:
            return
        left = self._heard + self._silent_seconds - self._loop.time()
        if left > 0:
            self._watching = self._loop.call_later(left, self._check_silence)
        else:
            self.abort(f"no reply within {self._silent_seconds:g} s")

    def abort(self, why: str) -> None:
        """Fails the waiting calls, and closes."""
        self._why = why
        self.is_open = False
        self._transport.abort()

    def renew(self) -> None:
        left = self._began + RENEW_SECONDS - self._loop.time()
        if left <= 0:
            self._close_when_answered()
        elif self._renewing is None:
            self._renewing = self._loop.call_later(left, self._close_when_answered)

    def _close_when_answered(self) -> None:
        """Takes no more calls."""
        self.is_open = False
        if not self._waiting:
            self._transport.close()
