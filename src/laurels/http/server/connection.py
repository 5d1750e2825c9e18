"""Reads requests from a connection: uvicorn's protocol on httptools, with what it lacks.

Heads, trailers and pipelines are bounded. An offer to upgrade is ignored (RFC 9110, 7.8). A request that
cannot be read is answered with a problem, after all earlier requests; then the connection closes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from laurels.http.problems import MalformedRequest
from laurels.http.server import heads
from laurels.http.server.closing import BODY, HEAD, NOTHING, ClosingProtocol
from laurels.http.server.refusals import problem_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from laurels.errors import LaurelsError
    from laurels.http.server.closing import HoldableFlow

# How much the parser gets at once: it cannot stop in the middle.
PIECE_BYTES: Final = 4096
# Requests that may wait for earlier ones. With more, nothing is read until some are answered.
MOST_PIPELINED: Final = 64

_NOTED: Final = frozenset({b"expect", b"host", b"transfer-encoding"})


class Connection(ClosingProtocol):
    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401  # uvicorn's own
        super().__init__(*given, **named)
        self._app: Any = cast("Any", self.app)  # pyright: ignore[reportUnknownMemberType]
        self._fed = 0
        """Bytes parsed since the last complete head or piece of a body, give or take a piece."""
        self._unparsed = b""
        """Bytes read while too many requests wait."""
        self._running: RequestResponseCycle | None = None
        self._last: LaurelsError | None = None
        """The error to answer after all earlier requests."""
        self._host: bytes | None = None
        self._codings = b""
        """The values of `Transfer-Encoding`."""
        self._valid_host: bytes | None = None
        """The last valid `Host`."""

    def connection_lost(self, exc: Exception | None) -> None:
        running = self._running
        if running is not None and running is not self.cycle and not running.response_complete:
            _leave(running)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._unparsed or len(data) > PIECE_BYTES or len(self.pipeline) > MOST_PIPELINED:
            self._parse_pieces(self._unparsed + data)
        else:
            self._parse(data)

    def on_message_begin(self) -> None:
        self._part = HEAD
        self._moves += 1
        self._host = None
        self._codings = b""
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        name, value = name.lower(), value.rstrip(b" \t")
        self.headers.append((name, value))
        if name in _NOTED and self._part == HEAD:
            self._note(name, value)

    def _note(self, name: bytes, value: bytes) -> None:
        if name == b"host":
            if self._host is not None:
                raise MalformedRequest("send the header Host once")
            self._host = value
        elif name == b"transfer-encoding":
            self._codings += b"," + value
        elif value.lower() == b"100-continue":
            self.expect_100_continue = True

    def on_headers_complete(self) -> None:
        """Like uvicorn's, which parses the target a second time and has no limits."""
        fed, self._fed = self._fed, 0
        version = self.parser.get_http_version()
        is_upgrade = self.parser.should_upgrade()
        self._check_size(fed)
        if is_upgrade or not self._is_plain(version):
            self._check_head(version)
        if is_upgrade:
            return  # `_parse_again` parses it without the offer
        raw_path, _, query = self.url.partition(b"?")
        path = raw_path.decode("ascii")
        scope = self.scope
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = version
        scope["path"] = self.root_path + (unquote(path) if "%" in path else path)
        scope["raw_path"] = self.root_path.encode("ascii") + raw_path
        scope["query_string"] = query
        self.headers = []  # trailers go here, and are ignored (RFC 9110, 6.5.1)
        self._part = BODY
        self._begin(version == "1.1" and self.parser.should_keep_alive())

    def _check_size(self, fed: int) -> None:
        if fed > heads.TARGET_BYTES - PIECE_BYTES:
            heads.check_size(self.url, self.headers)
        heads.check_count(self.headers)

    def _is_plain(self, version: str) -> bool:
        """Whether the head needs no more checks, as most after the first of a connection."""
        target, host = self.url, self._host
        if version != "1.1" or self._codings or host is None or host != self._valid_host:
            return False
        return target.startswith(b"/") and b"#" not in target

    def _check_head(self, version: str) -> None:
        method = self.parser.get_method()
        head = heads.Head(method, self.url, version, self.headers, self._host, self._codings)
        heads.check(head)
        self._valid_host, self.url = self._host, head.target

    def _begin_with(self, scope: Scope) -> None:
        """Begins a request whose head need not be parsed."""
        self.scope = cast("Any", scope)
        self.expect_100_continue = False
        self._moves += 1
        self._begin(keep_alive=True)

    def _begin(self, keep_alive: bool) -> None:  # noqa: FBT001  # of a private method
        before, self.cycle = (
            self.cycle,
            RequestResponseCycle(
                scope=self.scope,
                transport=self.transport,
                flow=self.flow,
                logger=self.logger,
                access_logger=self.access_logger,
                access_log=self.access_log,
                default_headers=self.server_state.default_headers,
                message_event=asyncio.Event(),
                expect_100_continue=self.expect_100_continue and self.scope["http_version"] == "1.1",
                keep_alive=keep_alive,
                on_response=self.on_response_complete,
            ),
        )
        if before is None or before.response_complete:  # pyright: ignore[reportUnnecessaryComparison]  # None before the first request
            self._start_asgi_task(self.cycle, self._app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self._app))

    def on_body(self, body: bytes) -> None:
        self._fed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            self._part = NOTHING
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Like uvicorn's, without a timer for each idle connection."""
        self.server_state.total_requests += 1
        self._moves += 1
        if self._is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._last is not None:
            last, self._last = self._last, None
            self._end(last)
        if self._unparsed and len(self.pipeline) <= MOST_PIPELINED:
            self._parse_pieces(self._unparsed)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401  # uvicorn's type of app
        self._running = cycle
        if cycle.waiting_for_100_continue:
            app = _ExpectsContinue(app, cycle)
        task = self.loop.create_task(cycle.run_asgi(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _parse_pieces(self, data: bytes) -> None:
        self._unparsed = b""
        flow = cast("HoldableFlow", self.flow)
        flow.is_held = False
        for start in range(0, len(data), PIECE_BYTES):
            if self._is_over:
                return
            if len(self.pipeline) > MOST_PIPELINED:
                self._unparsed = data[start:]
                flow.pause_reading()
                flow.is_held = True
                return
            self._parse(data[start : start + PIECE_BYTES])

    def _parse(self, data: bytes) -> None:
        self._fed += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._parse_again(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse(problem_of(error))
        else:
            self._check_fed()

    def _check_fed(self) -> None:
        if self._part != BODY:
            if self._fed > heads.HEAD_BYTES + PIECE_BYTES:
                self._refuse(heads.oversize(self.url if self._part == HEAD else b""))
        elif self._fed > heads.FRAMING_BYTES:
            self._refuse(heads.excess_framing())

    def _parse_again(self, rest: bytes) -> None:
        """Parses a head with an offer to upgrade again, without the offer. The parser stops at such a head as
        if no more HTTP followed, even if the head announces a body.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version()
        lines = [b"%b %b HTTP/%b" % (method, self.url, version.encode())]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self._fed = 0
        self._parse(b"\r\n".join((*lines, b"", b"")))
        if rest and not self._is_over:
            self._parse(rest)

    def _refuse(self, error: LaurelsError) -> None:
        self._is_over = True
        cycle = self.cycle
        if self._part == BODY:
            if self.pipeline and self.pipeline[0][0] is cycle:
                self.pipeline.popleft()
                self._last = error
            else:
                if not cycle.response_complete:
                    self._drop(cycle)
                self._end(None if cycle.response_started else error)
        elif cycle is None or cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison]  # None before the first request
            self._end(error)
        else:
            self._last = error

    def _drop(self, cycle: RequestResponseCycle) -> None:
        """Discards the app's answer."""
        _leave(cycle)


class _ExpectsContinue:
    """An app whose client waits for `100 Continue` before it sends the body.

    If the app answers without reading the body, the client may send it or not. Where the next request begins
    is then unknown, so the connection closes.
    """

    def __init__(self, app: ASGIApp, cycle: RequestResponseCycle) -> None:
        self._app = app
        self._cycle = cycle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_and_close(message: Message) -> None:
            if self._cycle.waiting_for_100_continue:
                self._cycle.keep_alive = False
            await send(message)

        await self._app(scope, receive, send_and_close)


def _leave(cycle: RequestResponseCycle) -> None:
    cycle.disconnected = True
    cycle.message_event.set()
