"""The state of background work, and requests for extra runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from laurels.errors import NotFound
from laurels.jobs.schedule import following
from laurels.jobs.state import JobInfo, JobState
from laurels.jobs.store import JobStore
from laurels.moments import datetime_of, moment_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.clock import Clock
    from laurels.jobs.job import PeriodicJob
    from laurels.postgres.engine import Postgres


class JobOverview:
    def __init__(self, postgres: Postgres, jobs: Sequence[PeriodicJob], clock: Clock) -> None:
        self._store = JobStore(postgres)
        self._jobs = jobs
        self._clock = clock

    async def jobs(self) -> list[JobInfo]:
        states = await self._store.states()
        return [_info(job, states.get(job.name) or JobState(job.name)) for job in self._jobs]

    async def request(self, name: str) -> JobInfo:
        """Requests a run as soon as a worker looks; raises `NotFound`."""
        if name not in {job.name for job in self._jobs}:
            known = ", ".join(job.name for job in self._jobs)
            raise NotFound(f"there is no job {name!r}; there are: {known}")
        now = datetime_of(self._clock())
        await self._store.request(name, now)
        found = next(info for info in await self.jobs() if info.state.name == name)
        return replace(found, state=replace(found.state, requested_at=now))


def _info(job: PeriodicJob, state: JobState) -> JobInfo:
    due = None if state.last_due is None else datetime_of(following(job.seconds, moment_of(state.last_due)))
    return JobInfo(state, max(due, state.retry_at) if due and state.retry_at else due)
