"""The arguments and replies of the functions, as the heads of the Lua files describe them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

# Kind of score, descending, ties, dense ranks, metadata, keys of templates.
Shape = tuple[str, int, str, int, int, int]

Durability = Literal["fast", "fsync", "replicated"]
"""What a reply waits for: nothing; the disk of the node; the disk and the replicas."""
DURABILITIES: tuple[Durability, ...] = ("fast", "fsync", "replicated")


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
    durable: int = 0
    fed: int = 0
    replayed: int = 0
    fingerprints: list[str] = []


class MatchHeader(SubmitHeader, kw_only=True):
    """Each submission is a player's rating; `ids` and `calls` are the matches'."""

    sizes: list[int]
    skip: list[int]
    repeated: list[int]


class PlayerRanks(NamedTuple):
    """A player's ranks after and before a match, from 0; -1 without an entry."""

    rank: int
    previous_rank: int


@dataclass(frozen=True, slots=True)
class StaleStates:
    """The call was computed from stale states: the present states, and which matches are repeated."""

    states: list[bytes]
    repeated: list[int]


class Report(NamedTuple):
    """The result of one submission. PlayerRanks count from 0; -1 and b"" where there is none."""

    applied: int
    place: bytes
    previous_place: bytes
    rank: int
    previous_rank: int


@dataclass(frozen=True, slots=True)
class SubmitReply:
    refused: dict[int, str]
    """By index from 0: duplicate, range or max_change; answered, busy or other."""
    reports: list[Report | bytes]
    """Bytes are the stored response of a request that was answered."""


class Guard(NamedTuple):
    """Keys of a board are deleted only while this field of the board's hash has this value."""

    board_key: str
    field: str = ""
    value: int | str = ""


class Registration(NamedTuple):
    """A window to list: token, start and time to live in seconds, whether to take over a sorted set of
    another program, the group if there is one, and how many own keys are named.
    """

    token: str
    starts: int
    seconds: int
    adopts: int
    cut: str
    own_keys: int


class RemoveHeader(msgspec.Struct):
    shape: Shape
    version: int
    journal: int
    durable: int = 0
    rated: int = 0


class MetadataHeader(msgspec.Struct):
    shape: Shape
    version: int
    journal: int
    id: str
    remember: int
    metadata: str
    seconds: list[int]
    durable: int = 0
    replayed: int = 0


class Fence(NamedTuple):
    """Keeps writers off a board. New ids of the journal lie above `floor`."""

    token: str
    milliseconds: int
    floor: str = "0-0"


class PlaceHeader(msgspec.Struct):
    shape: Shape
    version: int
    journal: int
    seconds: int
    metadata: list[str]


class IndexHeader(msgspec.Struct):
    shape: Shape
    version: int
    expected: str
    """The present cursor of the index; "" for none."""
    reached: str
    targets: list[tuple[int, int]]
    """For each window the number of members, and its seconds to live."""


class FoldHeader(msgspec.Struct):
    shape: Shape
    version: int
    op: str
    day: int
    cursor: str
    count: int
    seconds: int


class ConvertHeader(msgspec.Struct):
    shape: Shape
    cursor: str
    count: int


class ReadHeader(msgspec.Struct):
    shape: Shape
    version: int
    brief: int = 0


class StandingReply(NamedTuple):
    """A member's standing. Counts from 0; distinct_better is -1 unless the board is dense."""

    place: bytes
    better: int
    before: int
    distinct_better: int
    metadata: bytes


class CountReply(NamedTuple):
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


class ScanHeader(msgspec.Struct):
    shape: Shape
    version: int
    cursor: str
    count: int


class EntryReply(NamedTuple):
    member: bytes
    place: bytes
    metadata: bytes


@dataclass(frozen=True, slots=True)
class PageReply:
    total: int
    first: int
    """Index of the first entry, from 0 at the best."""
    better: int
    """The number of entries that are strictly better than the first."""
    entries: list[EntryReply]


class HitReply(NamedTuple):
    """Whether a request was within its limit and counted; and the hits of its window's two stretches."""

    is_allowed: int
    before: int
    now: int
    milliseconds_left: int
    """Of the present stretch."""


class ClaimRequest(NamedTuple):
    """A claim on an idempotency key, which `owner` holds for `seconds`."""

    key: str
    fingerprint: str
    owner: str
    seconds: int


class ClaimReply(NamedTuple):
    """The result of a claim: mine, busy, other or done; and the stored response if there is one."""

    outcome: bytes
    fingerprint: bytes = b""
    answer: bytes = b""


Settling = Literal["done", "open", "forget", "renew"]


class Settlement(NamedTuple):
    """What to do with a claim: done, open, forget or renew."""

    key: str
    owner: str
    how: Settling
    fingerprint: str = ""
    value: bytes | int = b""
    """For done the response, for renew the seconds."""
