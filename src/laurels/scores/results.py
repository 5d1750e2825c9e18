"""What a board answers, as values. Ranks count from 1. Pure."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  # msgspec reads the annotations
from typing import Any

import msgspec


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One line of a page. `change`: ranks gained since the window before; None for who was not in it."""

    rank: int
    member: str
    score: int | float
    change: int | msgspec.UnsetType | None = msgspec.UNSET
    metadata: dict[str, Any] | None = None


class Page(msgspec.Struct, frozen=True):
    """A stretch of a window, and the cursors to what lies before and behind it."""

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


class Friend(msgspec.Struct, frozen=True):
    """A member ranked among some others; `board_rank` is its rank among all."""

    rank: int
    member: str
    score: int | float
    board_rank: int


class Among(msgspec.Struct, frozen=True):
    """Some members ranked among themselves, and those of them who have no entry."""

    total: int
    entries: list[Friend]
    absent: list[str]


class Percentile(msgspec.Struct, frozen=True):
    percentile: float
    score: int | float
    total: int


class Bucket(msgspec.Struct, frozen=True):
    """Entries with a score from `low` up to `high`; in the last bucket, `high` included."""

    low: int | float
    high: int | float
    count: int


class Distribution(msgspec.Struct, frozen=True):
    total: int
    buckets: list[Bucket]
