"""A shortcut for the most frequent request: one score, with a key or a player's token that is cached.

It gives the operation's answer for a third of the work: no ASGI messages, one write to the socket, no parsing
of a head that was seen before, and no task unless a limit counts the request. It refuses only what exceeds a
limit or what Valkey refuses: any request that is not plain (another header with a meaning of its own, a
value that may be wrong) goes to the operation.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from starlette.requests import HTTPConnection

from laurels.access.players import PlayerSubmission
from laurels.access.store.api_keys import digest_of
from laurels.boards.names import NAME_PATTERN
from laurels.errors import Forbidden, LaurelsError, OutcomeUnknown, RateLimited
from laurels.http.body import JSON
from laurels.http.direct import Answer, header_lines
from laurels.http.encoding import encode
from laurels.http.idempotency_key import REPLAY, Fingerprint, is_valid, with_key
from laurels.http.middleware import (
    HEADERS,
    RequestMiddleware,
    given_request_id,
    made_request_id,
)
from laurels.logs import REQUEST
from laurels.metrics import request_series
from laurels.scores.submission import ReplayedSubmit, Submission, Submitted

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from laurels.access.limits import Limiter
    from laurels.access.players import Player
    from laurels.access.principal import Principal
    from laurels.engine import Laurels
    from laurels.http.access_log import AccessLog
    from laurels.http.authentication import Keyring
    from laurels.http.operation import Operation, RecordedRoute
    from laurels.scores.waiting import OnOutcome

# Headers that may come once. Requests with the others, or with more that the operation documents, go to it.
ONCE: Final = (b"authorization", b"content-type", b"idempotency-key")
MEANINGFUL: Final = frozenset({b"content-encoding", b"expect", b"origin"})
# How long an admission is valid; a revocation ends it at once.
GOOD_SECONDS: Final = 1.0
# Paths that are cached.
MOST_REMEMBERED: Final = 10_000

_NAME: Final = NAME_PATTERN.strip("^$")
_PATH: Final = re.compile(rf"/v1/projects/({_NAME})/boards/({_NAME})/scores".encode())
_JSON: Final = JSON.encode()
_BEARER: Final = b"Bearer "
_HEAD: Final = b"".join(b"%s: %s\r\n" % header for header in ((b"content-type", _JSON), *HEADERS))

_decode = msgspec.json.Decoder(Submission).decode
_decode_players = msgspec.json.Decoder(PlayerSubmission).decode
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LaurelsError)


@dataclass(slots=True)
class Admission:
    """What a head says. Each request checks whether its key or token is still active."""

    path: str
    project: str
    board: str
    """`project/board`."""
    credential: bytes
    """The digest of the key or token."""
    idempotency_key: str | None
    request_id: str
    principal: Principal | None = None
    """Of the credential, when it was last checked."""
    generation: int = -1
    """The keyring's generation then."""
    good_until: float = 0.0
    """When to check the credential again, in the same generation."""


