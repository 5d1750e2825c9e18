"""A shortcut for the most frequent request: one score, with a key that this process has cached.

It gives the operation's answer for a third of the work: no task, no ASGI messages, one write to the socket,
and no parsing of a head that was seen before. It never refuses a request: any that is not plain (a header
with a meaning of its own, a player, a limit, a value that may be wrong) goes to the operation.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from laurels.access.store.api_keys import digest_of
from laurels.boards.names import NAME_PATTERN
from laurels.errors import Forbidden
from laurels.http.body import JSON
from laurels.http.direct import Answer
from laurels.http.encoding import encode
from laurels.http.middleware import (
    HEADERS,
    RequestMiddleware,
    given_request_id,
    made_request_id,
)
from laurels.logs import REQUEST
from laurels.metrics import request_series
from laurels.scores.submission import Submission, Submitted

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from laurels.access.limits import Limiter
    from laurels.engine import Laurels
    from laurels.http.access_log import AccessLog
    from laurels.http.authentication import Keyring
    from laurels.http.operation import Operation, RecordedRoute

# Requests with these headers go to the operation, like those with headers that it documents. The last two are
# allowed once.
MEANINGFUL: Final = frozenset({b"content-encoding", b"expect", b"origin", b"authorization", b"content-type"})
# How long an admission is valid; a revocation ends it at once.
GOOD_SECONDS: Final = 1.0
# Paths that are cached.
MOST_REMEMBERED: Final = 10_000

_NAME: Final = NAME_PATTERN.strip("^$")
_PATH: Final = re.compile(rf"/v1/projects/({_NAME})/boards/({_NAME})/scores".encode())
_JSON: Final = JSON.encode()
_BEARER: Final = b"Bearer "
_TOKEN: Final = b"Bearer eyJ"
_HEAD: Final = b"".join(b"%s: %s\r\n" % header for header in ((b"content-type", _JSON), *HEADERS))

_decode = msgspec.json.Decoder(Submission).decode


@dataclass(slots=True)
class Admission:
    """The board, key and request id in a head. Each request checks whether the key is still active."""

    project: str
    board: str
    """`project/board`."""
    key: bytes
    """The digest of the key."""
    request_id: str
    generation: int = -1
    """The keyring's generation when the key was last checked."""
    good_until: float = 0.0
    """When to check the key again, in the same generation."""


class FastSubmit:
    """Takes submissions from a server that has read the whole request."""

    def __init__(
        self,
        operation: Operation,
        laurels: Laurels,
        keyring: Keyring,
        limiter: Limiter,
        access_log: AccessLog,
    ) -> None:
        """`operation`: the one that submits a score, and gets the requests that are not taken here."""
        self._route = operation.route()
        self._answered = request_series("POST", self._route.path_format, 200)
        self._laurels = laurels
        self._keyring = keyring
        self._limiter = limiter
        self._access_log = access_log
        documented = operation.options.get("headers", {})
        self._not_taken = MEANINGFUL | {name.lower().encode() for name in documented}
        self._boards: dict[bytes, tuple[str, str]] = {}

    def admission(self, scope: Scope) -> Admission | None:
        """The admission of a request whose head has arrived; None if it must go to the operation."""
        if scope["method"] != "POST" or scope["query_string"]:
            return None
        board, headers = self._board_in(scope["raw_path"]), scope["headers"]
        if board is None:
            return None
        authorization = content_type = b""
        for name, value in headers:
            if name == b"authorization" and not authorization:
                authorization = value
            elif name == b"content-type" and not content_type:
                content_type = value
            elif name in self._not_taken:
                return None
        # Players' tokens begin like the second; their submissions may have to wait for a limit.
        if content_type != _JSON or not authorization.startswith(_BEARER) or authorization.startswith(_TOKEN):
            return None
        key = digest_of(authorization[len(_BEARER) :].decode("latin-1"))
        return Admission(*board, key, given_request_id(headers))

    def take(
        self,
        admission: Admission,
        scope: Scope,
        body: bytes | bytearray,
        answer: Callable[[Answer], None],
        fail: Callable[[ASGIApp], None],
    ) -> bool:
        """Returns whether it takes the request. If so, it later calls `answer` with a 200, or `fail` with an
        app that answers the error.
        """
        started = time.perf_counter()
        definition = self._laurels.remembered(admission.board)
        if definition is None or not self._admits(admission, started):
            return False
        try:
            given = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        is_exact, route = definition.score == "int64", self._route.path_format

        def respond(outcome: Submitted | Exception) -> None:
            if isinstance(outcome, Exception):
                fail(RequestMiddleware(_Failed(self._route, outcome), self._access_log))
                return
            content, request_id = (
                encode(outcome, is_exact=is_exact),
                admission.request_id or made_request_id(),
            )
            values = request_id.encode("latin-1"), len(content)
            lines = _HEAD + b"x-request-id: %s\r\ncontent-length: %d\r\n" % values
            answer(Answer(200, lines, content))
            seconds = time.perf_counter() - started
            self._answered.add(seconds)
            if self._access_log.wants(route, 200, seconds):
                about = REQUEST.set(request_id)
                self._access_log.write(scope, route, "POST", 200, seconds)
                REQUEST.reset(about)

        return self._laurels.send_soon(admission.board, given, respond)

    def _board_in(self, path: bytes) -> tuple[str, str] | None:
        """The project and `project/board` in a path that needs no decoding."""
        known = self._boards.get(path)
        if known:
            return known
        found = _PATH.fullmatch(path)
        if found is None:
            return None
        if len(self._boards) >= MOST_REMEMBERED:
            self._boards.clear()
        project, board = found[1].decode(), found[2].decode()
        self._boards[path] = project, f"{project}/{board}"
        return self._boards[path]

    def _admits(self, admission: Admission, now: float) -> bool:
        generation = self._keyring.generation
        if generation == admission.generation and now < admission.good_until:
            return True
        is_admitted = self._check(admission)
        if is_admitted:
            admission.generation, admission.good_until = generation, now + GOOD_SECONDS
        return is_admitted

    def _check(self, admission: Admission) -> bool:
        project = admission.project
        principal = self._keyring.recall(admission.key)
        if principal is None or self._limiter.limits(principal):
            return False
        try:
            principal.check(project, "submit")
        except Forbidden:
            return False
        secrets = self._keyring.recall_secrets(project)
        return secrets is not None and all(secret.use != "signatures" for secret in secrets)


class _Failed:
    """An app that raises the operation's error."""

    def __init__(self, route: RecordedRoute, error: Exception) -> None:
        self._route = route
        self._error = error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive, send
        scope["route"] = self._route
        raise self._error
