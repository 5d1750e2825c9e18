"""A typed stub for each function of our library; what it does stands on top of its Lua file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.boards.ordering import Ordering
    from laurels.valkey.client import Reply, Valkey, Value

_encode = msgspec.msgpack.Encoder().encode

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


class DefinitionChanged(Exception):
    """Valkey knows another version of the board than the caller does: `known`, or none at all."""

    def __init__(self, known: int | None) -> None:
        super().__init__(known)
        self.known = known


class MetadataKept(Exception):
    """The board has metadata, and the call did not name its keys: call again with them."""


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


async def submit(
    valkey: Valkey, keys: Sequence[str], header: SubmitHeader, rest: Sequence[Value]
) -> SubmitReply:
    """`rest`: the journal entry, the moments, then score and member of each submission."""
    status, *answer = await valkey.write("laurels_submit", keys, (_encode(header), *rest))
    if status == b"version":
        raise DefinitionChanged(_version(answer[0]))
    if status == b"metadata":
        raise MetadataKept
    refused, reports = answer
    return SubmitReply(
        refused={index - 1: why.decode() for index, why in zip(refused[::2], refused[1::2], strict=True)},
        reports=[Report(*report) for report in reports],
    )


async def adopt(valkey: Valkey, board_key: str, version: int) -> int:
    return int(await valkey.write("laurels_adopt", (board_key,), (version,)))


class Registration(NamedTuple):
    """A window to be listed: its name, its start and its time to live in seconds, and its group if any."""

    token: str
    starts: int
    seconds: int
    cut: str


async def register(valkey: Valkey, keys: tuple[str, str], registration: Registration) -> None:
    *named, cut = registration
    await valkey.write("laurels_register", keys, (*named, cut) if cut else named)


class RemoveHeader(msgspec.Struct):
    shape: Shape
    version: int
    journal: int


async def remove(
    valkey: Valkey, keys: Sequence[str], header: RemoveHeader, journal: bytes, member: bytes
) -> int:
    """In how many of these windows the member was."""
    status, answer = await valkey.write("laurels_remove", keys, (_encode(header), journal, member))
    if status == b"version":
        raise DefinitionChanged(_version(answer))
    return int(answer)


class FoldHeader(msgspec.Struct):
    shape: Shape
    op: str
    day: int
    cursor: str
    count: int
    seconds: int


async def fold(valkey: Valkey, keys: Sequence[str], header: FoldHeader) -> str:
    """The next cursor; "0" when the day is done."""
    return (await valkey.write("laurels_fold", keys, (_encode(header),))).decode()


class ReadHeader(msgspec.Struct):
    shape: Shape
    version: int


async def _read(valkey: Valkey, function: str, keys: Sequence[str], args: Sequence[Value]) -> Reply:
    answer = await valkey.read(function, keys, args)
    if answer[0] == b"version":
        raise DefinitionChanged(_version(answer[1]))
    return answer


class Stood(NamedTuple):
    """Where a member stands. Counts from 0; distinct_better is -1 unless the board is dense."""

    place: bytes
    better: int
    before: int
    distinct_better: int
    metadata: bytes


async def standing(
    valkey: Valkey, keys: Sequence[str], header: ReadHeader, members: Sequence[bytes]
) -> tuple[int, list[Stood | None]]:
    """How many entries there are, and each member's standing."""
    total, *found = await _read(valkey, "laurels_standing", keys, (_encode(header), *members))
    return total, [Stood(*each) if each else None for each in found]


class Counted(NamedTuple):
    better: int
    before: int


async def count(
    valkey: Valkey, keys: Sequence[str], header: ReadHeader, places: Sequence[tuple[bytes, bytes]]
) -> tuple[int, list[Counted]]:
    """How many entries there are, and where entries at these places would stand."""
    flat = [part for place in places for part in place]
    total, *found = await _read(valkey, "laurels_count", keys, (_encode(header), *flat))
    return total, [Counted(*each) for each in found]


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


async def page(
    valkey: Valkey, keys: Sequence[str], header: PageHeader, rest: Sequence[Value] = ()
) -> PageReply | None:
    """A stretch of the window, best first; None when it is asked by a member who has no entry."""
    total, *answer = await _read(valkey, "laurels_page", keys, (_encode(header), *rest))
    if not answer:
        return None
    first, better, listed, metadata = answer
    members, places = listed[::2], listed[1::2]
    return PageReply(
        total, first, better, list(map(Listed, members, places, metadata or [b""] * len(members)))
    )


def _version(known: bytes) -> int | None:
    return int(known) if known else None
