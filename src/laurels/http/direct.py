"""Runs the operations below a board for a server that takes a whole answer at once.

It does what the request middleware, the dispatch and ASGI's messages do together, in fewer steps: a third of
their processor time. Both use the same parts. Any other server runs the app by ASGI.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.requests import ClientDisconnect

from laurels.errors import LaurelsError
from laurels.http.middleware import CLIENT_LEFT, HEADERS, given_request_id, made_request_id
from laurels.http.operation import IndexedRequest
from laurels.http.parameters import path_as_sent
from laurels.http.problems import answer_to
from laurels.logs import REQUEST

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive, Scope

    from laurels.http.access_log import AccessLog
    from laurels.http.dispatch import Dispatch, Found


# Heads of reads that are remembered, and the longest. Anybody may send them: together they take some 20 MB.
MOST_READS: Final = 4_000
READ_BYTES: Final = 1024


class Answer(NamedTuple):
    """A whole answer, ready to be written."""

    status: int
    lines: bytes
    """The lines of its headers."""
    body: bytes
    closes: bool = False
    """Whether its headers say that the connection closes."""


class KnownRead(NamedTuple):
    """A read that was parsed before: its scope, without what belongs to a connection, and its operation."""

    scope: Scope
    found: Found


class DirectOperations:
    def __init__(self, dispatch: Dispatch, access_log: AccessLog, *, has_cors: bool) -> None:
        """`has_cors`: whether answers to other origins get headers, which only ASGI's middleware adds."""
        self._dispatch = dispatch
        self._access_log = access_log
        self._has_cors = has_cors
        self.reads: dict[bytes, KnownRead] = {}
        """Reads by their heads. Clients send the same again and again, on any connection."""
        self._met: set[int] = set()

    def meets_again(self, head: bytes, found: Found) -> bool:
        """Whether such a head came before, and names only a board: those that name a member hardly repeat."""
        if len(head) > READ_BYTES or len(found.parts) > len(("project", "board")):
            return False
        met = hash(head)
        if met in self._met:
            return True
        if len(self._met) >= MOST_READS:
            self._met.clear()
        self._met.add(met)
        return False

    def remember(self, head: bytes, scope: Scope, found: Found) -> None:
        if len(self.reads) >= MOST_READS:
            self.reads.clear()
        own = {"server", "client", "scheme", "state"}
        self.reads[head] = KnownRead({name: scope[name] for name in scope.keys() - own}, found)

    def find(self, scope: Scope) -> Found | None:
        """The operation for a request; None if the request must go to the app."""
        if self._has_cors and any(name == b"origin" for name, _ in scope["headers"]):
            return None
        try:
            found = self._dispatch.find(scope["method"], path_as_sent(scope))
        except LaurelsError:  # a path that cannot be decoded; the app says so
            return None
        return None if found is None or "media_type" in found.operation.options else found

    async def run(self, found: Found, scope: Scope, receive: Receive) -> Answer | None:
        """Runs an operation, in a task of its own; None if the client has left."""
        started = time.perf_counter()
        request_id = given_request_id(scope["headers"]) or made_request_id()
        REQUEST.set(request_id)
        scope["path"] = path_as_sent(scope)
        state = scope["state"]
        state["request_id"], state["is_head"] = request_id, False
        self._dispatch.enter(found, scope)
        status, answer = CLIENT_LEFT, None
        try:
            response = await found.operation.respond(IndexedRequest(scope, receive))
        except ClientDisconnect:
            response = None
        except Exception as error:  # noqa: BLE001  # every error becomes an answer
            response = answer_to(scope, error)
        if response is not None:
            status = response.status_code
            answer = _answer(response, request_id, state.get("rate_limit"))
        seconds = time.perf_counter() - started
        self._access_log.record(scope, scope["method"], status, seconds, seconds)
        return answer


def _answer(response: Response, request_id: str, rate_limit: dict[str, str] | None) -> Answer:
    headers = response.raw_headers
    names = tuple([name for name, _ in headers])
    lines = [b"%s: %s\r\n" % header for header in headers]
    lines += _defaults_beside(names), b"x-request-id: %s\r\n" % request_id.encode("latin-1")
    if rate_limit:
        lines.append(header_lines(rate_limit))
    # No answer of ours has another value of this header.
    return Answer(response.status_code, b"".join(lines), bytes(response.body), b"connection" in names)


def header_lines(headers: dict[str, str]) -> bytes:
    return b"".join(f"{name.lower()}: {value}\r\n".encode("latin-1") for name, value in headers.items())


@lru_cache(maxsize=64)
def _defaults_beside(names: tuple[bytes, ...]) -> bytes:
    """The lines of the default headers that an answer with these headers lacks."""
    return b"".join(b"%s: %s\r\n" % header for header in HEADERS if header[0] not in names)
