"""A connection whose requests the app's fast way in may take, before ASGI begins.

After that, a request that begins with the same bytes is not even parsed.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from laurels.http.server.closing import NOTHING
from laurels.http.server.connection import Connection

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from laurels.http.fast_submit import Admission, FastSubmit


# How long a body may be on its way before the app itself waits for it, and no longer than it does for any.
# Many clients send it in a piece of its own, right behind the head.
HOLD_SECONDS: Final = 0.05
# What a connection remembers: a client's requests differ in the length of their bodies, if in anything.
MOST_HEADS: Final = 16
HEAD_BYTES: Final = 4096
_END: Final = b"\r\n\r\n"


class _HeldRequest(NamedTuple):
    """A request whose head has come."""

    admission: Admission
    cycle: Any
    timer: TimerHandle


class _FastRequest(NamedTuple):
    """A request that the fast way took: what its like is taken with, and answered by."""

    admission: Admission
    cycle: Any
    length: int
    """Of the body, as the head says it."""


@lru_cache(maxsize=2)
def _begin(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    return STATUS_LINE[200] + b"".join(b"%s: %s\r\n" % header for header in headers)


class FastProtocol(Connection):
    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401  # uvicorn's own
        super().__init__(*given, **named)
        self._fast_submit: FastSubmit | None = getattr(self._app, "fast_submit", None)
        self._received = b""
        """What is being read, where a request began with it."""
        self._held: _HeldRequest | None = None
        """A request that the fast way may take, once its body is there."""
        self._heads: dict[bytes, _FastRequest] = {}
        """What the requests of this connection began with, byte for byte, that were taken."""

    def data_received(self, data: bytes) -> None:
        if self._heads and self._take_unread(data):
            return
        self._received = data if self._is_between_requests() else b""
        super().data_received(data)
        self._received = b""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._start_held()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        held = self._held
        if held is None:
            return
        cycle = held.cycle
        if self._take(held.admission, cycle, cycle.body):
            held.timer.cancel()
            self._held = None
            self._remember(_FastRequest(held.admission, cycle, len(cycle.body)))
        else:
            self._start_held()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401  # uvicorn's own kind of app
        if self._fast_submit and app is self._app and cycle is self.cycle and cycle.more_body:
            admission = self._fast_submit.admission(cast("Any", cycle.scope))
            if admission:
                timer = self.loop.call_later(HOLD_SECONDS, self._start_held)
                self._running = cycle
                self._held = _HeldRequest(admission, cycle, timer)
                return
        super()._start_asgi_task(cycle, app)

    def _drop(self, cycle: RequestResponseCycle) -> None:
        super()._drop(cycle)
        self._start_held()

    def _start_held(self) -> None:
        held, self._held = self._held, None
        if held:
            held.timer.cancel()
            super()._start_asgi_task(held.cycle, self._app)

    def _take(self, admission: Admission, cycle: Any, body: bytes | bytearray) -> bool:  # noqa: ANN401  # of uvicorn, or as if
        answer, fail = partial(self._answer, cycle), partial(self._fail, cycle)
        fast_submit = cast("FastSubmit", self._fast_submit)
        return fast_submit.take(admission, cycle.scope, body, answer, fail)

    def _is_between_requests(self) -> bool:
        """Whether nothing of the next request has been read."""
        return self._part == NOTHING and not self._unparsed and not self._is_over

    def _remember(self, taken: _FastRequest) -> None:
        """If it came alone: then all before its body is its head."""
        head = self._received[: -taken.length]
        if head.endswith(_END) and head.count(_END) == 1 and len(head) <= HEAD_BYTES:
            if len(self._heads) >= MOST_HEADS:
                self._heads.clear()
            self._heads[head] = taken

    def _take_unread(self, data: bytes) -> bool:
        """Takes a request that begins as another did, byte for byte; whether it is one, and is taken."""
        start = data.find(_END) + len(_END)
        taken = self._heads.get(data[:start])
        if taken is None or len(data) - start != taken.length:
            return False
        if not (self.cycle.response_complete and self._is_between_requests()):
            return False
        cycle, before = taken.cycle, self.cycle
        cycle.response_started = cycle.response_complete = False
        self.cycle, self.scope = cycle, cycle.scope
        if self._take(taken.admission, cycle, data[start:]):
            return True
        cycle.response_started = cycle.response_complete = True
        self.cycle, self.scope = before, before.scope
        return False

    def _fail(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401  # as above
        self._heads.clear()  # a cycle that speaks ASGI is of no use to the next request
        super()._start_asgi_task(cycle, app)

    def _answer(self, cycle: RequestResponseCycle, headers: bytes, body: bytes) -> None:
        if cycle.disconnected:
            return
        # Those of the server as they are now, the date among them: the cycle may be of an earlier request.
        begin = _begin(tuple(self.server_state.default_headers))
        end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
        cycle.response_started = cycle.response_complete = True
        self.wire.write(b"".join((begin, headers, end, body)))
        if not cycle.keep_alive:
            self._close()
        self.on_response_complete()
