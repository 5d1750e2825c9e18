"""Applies commits as they happen, in one process or several. Other processes can see whether any does."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from laurels.index.triggers import CHANNEL, is_installed
from laurels.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from laurels.index.apply import Applier
    from laurels.index.declare import DeclaredIndex

# The longest that a change waits without a notification; a lost Valkey is noticed as soon.
LOOK_SECONDS: Final = 1.0
# How often the triggers are looked at: a migration may have dropped them with their table.
CHECK_SECONDS: Final = 60.0

log = get_logger("laurels.index")

# A maintaining process holds this lock of each index, shared with others, on its listening connection.
_LOCK: Final = "hashtextextended('laurels_index maintains:' || :index, 0)"
_MAINTAINED: Final = text(
    f"SELECT EXISTS (SELECT FROM pg_locks, (SELECT {_LOCK} AS key) l WHERE locktype = 'advisory' "  # noqa: S608  # a constant
    "AND granted AND objsubid = 1 "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND classid = ((key >> 32) & 4294967295)::oid AND objid = (key & 4294967295)::oid)"
)


async def is_maintained(connection: AsyncConnection, index: DeclaredIndex[Any]) -> bool:
    """Whether any process applies commits to this index."""
    return (await connection.execute(_MAINTAINED, {"index": index.name})).scalar_one()


class Maintainer:
    """Applies commits to some indexes, woken by notifications."""

    def __init__(self, engine: AsyncEngine, appliers: Sequence[Applier]) -> None:
        self._engine = engine
        self._appliers = appliers
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        listening = asyncio.create_task(self._listen())
        checked = time.monotonic()
        try:
            while True:
                self._woken.clear()
                for applier in self._appliers:
                    try:
                        await applier.catch_up()
                    except Exception as error:  # a failure in one index must not stop the others
                        log.warning("index not updated; retrying", index=applier.index.name, exc_info=error)
                if time.monotonic() - checked > CHECK_SECONDS:
                    checked = time.monotonic()
                    await self._check()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._woken.wait()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _check(self) -> None:
        """Logs the indexes that get no changes any more."""
        with suppress(SQLAlchemyError):  # `catch_up` has logged that the database does not answer
            async with self._engine.connect() as connection:
                for applier in self._appliers:
                    if not await is_installed(connection, applier.index):
                        log.error(
                            "triggers of an index are gone or differ: install its model, then rebuild it",
                            index=applier.index.name,
                        )

    async def _listen(self) -> None:
        while True:
            try:
                async with self._engine.connect() as connection:
                    own = await connection.execution_options(isolation_level="AUTOCOMMIT")
                    for applier in self._appliers:
                        held = text(f"SELECT pg_advisory_lock_shared({_LOCK})")
                        await own.execute(held, {"index": applier.index.name})
                    await own.execute(text(f"LISTEN {CHANNEL}"))
                    driver: Any = (await own.get_raw_connection()).driver_connection
                    try:
                        self._woken.set()
                        async for _ in driver.notifies():
                            self._woken.set()
                    finally:
                        await own.invalidate()  # a listening connection must not return to the pool
            except Exception as error:  # `run` polls meanwhile
                log.warning("LISTEN connection failed; polling", channel=CHANNEL, exc_info=error)
            await asyncio.sleep(LOOK_SECONDS)