class _Prepared(NamedTuple):
    """A valid submission, ready to be sent."""

    principal: Principal
    send: Callable[[OnOutcome], None]
    own_id: str | None
    """The id that a player gave it, which is another one within the board."""
    is_exact: bool


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
        documented = {name.lower().encode() for name in operation.options.get("headers", {})}
        self._not_taken = MEANINGFUL | documented - set(ONCE)
        self._boards: dict[bytes, tuple[str, str, str]] = {}
        self._counting: set[asyncio.Task[None]] = set()

    def admission(self, scope: Scope) -> Admission | None:
        """The admission of a request whose head has arrived; None if it must go to the operation."""
        if scope["method"] != "POST" or scope["query_string"]:
            return None
        board, headers = self._board_in(scope["raw_path"]), scope["headers"]
        if board is None:
            return None
        given: dict[bytes, bytes] = {}
        for name, value in headers:
            if name in ONCE and name not in given:
                given[name] = value
            elif name in ONCE or name in self._not_taken:
                return None
        authorization, key = given.get(b"authorization", b""), given.get(b"idempotency-key")
        if given.get(b"content-type") != _JSON or not authorization.startswith(_BEARER):
            return None
        key = None if key is None else key.decode("latin-1")
        if key is not None and not is_valid(key):
            return None
        credential = digest_of(authorization[len(_BEARER) :].decode("latin-1"))
        return Admission(*board, credential, key, given_request_id(headers))

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
        prepared = self._prepared(admission, body, started)
        if prepared is None:
            return False
        principal, send, own_id, is_exact = prepared
        limits: dict[str, str] = {}
        route = self._route.path_format

        def respond(outcome: Submitted | Exception) -> None:
            if own_id is not None:
                outcome = _with_id(outcome, own_id)
            if isinstance(outcome, Exception):
                fail(RequestMiddleware(_Failed(self._route, outcome, limits), self._access_log))
                return
            content = encode(outcome, is_exact=is_exact)
            request_id = admission.request_id or made_request_id()
            values = request_id.encode("latin-1"), len(content)
            lines = _HEAD + b"x-request-id: %s\r\ncontent-length: %d\r\n" % values
            if type(outcome) is ReplayedSubmit:
                lines += b"%s: %s\r\n" % REPLAY
            if limits:
                lines += header_lines(limits)
            answer(Answer(200, lines, content))
            seconds = time.perf_counter() - started
            self._answered.add(seconds)
            if self._access_log.wants(route, 200, seconds):
                about = REQUEST.set(request_id)
                self._access_log.write(scope, route, "POST", 200, seconds)
                REQUEST.reset(about)

        if self._limiter.limits(principal):
            counting = asyncio.create_task(self._count(scope, principal, limits, send, respond))
            self._counting.add(counting)
            counting.add_done_callback(self._counting.discard)
        else:
            send(respond)
        return True

    def _prepared(self, admission: Admission, body: bytes | bytearray, now: float) -> _Prepared | None:
        definition = self._laurels.remembered(admission.board)
        principal = self._principal(admission, now) if definition else None
        if definition is None or principal is None:
            return None
        try:
            given, own_id = _submission(admission, principal.player, body)
        except _UNREADABLE:
            return None
        send = self._laurels.prepare(admission.board, given)
        return None if send is None else _Prepared(principal, send, own_id, definition.score == "int64")

    async def _count(
        self,
        scope: Scope,
        principal: Principal,
        limits: dict[str, str],
        send: Callable[[OnOutcome], None],
        respond: OnOutcome,
    ) -> None:
        """Sends the submission if no limit keeps it. `limits` gets the headers that tell of them."""
        try:
            await self._limiter.count(HTTPConnection(scope), principal, limits)
        except RateLimited as error:
            respond(error)
        else:
            send(respond)

    def _board_in(self, path: bytes) -> tuple[str, str, str] | None:
        """The path, project and `project/board` in a path that needs no decoding."""
        known = self._boards.get(path)
        if known:
            return known
        found = _PATH.fullmatch(path)
        if found is None:
            return None
        if len(self._boards) >= MOST_REMEMBERED:
            self._boards.clear()
        project, board = found[1].decode(), found[2].decode()
        self._boards[path] = path.decode(), project, f"{project}/{board}"
        return self._boards[path]

    def _principal(self, admission: Admission, now: float) -> Principal | None:
        """Who sends the request, if they may submit."""
        generation = self._keyring.generation
        if generation == admission.generation and now < admission.good_until:
            return admission.principal
        principal = admission.principal = self._check(admission)
        # A token expires at any time.
        if principal is not None and principal.player is None:
            admission.generation, admission.good_until = generation, now + GOOD_SECONDS
        return principal

    def _check(self, admission: Admission) -> Principal | None:
        project = admission.project
        principal = self._keyring.recall(admission.credential)
        if principal is None:
            return None
        try:
            principal.check(project, "submit", takes_players=True)
        except Forbidden:
            return None
        secrets = self._keyring.recall_secrets(project)
        is_plain = secrets is not None and all(secret.use != "signatures" for secret in secrets)
        return principal if is_plain else None


def _submission(
    admission: Admission, player: Player | None, body: bytes | bytearray
) -> tuple[Submission, str | None]:
    """The submission, and the id that a player gave it."""
    given = _decode(body) if player is None else player.submission(_decode_players(body))
    if (key := admission.idempotency_key) is not None:
        fingerprint = Fingerprint("POST", admission.path, b"", player)
        fingerprint.add(body)
        given = with_key(given, key, str(fingerprint))
    own_id = given.id
    if player is None or own_id is None:
        return given, None
    given.id = player.own_id(own_id)
    return given, own_id


def _with_id(outcome: Submitted | Exception, own_id: str) -> Submitted | Exception:
    if isinstance(outcome, OutcomeUnknown):
        return OutcomeUnknown.after(outcome, retry_with=own_id)
    return outcome if isinstance(outcome, Exception) else msgspec.structs.replace(outcome, id=own_id)


class _Failed:
    """An app that raises the operation's error."""

    def __init__(self, route: RecordedRoute, error: Exception, limits: dict[str, str]) -> None:
        self._route = route
        self._error = error
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive, send
        scope["route"] = self._route
        if self._limits:
            scope["state"]["rate_limit"] = self._limits
        raise self._error
