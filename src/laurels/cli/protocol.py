"""HTTP as uvicorn speaks it, with two differences.

A request that came in one piece may be taken by the app's express way in, before ASGI begins. And what is not
HTTP is a problem too (RFC 9457).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from laurels.api.problems import MEDIA_TYPE, Malformed, Problem, type_of

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from laurels.api.express import Express


class Protocol(HttpToolsProtocol):
    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401  # uvicorn's own
        super().__init__(*given, **named)
        self._app: Any = cast("Any", self.app)  # pyright: ignore[reportUnknownMemberType]
        self._express: Express | None = getattr(self._app, "express", None)
        self._is_receiving = False
        self._held: Any = None
        """The cycle of a request whose body may be in what is being received."""

    def data_received(self, data: bytes) -> None:
        self._is_receiving = True
        super().data_received(data)
        self._is_receiving = False
        if self._held:  # the rest is still to come: the app waits for it, but not for ever
            self._start_held()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        held = self._held
        if held is None or self._express is None:
            return
        fail: Any = partial(super()._start_asgi_task, held)
        if self._express.take(held.scope, held.body, partial(self._answer, held), fail):
            self._held = None
        else:
            self._start_held()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401  # uvicorn's own kind of app
        if self._is_receiving and self._express and app is self._app:
            self._held = cycle
        else:
            super()._start_asgi_task(cycle, app)

    def _start_held(self) -> None:
        held, self._held = self._held, None
        super()._start_asgi_task(held, self._app)

    def _answer(self, cycle: RequestResponseCycle, headers: bytes, body: bytes) -> None:
        if cycle.disconnected:
            return
        parts = [STATUS_LINE[200]]
        for name, value in cycle.default_headers:
            parts += (name, b": ", value, b"\r\n")
        parts += (headers, b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n", body)
        cycle.response_started = cycle.response_complete = True
        self.transport.write(b"".join(parts))
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def send_400_response(self, msg: str) -> None:
        """To what no request can be made of: there is no path, so no route and no log of it."""
        request_id = uuid4().hex
        problem = Problem(
            type=type_of(Malformed),
            title="The request cannot be read",
            status=400,
            detail=msg,
            instance="",
            request_id=request_id,
        )
        content = msgspec.json.encode(problem)
        head = (
            f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(content)}\r\n"
            f"x-request-id: {request_id}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + content)
        self.transport.close()
