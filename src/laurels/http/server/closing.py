"""Closes connections: of clients that keep the server waiting too long, and above the maximum number.

The last answer arrives even if the client is still sending.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from laurels.http.problems import Overloaded, Stalled
from laurels.http.server.refusals import refusal
from laurels.http.server.timeouts import watch

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from laurels.errors import LaurelsError

# The limit for a request line with headers, from the first byte, and for the first byte of a new connection.
HEAD_SECONDS: Final = 10.0
# The limit for the rest of a body after its request was answered.
REST_SECONDS: Final = 30.0
# The limit for a client that reads nothing of what was written.
UNREAD_SECONDS: Final = 60.0
# How long the client has to close its end after ours. Closing at once could lose the last answer.
LINGER_SECONDS: Final = 2.0
# Refused connections that may linger.
MOST_REFUSED: Final = 100

# The part of a request that is being read.
NOTHING, HEAD, BODY = range(3)


class HoldableFlow(FlowControl):
    """Flow control that can hold reading even if the app asks for a body."""

    is_held = False

    def resume_reading(self) -> None:
        if not self.is_held:
            super().resume_reading()


class LingeringTransport:
    """The transport for uvicorn, whose `close` lets the last answer arrive.

    Writing costs nothing more, because it is the transport's own method.
    """

    def __init__(
        self, transport: asyncio.Transport, end: Callable[[], None], is_ended: Callable[[], bool]
    ) -> None:
        self.write = transport.write
        self.get_extra_info = transport.get_extra_info
        self.close = end
        self.is_closing = is_ended


class ClosingProtocol(HttpToolsProtocol):
    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401  # uvicorn's own
        super().__init__(*given, **named)
        # uvicorn would count requests as connections, and answer in plain text.
        self._most_connections, self.limit_concurrency = self.limit_concurrency, None
        self._part = NOTHING
        self._is_over = False
        """Nothing more is parsed."""
        self._is_lingering = False
        self._moves = 0
        """The number of requests begun plus requests answered."""
        self._waiting_for: list[str | int] = []
        self._waiting_since = 0.0

    @abstractmethod
    def _refuse(self, error: LaurelsError) -> None:
        """Stops reading, answers after all earlier requests are answered, and closes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        super().connection_made(transport)
        self.wire = transport
        self.transport: asyncio.Transport = cast(
            "Any", LingeringTransport(transport, self._close, self._is_closing)
        )
        self.flow: FlowControl = HoldableFlow(transport)
        watch(self.server_state, self.loop)
        most, now = self._most_connections, len(self.connections)
        if most is not None and now > most:
            self._is_over = True
            if now > most + MOST_REFUSED:
                transport.abort()
            else:
                self._end(Overloaded(f"this process already has {most} connections, its maximum"))

    def _end(self, error: LaurelsError | None) -> None:
        """Writes the error, if there is one, and closes."""
        if error is not None and not self._is_closing():
            client = self.client[0] if self.client else ""
            self.wire.write(refusal(error, client, self.server_state.default_headers))
        self._close()

    def _close(self) -> None:
        """Closes our end, and waits a moment for the client to close its own.

        What the client still sends is read and discarded. Unread data would make the kernel reset the
        connection, and the client could lose the last answer.
        """
        self._is_over = True
        if self._is_closing():
            return
        try:
            self.wire.write_eof()
        except (OSError, NotImplementedError):  # the client has left; or TLS
            self.wire.close()
            return
        self._is_lingering = True
        cast("HoldableFlow", self.flow).is_held = False
        self.flow.resume_reading()

    def _is_closing(self) -> bool:
        return self._is_lingering or self.wire.is_closing()

    def shutdown(self) -> None:
        is_idle = self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]  # None before the first request
        if is_idle:
            self.wire.close()
        else:
            super().shutdown()

    def check_deadline(self, now: float) -> None:
        """Closes the connection if its client keeps the server waiting too long; called every second."""
        seconds, *waiting = self._wait() or (math.inf,)
        if waiting != self._waiting_for:
            self._waiting_for, self._waiting_since = waiting, now
        elif now - self._waiting_since >= seconds:
            self._give_up()

    def _wait(self) -> tuple[float, str, int] | None:
        """How long the client may take, for what, and a value that changes with its progress.

        None if the server is not waiting for the client.
        """
        unread = self.wire.get_write_buffer_size()
        if unread:
            return UNREAD_SECONDS, "to read", unread
        if self._is_lingering:
            return LINGER_SECONDS, "to close", 0
        if self._is_over or self.flow.read_paused:
            return None
        if self._part == HEAD:
            return HEAD_SECONDS, "to send a head", self._moves
        return self._wait_for_next()

    def _wait_for_next(self) -> tuple[float, str, int] | None:
        if self.cycle is None:  # pyright: ignore[reportUnnecessaryComparison]  # before the first request
            return HEAD_SECONDS, "to begin", 0
        if not self.cycle.response_complete:
            return None
        if self._part == BODY:
            return REST_SECONDS, "to end a body", self._moves
        return self.timeout_keep_alive, "to go on", self._moves

    def _give_up(self) -> None:
        if self.wire.get_write_buffer_size():
            self.wire.abort()
        elif self._part == HEAD and not self._is_over:
            self._refuse(Stalled(f"request line and headers did not arrive within {HEAD_SECONDS:g} seconds"))
        else:
            self.wire.close()
