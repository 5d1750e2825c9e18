"""The keyword arguments of the engine's operations, and signatures that spell them out. Pure."""

from __future__ import annotations

import functools
import inspect
import re
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

Start = Literal["top", "bottom"]
Compression = Literal["gzip", "zstd"]

# What a keyword argument is when it is left out; None for those not listed here.
DEFAULTS: Final[dict[str, object]] = {"limit": 100, "start": "top", "change": False, "people": False}


class InWindow(TypedDict, total=False):
    """The window to read. By default, the current slot of the board's first window, without a group."""

    period: str | None
    slot: str | None
    group: str | Mapping[str, str] | None


class Carried(TypedDict, total=False):
    """What a submission may carry besides member and score."""

    at: datetime | None
    groups: str | Mapping[str, str] | None
    id: str | None
    op: str | None
    metadata: dict[str, Any] | None


class AboutMatch(TypedDict, total=False):
    """What a match may carry besides its players and its winner."""

    ranks: list[int] | None
    """Instead of a winner: each player's rank, in the order of the players."""
    at: datetime | None
    id: str | None
    groups: Mapping[str, str | Mapping[str, str]] | None
    """By player."""
    metadata: dict[str, Any] | None


class Entries(InWindow, total=False):
    """The entries to read: with `people`, each has the name and avatar of its member."""

    people: bool


class FirstPage(Entries, total=False):
    """Where the first page of a window begins, and the length of a page."""

    limit: int
    start: Start
    rank: int | None
    change: bool


class Paging(FirstPage, total=False):
    """Which entries of the window: from an end, from a rank on, or after a cursor."""

    cursor: str | None


class Selection(InWindow, total=False):
    """The entries of a member that a change of metadata reaches, and the id of the change.

    `period` and `slot` select one window, `group` one group. By default, the change reaches every live window
    and group.
    """

    id: str | None


class ArchiveArguments(TypedDict, total=False):
    """Which part of a list from the archive: one period, one group, after a cursor."""

    period: str | None
    group: str | Mapping[str, str] | None
    cursor: str | None


class WatchArguments(Entries, total=False):
    """What to watch: the first `limit` entries, and one member besides; after the update with this id."""

    limit: int
    member: str | None
    last_id: str | None


class AboutPerson(TypedDict, total=False):
    """What is known about a person. What is left out is not known."""

    name: str | None
    avatar_url: str | None
    place: str | None
    timezone: str | None


class AboutPlace(TypedDict, total=False):
    """What is known about a place. Without a timezone it has the default one."""

    name: str | None
    timezone: str | None


class Listing(TypedDict, total=False):
    """Which part of a list: what begins with a prefix, after a cursor."""

    prefix: str | None
    limit: int
    cursor: str | None


class Batching(TypedDict, total=False):
    """How a client sends a batch."""

    id: str | None
    """Gives each submission without an id the id `ID.INDEX`. By default, the client makes one."""
    compress: Compression | None


def following(first: FirstPage, cursor: str) -> Paging:
    """The page after a cursor: the cursor keeps everything else that the first page was asked for."""
    return {
        "cursor": cursor,
        "limit": first.get("limit", 100),
        "change": first.get("change", False),
        "people": first.get("people", False),
    }


Function = TypeVar("Function", bound="Callable[..., Any]")
Class = TypeVar("Class", bound=type)

_UNPACKED: Final = re.compile(r"Unpack\[(\w+)\]")
_DRIVEN: Final = re.compile(r"(?:Flow|Stream|AsyncGenerator)\[(.+)\]")


def signature_of(operation: Callable[..., Any], returns: str = "{}") -> inspect.Signature:
    """The signature of an operation, each keyword argument by itself. `returns` is the return annotation,
    with `{}` for the type of the answer or the items.
    """
    given = inspect.signature(operation)
    parameters: list[inspect.Parameter] = []
    for parameter in given.parameters.values():
        unpacked = _UNPACKED.fullmatch(str(parameter.annotation))
        if unpacked is None:
            parameters.append(parameter)
            continue
        for name, annotation in globals()[unpacked[1]].__annotations__.items():
            default = DEFAULTS.get(name)
            parameters.append(
                inspect.Parameter(
                    name, parameter.KEYWORD_ONLY, default=default, annotation=annotation.__forward_arg__
                )
            )
    driven = _DRIVEN.fullmatch(given.return_annotation)
    answer = driven[1] if driven else given.return_annotation
    return given.replace(parameters=parameters, return_annotation=returns.format(answer))


def spelled_out(kind: Class) -> Class:
    """Has `help` show each keyword argument of the operations of a class by itself."""
    for name in dir(kind):
        operation = getattr(kind, name)
        if inspect.isfunction(operation) and not name.startswith("_"):
            returns = "AsyncGenerator[{}]" if inspect.isasyncgenfunction(operation) else "{}"
            vars(operation)["__signature__"] = signature_of(operation, returns)
    return kind


def runs(operation: Callable[..., Any], returns: str = "{}") -> Callable[[Function], Function]:
    """Gives a function the name, docstring and signature of the operation that it runs."""

    def described(function: Function) -> Function:
        functools.update_wrapper(function, operation)
        vars(function)["__signature__"] = signature_of(operation, returns)
        return function

    return described
