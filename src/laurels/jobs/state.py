"""The state of a job, as its runs left it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  # msgspec reads the annotations


@dataclass(frozen=True)
class JobState:
    name: str
    last_due: datetime | None = None
    """When the last successful run was due."""
    last_started: datetime | None = None
    last_finished: datetime | None = None
    last_succeeded: datetime | None = None
    last_result: str = ""
    progress: str = ""
    error: str = ""
    """Of the last run, if it failed."""
    attempts: int = 0
    """Failures in a row."""
    retry_at: datetime | None = None
    requested_at: datetime | None = None
    """When an extra run was requested."""
    worker: str = ""
    succeeded: int = 0
    failed: int = 0
    seconds: float = 0.0
    """The duration of all runs together; 0 over HTTP."""


@dataclass(frozen=True)
class JobInfo:
    state: JobState
    next_due: datetime | None
    """None for a job that never ran: it is due as soon as there is a worker."""
