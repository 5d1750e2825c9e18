from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text
from waiting import eventually

from laurels.clock import FixedClock, system_clock
from laurels.engine import Laurels
from laurels.errors import NotFound
from laurels.jobs import runner as running
from laurels.jobs.agenda import AGENDA
from laurels.jobs.job import JobRun, PeriodicJob
from laurels.jobs.runner import Runner
from laurels.jobs.store import JobStore
from laurels.moments import SECOND, Moment, datetime_of

if TYPE_CHECKING:
    from laurels.clock import Clock
    from laurels.embedded import Endpoints
    from laurels.jobs.state import JobState

NOON = datetime(2025, 10, 24, 12, tzinfo=UTC)


class Work:
    """A job that remembers its runs, and can be made to wait or fail."""

    def __init__(self, clock: Clock, name: str = "work", seconds: int = 3600) -> None:
        self.clock = clock
        self.runs: list[datetime] = []
        self.previous: list[Moment | None] = []
        self.started = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.error: Exception | None = None
        self.stopped = False
        self.job = PeriodicJob(name, seconds, self.run)

    async def run(self, run: JobRun) -> str:
        self.started.set()
        self.previous.append(run.previous)
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.stopped = True
            raise
        if self.error:
            raise self.error
        self.runs.append(datetime_of(self.clock()))
        return f"run {len(self.runs)}"


async def state_of(laurels: Laurels, name: str = "work") -> JobState:
    return (await JobStore(laurels.postgres).states())[name]


async def close(*runners: Runner) -> None:
    for each in runners:
        await each.close()


class TestARun:
    async def test_is_done_when_it_is_due_and_once(self, laurels: Laurels, clock: FixedClock):
        work = Work(laurels.clock)
        runner = Runner(laurels, [work.job], worker="one")
        assert await runner.run_due() == ["work"]
        assert await runner.run_due() == []
        clock.advance(timedelta(minutes=59))
        assert await runner.run_due() == []
        clock.advance(timedelta(minutes=1))
        assert await runner.run_due() == ["work"]
        assert work.runs == [NOON, NOON + timedelta(hours=1)]
        state = await state_of(laurels)
        assert (state.last_result, state.worker, state.succeeded, state.failed) == ("run 2", "one", 2, 0)
        assert state.last_due == state.last_succeeded == NOON + timedelta(hours=1)
        await close(runner)

    async def test_is_done_by_one_worker_of_many(self, laurels: Laurels, clock: FixedClock):
        work = Work(laurels.clock)
        runners = [Runner(laurels, [work.job], worker=str(number)) for number in range(5)]
        for _ in range(10):
            clock.advance(timedelta(hours=1))
            await asyncio.gather(*(runner.run_due() for runner in runners))
        assert work.runs == [NOON + timedelta(hours=hours) for hours in range(1, 11)]
        await close(*runners)

    async def test_knows_up_to_when_the_work_was_done(self, laurels: Laurels, clock: FixedClock):
        work = Work(laurels.clock)
        runner = Runner(laurels, [work.job])
        await runner.run_due()
        before = clock()
        clock.advance(timedelta(days=1))
        await runner.run_due()
        assert work.previous == [None, before]
        await close(runner)

    async def test_can_be_requested_at_any_time(self, laurels: Laurels, clock: FixedClock):
        work = Work(laurels.clock)
        runner = Runner(laurels, [work.job])
        await runner.run_due()
        clock.advance(timedelta(minutes=1))
        await JobStore(laurels.postgres).request("work", datetime_of(clock()))
        assert await runner.run_due() == ["work"]
        assert await runner.run_due() == []
        await close(runner)


