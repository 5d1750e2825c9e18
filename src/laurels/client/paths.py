"""The paths, queries and bodies of requests. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, cast
from urllib.parse import quote, urlencode

import msgspec

from laurels.boards.keys import group_text
from laurels.errors import InvalidInput
from laurels.scores.submission import check_member

Query: TypeAlias = Mapping[str, object]

JSON: Final = {"Content-Type": "application/json"}


def project_path(name: str) -> str:
    return f"/v1/projects/{segment(name)}"


def member_segment(member: str) -> str:
    check_member(member)
    return segment(member)


def segment(text: str) -> str:
    """One part of a path. A part of dots alone would be resolved on the way, so they are encoded."""
    quoted = quote(text, safe="")
    return quoted.replace(".", "%2E") if quoted.strip(".") == "" else quoted


def with_query(path: str, query: Query) -> str:
    """The path with its query, without what is None."""
    pairs = {name: _text(value) for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(pairs, quote_via=quote)}" if pairs else path


def _text(value: object) -> str | None:
    if isinstance(value, Mapping):
        return group_text(cast("Mapping[str, str]", value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_json(field: str, value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput.at(field, f"cannot be written as JSON: {error}") from error
