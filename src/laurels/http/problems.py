"""Answers every error in one format: RFC 9457 `application/problem+json`, or a page for people in a browser.

A problem's `type` is `/problems/<kind>`, where the server explains it. Details of the deployment (addresses,
stack traces) go to the log with the request's id, not to the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import msgspec
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route

from laurels.errors import (
    BadSignature,
    Conflict,
    Drop,
    DropNotAllowed,
    FieldError,
    Forbidden,
    IndexNotReady,
    InFlight,
    InvalidInput,
    KeyReused,
    KeyTaken,
    LaurelsError,
    NotFound,
    OutcomeUnknown,
    RateLimited,
    StaleCursor,
    Unauthorized,
    Unavailable,
)
from laurels.http.error_page import error_page, prefers_html
from laurels.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.types import Scope

MEDIA_TYPE: Final = "application/problem+json"
RETRY_SECONDS: Final = 1

log = get_logger("laurels.api")


class Malformed(LaurelsError):
    status = 400
    kind = "malformed"
    title = "The body cannot be read"


class MalformedRequest(Malformed):
    """Not HTTP, or against RFC 9112."""

    title = "The request cannot be read"


class MethodNotAllowed(LaurelsError):
    status = 405
    kind = "method-not-allowed"
    title = "The method is not allowed"

    def __init__(self, detail: str, allowed: Sequence[str]) -> None:
        super().__init__(detail)
        self.allowed = allowed


class Stalled(LaurelsError):
    status = 408
    kind = "stalled"
    title = "The request did not arrive in time"


class TooLarge(LaurelsError):
    status = 413
    kind = "too-large"
    title = "The body is too large"


class TargetTooLong(LaurelsError):
    status = 414
    kind = "target-too-long"
    title = "The target is too long"


class HeadersTooLarge(LaurelsError):
    status = 431
    kind = "headers-too-large"
    title = "The headers are too large"


class NotImplementedHere(LaurelsError):
    status = 501
    kind = "not-implemented"
    title = "The server does not support this"


class VersionNotSupported(LaurelsError):
    status = 505
    kind = "http-version"
    title = "The version of HTTP is not supported"


class Overloaded(LaurelsError):
    status = 503
    kind = "overloaded"
    title = "The server has too many connections"


class UnsupportedMediaType(LaurelsError):
    status = 415
    kind = "unsupported-media-type"
    title = "The body's media type is not supported"


class UnsupportedEncoding(UnsupportedMediaType):
    kind = "unsupported-encoding"
    title = "The body's encoding is not supported"

    def __init__(self, detail: str, accepted: Sequence[str]) -> None:
        super().__init__(detail)
        self.accepted = accepted


class Internal(LaurelsError):
    """An unexpected error."""


class NotReady(Unavailable):
    """A check of `/readyz` failed."""

    title: ClassVar[str] = "Not ready"

    def __init__(self, detail: str, checks: dict[str, str]) -> None:
        super().__init__(detail)
        self.checks = checks


EXPLANATIONS: Final[dict[type[LaurelsError], str]] = {
    Malformed: "The body is not what its media type and encoding say: not JSON, not UTF-8, nested too "
    "deeply, damaged, or cut short. Or the request is not HTTP/1.1 (RFC 9112), and the connection closes.",
    Unauthorized: "Send `Authorization: Bearer KEY` with a key that is in force.",
    BadSignature: "A required signature is missing, or a signature is not valid; `detail` says how to sign. "
    "Sign every request with a new nonce, repeated ones too.",
    Forbidden: "The key is in force, but it is for another project or lacks the scope that this needs.",
    NotFound: "There is no such route, board, window or member, or it is no longer kept.",
    MethodNotAllowed: "The route does not have this method; `Allow` lists its methods.",
    Stalled: "Request line and headers took longer than 10 seconds, or the next piece of the body longer "
    "than 30. Send the request again.",
    Conflict: "The change contradicts what the board already holds; `detail` says what to do instead.",
    DropNotAllowed: "The change would drop entries or snapshots; `drops` says how many, of which windows. "
    "To allow it, name these windows: `?allow_drop=weekly,monthly`. `?allow_drop=all` drops a whole board.",
    InFlight: "A request with this `Idempotency-Key` is running. Try again after `Retry-After` seconds.",
    KeyTaken: "The board names its keys in Valkey itself, and another program uses one of them. The log has "
    "the key.",
    TooLarge: "A body may have 1 MiB, and a batch 64 MiB, both as sent and after decompression.",
    TargetTooLong: "Path and query together may have 48 KiB. Ask for less at once.",
    UnsupportedMediaType: "Send `Content-Type: application/json`, in UTF-8; a batch may be "
    "`application/x-ndjson`.",
    UnsupportedEncoding: "Send the body uncompressed, or with `Content-Encoding: gzip` or `zstd`.",
    InvalidInput: "A value is wrong; `errors` names each field, and why.",
    KeyReused: "An `Idempotency-Key` belongs to one request: the same method, path, query and body. Choose "
    "another.",
    StaleCursor: "The cursor belongs to another board, window or definition: begin again without it.",
    RateLimited: "Try again after `Retry-After` seconds; `RateLimit-Policy` says how much is allowed.",
    HeadersTooLarge: "Request line and headers together may have 64 KiB and 100 headers; extensions and "
    "trailers of a chunked body 16 KiB.",
    Internal: "An error of the server. The log has it under the answer's `request_id`.",
    NotImplementedHere: "The server does not know the method or the `Transfer-Encoding`; `detail` says what "
    "to send.",
    Unavailable: "A store does not answer; nothing was changed. Try again after `Retry-After` seconds.",
    IndexNotReady: "A leaderboard of a model is not built, or no process applies its changes. Try again "
    "after `Retry-After` seconds.",
    OutcomeUnknown: "A store stopped answering mid-call, so the change may or may not have been made. "
    "Repeat it with the same id: it counts once.",
    Overloaded: "The process has as many connections as `max_connections` allows; nothing was read. Try "
    "again after `Retry-After` seconds.",
    VersionNotSupported: "Send the request as HTTP/1.1.",
}
BY_KIND: Final = {kind.kind: kind for kind in EXPLANATIONS}


class Problem(msgspec.Struct, omit_defaults=True):
    """What went wrong (RFC 9457). `type` links to an explanation, `instance` is the path of the request.

    `retry_with`: if the outcome is unknown, the id with which the submission can safely be sent again.
    `accepted`: how many submissions of a batch counted before it failed. `drops`: what the change would drop
    from each window.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str
    request_id: str
    errors: tuple[FieldError, ...] = ()
    retry_with: str | None = None
    accepted: int | None = None
    checks: dict[str, str] | None = None
    drops: tuple[Drop, ...] = ()


