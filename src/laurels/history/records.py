"""The results of queries of the archive. Ranks count from 1. Pure."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  # msgspec reads the annotations
from typing import Annotated, Literal

import msgspec

from laurels.scores.results import Entry  # noqa: TC001  # msgspec reads the annotations

Source = Literal["live", "snapshot", "journal"]


class PastStanding(msgspec.Struct, frozen=True):
    """Where a member stood when a window ended, and the source of this."""

    slot: str
    starts_at: datetime | None
    ends_at: datetime | None
    score: int | float
    rank: int
    total: int
    source: Source


class History(msgspec.Struct, frozen=True):
    """A member's standings in windows that ended, newest first."""

    member: str
    period: str
    windows: list[PastStanding]
    next: str | None


class SnapshotInfo(msgspec.Struct, frozen=True):
    """A window at a moment. `kept`: how many of its `total` entries are archived."""

    id: Annotated[str, msgspec.Meta(description="What `snapshots/{snapshot}` takes.")]
    period: str
    slot: str
    group: str
    taken_for: datetime
    taken_at: datetime
    starts_at: datetime | None
    ends_at: datetime | None
    total: int
    kept: int


class SnapshotList(msgspec.Struct, frozen=True):
    """Snapshots, newest first."""

    snapshots: list[SnapshotInfo]
    next: str | None


class SnapshotPage(msgspec.Struct, frozen=True):
    """Consecutive entries of a snapshot."""

    project: str
    board: str
    snapshot: SnapshotInfo
    total: int
    entries: list[Entry]
    next: str | None


class Erased(msgspec.Struct, frozen=True):
    """How much was erased."""

    boards: int
    windows: int
    """Live windows where the member had an entry."""
    rows: int
    """Rows of the journal and of snapshots that were renamed."""
