"""Every background job, and every loop."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from laurels.jobs.job import PeriodicJob

if TYPE_CHECKING:
    from laurels.jobs.job import JobEngine, JobRun

# A run ends after this time even under constant load, so that its result is visible.
LONGEST_DRAIN_SECONDS: Final = 10.0
# Between two rounds of a drain that keeps up: a round takes 5 ms of processor time, however few its rows.
GATHERING_SECONDS: Final = 0.2
# The longest backoff of jobs that users wait for: they resume within seconds after an outage.
SOON_SECONDS: Final = 4


async def drain_journal(run: JobRun) -> str:
    rows, until = 0, time.monotonic() + LONGEST_DRAIN_SECONDS
    while (drained := await run.laurels.drain.run_once()).rows and time.monotonic() < until:
        rows += drained.rows
        await run.report(f"{rows} rows")
        if not drained.is_behind:
            await asyncio.sleep(GATHERING_SECONDS)
    return f"{rows} rows"


async def survey(run: JobRun) -> str:
    boards, found = await run.laurels.survey.run(run.report)
    return f"{boards} boards looked at, {found} names announced"


async def add_partitions(run: JobRun) -> str:
    await run.laurels.drain.add_partitions()
    return "partitions exist for the coming months"


async def take_snapshots(run: JobRun) -> str:
    return str(await run.laurels.snapshot_taker.take_due(run.previous, run.report))


async def turn_windows_over(run: JobRun) -> str:
    windows = await run.laurels.maintenance.turn_over(run.previous, run.report)
    return f"{windows} rolling windows are ready"


async def sweep(run: JobRun) -> str:
    boards, deleted = await run.laurels.maintenance.sweep(run.report)
    events = await run.laurels.activity.relay.forget()
    return (
        f"{boards} boards swept, {deleted} archived rows of dropped boards deleted, {events} events forgotten"
    )


async def empty_discarded(run: JobRun) -> str:
    return f"{await run.laurels.maintenance.empty_discarded()} large keys emptied"


async def finish_drops(run: JobRun) -> str:
    return f"{await run.laurels.drops.finish_all()} boards deleted or cleaned up"


async def rescore_campuses(run: JobRun) -> str:
    users, until = 0, time.monotonic() + LONGEST_DRAIN_SECONDS
    while (some := await run.laurels.activity.rescorer.run_once()) and time.monotonic() < until:
        users += some
        await run.report(f"{users} users")
    return f"{users} users scored"


async def finalize_campuses(run: JobRun) -> str:
    done = await run.laurels.activity.finalizer.run_due(run.report)
    lags = await run.laurels.activity.accrual.lags()
    return f"{done}; {sum(lag.late for lag in lags.values())} effects came too late so far"


async def relay_campus_events(run: JobRun) -> str:
    return f"{await run.laurels.activity.relay.run_once()} events sent"


async def accrue(laurels: JobEngine) -> None:
    await laurels.activity.accrual.run()


AGENDA: Final = (
    PeriodicJob("journal", 1, drain_journal, longest_backoff=SOON_SECONDS),
    # Finds journals that no process has announced.
    PeriodicJob("survey", 10, survey, longest_backoff=SOON_SECONDS),
    PeriodicJob("partitions", 3600, add_partitions),
    # Costs one query when nothing is due, and takes a snapshot within 10 seconds of a window's end.
    PeriodicJob("snapshots", 10, take_snapshots, longest_backoff=SOON_SECONDS),
    # Completes tomorrow's windows before midnight, also on boards that are not in use.
    PeriodicJob("rolling", 600, turn_windows_over),
    # Before a window that has ended expires by itself (`boards/board.py`: LINGER).
    PeriodicJob("retention", 600, sweep),
    PeriodicJob("discards", 10, empty_discarded, longest_backoff=SOON_SECONDS),
    # Finishes drops and edits that were interrupted.
    PeriodicJob("drops", 5, finish_drops, longest_backoff=SOON_SECONDS),
    PeriodicJob("campus_scores", 2, rescore_campuses, longest_backoff=SOON_SECONDS),
    # A campus's day is due at 00:05 there; corrections follow within 60 seconds.
    PeriodicJob("campus_days", 60, finalize_campuses),
    PeriodicJob("campus_events", 5, relay_campus_events, longest_backoff=SOON_SECONDS),
)

# Work that waits for events instead of a time. Every worker runs it; the workers share the events.
LOOPS: Final = (accrue,)
