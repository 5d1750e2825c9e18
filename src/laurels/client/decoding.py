"""Answers, read."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from laurels.client.errors import NotUnderstood

if TYPE_CHECKING:
    from laurels.client.steps import Reply

Answer = TypeVar("Answer")


def decoded(reply: Reply, kind: type[Answer]) -> Answer:
    """What the answer says, as the values that the engine itself gives."""
    return parsed(reply.body, kind)


def parsed(encoded: bytes | str, kind: type[Answer]) -> Answer:
    """Scores of int64 boards travel as strings; here they are whole numbers again, to the last digit."""
    try:
        return msgspec.json.decode(encoded, type=kind, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotUnderstood(f"this is not what Laurels answers here: {error}") from error
