"""What surrounds every answer: a request id, the headers that keep browsers safe, a log line, metrics.

An ASGI middleware around everything else. What escapes the handlers of errors ends here, as a problem too.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import structlog
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect

from laurels.api.parameters import path_as_sent
from laurels.api.problems import answer_to
from laurels.metrics import count_request

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_ID: Final = re.compile(rb"[!-~]{1,128}")
# Of an answer that nobody was there to receive; nginx's number.
CLIENT_LEFT: Final = 499
UNMATCHED: Final = "unmatched"
# Asked every few seconds by machines.
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})

HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}

log = structlog.get_logger("laurels.access")


class Envelope:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = _request_id(scope)
        method: str = scope["method"]
        scope = {
            **scope,
            "path": path_as_sent(scope),
            # HEAD is answered like GET; the server leaves the body out.
            "method": "GET" if method == "HEAD" else method,
            "state": {**scope.get("state", {}), "request_id": request_id},
        }
        started = time.perf_counter()
        status = 0

        async def send_enveloped(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers["X-Request-Id"] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self.app(scope, receive, send_enveloped)
            except ClientDisconnect:
                status = status or CLIENT_LEFT
            except Exception as error:
                if status:  # too late for another answer; the server cuts the connection
                    raise
                await answer_to(scope, error)(scope, receive, send_enveloped)
            finally:
                _record(scope, method, status or 500, time.perf_counter() - started)


def _request_id(scope: Scope) -> str:
    """The client's own, if it is fit to be repeated and logged."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
            return value.decode("ascii")
    return uuid4().hex


def _record(scope: Scope, method: str, status: int, seconds: float) -> None:
    route = getattr(scope.get("route"), "path_format", UNMATCHED)
    count_request(method, route, status, seconds)
    write = log.debug if route in QUIET else log.info
    write(
        "request",
        method=method,
        path=scope["path"],
        route=route,
        status=status,
        milliseconds=round(seconds * 1000, 3),
        client=(scope.get("client") or ("",))[0],
    )
