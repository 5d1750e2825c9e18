"""Reads the path and the query of a request.

Routes match the path as sent, percent-encoded, and decode its parts afterwards. So a member called `x/around`
is `x%2Faround`, and never the neighbourhood of `x`.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar
from urllib.parse import parse_qsl, quote, unquote_to_bytes

import msgspec
from msgspec import Meta, Struct
from starlette.convertors import Convertor, register_url_convertor

from laurels.boards.names import NAME_PATTERN
from laurels.errors import InvalidInput
from laurels.history.member_history import LIMIT as HISTORY_LIMIT
from laurels.scores.page_query import PAGE_LIMIT, EntriesQuery, WindowQuery
from laurels.scores.queries import AROUND_LIMIT, BUCKET_LIMIT
from laurels.wording import no_such, of_msgspec

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

Parameters = TypeVar("Parameters", bound=Struct)

# Limits a query or a form; no route has more than ten parameters.
MOST_PAIRS: Final = 100
# The longest query that is remembered, in bytes.
LONGEST_REMEMBERED: Final = 200

_NAME: Final = re.compile(NAME_PATTERN)


class NoParameters(Struct, forbid_unknown_fields=True):
    pass


class AroundParameters(EntriesQuery, frozen=True):
    above: Annotated[int, Meta(ge=0, le=AROUND_LIMIT, description="How many better entries.")] = 5
    below: Annotated[int, Meta(ge=0, le=AROUND_LIMIT, description="How many worse entries.")] = 5


class DistributionParameters(WindowQuery, frozen=True):
    buckets: Annotated[int, Meta(ge=1, le=BUCKET_LIMIT, description="How many buckets, at most.")] = 20


class WindowsParameters(Struct, forbid_unknown_fields=True):
    period: Annotated[str | None, Meta(description="Only the windows of this period.")] = None
    group: Annotated[str | None, Meta(description="Count the entries of this group.")] = None
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many windows, at most.")] = 100


class HistoryParameters(Struct, forbid_unknown_fields=True):
    period: Annotated[str | None, Meta(description="A period of the board. Default: its first.")] = None
    group: Annotated[str | None, Meta(description="Rank within this group. Default: all members.")] = None
    limit: Annotated[int, Meta(ge=1, le=HISTORY_LIMIT, description="How many windows, at most.")] = 30
    cursor: Annotated[str | None, Meta(description="`next` of the previous page.")] = None


class SnapshotsParameters(Struct, forbid_unknown_fields=True):
    period: Annotated[str | None, Meta(description="Only snapshots of this period.")] = None
    group: Annotated[
        str | None, Meta(description="Only snapshots of this group; empty for the whole board. Default: all.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT, description="How many snapshots, at most.")] = 100
    cursor: Annotated[str | None, Meta(description="`next` of the previous page.")] = None


class SnapshotParameters(Struct, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT, description="How many entries.")] = 100
    cursor: Annotated[str | None, Meta(description="`next` of the previous page.")] = None
    people: Annotated[
        bool, Meta(description="Whether to add the `person` that each member is: name and avatar.")
    ] = False


def read_query(request: Request, kind: type[Parameters]) -> Parameters:
    """The query parameters; unknown, repeated and invalid ones are refused."""
    sent: bytes = request.scope["query_string"]
    if len(sent) > LONGEST_REMEMBERED:
        return parse_pairs(sent, kind)
    return _remembered_query(sent, kind) if sent or _requires_some(kind) else kind()


# Most requests of an application have one of a few queries.
@lru_cache(maxsize=4096)
def _remembered_query(sent: bytes, kind: type[Parameters]) -> Parameters:
    return parse_pairs(sent, kind)


@cache
def _requires_some(kind: type[Struct]) -> bool:
    return any(field.required for field in msgspec.structs.fields(kind))


def parse_pairs(
    sent: bytes, kind: type[Parameters], what: Literal["parameter", "field"] = "parameter"
) -> Parameters:
    """Parses `name=value&…` in a query or a form."""
    given = _pairs(sent, "the query" if what == "parameter" else "the form")
    names = kind.__struct_encode_fields__
    for name in given:
        if name not in names:
            raise InvalidInput.at(name, no_such(name, names, what))
    try:
        found = msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        wrong = of_msgspec(error, kind)
        value = f"not {given.get(wrong.field)!r}"
        detail = re.sub(r"not a string$", lambda _: value, wrong.detail)
        raise InvalidInput.at(wrong.field, detail) from error
    for name, field in zip(names, kind.__struct_fields__, strict=True):
        # A parameter is left out, never null.
        if name in given and getattr(found, field) is None:
            raise InvalidInput.at(name, f"must not be {given[name]!r}: leave it out")
    return found


def _pairs(sent: bytes, what: str) -> dict[str, str]:
    if sent.count(b"&") >= MOST_PAIRS:
        raise InvalidInput(f"{what} has more than {MOST_PAIRS} parameters")
    try:
        pairs = parse_qsl(sent.decode(), keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise InvalidInput(f"{what} is not percent-encoded UTF-8") from error
    given: dict[str, str] = {}
    for name, value in pairs:
        if name in given:
            raise InvalidInput.at(name, "is given more than once")
        given[name] = value
    return given


@lru_cache(maxsize=4096)
def check_name(field: str, name: str) -> str:
    """The name of a project or a board, 1 to 64 of `A-Z a-z 0-9 - _ .`; raises `InvalidInput` otherwise."""
    if not _NAME.fullmatch(name):
        raise InvalidInput.at(field, "must be 1 to 64 of A-Z a-z 0-9 - _ .")
    return name


def path_as_sent(scope: Scope) -> str:
    raw: bytes | None = scope.get("raw_path")
    return scope["path"] if raw is None else raw.decode("latin-1")


class _Segment(Convertor[str]):
    """One part of the path, decoded."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        try:
            return unquote_to_bytes(value.encode("latin-1")).decode()
        except UnicodeDecodeError as error:
            raise InvalidInput("the path is not percent-encoded UTF-8") from error

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


class _Member(_Segment):
    """A member: the rest of the path, for clients and proxies that do not encode slashes."""

    regex = ".+"


register_url_convertor("segment", _Segment())
register_url_convertor("member", _Member())
