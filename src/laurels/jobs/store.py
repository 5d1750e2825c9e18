"""What became of each job, and whose turn it is.

A turn is an advisory lock of PostgreSQL, held by a worker's own connection: it is free the moment that
connection ends, however the worker does. What a run became is written over that same connection, so a worker
that lost it, and with it the turn, cannot end a run that another one has begun again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import exc, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from laurels.errors import Unavailable
from laurels.postgres.tables import jobs

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Executable, RowMapping
    from sqlalchemy.engine import CursorResult
    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.postgres.engine import Postgres

LONGEST_TEXT: Final = 2000


@dataclass(frozen=True)
class JobState:
    """One job, as its runs left it."""

    name: str
    last_due: datetime | None = None
    """Up to when its work is done."""
    last_started: datetime | None = None
    last_finished: datetime | None = None
    last_succeeded: datetime | None = None
    last_result: str = ""
    progress: str = ""
    error: str = ""
    """Of the last run, if it failed."""
    attempts: int = 0
    """Failures in a row."""
    retry_at: datetime | None = None
    requested_at: datetime | None = None
    """When somebody asked for a run out of turn."""
    worker: str = ""
    succeeded: int = 0
    failed: int = 0
    seconds: float = 0.0
    """That all runs took together."""


class TurnLost(Unavailable):
    """The connection that held the turn is gone: another worker may have it."""


class JobStore:
    """The states of all jobs, for whoever wants to see them."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def states(self) -> dict[str, JobState]:
        async with self._postgres.reading() as connection:
            found = await connection.execute(select(*_COLUMNS).order_by(jobs.c.name))
            return {row["name"]: _state(row) for row in found.mappings()}

    async def request(self, name: str, at: datetime) -> None:
        """Asks for a run as soon as a worker looks."""
        asked = insert(jobs).values(name=name, requested_at=at)
        async with self._postgres.writing() as connection:
            await connection.execute(
                asked.on_conflict_do_update(index_elements=[jobs.c.name], set_={"requested_at": at})
            )


class Turns:
    """The turns that one worker has, all on one connection."""

    def __init__(self, postgres: Postgres, worker: str) -> None:
        self._postgres = postgres
        self.worker = worker
        self._connection: AsyncConnection | None = None
        self._one_at_a_time = asyncio.Lock()
        self._held: set[str] = set()

    async def take(self, name: str) -> Turn | None:
        """The turn for a job; None while another worker has it."""
        if name in self._held:
            return None
        self._held.add(name)
        try:
            connection = await self._connected()
            locked = await self.execute(connection, select(func.pg_try_advisory_lock(_lock(name))))
        except BaseException:
            self._held.discard(name)
            raise
        if not locked.scalar_one():
            self._held.discard(name)
            return None
        return Turn(self, connection, name)

    async def give_back(self, connection: AsyncConnection, name: str) -> None:
        self._held.discard(name)
        with suppress(Unavailable):  # what was lost with its connection is free already
            await self.execute(connection, select(func.pg_advisory_unlock(_lock(name))))

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            with suppress(exc.SQLAlchemyError):
                await connection.close()

    async def execute(self, connection: AsyncConnection, statement: Executable) -> CursorResult[Any]:
        """On this connection or not at all."""
        async with self._one_at_a_time:
            if connection is not self._connection:
                raise TurnLost("the connection that held the turn was lost")
            try:
                async with self._postgres.answering():
                    return await connection.execute(statement)
            except BaseException as error:
                # An answer may still be under way: this connection is of no more use, and its turns are free.
                self._connection = None
                with suppress(exc.SQLAlchemyError, OSError):
                    await connection.invalidate()
                if isinstance(error, Unavailable):
                    raise TurnLost(error.detail) from error
                raise

    async def _connected(self) -> AsyncConnection:
        async with self._one_at_a_time:
            if self._connection is None:
                self._connection = await self._postgres.connection_of_its_own()
            return self._connection


class Turn:
    """A worker's turn at one job."""

    def __init__(self, turns: Turns, connection: AsyncConnection, name: str) -> None:
        self._turns = turns
        self._connection = connection
        self.name = name

    async def state(self) -> JobState:
        found = await self._execute(select(*_COLUMNS).where(jobs.c.name == self.name))
        row = found.mappings().one_or_none()
        return JobState(self.name) if row is None else _state(row)

    async def begin(self, at: datetime) -> None:
        started: dict[str, Any] = {
            "last_started": at, "worker": self._turns.worker, "progress": "", "requested_at": None
        }  # fmt: skip
        begun = insert(jobs).values(name=self.name, **started)
        await self._execute(begun.on_conflict_do_update(index_elements=[jobs.c.name], set_=started))

    async def tell(self, progress: str) -> None:
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

    async def set_out(self, due: datetime) -> None:
        """From here on each moment counts; for a job that never ran."""
        begun = insert(jobs).values(name=self.name, last_due=due)
        await self._execute(
            begun.on_conflict_do_update(
                index_elements=[jobs.c.name], set_={"last_due": func.coalesce(jobs.c.last_due, due)}
            )
        )

    async def check(self) -> None:
        """Raises `TurnLost` unless the turn is still ours."""
        await self._execute(text("SELECT 1"))

    async def give_back(self) -> None:
        await self._turns.give_back(self._connection, self.name)

    async def _update(self, **values: object) -> None:
        await self._execute(update(jobs).where(jobs.c.name == self.name).values(values))

    async def _execute(self, statement: Executable) -> CursorResult[Any]:
        return await self._turns.execute(self._connection, statement)


_COLUMNS: Final = tuple(jobs.c[name] for name in JobState.__dataclass_fields__)


def _lock(name: str) -> Any:  # noqa: ANN401  # an SQL expression
    return func.hashtextextended(f"job:{name}", 0)


def _state(row: RowMapping) -> JobState:
    return JobState(**row)
