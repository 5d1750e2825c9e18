"""Connections to PostgreSQL, and the translation of its errors."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import NullPool, Text, event, exc, func, literal, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import create_async_engine

from laurels.errors import InvalidInput, LaurelsError, OutcomeUnknown, Unavailable
from laurels.masking import masked
from laurels.outcomes import Outcome, of_postgres

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from types import TracebackType

    import psycopg
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
    from sqlalchemy.pool import ConnectionPoolEntry

    from laurels.outcomes import Meaning

# How long to wait, in seconds: for a new connection, for a free one in the pool, for the acknowledgement of
# what was sent, and for the block that uses the connection.
CONNECT_SECONDS = 5
POOL_SECONDS = 5
UNACKNOWLEDGED_SECONDS = 5
ANSWER_SECONDS = 10

# Not startup parameters, because poolers such as PgBouncer refuse them.
_SESSION = f"SET statement_timeout = '{ANSWER_SECONDS}s'; SET TIME ZONE 'UTC'"
# PostgreSQL releases the locks of a machine that vanishes within half a minute.
_LASTING_SESSION = (
    f"{_SESSION}; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
)

NO_ANSWER = (exc.OperationalError, exc.InterfaceError, exc.TimeoutError)


class Postgres:
    """A pool of connections: `reading` for single statements, `writing` for a transaction."""

    def __init__(self, url: str) -> None:
        self.address = masked(url)
        self._engine = _engine(
            url,
            "laurels",
            _SESSION,
            pool_size=5,
            max_overflow=5,
            pool_timeout=POOL_SECONDS,
            pool_pre_ping=True,
        )
        self._reader = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._apart = _engine(
            url, "laurels-jobs", _LASTING_SESSION, poolclass=NullPool, isolation_level="AUTOCOMMIT"
        )

    @asynccontextmanager
    async def reading(self, *, seconds: float = ANSWER_SECONDS) -> AsyncGenerator[AsyncConnection]:
        """A connection for reads. Each statement sees what was committed when it started."""
        async with self.answering(seconds), self._reader.connect() as connection:
            yield connection

    @asynccontextmanager
    async def writing(self, *, seconds: float = ANSWER_SECONDS) -> AsyncGenerator[AsyncConnection]:
        """A transaction that is committed at the end of the block, and rolled back by any error.

        Raises `Unavailable` if nothing was changed, `OutcomeUnknown` if the commit was not answered.
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
        """A connection outside the pool, for session locks and LISTEN. The caller closes it."""
        async with self.answering():
            return await self._apart.connect()

    async def ping(self) -> None:
        async with self.reading() as connection:
            await connection.execute(text("SELECT 1"))

    async def require_writes(self) -> None:
        """Raises `Unavailable` if PostgreSQL is read-only, such as a standby."""
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
        """Translates the errors in this block, and limits its time."""
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
    """Locks the name until the end of the transaction; waits while another transaction has it."""
    await connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))


async def take_turns(connection: AsyncConnection, names: Sequence[str]) -> None:
    """As `take_turn`, for many names, in this order: transactions that take several need the same order."""
    given = func.unnest(literal(names, ARRAY(Text))).column_valued("name")
    await connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(given, 0))))


def unavailable(address: str, error: exc.SQLAlchemyError) -> Unavailable:
    reason = _reason(error)
    advice = of_postgres(None, reason).advice
    return Unavailable(
        f"PostgreSQL does not answer at {address}: {reason}", advice=f"PostgreSQL does not answer: {advice}"
    )


def _translated(address: str, error: exc.DBAPIError | exc.TimeoutError) -> LaurelsError | None:
    """The error to raise instead, by `laurels.outcomes`; None for a bug in Laurels."""
    if isinstance(error, exc.DataError):
        return InvalidInput(f"PostgreSQL cannot hold this value: {_reason(error)}")
    state = getattr(error.orig, "sqlstate", None) if isinstance(error, exc.DBAPIError) else None
    if isinstance(error, NO_ANSWER) and state is None:
        return unavailable(address, error)
    meaning = of_postgres(state)
    return None if meaning.outcome is Outcome.DEFECT else _refusal(address, meaning, _reason(error))


def refused(address: str, error: psycopg.Error) -> Unavailable | None:
    """The error to raise instead of one of the driver; None for a bug in Laurels."""
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


def _engine(url: str, name: str, session: str, **options: Any) -> AsyncEngine:  # noqa: ANN401  # SQLAlchemy's
    """An engine whose connections begin with these statements."""
    arguments = {
        "application_name": name,
        "connect_timeout": CONNECT_SECONDS,
        "tcp_user_timeout": UNACKNOWLEDGED_SECONDS * 1000,
    }
    engine = create_async_engine(url, hide_parameters=True, connect_args=arguments, **options)

    def begin(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute(session)
        cursor.close()
        connection.commit()

    event.listen(engine.sync_engine, "connect", begin)
    return engine
