"""Every job that there is: what is done in the background, and when."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from laurels.jobs.runner import Job
from laurels.jobs.schedule import Every

if TYPE_CHECKING:
    from laurels.engine import Laurels
    from laurels.jobs.runner import Context
    from laurels.moments import Moment

# Under a load that never pauses a run ends now and then, so that it can be seen.
LONGEST_DRAIN_SECONDS: Final = 10.0
# What somebody waits for is tried again this soon: it goes on within seconds of the end of an outage.
SOON_SECONDS: Final = 4


async def drain_journal(context: Context, due: Moment) -> str:  # noqa: ARG001  # whatever has come
    rows, until = 0, time.monotonic() + LONGEST_DRAIN_SECONDS
    while (drained := await context.laurels.drain.run_once()).rows and time.monotonic() < until:
        rows += drained.rows
        await context.tell(f"{rows} rows")
    return f"{rows} rows"


async def keep_journal(context: Context, due: Moment) -> str:  # noqa: ARG001
    await context.laurels.drain.upkeep()
    return "partitions are there for the months to come"


async def take_snapshots(context: Context, due: Moment) -> str:  # noqa: ARG001  # what is due is seen from the boards
    return str(await context.laurels.archivist.take_due(context.previous, context.tell))


async def turn_windows_over(context: Context, due: Moment) -> str:  # noqa: ARG001
    windows = await context.laurels.upkeep.turn_over(context.tell)
    return f"{windows} rolling windows are ready"


async def sweep(context: Context, due: Moment) -> str:  # noqa: ARG001
    boards, deleted = await context.laurels.upkeep.sweep(context.tell)
    told = await context.laurels.activity.relay.forget()
    return (
        f"{boards} boards swept, {deleted} archived rows of dropped boards deleted, {told} events forgotten"
    )


async def empty_discarded(context: Context, due: Moment) -> str:  # noqa: ARG001  # whatever was taken away
    return f"{await context.laurels.upkeep.empty_discarded()} large keys emptied"


async def finish_drops(context: Context, due: Moment) -> str:  # noqa: ARG001  # whatever was interrupted
    return f"{await context.laurels.drops.finish_all()} boards taken away or cleared up"


async def accrue(laurels: Laurels) -> None:
    await laurels.activity.accrual.run()


async def rescore_campuses(context: Context, due: Moment) -> str:  # noqa: ARG001  # whoever has changed
    users, until = 0, time.monotonic() + LONGEST_DRAIN_SECONDS
    while (some := await context.laurels.activity.rescorer.run_once()) and time.monotonic() < until:
        users += some
        await context.tell(f"{users} users")
    return f"{users} users scored"


async def finalize_campuses(context: Context, due: Moment) -> str:  # noqa: ARG001  # what is due is seen from the campuses
    done = await context.laurels.activity.finalizer.run_due(context.tell)
    lags = await context.laurels.activity.accrual.lags()
    return f"{done}; {sum(lag.late for lag in lags.values())} effects came too late, ever"


async def tell_of_campuses(context: Context, due: Moment) -> str:  # noqa: ARG001  # whatever is new
    return f"{await context.laurels.activity.relay.run_once()} events told"


AGENDA: Final = (
    Job("journal", Every(1), drain_journal, longest_backoff=SOON_SECONDS),
    Job("partitions", Every(3600), keep_journal),
    # A window's end is seen within so many seconds; looking costs one query, and the stores nothing more.
    Job("snapshots", Every(10), take_snapshots, longest_backoff=SOON_SECONDS),
    # Tomorrow's windows are completed ahead of midnight, also on boards that nobody uses meanwhile.
    Job("rolling", Every(600), turn_windows_over),
    # Before a window that is over expires by itself (`boards/board.py`: LINGER).
    Job("retention", Every(600), sweep),
    Job("discards", Every(10), empty_discarded, longest_backoff=SOON_SECONDS),
    # What a drop or an edit left behind that was interrupted.
    Job("drops", Every(5), finish_drops, longest_backoff=SOON_SECONDS),
    Job("campus_scores", Every(2), rescore_campuses, longest_backoff=SOON_SECONDS),
    # A campus's day is due at 00:05 there, and corrected within so many seconds.
    Job("campus_days", Every(60), finalize_campuses),
    Job("campus_events", Every(5), tell_of_campuses, longest_backoff=SOON_SECONDS),
)

# What waits for events instead of a time: every worker does it, and they share the events themselves.
LOOPS: Final = (accrue,)
