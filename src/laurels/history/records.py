"""The results of queries of the archive. Ranks count from 1. Pure."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  # msgspec reads the annotations
from typing import Annotated, Any, Literal

import msgspec

from laurels.people.records import Person  # noqa: TC001  # msgspec reads the annotations
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


class ExportedEntry(msgspec.Struct, frozen=True):
    """A member's entry in a live window or group. The score of an `int64` board is a string."""

    board: str
    period: str
    slot: str
    group: str
    score: int | float | str
    rank: int
    total: int
    metadata: dict[str, Any] | None


class MemberExport(msgspec.Struct, frozen=True):
    """Everything that is kept about a member. `next` is the cursor for further rows of the journal."""

    project: str
    member: str
    person: Person | None = None
    entries: list[ExportedEntry] = []
    """In live windows."""
    snapshots: list[dict[str, Any]] = []
    """In archived windows, oldest first."""
    journal: list[dict[str, Any]] = []
    """Submissions and other changes, oldest first."""
    users: list[dict[str, Any]] = []
    """The user of a campus."""
    streaks: list[dict[str, Any]] = []
    badges: list[dict[str, Any]] = []
    days: list[dict[str, Any]] = []
    """Days of activity: finalized ones, then those in the making."""
    next: str | None = None
