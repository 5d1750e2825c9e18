"""Every error that Laurels raises on purpose.

LaurelsError
├── InvalidInput            422   a value that was given is wrong; ``fields`` says which
│   ├── StaleCursor         422   the cursor belongs to another board, window or definition
│   └── KeyReused           422   the Idempotency-Key belongs to another request
├── Unauthorized            401   no key, or one that does not exist
│   └── BadSignature        401   the submission is not signed as it must be
├── Forbidden               403   the key is good, but not for this
├── NotFound                404   a project, board, window or member that is not there
│   └── WindowGone          404   the window is past its keep; an archive may have it
├── Conflict                409   the change contradicts what the board already holds
│   ├── DropNotAllowed      409   the change would drop entries or snapshots; ``drops`` says which
│   ├── InFlight            409   a request with the same Idempotency-Key is under way
│   └── KeyTaken            409   another program has a key of the window in Valkey
├── RateLimited             429   too many requests; ``retry_after`` says when to go on
├── Unavailable             503   a store does not answer; nothing was changed
│   └── OutcomeUnknown      503   a store stopped answering mid-call; retry with the same id
└── StartupError            500   the process cannot start; said in one line, never over HTTP
    ├── DataFolderLocked    500   another process serves this data folder
    └── DataFolderUnusable  500   the data folder cannot be used by the servers

Each class carries the HTTP status and the problem type that `api.problems` renders (RFC 9457).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field: its path in the input (``windows[0].keep``), and why."""

    field: str
    detail: str


@dataclass(frozen=True)
class Drop:
    """What a change would take away of one window."""

    window: str
    """Its name, as `period=` asks for it; `ratings` for the ratings of players."""
    entries: int
    """Members in all slots and groups that would go; a member of two slots counts twice."""
    snapshots: int
    """Archived tables that reads of the window would no longer find."""


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
        """One field is wrong: ``InvalidInput.at("score", "must be a finite number")``."""
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
    """Valkey answers no longer for this window."""


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
    title = "The same request is under way"


class KeyTaken(Conflict):
    """Another program has made a key that a template names. The log has the key; callers learn the board."""

    kind = "key-taken"
    title = "Another program has a key of the window"

    def __init__(self, detail: str, key: str = "", holds: str = "") -> None:
        super().__init__(detail)
        self.key = key
        self.holds = holds
        """What it is, by its type in Valkey."""

    @classmethod
    def by(cls, key: str, holds: str) -> Self:
        return cls(
            f"another program keeps a {holds} in Valkey under a key of this window; the log names the key: "
            "move it away, or let the board name its keys otherwise",
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
        """Seconds until it is worth to try again."""


class Unavailable(LaurelsError):
    status = 503
    kind = "unavailable"
    title = "A store does not answer"
    accepted = 0
    """How many submissions of a batch counted before it was cut off."""

    def __init__(self, detail: str, *, advice: str = "") -> None:
        super().__init__(detail)
        self.advice = advice
        """Which store refuses, why, and what an operator can do; anybody may read it."""


class OutcomeUnknown(Unavailable):
    kind = "outcome-unknown"
    title = "The outcome is unknown: retry with the same id"

    def __init__(self, detail: str, retry_with: str | None = None, *, advice: str = "") -> None:
        super().__init__(detail, advice=advice)
        self.retry_with = retry_with
        """The id under which the submission can safely be sent again."""

    @classmethod
    def after(cls, error: Unavailable, detail: str = "", retry_with: str | None = None) -> Self:
        """Something else was done already when this error came."""
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
