"""Many boards: definitions, changes, first scores, memory of the process, and the work of idle processes.

Figures at so many boards stand beside those at a hundred, on the same servers in the same run.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from bench.ground import temporary_servers
from bench.results import Results, Row, judged
from laurels import Laurels
from laurels.http.app import create_app
from laurels.jobs.agenda import AGENDA
from laurels.jobs.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laurels.embedded import Endpoints

FEW = 100
# First scores that are under way at once.
IN_FLIGHT = 256
BOARDS_A_CALL = 1000
IDLE_SECONDS = 20.0
READS = 200
# The job `retention` runs every ten minutes.
SWEEP_SECONDS = 600
# Milliseconds; of less, a ratio says nothing.
LEAST = 0.01
TICKS = os.sysconf("SC_CLK_TCK")
WINDOWS = [{"period": "daily"}, {"period": "all_time"}]

DEFINITIONS, FIRST_SCORES, BYTES, IDLE = 1500, 2000, 2048, 1.5


@dataclass(frozen=True)
class Idle:
    """Milliseconds of processor time."""

    worker: float
    """A second, of this process with all its jobs but the sweep."""
    sweep: float
    """A second, of this process, spread over the time between two sweeps."""
    valkey: float
    postgres: float
    metrics: float
    """Of this process, for an answer of /metrics."""

    @property
    def total(self) -> float:
        return self.worker + self.sweep + self.valkey + self.postgres


async def run(boards: int) -> Results:
    with temporary_servers() as urls:
        async with opened(urls) as laurels:
            await define(laurels, "few", FEW)
            await first_scores(laurels, "few", FEW)
            few = await idle(laurels)
        async with opened(urls) as laurels:
            await define(laurels, "first", FEW)
            before = resident_bytes()
            defined = await define(laurels, "many", boards)
            untouched = (resident_bytes() - before) / boards
        async with opened(urls) as laurels:
            await first_scores(laurels, "few", FEW)
            before = resident_bytes()
            scored = await first_scores(laurels, "many", boards)
            touched = (resident_bytes() - before) / boards
            many = await idle(laurels)
            changed = await define(laurels, "many", boards, limits={"max": 1_000_000})
    rows = [
        Row("definitions", f"{defined:,.0f}/s", "", None, *judged(defined, least=DEFINITIONS)),
        Row("changed limits", f"{changed:,.0f}/s"),
        Row("first scores", f"{scored:,.0f}/s", "", None, *judged(scored, least=FIRST_SCORES)),
        Row("memory of a defined board", f"{untouched:,.0f} B", "", None, *judged(untouched, most=BYTES)),
        Row("memory of a board with a score", f"{touched:,.0f} B", "", None, *judged(touched, most=BYTES)),
    ]
    for what, now, then, most in (
        ("idle, each second", many.total, few.total, IDLE),
        ("of it the worker", many.worker, few.worker, None),
        ("of it the sweep", many.sweep, few.sweep, None),
        ("of it Valkey", many.valkey, few.valkey, None),
        ("of it PostgreSQL", many.postgres, few.postgres, None),
        ("an answer of /metrics", many.metrics, few.metrics, IDLE),
    ):
        beside, ratio = f"{FEW} boards: {then:.2f} ms", now / max(then, LEAST)
        rows.append(Row(what, f"{now:.2f} ms", beside, ratio, *judged(ratio, most=most)))
    return Results(rows)


def opened(urls: Endpoints) -> Laurels:
    return Laurels(valkey_url=urls.valkey_url, postgres_url=urls.postgres_url, jobs=False)


async def define(laurels: Laurels, project: str, boards: int, **more: Any) -> float:  # noqa: ANN401  # fields of a definition
    """Boards a second."""
    began = time.perf_counter()
    for first in range(0, boards, BOARDS_A_CALL):
        numbers = range(first, min(first + BOARDS_A_CALL, boards))
        await laurels.define_many(project, {f"b{number}": {"windows": WINDOWS, **more} for number in numbers})
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
    """What a worker and its servers cost when nothing is left to do."""

    async def tell(_: str) -> None:
        pass

    await laurels.journal_drained()
    await laurels.maintenance.sweep(tell)  # looks once at every board that was written to
    runner = Runner(laurels, AGENDA)
    await runner.run_due()
    stop = asyncio.Event()
    began, servers = time.process_time(), (processor_time("valkey"), processor_time("postgres"))
    with suppress(TimeoutError):
        async with asyncio.timeout(IDLE_SECONDS):
            await runner.run(stop)
    worker = (time.process_time() - began) / IDLE_SECONDS
    valkey, postgres = (
        (processor_time(name) - before) / IDLE_SECONDS
        for name, before in zip(("valkey", "postgres"), servers, strict=True)
    )

    began = time.process_time()
    await laurels.maintenance.sweep(tell)
    sweep = (time.process_time() - began) / SWEEP_SECONDS
    metrics = await scrape(laurels)
    return Idle(*(1000 * each for each in (worker, sweep, valkey, postgres, metrics)))


async def scrape(laurels: Laurels) -> float:
    """Seconds of processor time of an answer of /metrics that reads the journal's figures."""
    transport = httpx.ASGITransport(create_app(laurels), client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://laurels.bench") as client:
        (await client.get("/metrics")).raise_for_status()
        began = time.process_time()
        for _ in range(READS):
            await laurels.drain.journal_streams.backlog()  # an answer has figures up to 5 seconds old
            await client.get("/metrics")
        return (time.process_time() - began) / READS


def processor_time(program: str) -> float:
    """Seconds of the processes below this one that run the program, and of those that they waited for."""
    ticks = 0
    for process in below(os.getpid()):
        with suppress(OSError):
            if (process / "comm").read_text(encoding="ascii").startswith(program):
                ticks += sum(map(int, fields(process)[11:15]))
    return ticks / TICKS


def below(pid: int) -> Iterator[Path]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(fields(process)[1]) == pid:
                yield process
                yield from below(int(process.name))


def fields(process: Path) -> list[str]:
    """What `stat` says of a process, after its name."""
    return (process / "stat").read_text(encoding="ascii").rpartition(")")[2].split()


def resident_bytes() -> int:
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024
