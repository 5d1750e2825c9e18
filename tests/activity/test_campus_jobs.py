from __future__ import annotations

import asyncio

from campus_stage import OSLO, Stage, user

from laurels.activity.outbox import STREAM
from laurels.jobs.agenda import AGENDA
from laurels.jobs.runner import Runner

JOBS = [job for job in AGENDA if job.name.startswith("campus_")]


async def test_workers_who_share_the_jobs_take_a_day_from_its_counters_to_its_events(stage: Stage):
    await stage.open(OSLO)
    stage.go_to("2025-10-24 12:00")
    await stage.play(1, 2)
    await stage.laurels.activity.accrual.run_once()
    workers = [Runner(stage.laurels, JOBS, worker=f"worker-{n}") for n in range(2)]
    try:
        await asyncio.gather(*(worker.run_due() for worker in workers))
        assert await stage.board() == {user(1): 5, user(2): 2}
        stage.go_to("2025-10-25 00:06")
        await asyncio.gather(*(worker.run_due() for worker in workers))
        stage.go_to("2025-10-25 00:08")
        await asyncio.gather(*(worker.run_due() for worker in workers))
    finally:
        for worker in workers:
            await worker.close()
    assert await stage.daily(20251024) == [(user(1), 5, 1), (user(2), 2, 2)]
    rows = await stage.rows("SELECT count(*) FROM laurels.lb_outbox")
    assert await stage.laurels.valkey.command("XLEN", STREAM) == rows[0][0] > 0
    states = {job.state.name: job.state for job in await stage.laurels.jobs()}
    assert all(not states[job.name].error for job in JOBS)
    assert states["campus_days"].last_result == "0 days of 0 users finalized; 0 effects came too late so far"