class TestAClockThatIsSet:
    @pytest.mark.parametrize("steps", [(-1,), (1,), (1, -1), (-1, 1), (-24,)])
    async def test_leaves_no_work_idle(self, laurels: Laurels, clock: FixedClock, steps: tuple[int, ...]):
        runner = Runner(laurels, AGENDA)
        await runner.run_due()
        expected = {"journal", "rolling", "retention", "discards", "snapshots", "campus_scores"}
        for hours in steps:
            clock.advance(timedelta(hours=hours))
            assert expected <= {*await runner.run_due()}
            assert await runner.run_due() == []
        clock.advance(timedelta(minutes=10))
        assert expected <= {*await runner.run_due()}
        await close(runner)

    async def test_back_does_not_leave_the_journal_idle(self, laurels: Laurels, clock: FixedClock):
        runner = Runner(laurels, AGENDA)
        await runner.run_due()
        clock.advance(timedelta(hours=-1))
        await laurels.define("jobs/set-back")
        await laurels.submit("jobs/set-back", "ada", 1)
        await runner.run_due()
        assert (await laurels.drain.journal_streams.backlog()).calls == 0
        await laurels.drop("jobs/set-back", allow_drop="all")
        await close(runner)

    async def test_back_does_not_prolong_the_rest_after_a_failure(self, laurels: Laurels, clock: FixedClock):
        work = Work(laurels.clock)
        runner = Runner(laurels, [work.job])
        work.error = RuntimeError("no")
        await runner.run_due()
        work.error = None
        clock.advance(timedelta(hours=-1))
        assert await runner.run_due() == ["work"]
        assert len(work.runs) == 1
        await close(runner)

    async def test_differently_in_each_worker_lets_each_run_once_a_moment(
        self, laurels: Laurels, clock: FixedClock
    ):
        work = Work(clock, seconds=1)
        behind = FixedClock(clock.now - 5 * SECOND)
        valkey_url, postgres_url = laurels.settings.valkey_url, laurels.settings.postgres_url
        async with Laurels(valkey_url=valkey_url, postgres_url=postgres_url, clock=behind) as other:
            runners = [Runner(laurels, [work.job]), Runner(other, [work.job])]
            for turn in range(1, 4):
                for _ in range(3):
                    for runner in runners:
                        await runner.run_due()
                assert len(work.runs) == 2 * turn
                clock.advance(timedelta(seconds=1))
                behind.advance(timedelta(seconds=1))
            await close(*runners)


class TestRunsThatWereMissed:
    async def test_are_made_up_for_by_one(self, laurels: Laurels, clock: FixedClock):
        work = Work(laurels.clock)
        runner = Runner(laurels, [work.job])
        await runner.run_due()
        clock.advance(timedelta(days=7))
        await runner.run_due()
        assert work.runs == [NOON, NOON + timedelta(days=7)]
        await close(runner)


class TestAFailure:
    async def test_is_recorded_and_retried_less_and_less_often(self, laurels: Laurels, clock: FixedClock):
        work = Work(laurels.clock)
        work.error = ValueError("the disk is full")
        runner = Runner(laurels, [work.job])
        await runner.run_due()
        state = await state_of(laurels)
        assert (state.error, state.attempts, state.failed) == ("ValueError: the disk is full", 1, 1)
        assert (state.last_due, state.retry_at) == (None, NOON + timedelta(seconds=2))
        assert await runner.run_due() == []
        clock.advance(timedelta(seconds=2))
        await runner.run_due()
        assert (await state_of(laurels)).retry_at == NOON + timedelta(seconds=2 + 4)
        work.error = None
        clock.advance(timedelta(seconds=4))
        await runner.run_due()
        state = await state_of(laurels)
        assert (state.error, state.attempts, state.failed, state.last_due) == ("", 0, 2, NOON)
        await close(runner)

    async def test_stops_no_other_job(self, laurels: Laurels):
        bad, good = Work(laurels.clock, "bad"), Work(laurels.clock, "good")
        bad.error = ValueError("no")
        runner = Runner(laurels, [bad.job, good.job])
        assert await runner.run_due() == ["bad", "good"]
        assert good.runs == [NOON]
        await close(runner)


