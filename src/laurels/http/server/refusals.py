"""Answers to bytes that cannot be read as a request. The server writes them without the app."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from laurels.errors import LaurelsError
from laurels.http.access_log import record_unrouted
from laurels.http.middleware import HEADERS
from laurels.http.problems import Internal, MalformedRequest, VersionNotSupported, unrouted
from laurels.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable

log = get_logger("laurels.api")


def refusal(error: LaurelsError, client: str, default_headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The last answer of a connection."""
    request_id = uuid4().hex
    given, content = unrouted(error, request_id)
    named = {**given, "Connection": "close", "X-Request-Id": request_id, "Content-Length": str(len(content))}
    lines = [f"{name.lower()}: {value}".encode("latin-1") for name, value in named.items()]
    lines += [b"%b: %b" % header for header in (*default_headers, *HEADERS)]
    record_unrouted(error, client, request_id)
    return STATUS_LINE[error.status] + b"\r\n".join((*lines, b"", content))


def problem_of(error: httptools.HttpParserError) -> LaurelsError:
    """The error for what a callback raised or the parser found."""
    cause = error.__context__
    if isinstance(cause, LaurelsError):
        return cause
    if isinstance(cause, httptools.HttpParserInvalidURLError):
        return MalformedRequest("the target must be a path, such as /v1/projects")
    if isinstance(error, httptools.HttpParserCallbackError):
        log.error("request failed", exc_info=cause or error)
        return Internal("something went wrong on our side")
    why = str(error)
    if why in {"Invalid HTTP version", "Pause on PRI/Upgrade"}:
        return VersionNotSupported("this server speaks HTTP/1.1 and HTTP/1.0")
    return MalformedRequest(f"not HTTP/1.1: {why[:1].lower()}{why[1:]}")
