"""The state of each job, in one row each, and the locks that let one worker at a time run a job.

A lock is an advisory lock of PostgreSQL on a connection that the worker uses for its locks only. It is free
as soon as that connection ends, however the worker ends. The state of a run is written over the same
connection, so a worker that has lost its lock cannot overwrite the next worker's run. Workers divide the
streams of campuses (`activity/consume.py`) without locks; decision 0020 says why.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import exc, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from laurels.errors import Unavailable
from laurels.jobs.state import JobState
from laurels.postgres.tables import jobs

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Executable, RowMapping
    from sqlalchemy.engine import CursorResult
    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.postgres.engine import Postgres

LONGEST_TEXT: Final = 2000


class LockLost(Unavailable):
    """The connection that held the lock is gone: another worker may hold it."""


class WorkerLocks:
    """The locks of one worker, all on one connection."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._connection: AsyncConnection | None = None
        self._one_at_a_time = asyncio.Lock()
        self._held: set[str] = set()

    async def acquire(self, name: str) -> JobLock | None:
        """The lock on a job; None while any worker holds it, this one included."""
        if name in self._held:
            return None
        self._held.add(name)
        try:
            connection = await self._connected()
            locked = await self.execute(connection, select(func.pg_try_advisory_lock(_number(name))))
        except BaseException:
            self._held.discard(name)
            raise
        if not locked.scalar_one():
            self._held.discard(name)
            return None
        return JobLock(self, connection, name)

    async def release(self, connection: AsyncConnection, name: str) -> None:
        self._held.discard(name)
        with suppress(Unavailable):  # a lock that was lost with its connection is free already
            await self.execute(connection, select(func.pg_advisory_unlock(_number(name))))

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            with suppress(exc.SQLAlchemyError):
                await connection.close()

    async def execute(self, connection: AsyncConnection, statement: Executable) -> CursorResult[Any]:
        """Raises `LockLost` when the connection that held the lock is gone."""
        async with self._one_at_a_time:
            if connection is not self._connection:
                raise LockLost("the connection that held the lock was lost")
            try:
                async with self._postgres.answering():
                    return await connection.execute(statement)
            except BaseException as error:
                # An answer may still arrive, so the connection cannot be reused. Its locks are free.
                self._connection = None
                with suppress(exc.SQLAlchemyError, OSError):
                    await connection.invalidate()
                if isinstance(error, Unavailable):
                    raise LockLost(error.detail) from error
                raise

    async def _connected(self) -> AsyncConnection:
        async with self._one_at_a_time:
            if self._connection is None:
                self._connection = await self._postgres.connection_of_its_own()
            return self._connection


class JobLock:
    """One lock that the worker holds."""

    def __init__(self, locks: WorkerLocks, connection: AsyncConnection, name: str) -> None:
        self._locks = locks
        self._connection = connection
        self._name = name

    async def execute(self, statement: Executable) -> CursorResult[Any]:
        """Executes over the connection that holds the lock; raises `LockLost` when it is gone."""
        return await self._locks.execute(self._connection, statement)

    async def check(self) -> None:
        """Raises `LockLost` unless the worker still holds the lock."""
        await self.execute(text("SELECT 1"))

    async def release(self) -> None:
        await self._locks.release(self._connection, self._name)


class JobStore:
    """Reads the states of all jobs, and requests runs."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def states(self) -> dict[str, JobState]:
        async with self._postgres.reading() as connection:
            found = await connection.execute(select(*_COLUMNS).order_by(jobs.c.name))
            return {row["name"]: _state(row) for row in found.mappings()}

    async def request(self, name: str, at: datetime) -> None:
        """Requests a run as soon as a worker looks."""
        asked = insert(jobs).values(name=name, requested_at=at)
        async with self._postgres.writing() as connection:
            await connection.execute(
                asked.on_conflict_do_update(index_elements=[jobs.c.name], set_={"requested_at": at})
            )


class RunRecord:
    """Writes the state of a run over the connection that holds the job's lock."""

    def __init__(self, lock: JobLock, job: str, worker: str) -> None:
        self._lock = lock
        self._job = job
        self._worker = worker

    async def state(self) -> JobState:
        found = await self._lock.execute(select(*_COLUMNS).where(jobs.c.name == self._job))
        row = found.mappings().one_or_none()
        return JobState(self._job) if row is None else _state(row)

    async def begin(self, at: datetime) -> None:
        started: dict[str, Any] = {
            "last_started": at, "worker": self._worker, "progress": "", "requested_at": None
        }  # fmt: skip
        begun = insert(jobs).values(name=self._job, **started)
        await self._lock.execute(begun.on_conflict_do_update(index_elements=[jobs.c.name], set_=started))

    async def report(self, progress: str) -> None:
        await self._update(progress=progress[:LONGEST_TEXT])

    async def succeed(self, due: datetime, at: datetime, result: str, seconds: float) -> None:
        await self._update(
            last_due=due,
            last_finished=at,
            last_succeeded=at,
            last_result=result[:LONGEST_TEXT],
            error="",
            attempts=0,
            retry_at=None,
            succeeded=jobs.c.succeeded + 1,
            seconds=jobs.c.seconds + seconds,
        )

    async def fail(self, error: str, at: datetime, retry_at: datetime, seconds: float) -> None:
        await self._update(
            last_finished=at,
            error=error.replace("\0", "\N{REPLACEMENT CHARACTER}")[:LONGEST_TEXT],
            attempts=jobs.c.attempts + 1,
            retry_at=retry_at,
            failed=jobs.c.failed + 1,
            seconds=jobs.c.seconds + seconds,
        )

    async def _update(self, **values: object) -> None:
        await self._lock.execute(update(jobs).where(jobs.c.name == self._job).values(values))


_COLUMNS: Final = tuple(jobs.c[name] for name in JobState.__dataclass_fields__)


def _state(row: RowMapping) -> JobState:
    return JobState(**row)


def _number(name: str) -> Any:  # noqa: ANN401  # an SQL expression
    return func.hashtextextended(f"job:{name}", 0)
