"""The results of queries. Ranks count from 1. Pure."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  # msgspec reads the annotations
from typing import Any

import msgspec


class ShownPerson(msgspec.Struct, frozen=True, gc=False):
    """The name and the avatar of a member, as far as they are known."""

    name: str | None
    avatar_url: str | None


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One line of a page. `change`: ranks gained since the previous window; null if it had no entry there."""

    rank: int
    member: str
    score: int | float
    change: int | msgspec.UnsetType | None = msgspec.UNSET
    metadata: dict[str, Any] | None = None
    person: ShownPerson | msgspec.UnsetType = msgspec.UNSET


class Page(msgspec.Struct, frozen=True):
    """Consecutive entries of a window, with cursors to the previous and the next page."""

    project: str
    board: str
    period: str
    slot: str
    starts_at: datetime | None
    ends_at: datetime | None
    next_reset_at: datetime | None
    total: int
    entries: list[Entry]
    next: str | None
    previous: str | None


class Standing(msgspec.Struct, frozen=True, omit_defaults=True):
    member: str
    score: int | float
    rank: int
    ordinal: int
    percentile: float
    total: int
    dense_rank: int | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] | None = None
    person: ShownPerson | msgspec.UnsetType = msgspec.UNSET


class Friend(msgspec.Struct, frozen=True):
    """A member ranked among the given members; `board_rank` is its rank on the board."""

    rank: int
    member: str
    score: int | float
    board_rank: int
    person: ShownPerson | msgspec.UnsetType = msgspec.UNSET


class Among(msgspec.Struct, frozen=True):
    """The given members ranked among themselves, and those without an entry."""

    total: int
    entries: list[Friend]
    absent: list[str]


class Percentile(msgspec.Struct, frozen=True):
    percentile: float
    score: int | float
    total: int


class Bucket(msgspec.Struct, frozen=True):
    """Counts the scores from `low` up to, but without, `high`; the last bucket includes `high`."""

    low: int | float
    high: int | float
    count: int


class Distribution(msgspec.Struct, frozen=True):
    total: int
    buckets: list[Bucket]
