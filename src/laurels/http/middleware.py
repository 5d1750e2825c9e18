"""Adds a request id and security headers to every answer, logs it, and counts it.

This is the outermost ASGI middleware. It also answers exceptions that the error handlers did not catch.
"""

from __future__ import annotations

import re
import time
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect

from laurels.http.parameters import path_as_sent
from laurels.http.problems import answer_to
from laurels.logs import REQUEST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from laurels.http.access_log import AccessLog

REQUEST_ID: Final = re.compile(rb"[!-~]{1,128}")
# The client closed the connection before the answer, as nginx logs it.
CLIENT_LEFT: Final = 499

# Defaults, which an answer may override. ASGI takes names in lower case.
HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)

# Request ids are this random text and a number: cheaper than a random id for each request.
_PROCESS: Final = token_hex(10)
_numbers = count(1)


class RequestMiddleware:
    def __init__(self, app: ASGIApp, access_log: AccessLog) -> None:
        self.app = app
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = given_request_id(scope["headers"]) or made_request_id()
        method: str = scope["method"]
        scope = {
            **scope,
            "path": path_as_sent(scope),
            # HEAD is answered like GET; the server leaves the body out.
            "method": "GET" if method == "HEAD" else method,
            "state": {**scope.get("state", {}), "request_id": request_id, "is_head": method == "HEAD"},
        }
        started = time.perf_counter()
        status, began = 0, 0.0

        async def send_with_headers(message: Message) -> None:
            nonlocal status, began
            if message["type"] == "http.response.start":
                status, began = message["status"], time.perf_counter()
                message["headers"] = _headers(message, request_id, scope["state"].get("rate_limit"))
            await send(message)

        token = REQUEST.set(request_id)
        try:
            await self.app(scope, receive, send_with_headers)
        except ClientDisconnect:
            status = status or CLIENT_LEFT
        except Exception as error:
            if status:  # the answer has begun, so the server closes the connection
                raise
            await answer_to(scope, error)(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - started
            first_byte = began - started if began else seconds
            self._access_log.record(scope, method, status or 500, seconds, first_byte)
            REQUEST.reset(token)


def _headers(
    message: Message, request_id: str, rate_limit: dict[str, str] | None
) -> list[tuple[bytes, bytes]]:
    headers = list(message.get("headers", ()))
    names = {name for name, _ in headers}
    headers += [header for header in HEADERS if header[0] not in names]
    headers.append((b"x-request-id", request_id.encode("latin-1")))
    for name, value in (rate_limit or {}).items():
        headers.append((name.lower().encode("latin-1"), value.encode("latin-1")))
    return headers


def given_request_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The client's `X-Request-Id`, if it is safe to log and to send back; else empty."""
    for name, value in headers:
        if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
            return value.decode("ascii")
    return ""


def made_request_id() -> str:
    return f"{_PROCESS}{next(_numbers):012x}"
