"""What a job is, what a run of it gets, and when it is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from laurels.jobs.schedule import LONGEST_BACKOFF_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from laurels.activity.wiring import Activity
    from laurels.boards.drops import Drops
    from laurels.clock import Clock
    from laurels.history.maintenance import Maintenance
    from laurels.history.snapshots import SnapshotTaker
    from laurels.history.survey import Survey
    from laurels.journal.drain import Drain
    from laurels.moments import Moment
    from laurels.postgres.engine import Postgres


class JobEngine(Protocol):
    """The parts of an open engine that background work uses."""

    activity: Activity
    clock: Clock
    drain: Drain
    drops: Drops
    maintenance: Maintenance
    postgres: Postgres
    snapshot_taker: SnapshotTaker
    survey: Survey


@dataclass(frozen=True)
class JobRun:
    """What one run of a job works with."""

    laurels: JobEngine
    previous: Moment | None
    """When the last successful run was due; None before the first."""
    report: Callable[[str], Awaitable[None]]
    """Reports progress."""


@dataclass(frozen=True)
class PeriodicJob:
    """Work that is repeated. A run may be stopped anywhere and started again."""

    name: str
    seconds: int
    """Between the moments when it is due, counted from 1970: all workers have the same moments."""
    run: Callable[[JobRun], Awaitable[str]]
    """Does everything that is due now, and describes what it did in a few words."""
    longest_backoff: int = LONGEST_BACKOFF_SECONDS
    """The longest pause between attempts of a failing run; seconds."""


class Loop(Protocol):
    """Continuous work of every worker, until it is cancelled."""

    __name__: str

    async def __call__(self, laurels: JobEngine) -> None: ...
