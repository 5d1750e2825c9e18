"""A worker: runs what is due, each run by one worker at a time, and again until it succeeds."""

from __future__ import annotations

import asyncio
import os
import platform
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from laurels.errors import LaurelsError
from laurels.jobs.schedule import LONGEST_BACKOFF_SECONDS, backoff, due
from laurels.jobs.store import JobState, JobStore, TurnLost, Turns
from laurels.logs import get_logger
from laurels.moments import SECOND, Moment, datetime_of, moment_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from datetime import datetime

    from laurels.engine import Laurels
    from laurels.jobs.schedule import Rule
    from laurels.jobs.store import Turn

# How long a worker waits at most until it looks again: for a run that was asked for, or for the turn that a
# worker who died has left.
LOOK_SECONDS: Final = 2.0
# How often a worker makes sure that its turn is still its own, during a run.
CHECK_SECONDS: Final = 5.0
# How often progress is written down, at most.
TELL_SECONDS: Final = 1.0

log = get_logger("laurels.jobs")


@dataclass(frozen=True)
class Context:
    """What a run has to work with."""

    laurels: Laurels
    previous: Moment | None
    """Up to when the work was done before; None for the first run."""
    tell: Callable[[str], Awaitable[None]]
    """Says how far it is."""


@dataclass(frozen=True)
class Job:
    """Something to be done again and again. `run` may be stopped anywhere and begun again."""

    name: str
    rule: Rule
    run: Callable[[Context, Moment], Awaitable[str]]
    """Does what is due at that moment, and says in a few words what it did."""
    each: bool = False
    """Whether every moment counts: those that were missed are run too, in order; else the latest for all."""
    longest_backoff: int = LONGEST_BACKOFF_SECONDS
    """Seconds between two tries of a run that fails, at most."""


class Loop(Protocol):
    """Goes on until it is cancelled."""

    __name__: str

    async def __call__(self, laurels: Laurels) -> None: ...


