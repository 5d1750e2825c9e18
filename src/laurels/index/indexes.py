"""Opens the indexes of models: keeps them in step with their tables, reads, verifies and rebuilds them."""

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
from laurels.index.installed import check_grants
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
# The longest that a change waits without a notification; a lost Valkey is noticed as soon.
LOOK_SECONDS: Final = 1.0

log = get_logger("laurels.index")


class Indexes:
    """While it is open, `leaderboard(Model)` reads from here."""

    def __init__(
        self, laurels: Laurels, engine: AsyncEngine, models: object, *, project: str = PROJECT
    ) -> None:
        """`engine`: that of the records, with psycopg. `models`: a list of models, or a declarative base for
        all of its models. `project`: that of the boards; databases with the same table names need several.
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
        """Raises `StartupError` when the triggers of an index are not installed, or the role lacks rights."""
        indexes = [index for model in self.models for index in declared(model)]
        async with self.engine.connect() as connection:
            await check_grants(connection, indexes)
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
        """A board that cannot take the definition is dropped: the table has everything to rebuild it from."""
        board, definer = index.ref(self._project), self.laurels.index_definer
        for _ in range(2):  # another process may define it at the same moment
            with suppress(Conflict):
                await definer.define(board, index.definition)
                return
        log.info("declaration of an index changed; dropping its board and rebuilding it", index=index.name)
        await definer.drop(board)
        await definer.define(board, index.definition)

    def leaderboard(
        self, model: type[Model], index: str | InstrumentedAttribute[Any] | None = None
    ) -> Ranking[Model]:
        """The ranking of a model by its only index, or by the one with this name or score."""
        declared_as(model, index)
        return Ranking(model, index, opened=self)

    def board(self, index: DeclaredIndex[Any]) -> str:
        """The board that holds an index, to be read by the engine, HTTP or the command line."""
        return str(index.ref(self._project))

    async def caught_up(self, model: type[Any] | None = None) -> None:
        """Returns when everything committed before the call is applied, for one model or all."""
        for applier in self._of(model):
            await applier.catch_up()

    async def waiting(self) -> int:
        """How many committed changes are not applied yet."""
        for applier in self._appliers.values():
            await applier.settled()
        async with self.engine.begin() as connection:
            return sum([await applier.outbox.count(connection) for applier in self._appliers.values()])

    async def run(self) -> None:
        """Applies commits as they happen, until it is cancelled. Processes that run this take turns."""
        woken = asyncio.Event()
        listening = asyncio.create_task(self._listen(woken))
        try:
            while True:
                woken.clear()
                for index, applier in self._appliers.items():
                    try:
                        await applier.catch_up()
                    except Exception as error:  # a failure in one index must not stop the others
                        log.warning("index not updated; retrying", index=index.name, exc_info=error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await woken.wait()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    @asynccontextmanager
    async def maintaining(self) -> AsyncGenerator[None]:
        """Runs `run` in the background while the block lasts."""
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
                        await own.invalidate()  # a listening connection must not return to the pool
            except Exception as error:  # `run` polls meanwhile
                log.warning("LISTEN connection failed; polling", channel=CHANNEL, exc_info=error)
            await asyncio.sleep(LOOK_SECONDS)

    async def rebuild(self, model: type[Any] | None = None) -> int:
        """Rebuilds the indexes of one model or all; returns how many records have an entry."""
        return sum([await applier.rebuild() for applier in self._of(model)])

    async def verify(self, model: type[Any] | None = None) -> Verification:
        """Compares every record in PostgreSQL with every window in Valkey."""
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
        """The existing records with these keys, in one query; in the given session, or detached."""
        return await fetch(self.engine, model, keys, session)