class TestALock:
    async def test_is_another_workers_as_soon_as_its_holder_is_gone(self, laurels: Laurels):
        work = Work(laurels.clock)
        work.may_end.clear()
        one, two = (Runner(laurels, [work.job], worker=name) for name in ("one", "two"))
        first = asyncio.create_task(one.run_due())
        await work.started.wait()
        assert await two.run_due() == []
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        work.may_end.set()
        assert await two.run_due() == ["work"]
        assert work.runs == [NOON]
        await close(one, two)

    async def test_ends_a_run_that_lost_it_and_is_not_ended_twice(
        self, laurels: Laurels, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(running, "CHECK_SECONDS", 0.05)
        work, again = Work(laurels.clock), Work(laurels.clock)
        work.may_end.clear()
        one = Runner(laurels, [work.job], worker="one")
        two = Runner(laurels, [again.job], worker="two")
        first = asyncio.create_task(one.run_due())
        await work.started.wait()
        await cut_connections(laurels)
        await first
        assert work.stopped
        assert await two.run_due() == ["work"]
        state = await state_of(laurels)
        assert (state.worker, state.succeeded, state.failed) == ("two", 1, 0)
        assert await one.run_due() == []
        await close(one, two)

    async def test_that_was_lost_at_the_end_of_a_run_does_not_count(self, laurels: Laurels):
        work, again = Work(laurels.clock), Work(laurels.clock)
        work.may_end.clear()
        one = Runner(laurels, [work.job], worker="one")
        two = Runner(laurels, [again.job], worker="two")
        first = asyncio.create_task(one.run_due())
        await work.started.wait()
        await cut_connections(laurels)
        work.may_end.set()
        await first
        assert (await state_of(laurels)).succeeded == 0
        assert await two.run_due() == ["work"]
        assert (await state_of(laurels)).succeeded == 1
        await close(one, two)


async def cut_connections(laurels: Laurels) -> None:
    """Ends every connection that holds a lock, from the server's side."""
    cut = text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'laurels-jobs'"
    )
    async with laurels.postgres.reading() as connection:
        assert (await connection.execute(cut)).all()


class TestAWorker:
    async def test_works_until_it_is_stopped(self, endpoints: Endpoints, migrated_postgres_url: str):
        async with Laurels(
            valkey_url=endpoints.valkey_url, postgres_url=migrated_postgres_url, clock=system_clock
        ) as laurels:
            work, stop = Work(system_clock, seconds=1), asyncio.Event()
            working = asyncio.create_task(Runner(laurels, [work.job]).run(stop))
            await eventually(lambda: len(work.runs) >= 2)
            stop.set()
            await working
            assert len(set(work.previous)) == len(work.previous)  # none was run twice

    async def test_goes_on_when_its_connection_was_cut(
        self, endpoints: Endpoints, migrated_postgres_url: str
    ):
        async with Laurels(
            valkey_url=endpoints.valkey_url, postgres_url=migrated_postgres_url, clock=system_clock
        ) as laurels:
            work, stop = Work(system_clock, seconds=1), asyncio.Event()
            working = asyncio.create_task(Runner(laurels, [work.job]).run(stop))
            await eventually(lambda: work.runs)
            await cut_connections(laurels)
            done = len(work.runs)
            await eventually(lambda: len(work.runs) > done + 1)
            stop.set()
            await working

    async def test_in_process_does_all_there_is_to_do(self, endpoints: Endpoints, migrated_postgres_url: str):
        async with Laurels(
            valkey_url=endpoints.valkey_url, postgres_url=migrated_postgres_url, jobs=True
        ) as laurels:

            async def all_succeeded() -> bool:
                return all(job.state.last_succeeded for job in await laurels.jobs())

            await eventually(all_succeeded)
            assert [job.state.name for job in await laurels.jobs()] == [job.name for job in AGENDA]

    async def test_is_not_there_unless_asked_for(self, laurels: Laurels):
        assert [job.state.succeeded for job in await laurels.jobs()] == [0] * len(AGENDA)


class TestTheAgenda:
    async def test_does_everything_and_says_so(self, laurels: Laurels, clock: FixedClock):
        board = "jobs/agenda"
        await laurels.define(
            board,
            {
                "windows": [{"period": "daily", "keep": 2}, {"period": "rolling", "days": 2}],
                "archive": {"snapshot": [{"period": "daily"}]},
            },
        )
        await laurels.submit(board, "ada", 3)
        runner = Runner(laurels, AGENDA)
        await runner.run_due()
        clock.advance(timedelta(days=1))
        await runner.run_due()
        results = {job.state.name: job.state.last_result for job in await laurels.jobs()}
        assert results["snapshots"] == "1 snapshots of 1 entries"
        assert results["rolling"] == "2 rolling windows are ready"
        assert results["retention"].startswith("1 boards swept")
        assert [job.state.error for job in await laurels.jobs()] == [""] * len(AGENDA)
        assert (await laurels.history(board, "ada")).windows[0].source == "live"
        await laurels.drop(board, allow_drop="all")
        await close(runner)

    async def test_can_be_asked_for_a_run(self, laurels: Laurels):
        assert (await laurels.request_job("snapshots")).state.requested_at is not None
        with pytest.raises(NotFound, match="there is no job 'nonsense'; there are: journal, "):
            await laurels.request_job("nonsense")
