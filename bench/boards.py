"""Many boards: definitions, first scores, memory of the process, and the work of an idle worker."""

from __future__ import annotations

import asyncio
import gc
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.ground import temporary_servers
from bench.results import Results, Row, judged
from laurels import Laurels
from laurels.jobs.agenda import AGENDA
from laurels.jobs.runner import Runner

if TYPE_CHECKING:
    from laurels.embedded import Endpoints

FEW = 100
# First scores that are under way at once.
IN_FLIGHT = 256
BOARDS_A_CALL = 1000
IDLE_SECONDS = 10.0
READS = 10
# The job `retention` looks at every board, every ten minutes.
SWEEP_SECONDS = 600

DEFINITIONS, FIRST_SCORES, BYTES, IDLE = 1500, 2000, 2048, 1.5


@dataclass(frozen=True)
class Idle:
    """Milliseconds of this process's processor time."""

    worker: float
    """A second, without the sweep."""
    sweep: float
    """A second, spread over the time between two sweeps."""
    metrics: float
    """Each time that the journal's figures are read for /metrics and /readyz."""


async def run(boards: int) -> Results:
    with temporary_servers() as urls:
        async with opened(urls) as laurels:
            await define(laurels, "few", FEW)
            await first_scores(laurels, "few", FEW)
            few = await idle(laurels)
        async with opened(urls) as laurels:
            defined = await define(laurels, "many", boards)
        async with opened(urls) as laurels:
            await first_scores(laurels, "few", FEW)
            gc.collect()
            before = resident_bytes()
            scored = await first_scores(laurels, "many", boards)
            gc.collect()
            each = (resident_bytes() - before) / boards
            many = await idle(laurels)
    rows = [
        Row("definitions", f"{defined:,.0f}/s", "", None, *judged(defined, least=DEFINITIONS)),
        Row("first scores", f"{scored:,.0f}/s", "", None, *judged(scored, least=FIRST_SCORES)),
        Row("memory of the process a board", f"{each:,.0f} B", "", None, *judged(each, most=BYTES)),
    ]
    for what, now, then in (
        ("idle worker, each second", many.worker, few.worker),
        ("its sweep, each second", many.sweep, few.sweep),
        ("figures for /metrics", many.metrics, few.metrics),
    ):
        beside = f"{FEW} boards: {then:.2f} ms"
        rows.append(Row(what, f"{now:.2f} ms", beside, now / then, *judged(now / then, most=IDLE)))
    return Results(rows)


def opened(urls: Endpoints) -> Laurels:
    return Laurels(valkey_url=urls.valkey_url, postgres_url=urls.postgres_url, jobs=False)


async def define(laurels: Laurels, project: str, boards: int) -> float:
    """Boards a second."""
    definition = {"windows": [{"period": "daily"}, {"period": "all_time"}]}
    began = time.perf_counter()
    for first in range(0, boards, BOARDS_A_CALL):
        numbers = range(first, min(first + BOARDS_A_CALL, boards))
        await laurels.define_many(project, {f"b{number}": {**definition} for number in numbers})
    return boards / (time.perf_counter() - began)


async def first_scores(laurels: Laurels, project: str, boards: int) -> float:
    """Scores a second."""
    coming = iter(range(boards))

    async def submit() -> None:
        for number in coming:
            await laurels.submit(f"{project}/b{number}", "ada", number)

    began = time.perf_counter()
    await asyncio.gather(*(submit() for _ in range(IN_FLIGHT)))
    return boards / (time.perf_counter() - began)


async def idle(laurels: Laurels) -> Idle:
    """What a worker costs when nothing is left to do."""
    await laurels.journal_drained()
    runner = Runner(laurels, AGENDA)
    await runner.run_due()
    stop = asyncio.Event()
    began = time.process_time()
    with suppress(TimeoutError):
        async with asyncio.timeout(IDLE_SECONDS):
            await runner.run(stop)
    worker = (time.process_time() - began) / IDLE_SECONDS

    async def tell(_: str) -> None:
        pass

    began = time.process_time()
    await laurels.maintenance.sweep(tell)
    sweep = (time.process_time() - began) / SWEEP_SECONDS
    began = time.process_time()
    for _ in range(READS):
        await laurels.drain.journal_streams.backlog()
    return Idle(1000 * worker, 1000 * sweep, 1000 * (time.process_time() - began) / READS)


def resident_bytes() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024
