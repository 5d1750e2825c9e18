"""A worker: runs each job when it is due, under a lock, and retries it until it succeeds."""

from __future__ import annotations

import asyncio
import os
import platform
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from laurels.errors import LaurelsError
from laurels.jobs.job import JobRun
from laurels.jobs.schedule import backoff, due, following
from laurels.jobs.state import JobState
from laurels.jobs.store import JobStore, LockLost, RunRecord, WorkerLocks
from laurels.logs import get_logger
from laurels.moments import SECOND, Moment, datetime_of, moment_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable
    from datetime import datetime

    from laurels.jobs.job import JobEngine, Loop, PeriodicJob
    from laurels.jobs.store import JobLock

# The longest pause before a worker sees that a run was requested, or that the holder of a lock died.
LOOK_SECONDS: Final = 2.0
# Between checks during a run that the worker still holds the lock.
CHECK_SECONDS: Final = 5.0
# Between updates of the progress.
REPORT_SECONDS: Final = 1.0

log = get_logger("laurels.jobs")


class Runner:
    """One worker. Any number of workers share the jobs, in one process or many."""

    def __init__(
        self,
        laurels: JobEngine,
        jobs: Iterable[PeriodicJob],
        loops: Iterable[Loop] = (),
        *,
        worker: str | None = None,
    ) -> None:
        """`loops` run all the time, in every worker."""
        self._laurels = laurels
        self._jobs = {job.name: job for job in jobs}
        self._loops = tuple(loops)
        self._worker = worker or f"{platform.node()}:{os.getpid()}"
        self._store = JobStore(laurels.postgres)
        self._locks = WorkerLocks(laurels.postgres)
        self._last_run: dict[str, Moment] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set, then cancels the current runs; another worker repeats them."""
        log.info("background work begins", worker=self._worker, jobs=len(self._jobs))
        working = [asyncio.create_task(self._repeat(job), name=job.name) for job in self._jobs.values()]
        working += [asyncio.create_task(self._continue(loop), name=loop.__name__) for loop in self._loops]
        try:
            await stop.wait()
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            await self.close()

    async def run_due(self) -> list[str]:
        """Runs everything that is due now, once; returns the names of the jobs that ran."""
        states = await self._store.states()
        due_now = [job for job in self._jobs.values() if self._wait(job, states.get(job.name)) <= 0]
        return [job.name for job in due_now if await self._run_locked(job)]

    async def close(self) -> None:
        await self._locks.close()

    async def _continue(self, loop: Loop) -> None:
        while True:
            try:
                await loop(self._laurels)
            except Exception as error:  # as in `_run_one`
                log.warning("loop failed; restarting it", loop=loop.__name__, exc_info=error)
            await asyncio.sleep(LOOK_SECONDS)

    async def _repeat(self, job: PeriodicJob) -> None:
        while True:
            try:
                state = (await self._store.states()).get(job.name)
                seconds = self._wait(job, state)
                if seconds <= 0:
                    seconds = 0 if await self._run_locked(job) else LOOK_SECONDS
            except LaurelsError as error:
                log.warning("job state cannot be read or locked; retrying", job=job.name, error=error.detail)
                seconds = LOOK_SECONDS
            await asyncio.sleep(min(seconds, LOOK_SECONDS))

    def _wait(self, job: PeriodicJob, state: JobState | None) -> float:
        """Seconds until the job is due; 0 when it is."""
        now = self._laurels.clock()
        state = state or JobState(job.name)
        if self._due(job, state, now) is not None:
            return 0
        if rest := _rest(state, now):
            return rest / SECOND
        previous = max(_moment(state.last_due) or now, self._last_run.get(job.name, 0))
        return max(0, (following(job.seconds, previous) - now) / SECOND)

    def _due(self, job: PeriodicJob, state: JobState, now: Moment) -> Moment | None:
        """The moment to run the job for now."""
        if state.requested_at:
            return now
        if _rest(state, now):
            return None
        moment = due(job.seconds, _moment(state.last_due), now)
        # Another worker whose clock is behind may have run it since, for an earlier moment.
        return None if moment == self._last_run.get(job.name) else moment

    async def _run_locked(self, job: PeriodicJob) -> bool:
        """Runs the job, and returns True, unless another worker holds the lock or has just run it."""
        lock = await self._locks.acquire(job.name)
        if lock is None:
            return False
        moment = None
        try:
            record = RunRecord(lock, job.name, self._worker)
            state = await record.state()
            moment = self._due(job, state, self._laurels.clock())
            if moment is not None:
                await self._run_one(job, lock, record, state, moment)
        except LockLost as error:
            log.warning("job lock lost; another worker may repeat the run", job=job.name, error=error.detail)
        finally:
            await lock.release()
        return moment is not None

    async def _run_one(
        self, job: PeriodicJob, lock: JobLock, record: RunRecord, state: JobState, moment: Moment
    ) -> None:
        await record.begin(self._now())
        began = time.monotonic()
        run = JobRun(self._laurels, _moment(state.last_due), _Progress(record).report)
        try:
            result = await _while_held(lock, job.run(run))
        except LockLost:
            raise
        except Exception as error:  # a failure in one job must not stop the others
            detail = error.detail if isinstance(error, LaurelsError) else f"{type(error).__name__}: {error}"
            log.warning("job failed", job=job.name, error=detail, attempt=state.attempts + 1, exc_info=error)
            retry_at = datetime_of(self._laurels.clock() + backoff(state.attempts + 1, job.longest_backoff))
            await record.fail(detail, self._now(), retry_at, time.monotonic() - began)
            return
        await record.succeed(datetime_of(moment), self._now(), result, time.monotonic() - began)
        self._last_run[job.name] = moment

    def _now(self) -> datetime:
        return datetime_of(self._laurels.clock())


class _Progress:
    """Stores the progress of a run, at most once every `REPORT_SECONDS`."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._last = 0.0

    async def report(self, progress: str) -> None:
        if time.monotonic() - self._last >= REPORT_SECONDS:
            self._last = time.monotonic()
            await self._record.report(progress)


async def _while_held(lock: JobLock, work: Awaitable[str]) -> str:
    """The result of the work. If the lock is lost first, stops the work and raises `LockLost`."""
    working = asyncio.ensure_future(work)
    try:
        while True:
            done, _ = await asyncio.wait((working,), timeout=CHECK_SECONDS)
            if done:
                return working.result()
            await lock.check()
    finally:
        if not working.done():
            working.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await working


def _rest(state: JobState, now: Moment) -> Moment:
    """How long to wait before a failed job is retried; microseconds.

    A rest longer than its backoff means that the clock was set back, so there is none.
    """
    rest = moment_of(state.retry_at) - now if state.retry_at else 0
    return rest if 0 < rest <= backoff(state.attempts) else 0


def _moment(when: datetime | None) -> Moment | None:
    return None if when is None else moment_of(when)
