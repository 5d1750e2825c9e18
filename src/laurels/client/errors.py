"""Every error that a client raises: those of `laurels.errors`, and three of its own.

LaurelsError                500   an error on the server's side
├── InvalidInput            422   a value that was given is wrong; ``fields`` says which
│   └── StaleCursor         422   the cursor belongs to another board, window or definition
├── Unauthorized            401   no key, or one that does not exist
│   └── BadSignature        401   the submission is not signed as it must be
├── Forbidden               403   the key is good, but not for this
├── NotFound                404   a project, board, window or member that is not there
├── Conflict                409   the change contradicts what the board already holds
│   └── DropNotAllowed      409   the change would drop entries or snapshots; ``drops`` says which
├── RateLimited             429   too many requests, for longer than the client's retries go on
├── Refused                 4xx   any other refusal; ``problem`` and ``answered`` say which
├── NotUnderstood                 the answer does not come from Laurels: is the address right?
└── Unavailable             503   a store does not answer; nothing was changed
    └── OutcomeUnknown      503   the change may have been made; ``retry_with`` is the id to repeat it by
        └── Unreachable           no answer came, whether or not the request arrived

The problem's `type` decides the class, so the same `except` works in process and over HTTP. The message ends
in the id that the request has in the server's log.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from laurels.client.retries import asked_pause
from laurels.client.steps import Lost
from laurels.errors import (
    Drop,
    DropNotAllowed,
    FieldError,
    InvalidInput,
    LaurelsError,
    OutcomeUnknown,
    RateLimited,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laurels.client.steps import Reply

# Statuses of a proxy that cannot reach its server.
GATEWAY: Final = frozenset({502, 503, 504})


class Unreachable(OutcomeUnknown):
    kind = "unreachable"
    title = "No answer came"


class NotUnderstood(LaurelsError):
    kind = "not-understood"
    title = "The answer is not one of Laurels'"


class Refused(LaurelsError):
    kind: ClassVar[str] = "refused"
    title: ClassVar[str] = "The request was refused"

    def __init__(self, detail: str, problem: str, answered: int) -> None:
        super().__init__(detail)
        self.problem = problem
        """The last part of the problem's type: `too-large`."""
        self.answered = answered
        """The HTTP status."""


class ProblemDetails(msgspec.Struct, frozen=True):
    """A problem (RFC 9457) that the server answered."""

    type: str
    status: int
    detail: str
    request_id: str = ""
    errors: tuple[FieldError, ...] = ()
    retry_with: str | None = None
    checks: dict[str, str] = {}
    drops: tuple[Drop, ...] = ()

    @property
    def kind(self) -> str:
        return self.type.rpartition("/")[2]


_problem = msgspec.json.Decoder(ProblemDetails)


def problem_of(encoded: bytes | str) -> ProblemDetails | None:
    """The problem, if this is one."""
    try:
        return _problem.decode(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def error_of(reply: Reply | Lost, request_id: str) -> LaurelsError:
    """The error for an answer that is bad or did not come."""
    if isinstance(reply, Lost):
        return Unreachable(_signed(f"no answer came: {reply.why}", request_id))
    problem = problem_of(reply.body)
    if problem is not None:
        error = error_for(problem, request_id)
        return (
            RateLimited(error.detail, ceil(asked_pause(reply))) if isinstance(error, RateLimited) else error
        )
    told = _signed(f"the answer was {reply.status}, and no problem of Laurels'", request_id)
    if reply.status in GATEWAY:
        return Unreachable(told)
    return NotUnderstood(told) if reply.status < 400 else Refused(told, "", reply.status)


def error_for(problem: ProblemDetails, request_id: str = "") -> LaurelsError:
    """The error of the problem's kind."""
    kind = _kinds().get(problem.kind)
    detail = _signed(problem.detail, problem.request_id or request_id)
    if kind is None:
        return Refused(detail, problem.kind, problem.status)
    if issubclass(kind, InvalidInput):
        return kind(detail, *problem.errors)
    if issubclass(kind, OutcomeUnknown):
        return kind(detail, problem.retry_with)
    if issubclass(kind, DropNotAllowed):
        return kind(detail, problem.drops)
    return kind(detail)


def _signed(detail: str, request_id: str) -> str:
    return f"{detail} (request {request_id})" if request_id else detail


def _kinds() -> dict[str, type[LaurelsError]]:
    """The errors of `laurels.errors` by kind; of several with one kind, the nearest to the root."""
    known: dict[str, type[LaurelsError]] = {}
    for kind in _tree(LaurelsError):
        if kind.__module__ == LaurelsError.__module__:
            known.setdefault(kind.kind, kind)
    return known


def _tree(root: type[LaurelsError]) -> Iterator[type[LaurelsError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _tree(kind)
