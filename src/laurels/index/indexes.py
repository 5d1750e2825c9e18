"""The indexes of some models, open: kept in step with their tables, asked, compared and made anew."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from sqlalchemy import text

from laurels.boards.catalog import Catalog
from laurels.boards.retention import Retention
from laurels.errors import Conflict, InvalidInput
from laurels.index.apply import Applier
from laurels.index.declare import declared, declared_as, models_of
from laurels.index.query import Ranking, bind, unbind
from laurels.index.records import fetch
from laurels.index.triggers import CHANNEL, check_installed
from laurels.index.verify import Verification, verify
from laurels.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
    from sqlalchemy.orm import InstrumentedAttribute

    from laurels.engine import Laurels
    from laurels.index.declare import DeclaredIndex

Model = TypeVar("Model")

PROJECT: Final = "index"
# How long a change waits at most where no notification comes; also how soon a lost Valkey is noticed.
LOOK_SECONDS: Final = 1.0

log = get_logger("laurels.index")


class Indexes:
    """While it is open, `leaderboard(Model)` asks here.

    `engine` is that of the records, by psycopg.
    """

    def __init__(
        self, laurels: Laurels, engine: AsyncEngine, models: object, *, project: str = PROJECT
    ) -> None:
        """`models`: a list of them, or a declarative base for all of its own. `project`: of the boards; two
        databases with the same table names take two.
        """
        self.laurels = laurels
        self.engine = engine
        self.models = models_of(models)
        self._project = project
        self._appliers: dict[DeclaredIndex[Any], Applier] = {}
        if not self.models:
            raise InvalidInput.at("models", "none of them declares a leaderboard in `__leaderboards__`")

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Raises `StartupError` when the triggers of an index are not installed."""
        indexes = [index for model in self.models for index in declared(model)]
        async with self.engine.connect() as connection:
            for index in indexes:
                await check_installed(connection, index)
        catalog = Catalog(self.laurels.valkey, self.laurels.store)
        retention = Retention(self.laurels.valkey, catalog, self.laurels.clock)
        for index in indexes:
            await self._define(index)
            self._appliers[index] = Applier(
                index,
                index.ref(self._project),
                self.engine,
                self.laurels.valkey,
                catalog,
                retention,
                self.laurels.clock,
            )
        bind(self)

    async def close(self) -> None:
        unbind(self)
        for applier in self._appliers.values():
            await applier.settled()

    async def _define(self, index: DeclaredIndex[Any]) -> None:
        """The board holds nothing that the table does not tell, so what cannot change is made anew."""
        board, definer = index.ref(self._project), self.laurels.index_definer
        for _ in range(2):  # another process may define it at the same moment
            with suppress(Conflict):
                await definer.define(board, index.definition)
                return
        log.info("the index is declared otherwise than its board, and is made anew", index=index.name)
        await definer.drop(board)
        await definer.define(board, index.definition)

    def leaderboard(
        self, model: type[Model], index: str | InstrumentedAttribute[Any] | None = None
    ) -> Ranking[Model]:
        """The ranking of a model: its only index, or the one of this name or score."""
        declared_as(model, index)
        return Ranking(model, index, opened=self)

    def board(self, index: DeclaredIndex[Any]) -> str:
        """The board that holds an index: for the engine's own questions, HTTP and the command line."""
        return str(index.ref(self._project))

    async def caught_up(self, model: type[Any] | None = None) -> None:
        """Returns when everything committed before the call is applied, of all models or of one; applies it
        if nobody else does.
        """
        for applier in self._of(model):
            await applier.catch_up()

    async def waiting(self) -> int:
        """How many changes are committed and not applied yet."""
        for applier in self._appliers.values():
            await applier.settled()
        async with self.engine.begin() as connection:
            return sum([await applier.outbox.count(connection) for applier in self._appliers.values()])

    async def run(self) -> None:
        """Applies what is committed, as it is, until it is cancelled. Any number of processes may: they take
        turns.
        """
        woken = asyncio.Event()
        listening = asyncio.create_task(self._listen(woken))
        try:
            while True:
                woken.clear()
                for index, applier in self._appliers.items():
                    try:
                        await applier.catch_up()
                    except Exception as error:  # it harms no other index, and is tried again
                        log.warning("index not in step", index=index.name, error=str(error), exc_info=error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await woken.wait()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    @asynccontextmanager
    async def maintaining(self) -> AsyncGenerator[None]:
        """The same in the background, for as long as the block lasts."""
        running = asyncio.create_task(self.run())
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _listen(self, woken: asyncio.Event) -> None:
        while True:
            try:
                async with self.engine.connect() as connection:
                    own = await connection.execution_options(isolation_level="AUTOCOMMIT")
                    await own.execute(text(f"LISTEN {CHANNEL}"))
                    driver: Any = (await own.get_raw_connection()).driver_connection
                    try:
                        woken.set()
                        async for _ in driver.notifies():
                            woken.set()
                    finally:
                        await own.invalidate()  # it listens, so it is of no use to others
            except Exception as error:  # of the driver, too; meanwhile who waits looks
                log.warning("nobody tells of changes", error=str(error), exc_info=error)
            await asyncio.sleep(LOOK_SECONDS)

    async def rebuild(self, model: type[Any] | None = None) -> int:
        """Makes the indexes anew from their tables, all or one model's; how many records have an entry."""
        return sum([await applier.rebuild() for applier in self._of(model)])

    async def verify(self, model: type[Any] | None = None) -> Verification:
        """Compares PostgreSQL with Valkey: every record, every window."""
        found = Verification()
        for applier in self._of(model):
            await verify(applier, found)
        return found

    def _of(self, model: type[Any] | None) -> list[Applier]:
        wanted = None if model is None else declared(model)
        return [applier for index, applier in self._appliers.items() if wanted is None or index in wanted]

    async def fetch(
        self, model: type[Model], keys: Sequence[Any], session: AsyncSession | None = None
    ) -> dict[Any, Model]:
        """The records of these keys that there are, in one query; in the caller's session, or detached."""
        return await fetch(self.engine, model, keys, session)