def type_of(problem: LaurelsError | type[LaurelsError]) -> str:
    return f"/problems/{problem.kind}"


async def handle(request: Request, error: Exception) -> Response:
    """Handles every exception of the app."""
    return answer_to(request.scope, error)


def answer_to(scope: Scope, error: Exception) -> Response:
    problem = known(scope, error)
    _record(problem, error)
    content = _content(scope, problem)
    headers = {**_headers(problem), "Vary": "Accept"}
    if prefers_html(",".join(Headers(scope=scope).getlist("accept"))):
        return error_page(content, headers)
    return Response(msgspec.json.encode(content), problem.status, headers=headers, media_type=MEDIA_TYPE)


def add_problems(app: Starlette) -> None:
    """Answers Laurels' errors in another app, such as one of FastAPI, as problems: `add_problems(app)`."""
    app.add_exception_handler(LaurelsError, _handle_elsewhere)


async def _handle_elsewhere(request: Request, error: Exception) -> Response:
    scope = request.scope
    scope.setdefault("state", {}).setdefault("request_id", request.headers.get("x-request-id", ""))
    problem = known(scope, error)
    _record(problem, error)
    content = msgspec.structs.replace(_content(scope, problem), type=f"urn:laurels:problem:{problem.kind}")
    return Response(
        msgspec.json.encode(content), problem.status, headers=_headers(problem), media_type=MEDIA_TYPE
    )


def unrouted(error: LaurelsError, request_id: str) -> tuple[dict[str, str], bytes]:
    """Headers and body of the answer to bytes that are not a request, so without a path as instance."""
    problem = Problem(
        type=type_of(error),
        title=error.title,
        status=error.status,
        detail=error.detail,
        instance="",
        request_id=request_id,
    )
    return {"Content-Type": MEDIA_TYPE, **_headers(error)}, msgspec.json.encode(problem)


def encode_problem(scope: Scope, error: LaurelsError) -> bytes:
    """The JSON of a problem that is sent within another answer."""
    _record(error, error)
    return msgspec.json.encode(_content(scope, error))


def _content(scope: Scope, problem: LaurelsError) -> Problem:
    return Problem(
        type=type_of(problem),
        title=problem.title,
        status=problem.status,
        detail=_detail(problem),
        instance=scope["path"],
        request_id=scope["state"]["request_id"],
        errors=problem.fields if isinstance(problem, InvalidInput) else (),
        retry_with=problem.retry_with if isinstance(problem, OutcomeUnknown) else None,
        accepted=scope["state"].get("accepted"),
        checks=problem.checks if isinstance(problem, NotReady) else None,
        drops=problem.drops if isinstance(problem, DropNotAllowed) else (),
    )


def known(scope: Scope, error: Exception) -> LaurelsError:
    """The error as a `LaurelsError`, from any library."""
    if isinstance(error, LaurelsError):
        return error
    if not isinstance(error, HTTPException):
        return Internal("something went wrong on our side")
    asked = f"{scope['method']} {scope['path']}"
    if error.status_code == 404:
        return NotFound(f"there is no {asked}")
    if error.status_code == 405:
        allowed = _allowed(scope)
        return MethodNotAllowed(f"there is no {asked}; this path has {', '.join(allowed)}", allowed)
    return Malformed(error.detail) if error.status_code < 500 else Internal(error.detail)


def _detail(problem: LaurelsError) -> str:
    if not isinstance(problem, Unavailable) or isinstance(problem, NotReady):
        return problem.detail
    explained = EXPLANATIONS[BY_KIND[problem.kind]]
    return f"{explained} {problem.advice}." if problem.advice else explained


def _headers(problem: LaurelsError) -> dict[str, str]:
    match problem:
        case MethodNotAllowed():
            return {"Allow": ", ".join(problem.allowed)}
        case UnsupportedEncoding():
            return {"Accept-Encoding": ", ".join(problem.accepted)}
        case Stalled():
            return {"Connection": "close"}
        case RateLimited():
            return {"Retry-After": str(problem.retry_after)}
        case Unavailable() | InFlight() | Overloaded():
            return {"Retry-After": str(RETRY_SECONDS)}
        case _:
            return {"WWW-Authenticate": 'Bearer realm="laurels"'} if problem.status == 401 else {}


def _allowed(scope: Scope) -> list[str]:
    """The methods of every route at this path."""
    methods: set[str] = set()
    for route in scope["app"].routes:
        if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE:
            methods |= route.methods or set()
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)


def _record(problem: LaurelsError, error: Exception) -> None:
    if isinstance(problem, Unavailable):
        log.warning("request failed: a store is unavailable", kind=problem.kind, detail=problem.detail)
    elif problem.status >= 500:
        log.error("request failed", exc_info=error)
