"""Connections to PostgreSQL, and what its failures mean to a caller."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

from sqlalchemy import NullPool, event, exc, func, select, text
from sqlalchemy.ext.asyncio import create_async_engine

from laurels.errors import InvalidInput, LaurelsError, OutcomeUnknown, Unavailable
from laurels.masking import masked
from laurels.outcomes import Outcome, of_postgres

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType

    import psycopg
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.ext.asyncio import AsyncConnection
    from sqlalchemy.pool import ConnectionPoolEntry

    from laurels.outcomes import Meaning

# How long to wait, in seconds: for a connection, for a free one in the pool, for a network that swallows what
# is sent, and for whatever the caller does with the connection.
CONNECT_SECONDS = 5
POOL_SECONDS = 5
UNACKNOWLEDGED_SECONDS = 5
ANSWER_SECONDS = 10

# Not a startup parameter: pooled endpoints (PgBouncer) refuse a connection that brings one.
_SESSION = f"SET statement_timeout = '{ANSWER_SECONDS}s'; SET TIME ZONE 'UTC'"
# A machine that vanishes without a word loses what it locked within half a minute.
_LASTING_SESSION = (
    f"{_SESSION}; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
)

NO_ANSWER = (exc.OperationalError, exc.InterfaceError, exc.TimeoutError)


class Postgres:
    """A pool of connections, opened as they are needed, and the two ways to use one."""

    def __init__(self, url: str) -> None:
        self.address = masked(url)
        self._engine = create_async_engine(
            url,
            pool_size=5,
            max_overflow=5,
            pool_timeout=POOL_SECONDS,
            pool_pre_ping=True,
            hide_parameters=True,
            connect_args={
                "application_name": "laurels",
                "connect_timeout": CONNECT_SECONDS,
                "tcp_user_timeout": UNACKNOWLEDGED_SECONDS * 1000,
            },
        )
        event.listen(self._engine.sync_engine, "connect", _set_up_session)
        self._reader = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._apart = create_async_engine(
            url,
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,
            connect_args={
                "application_name": "laurels-jobs",
                "connect_timeout": CONNECT_SECONDS,
                "tcp_user_timeout": UNACKNOWLEDGED_SECONDS * 1000,
            },
        )
        event.listen(self._apart.sync_engine, "connect", _set_up_lasting_session)

    @asynccontextmanager
    async def reading(self, *, seconds: float = ANSWER_SECONDS) -> AsyncGenerator[AsyncConnection]:
        """A connection for reads: each statement sees what is committed when it starts."""
        async with self.answering(seconds), self._reader.connect() as connection:
            yield connection

    @asynccontextmanager
    async def writing(self, *, seconds: float = ANSWER_SECONDS) -> AsyncGenerator[AsyncConnection]:
        """One transaction: committed at the end of the block, rolled back by any error.

        `Unavailable` says that nothing was changed; `OutcomeUnknown`, that the commit itself went unanswered.
        """
        committing = False
        try:
            async with self.answering(seconds), self._engine.connect() as connection:
                yield connection
                committing = True
                await connection.commit()
        except Unavailable as error:
            if committing:
                raise OutcomeUnknown.after(error) from error
            raise

    async def connection_of_its_own(self) -> AsyncConnection:
        """One outside the pool, for what lasts as long as a connection: whoever asks for it closes it."""
        async with self.answering():
            return await self._apart.connect()

    async def ping(self) -> None:
        async with self.reading() as connection:
            await connection.execute(text("SELECT 1"))

    async def require_writes(self) -> None:
        """Raises `Unavailable` where it only reads, as a standby does."""
        async with self.reading() as connection:
            if (await connection.execute(text("SHOW transaction_read_only"))).scalar_one() == "on":
                raise _refusal(self.address, of_postgres("25006"), "transaction_read_only is on")

    async def close(self) -> None:
        await self._engine.dispose()
        await self._apart.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @asynccontextmanager
    async def answering(self, seconds: float = ANSWER_SECONDS) -> AsyncGenerator[None]:
        """What the failures in this block mean to a caller."""
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                yield
        except (exc.DBAPIError, exc.TimeoutError) as error:
            meant = _translated(self.address, error)
            if meant is None:
                raise
            raise meant from error
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise Unavailable(
                f"PostgreSQL does not answer at {self.address}: waited {seconds:g} s"
            ) from error
        except UnicodeEncodeError as error:
            raise InvalidInput("PostgreSQL cannot hold this value: it is not valid Unicode text") from error


async def take_turn(connection: AsyncConnection, name: str) -> None:
    """Waits until no other transaction has taken this turn; it is given back at the end of this one."""
    await connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))


def unavailable(address: str, error: exc.SQLAlchemyError) -> Unavailable:
    reason = _reason(error)
    advice = of_postgres(None, reason).advice
    return Unavailable(
        f"PostgreSQL does not answer at {address}: {reason}", advice=f"PostgreSQL does not answer: {advice}"
    )


def _translated(address: str, error: exc.DBAPIError | exc.TimeoutError) -> LaurelsError | None:
    """What the error means to a caller (see `laurels.outcomes`); None for a defect of ours."""
    if isinstance(error, exc.DataError):
        return InvalidInput(f"PostgreSQL cannot hold this value: {_reason(error)}")
    state = getattr(error.orig, "sqlstate", None) if isinstance(error, exc.DBAPIError) else None
    if isinstance(error, NO_ANSWER) and state is None:
        return unavailable(address, error)
    meaning = of_postgres(state)
    return None if meaning.outcome is Outcome.DEFECT else _refusal(address, meaning, _reason(error))


def refused(address: str, error: psycopg.Error) -> Unavailable | None:
    """The same of an error that came from the driver itself."""
    meaning = of_postgres(error.sqlstate, str(error))
    return None if meaning.outcome is Outcome.DEFECT else _refusal(address, meaning, _first_line(error))


def _refusal(address: str, meaning: Meaning, reason: str) -> Unavailable:
    return Unavailable(
        f"PostgreSQL at {address} refuses: {meaning.advice} ({reason})",
        advice=f"PostgreSQL refuses: {meaning.advice}",
    )


def _reason(error: exc.SQLAlchemyError) -> str:
    cause = error.orig if isinstance(error, exc.DBAPIError) and error.orig is not None else error
    return _first_line(cause)


def _first_line(error: BaseException) -> str:
    return masked((str(error).strip().splitlines() or [type(error).__name__])[0])


def _set_up_session(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    _execute(connection, _SESSION)


def _set_up_lasting_session(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    _execute(connection, _LASTING_SESSION)


def _execute(connection: DBAPIConnection, statements: str) -> None:
    cursor = connection.cursor()
    cursor.execute(statements)
    cursor.close()
    connection.commit()
