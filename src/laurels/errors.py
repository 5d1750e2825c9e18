"""Every error that Laurels raises on purpose.

LaurelsError
├── InvalidInput            422   a value is wrong; ``fields`` says which
│   ├── StaleCursor         422   the cursor belongs to another board, window or definition
│   └── KeyReused           422   the Idempotency-Key belongs to another request
├── Unauthorized            401   the key is missing or not valid
│   └── BadSignature        401   the submission's signature is missing or wrong
├── Forbidden               403   the key is valid, but does not allow this
├── NotFound                404   the project, board, window or member does not exist
│   └── WindowGone          404   the window is past its keep; a snapshot may have it
├── Conflict                409   the change contradicts what the board holds
│   ├── DropNotAllowed      409   the change would drop entries or snapshots; ``drops`` says which
│   ├── InFlight            409   a request with the same Idempotency-Key is in progress
│   └── KeyTaken            409   another program uses a Valkey key of the window
├── RateLimited             429   too many requests; ``retry_after`` says how long to wait
├── Unavailable             503   a store does not answer; nothing was changed
│   ├── IndexNotReady       503   an index is not built, or behind with no process that maintains it
│   └── OutcomeUnknown      503   a store stopped answering mid-call; retry with the same id
└── StartupError            500   the process cannot start; printed in one line, never sent over HTTP
    ├── DataFolderLocked    500   another process uses this data folder
    └── DataFolderUnusable  500   the servers cannot use the data folder

Each class has the HTTP status and the problem type that `http.problems` renders (RFC 9457).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self


@dataclass(frozen=True)
class FieldError:
    """A wrong field: its path in the input (``windows[0].keep``), and what is wrong."""

    field: str
    detail: str


@dataclass(frozen=True)
class Drop:
    """What a change would delete from one window."""

    window: str
    """The name that `period=` takes; `ratings` for the ratings of players."""
    entries: int
    """Entries in all its slots and groups; a member in two slots counts twice."""
    snapshots: int
    """Snapshots that reads of the window would no longer find."""


class LaurelsError(Exception):
    status: ClassVar[int] = 500
    kind: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class InvalidInput(LaurelsError):
    status = 422
    kind = "invalid-input"
    title = "The input is not valid"

    def __init__(self, detail: str, *fields: FieldError) -> None:
        super().__init__(detail)
        self.fields = fields

    @classmethod
    def at(cls, field: str, detail: str) -> Self:
        """An error of one field: ``InvalidInput.at("score", "must be a finite number")``."""
        return cls(f"{field}: {detail}", FieldError(field, detail))


class StaleCursor(InvalidInput):
    kind = "stale-cursor"
    title = "The cursor is stale"


class KeyReused(InvalidInput):
    kind = "idempotency-key-reused"
    title = "The Idempotency-Key belongs to another request"


class Unauthorized(LaurelsError):
    status = 401
    kind = "unauthorized"
    title = "A valid API key is needed"


class BadSignature(Unauthorized):
    kind = "bad-signature"
    title = "The submission is not signed as it must be"


class Forbidden(LaurelsError):
    status = 403
    kind = "forbidden"
    title = "This key may not do that"


class NotFound(LaurelsError):
    status = 404
    kind = "not-found"
    title = "Not found"


class WindowGone(NotFound):
    """Valkey no longer keeps this window."""


class Conflict(LaurelsError):
    status = 409
    kind = "conflict"
    title = "The change contradicts what the board holds"


class DropNotAllowed(Conflict):
    kind = "drop-not-allowed"
    title = "The change would drop what the board holds"

    def __init__(self, detail: str, drops: tuple[Drop, ...] = ()) -> None:
        super().__init__(detail)
        self.drops = drops


class InFlight(Conflict):
    kind = "in-flight"
    title = "The same request is in progress"


class KeyTaken(Conflict):
    """Another program made a key that a key template names. The log names the key; a caller learns only the
    board.
    """

    kind = "key-taken"
    title = "Another program uses a key of the window"

    def __init__(self, detail: str, key: str = "", holds: str = "") -> None:
        super().__init__(detail)
        self.key = key
        self.holds = holds
        """The key's type in Valkey."""

    @classmethod
    def by(cls, key: str, holds: str) -> Self:
        return cls(
            f"another program keeps a {holds} under a Valkey key of this window; the log names the key: "
            "move the other program's data, or change the board's key template",
            key,
            holds,
        )


class RateLimited(LaurelsError):
    status = 429
    kind = "rate-limited"
    title = "Too many requests"

    def __init__(self, detail: str, retry_after: int = 1) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        """Seconds to wait before the next try."""


class Unavailable(LaurelsError):
    status = 503
    kind = "unavailable"
    title = "A store does not answer"
    accepted = 0
    """How many submissions of a batch counted before it was interrupted."""

    def __init__(self, detail: str, *, advice: str = "") -> None:
        super().__init__(detail)
        self.advice = advice
        """Which store refuses, why, and what an operator can do. It holds no secret."""


class IndexNotReady(Unavailable):
    kind = "index-not-ready"
    title = "The index is not ready"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, advice=detail)


class OutcomeUnknown(Unavailable):
    kind = "outcome-unknown"
    title = "The outcome is unknown: retry with the same id"

    def __init__(self, detail: str, retry_with: str | None = None, *, advice: str = "") -> None:
        super().__init__(detail, advice=advice)
        self.retry_with = retry_with
        """The id for a safe retry of the submission."""

    @classmethod
    def after(cls, error: Unavailable, detail: str = "", retry_with: str | None = None) -> Self:
        """For an error that came after part of the work was done."""
        return cls(detail or error.detail, retry_with, advice=error.advice)


class StartupError(LaurelsError):
    kind = "startup"
    title = "Laurels cannot start"


class DataFolderLocked(StartupError):
    kind = "data-folder-locked"
    title = "The data folder is in use"


class DataFolderUnusable(StartupError):
    kind = "data-folder-unusable"
    title = "The data folder cannot be used"
