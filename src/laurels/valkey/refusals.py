"""Translates Valkey's errors for callers, by `laurels.outcomes`. Key names go to the log only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redis import exceptions

from laurels.errors import KeyTaken, OutcomeUnknown, Unavailable
from laurels.logs import get_logger
from laurels.outcomes import Outcome, of_valkey
from laurels.valkey.connections import UNANSWERED, NotSent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.valkey.client import Value

_FUNCTION_CALLS = ("FCALL", "FCALL_RO")
_TRANSLATED = (exceptions.ResponseError, *UNANSWERED)

log = get_logger("laurels.valkey")


class translated:  # noqa: N801  # a context manager, used like a function
    """Translates the errors in its block. `words`: the command, for the log."""

    __slots__ = ("_words", "_writing")

    def __init__(self, *, writing: bool, words: Sequence[Value] = ()) -> None:
        self._writing = writing
        self._words = words

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _TRANSLATED):
            _translate(error, self._words, writing=self._writing)


def _translate(error: BaseException, words: Sequence[Value], *, writing: bool) -> None:
    """Raises what the error means; returns if it is a defect of ours, which is raised as it is."""
    reply = error_reply(error.__cause__ if isinstance(error, NotSent) else error)
    if reply is None and writing and not isinstance(error, NotSent):
        raise OutcomeUnknown(
            f"Valkey stopped answering, so the call may or may not have counted ({error})"
        ) from error
    if reply is None:
        raise Unavailable(f"Valkey does not answer: {error}") from error
    log_wrong_type(reply, words)
    meaning = of_valkey(reply, writing=writing)
    if meaning.outcome is Outcome.DEFECT:
        return
    kind = OutcomeUnknown if writing and meaning.outcome is Outcome.UNKNOWN else Unavailable
    advice = f"Valkey refuses: {meaning.advice}"
    raise kind(f"{advice} ({reply})", advice=advice) from error


def log_wrong_type(reply: str, words: Sequence[Value]) -> None:
    """Logs the keys of a command that met a value of another type."""
    if reply.startswith("WRONGTYPE") and words:
        is_function = words[0] in _FUNCTION_CALLS
        keys = words[3 : 3 + int(words[2])] if is_function else words[1:2]
        log.error(
            "a key has the wrong type; rename or delete it", command=words[0], keys=list(map(str, keys))
        )


def taken_key(key: str, holds: str) -> KeyTaken:
    """Logs the key, and returns the error to raise, which does not name it."""
    log.warning("the key of a window belongs to another program", key=key, holds=holds)
    return KeyTaken.by(key, holds)


def error_reply(error: BaseException | None) -> str | None:
    """The full error reply. redis-py cuts off the first word of those that it has a class for."""
    code: str | None = getattr(error, "status_code", None)
    if code:
        return f"{code} {error}"
    if isinstance(error, exceptions.AuthenticationError):
        return f"WRONGPASS {error}"
    return str(error) if isinstance(error, exceptions.ResponseError) else None
