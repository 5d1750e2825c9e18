"""Reads answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from pydantic import ValidationError

from laurels.boards.definition import BoardDefinition, field_errors
from laurels.client.errors import NotUnderstood

if TYPE_CHECKING:
    from laurels.client.steps import Reply

Answer = TypeVar("Answer")


def decoded(reply: Reply, kind: type[Answer]) -> Answer:
    """The answer, as the value that the engine itself returns."""
    return parsed(reply.body, kind)


def parsed(encoded: bytes | str, kind: type[Answer]) -> Answer:
    """Scores of int64 boards, which travel as strings, become whole numbers again."""
    try:
        return msgspec.json.decode(encoded, type=kind, strict=False, dec_hook=_definition)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotUnderstood(f"this is not what Laurels answers here: {error}") from error


def _definition(kind: type, given: object) -> Any:  # noqa: ANN401  # as msgspec calls it
    if kind is not BoardDefinition:
        raise NotImplementedError(kind)
    try:
        return BoardDefinition.model_validate(given)
    except ValidationError as error:
        wrong = "; ".join(f"{each.field}: {each.detail}" for each in field_errors(error))
        raise ValueError(f"a definition of another version of Laurels: {wrong}") from error
