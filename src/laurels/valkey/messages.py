"""What crosses to our functions and back, as values. Pure; its other half stands on top of the Lua files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from laurels.boards.ordering import Ordering

Shape = tuple[str, str, int, str, int, int]


def shape_of(ordering: Ordering, *, dense: bool, metadata: bool) -> Shape:
    """What every call says of its board."""
    return (
        "exact" if ordering.exact else "plain",
        "int64" if ordering.int64 else "number",
        int(ordering.descending),
        ordering.ties,
        int(dense),
        int(metadata),
    )


class TargetHeader(msgspec.Struct):
    window: int
    chosen: int | list[int]
    seconds: int
    how: str
    base: int
    days: list[int]
    op: str


class SubmitHeader(msgspec.Struct):
    shape: Shape
    version: int
    aggregate: str
    count: int
    fast: int
    report: int
    journal: int
    call: str
    ids: list[str]
    calls: list[str]
    ops: list[str]
    metadata: list[str]
    first: list[int]
    max_change: Any
    targets: list[TargetHeader]


class Report(NamedTuple):
    """What became of one submission. Ranks count from 0; -1 and b"" where there is none."""

    applied: int
    place: bytes
    previous_place: bytes
    rank: int
    previous_rank: int


@dataclass(frozen=True, slots=True)
class SubmitReply:
    refused: dict[int, str]
    """By index from 0: duplicate, range or max_change."""
    reports: list[Report]


class Registration(NamedTuple):
    """A window to be listed: its name, its start and its time to live in seconds, and its group if any."""

    token: str
    starts: int
    seconds: int
    cut: str


class RemoveHeader(msgspec.Struct):
    shape: Shape
    version: int
    journal: int


class FoldHeader(msgspec.Struct):
    shape: Shape
    version: int
    op: str
    day: int
    cursor: str
    count: int
    seconds: int


class ReadHeader(msgspec.Struct):
    shape: Shape
    version: int
    brief: int = 0


class Stood(NamedTuple):
    """Where a member stands. Counts from 0; distinct_better is -1 unless the board is dense."""

    place: bytes
    better: int
    before: int
    distinct_better: int
    metadata: bytes


class Counted(NamedTuple):
    better: int
    before: int


By = Literal["start", "end", "after", "before", "member", "share"]


class PageHeader(msgspec.Struct):
    shape: Shape
    version: int
    by: By
    limit: int = 0
    offset: int = 0
    above: int = 0
    below: int = 0
    share: tuple[int, int] = (0, 1)


class Listed(NamedTuple):
    member: bytes
    place: bytes
    metadata: bytes


@dataclass(frozen=True, slots=True)
class PageReply:
    total: int
    first: int
    """Index of the first entry, from 0 at the best."""
    better: int
    """How many entries are strictly better than the first."""
    entries: list[Listed]