class Runner:
    """One worker. Any number of them share the work, in one process or many."""

    def __init__(
        self, laurels: Laurels, jobs: Iterable[Job], loops: Iterable[Loop] = (), *, worker: str | None = None
    ) -> None:
        """`loops`: what goes on all the time, in every worker."""
        self._laurels = laurels
        self._jobs = {job.name: job for job in jobs}
        self._loops = tuple(loops)
        self._store = JobStore(laurels.postgres)
        self._ran: dict[str, Moment] = {}
        self._turns = Turns(laurels.postgres, worker or f"{platform.node()}:{os.getpid()}")

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set; what is under way then is left to whoever comes next."""
        log.info("background work begins", worker=self._turns.worker, jobs=len(self._jobs))
        working = [asyncio.create_task(self._keep_at(job), name=job.name) for job in self._jobs.values()]
        working += [asyncio.create_task(self._go_on(loop), name=loop.__name__) for loop in self._loops]
        try:
            await stop.wait()
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            await self.close()

    async def run_due(self) -> list[str]:
        """Everything that is due now, once; the names of what was run."""
        states = await self._store.states()
        due_now = [job for job in self._jobs.values() if self._wait(job, states.get(job.name)) <= 0]
        return [job.name for job in due_now if await self._take_turn(job)]

    async def close(self) -> None:
        await self._turns.close()

    async def _go_on(self, loop: Loop) -> None:
        while True:
            try:
                await loop(self._laurels)
            except Exception as error:  # as of a job
                log.warning("a loop ended and is begun again", loop=loop.__name__, exc_info=error)
            await asyncio.sleep(LOOK_SECONDS)

    async def _keep_at(self, job: Job) -> None:
        while True:
            try:
                state = (await self._store.states()).get(job.name)
                seconds = self._wait(job, state)
                if seconds <= 0:
                    seconds = 0 if await self._take_turn(job) else LOOK_SECONDS
            except LaurelsError as error:
                log.warning("job cannot be looked at", job=job.name, error=error.detail)
                seconds = LOOK_SECONDS
            await asyncio.sleep(min(seconds, LOOK_SECONDS))

    def _wait(self, job: Job, state: JobState | None) -> float:
        """Seconds until there is something to do; 0 when there is."""
        now = self._laurels.clock()
        state = state or JobState(job.name)
        if self._pending(job, state, now) or (job.each and state.last_due is None):
            return 0
        if rest := _rest(state, now):
            return rest / SECOND
        previous = max(_moment(state.last_due) or now, self._ran.get(job.name, 0))
        return max(0, (job.rule.following(previous) - now) / SECOND)

    def _pending(self, job: Job, state: JobState, now: Moment) -> list[Moment]:
        """The runs to do now, oldest first."""
        if state.requested_at:
            return [now]
        if _rest(state, now):
            return []
        pending = due(job.rule, _moment(state.last_due), now, each=job.each)
        # A worker whose clock is behind may have run since, by its own clock.
        return [moment for moment in pending if moment != self._ran.get(job.name)]

    async def _take_turn(self, job: Job) -> bool:
        """Whether anything was run: not while another worker has the turn, or had it just now."""
        turn = await self._turns.take(job.name)
        if turn is None:
            return False
        ran = False
        try:
            state, now = await turn.state(), self._laurels.clock()
            if job.each and state.last_due is None:
                await turn.set_out(datetime_of(now))
            for moment in self._pending(job, state, now):
                ran = True
                if not await self._run_one(job, turn, moment):
                    break
        except TurnLost as error:
            log.warning("turn lost", job=job.name, error=error.detail)
        finally:
            await turn.give_back()
        return ran

    async def _run_one(self, job: Job, turn: Turn, moment: Moment) -> bool:
        """Whether it succeeded."""
        state = await turn.state()
        await turn.begin(self._now())
        began = time.monotonic()
        context = Context(self._laurels, _moment(state.last_due), _Telling(turn).tell)
        try:
            result = await _while_it_is_ours(turn, job.run(context, moment))
        except TurnLost:
            raise
        except Exception as error:  # whatever goes wrong in one job harms no other
            detail = error.detail if isinstance(error, LaurelsError) else f"{type(error).__name__}: {error}"
            log.warning("job failed", job=job.name, error=detail, attempt=state.attempts + 1, exc_info=error)
            retry_at = datetime_of(self._laurels.clock() + backoff(state.attempts + 1, job.longest_backoff))
            await turn.fail(detail, self._now(), retry_at, time.monotonic() - began)
            return False
        reached = max(moment, _moment(state.last_due) or moment) if job.each else moment
        await turn.succeed(datetime_of(reached), self._now(), result, time.monotonic() - began)
        self._ran[job.name] = moment
        return True

    def _now(self) -> datetime:
        return datetime_of(self._laurels.clock())


class _Telling:
    """Writes progress down, no more often than anybody would look."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._last = 0.0

    async def tell(self, progress: str) -> None:
        if time.monotonic() - self._last >= TELL_SECONDS:
            self._last = time.monotonic()
            await self._turn.tell(progress)


async def _while_it_is_ours(turn: Turn, work: Awaitable[str]) -> str:
    """The result, unless the turn is lost first: then the work is stopped, and `TurnLost` raised."""
    working = asyncio.ensure_future(work)
    try:
        while True:
            done, _ = await asyncio.wait((working,), timeout=CHECK_SECONDS)
            if done:
                return working.result()
            await turn.check()
    finally:
        if not working.done():
            working.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await working


def _rest(state: JobState, now: Moment) -> Moment:
    """How long the job rests after a failure; microseconds.

    A rest that is longer than it was meant to be is no rest: the clock was set back since.
    """
    rest = moment_of(state.retry_at) - now if state.retry_at else 0
    return rest if 0 < rest <= backoff(state.attempts) else 0


def _moment(when: datetime | None) -> Moment | None:
    return None if when is None else moment_of(when)
