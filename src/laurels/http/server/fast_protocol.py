"""A connection whose submissions `FastSubmit` may take before ASGI begins.

A later request whose head is the same, byte for byte, is not parsed.
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

    from laurels.http.direct import Answer, DirectOperations, KnownRead
    from laurels.http.dispatch import Found
    from laurels.http.fast_submit import Admission, FastSubmit


# How long a request waits for its body before the app gets it. Many clients send the body in a second piece,
# right after the head.
HOLD_SECONDS: Final = 0.05
# Heads that a connection remembers: those of one client usually differ only in the length of the body.
MOST_HEADS: Final = 16
HEAD_BYTES: Final = 4096
_END: Final = b"\r\n\r\n"
_FRAMES_A_BODY: Final = frozenset({b"content-length", b"transfer-encoding"})


class _HeldRequest(NamedTuple):
    """A request whose head has arrived."""

    admission: Admission
    cycle: Any
    timer: TimerHandle


class _FastRequest(NamedTuple):
    """A request that was taken; later ones with the same head reuse its admission and cycle."""

    admission: Admission
    cycle: Any
    length: int
    """The length of the body, from the head."""


@lru_cache(maxsize=64)
def _begin(status: int, headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    return STATUS_LINE[status] + b"".join(b"%s: %s\r\n" % header for header in headers)


def _nothing() -> None:
    pass


class FastProtocol(Connection):
    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401  # uvicorn's own
        super().__init__(*given, **named)
        self._fast_submit: FastSubmit | None = getattr(self._app, "fast_submit", None)
        self._direct: DirectOperations | None = getattr(self._app, "direct", None)
        self._received = b""
        """The data that is being parsed, if a request begins with it."""
        self._known: KnownRead | None = None
        """The read that is being started without parsing it."""
        self._held: _HeldRequest | None = None
        """A request that may be taken when its body has arrived."""
        self._heads: dict[bytes, _FastRequest] = {}
        """Requests of this connection that were taken, by their heads."""

    def data_received(self, data: bytes) -> None:
        if self._heads and self._take_unread(data):
            return
        if self._direct and data in self._direct.reads and self._is_idle():
            self._start_known(self._direct.reads[data])
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
            if held.admission.idempotency_key is None:  # such a head hardly comes twice
                self._remember(_FastRequest(held.admission, cycle, len(cycle.body)))
        else:
            self._start_held()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401  # uvicorn's type of app
        if self._known is not None:
            cycle.more_body = False
            self._start_direct(cycle, self._known.found)
            return
        if self._fast_submit and app is self._app and cycle is self.cycle and cycle.more_body:
            admission = self._fast_submit.admission(cast("Any", cycle.scope))
            if admission:
                timer = self.loop.call_later(HOLD_SECONDS, self._start_held)
                self._running = cycle
                self._held = _HeldRequest(admission, cycle, timer)
                return
        self._start(cycle, app)

    def _start(self, cycle: Any, app: Any) -> None:  # noqa: ANN401  # uvicorn's types
        """Starts an operation directly, anything else by ASGI."""
        found = None
        if self._direct and app is self._app and not cycle.waiting_for_100_continue:
            found = self._direct.find(cycle.scope)
        if found is None:
            super()._start_asgi_task(cycle, app)
            return
        direct, head = cast("DirectOperations", self._direct), self._received
        if head and direct.meets_again(head, found) and self._is_plain_read(cycle, head):
            direct.remember(head, cycle.scope, found)
        self._start_direct(cycle, found)

    def _start_direct(self, cycle: Any, found: Found) -> None:  # noqa: ANN401  # uvicorn's cycle
        self._running = cycle
        task = self.loop.create_task(self._run(cycle, found))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    async def _run(self, cycle: Any, found: Found) -> None:  # noqa: ANN401  # uvicorn's cycle
        direct = cast("DirectOperations", self._direct)
        try:
            answer = await direct.run(found, cycle.scope, cycle.receive)
            if answer is not None:
                if self.flow.write_paused and not cycle.disconnected:
                    await self.flow.drain()
                self._answer(cycle, answer)
        finally:
            if not cycle.response_complete and not cycle.disconnected:
                self.wire.close()
            cycle.on_response = _nothing

    def _drop(self, cycle: RequestResponseCycle) -> None:
        super()._drop(cycle)
        self._start_held()

    def _start_held(self) -> None:
        held, self._held = self._held, None
        if held:
            held.timer.cancel()
            self._start(held.cycle, self._app)

    def _take(self, admission: Admission, cycle: Any, body: bytes | bytearray) -> bool:  # noqa: ANN401  # uvicorn's cycle
        if self.flow.write_paused:  # the client does not read its answers; ASGI waits for it
            return False
        answer, fail = partial(self._answer, cycle), partial(self._fail, cycle)
        fast_submit = cast("FastSubmit", self._fast_submit)
        return fast_submit.take(admission, cycle.scope, body, answer, fail)

    def _is_plain_read(self, cycle: Any, head: bytes) -> bool:  # noqa: ANN401  # uvicorn's cycle
        """Whether the head that is being read is all that arrived, and no body follows."""
        return (
            cycle.keep_alive
            and cycle.scope["method"] == "GET"
            and head.find(_END) == len(head) - len(_END)
            and not any(name in _FRAMES_A_BODY for name, _ in cycle.scope["headers"])
        )

    def _start_known(self, known: KnownRead) -> None:
        """Starts a read without parsing it."""
        own = {"server": self.server, "client": self.client, "scheme": self.scheme}
        self._known = known
        self._begin_with({**known.scope, **own, "state": self.app_state.copy()})
        self._known = None

    def _is_idle(self) -> bool:
        """Whether all requests were answered, and nothing of the next has been read."""
        cycle = self.cycle
        answered = cycle is None or cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]  # None before the first request
        return answered and self._is_between_requests()

    def _is_between_requests(self) -> bool:
        """Whether nothing of the next request has been read."""
        return self._part == NOTHING and not self._unparsed and not self._is_over

    def _remember(self, taken: _FastRequest) -> None:
        """Remembers the head of a request that arrived alone: it is all that comes before the body."""
        head = self._received[: -taken.length]
        if head.endswith(_END) and head.count(_END) == 1 and len(head) <= HEAD_BYTES:
            if len(self._heads) >= MOST_HEADS:
                self._heads.clear()
            self._heads[head] = taken

    def _take_unread(self, data: bytes) -> bool:
        """Takes a request whose head was taken before; returns whether it did."""
        start = data.find(_END) + len(_END)
        taken = self._heads.get(data[:start])
        if taken is None or len(data) - start != taken.length:
            return False
        if not self._is_idle():
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
        self._heads.clear()  # a cycle that runs an ASGI app cannot be reused
        super()._start_asgi_task(cycle, app)

    def _answer(self, cycle: RequestResponseCycle, answer: Answer) -> None:
        if cycle.disconnected:
            return
        if answer.closes:
            cycle.keep_alive = False
        # The server's current headers, which have the date: those of a reused cycle are old.
        begin = _begin(answer.status, tuple(self.server_state.default_headers))
        end = b"\r\n" if cycle.keep_alive or answer.closes else b"connection: close\r\n\r\n"
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        self.wire.write(b"".join((begin, answer.lines, end, answer.body)))
        if not cycle.keep_alive:
            self._close()
        self.on_response_complete()
