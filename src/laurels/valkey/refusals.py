"""What Valkey's errors become for a caller: by `laurels.outcomes`, and without the keys of a deployment."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from redis import exceptions

from laurels.errors import KeyTaken, OutcomeUnknown, Unavailable
from laurels.logs import get_logger
from laurels.outcomes import Outcome, of_valkey
from laurels.valkey.connections import UNANSWERED, NotSent

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from laurels.valkey.client import Value

_FUNCTION_CALLS = ("FCALL", "FCALL_RO")

log = get_logger("laurels.valkey")


@contextmanager
def translated(*, writing: bool, words: Sequence[Value] = ()) -> Generator[None]:
    """What the failures in this block mean to a caller: see `laurels.outcomes`. `words`: of the command."""
    try:
        yield
    except (exceptions.ResponseError, *UNANSWERED) as error:
        reply = error_reply(error.__cause__ if isinstance(error, NotSent) else error)
        if reply is None and writing and not isinstance(error, NotSent):
            raise OutcomeUnknown(
                f"Valkey stopped answering, so it may or may not have counted ({error})"
            ) from error
        if reply is None:
            raise Unavailable(f"Valkey does not answer: {error}") from error
        log_wrong_type(reply, words)
        meaning = of_valkey(reply, writing=writing)
        if meaning.outcome is Outcome.DEFECT:
            raise
        kind = OutcomeUnknown if writing and meaning.outcome is Outcome.UNKNOWN else Unavailable
        advice = f"Valkey refuses: {meaning.advice}"
        raise kind(f"{advice} ({reply})", advice=advice) from error


def log_wrong_type(reply: str, words: Sequence[Value]) -> None:
    """Callers are not told the keys of a deployment; its operators need them."""
    if reply.startswith("WRONGTYPE") and words:
        is_function = words[0] in _FUNCTION_CALLS
        keys = words[3 : 3 + int(words[2])] if is_function else words[1:2]
        log.error("a key holds a value of another type", command=words[0], keys=list(map(str, keys)))


def taken_key(key: str, holds: str) -> KeyTaken:
    """The error to raise. Callers are not told the key."""
    log.warning("another program has a key of a window", key=key, holds=holds)
    return KeyTaken.by(key, holds)


def error_reply(error: BaseException | None) -> str | None:
    """The reply as it came, where it is one: redis-py cuts off the first word of those it has a class for."""
    code: str | None = getattr(error, "status_code", None)
    if code:
        return f"{code} {error}"
    if isinstance(error, exceptions.AuthenticationError):
        return f"WRONGPASS {error}"
    return str(error) if isinstance(error, exceptions.ResponseError) else None
