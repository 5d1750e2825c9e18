"""Opens the indexes of models: keeps them in step with their tables, reads, verifies and rebuilds them."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from laurels.boards.board import Target, WindowAddress
from laurels.boards.catalog import Catalog
from laurels.boards.ordering import EXACT_INTEGERS, INT64_MAX, Position
from laurels.boards.retention import Retention
from laurels.errors import Conflict, IndexNotReady, InvalidInput
from laurels.index.apply import Applier
from laurels.index.declare import declared, declared_as, models_of
from laurels.index.maintain import LOOK_SECONDS, Maintainer, is_maintained
from laurels.index.query import Ranking, bind, unbind
from laurels.index.records import fetch
from laurels.index.results import IndexStatus
from laurels.index.rows import Want
from laurels.index.triggers import check_installed, is_installed, uninstall_index
from laurels.index.verify import Verification, verify
from laurels.logs import get_logger
from laurels.scores.shards import ShardedWindow
from laurels.valkey.functions import DefinitionChanged

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncSession
    from sqlalchemy.orm import InstrumentedAttribute, Session

    from laurels.boards.keys import Cut
    from laurels.engine import Laurels
    from laurels.index.declare import DeclaredIndex

Model = TypeVar("Model")

PROJECT: Final = "index"

log = get_logger("laurels.index")


class Indexes:
    """While it is open, `leaderboard(Model)` reads from here."""

    def __init__(
        self, laurels: Laurels, engine: AsyncEngine | Engine, models: object, *, project: str = PROJECT
    ) -> None:
        """`engine`: that of the records, with psycopg. `models`: a list of models, or a declarative base for
        all of its models. `project`: that of the boards; databases with the same table names need several.
        """
        self.laurels = laurels
        self._given = engine
        self.models = models_of(models)
        self._project = project
        self.engine = _own_engine(engine)
        self._appliers: dict[DeclaredIndex[Any], Applier] = {}
        self._built: set[DeclaredIndex[Any]] = set()
        self._ready_until: dict[DeclaredIndex[Any], float] = {}
        if not self.models:
            raise InvalidInput.at("models", "none of them declares a leaderboard in `__leaderboards__`")

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Raises `StartupError` when the triggers of an index are not installed."""
        try:
            await self._open()
        except BaseException:
            await self._dispose()
            raise
        bind(self)

    async def _open(self) -> None:
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

    async def close(self) -> None:
        unbind(self)
        for applier in self._appliers.values():
            await applier.settled()
        await self._dispose()

    async def _dispose(self) -> None:
        if self.engine is not self._given:
            await self.engine.dispose()

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
            self._built.add(applier.index)

    async def waiting(self) -> int:
        """How many committed changes are not applied yet."""
        return sum([status.waiting for status in await self.status()])

    async def status(self, model: type[Any] | None = None) -> list[IndexStatus]:
        """Whether the indexes of one model or all are built and maintained, and how far behind they are."""
        return [await self._status(applier) for applier in self._of(model)]

    async def _status(self, applier: Applier) -> IndexStatus:
        await applier.settled()
        async with self.engine.begin() as connection:
            installed = await is_installed(connection, applier.index)
            backlog = await applier.outbox.backlog(connection)
            is_built = await applier.is_built(connection)
            maintained = await is_maintained(connection, applier.index)
        return IndexStatus(applier.index.name, installed, is_built, maintained, *backlog)

    async def require_built(self, index: DeclaredIndex[Any]) -> None:
        """Raises `IndexNotReady` for an index that is not complete. Asks until it is."""
        if index in self._built:
            return
        async with self.engine.begin() as connection:
            if not await self._appliers[index].is_built(connection):
                raise IndexNotReady(
                    f"the leaderboard {index.name} is not built yet: run `async with index.maintaining():` "
                    "in one process, or `await index.build()` once"
                )
        self._built.add(index)

    async def require_ready(self, index: DeclaredIndex[Any]) -> None:
        """Raises `IndexNotReady` if an empty answer would not be the truth. Asks once a second at most."""
        now = time.monotonic()
        if now < self._ready_until.get(index, 0):
            return
        self._built.discard(index)
        await self.require_built(index)
        status = await self._status(self._appliers[index])
        if status.is_ready:
            self._ready_until[index] = now + LOOK_SECONDS
        elif not status.is_installed:
            raise IndexNotReady(
                f"the triggers of the leaderboard {index.name} are gone, or differ from its declaration: run "
                f"`await laurels.index.install(engine, {index.model.__name__})`, then `await index.rebuild()`"
            )
        else:
            raise IndexNotReady(
                f"{status.waiting} committed changes of the leaderboard {index.name} wait, the oldest for "
                f"{status.lag.total_seconds():.0f} s, and no process applies them: run "
                "`async with index.maintaining():` in one"
            )

    async def run(self) -> None:
        """Applies commits as they happen, until it is cancelled. Processes that run this take turns."""
        await Maintainer(self.engine, list(self._appliers.values())).run()

    @asynccontextmanager
    async def maintaining(self) -> AsyncGenerator[None]:
        """Runs `run` in the background while the block lasts."""
        running = asyncio.create_task(self.run())
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def build(
        self, model: type[Any] | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> int:
        """Builds the indexes that are not complete, and applies what is committed meanwhile. `progress` is
        called with the number of records that are done. Returns how many records have an entry.
        """
        entries = 0
        for applier in self._of(model):
            async with self.engine.begin() as connection:
                is_built = await applier.is_built(connection)
            if not is_built:
                entries += await applier.build(progress)
            await applier.catch_up()
        return entries

    async def rebuild(
        self, model: type[Any] | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> int:
        """Rebuilds the indexes of one model or all; returns how many records have an entry."""
        return sum([await applier.build(progress, resume=False) for applier in self._of(model)])

    async def verify(self, model: type[Any] | None = None) -> Verification:
        """Compares every record in PostgreSQL with every window in Valkey."""
        found = Verification()
        for applier in self._of(model):
            await verify(applier, found)
        return found

    async def drop(self, model: type[Any]) -> None:
        """Removes the indexes of a model: triggers, changes that wait, and boards. Close `Indexes` next."""
        for applier in self._of(model):
            await applier.settled()
            async with self.engine.begin() as connection:
                await applier.outbox.take_turn(connection)
                await uninstall_index(connection, applier.index)
            await self.laurels.index_definer.drop(applier.ref)
            self._built.discard(applier.index)

    def _of(self, model: type[Any] | None) -> list[Applier]:
        wanted = None if model is None else declared(model)
        return [applier for index, applier in self._appliers.items() if wanted is None or index in wanted]

    async def fetch(
        self, model: type[Model], keys: Sequence[Any], session: AsyncSession | Session | None = None
    ) -> dict[Any, Model]:
        """The existing records with these keys, in one query; in the given session, or detached."""
        return await fetch(self._given, model, keys, session)

    async def records(self, ranking: Ranking[Model], keys: Sequence[Any]) -> dict[Any, Model]:
        """The records behind these entries, by key; in an index of members, those that make the entries."""
        index = ranking.declared
        if index.member is None or not keys:
            return await self.fetch(ranking.model, keys, ranking.session)
        target = self._target(ranking)
        wants = {Want(str(key), target.address): target for key in keys}
        async with self.engine.connect() as connection:
            entries = await self._appliers[index].rows.entries(connection, wants)
        key_of = {
            want.member: index.keys.key(index.keys.of_text(entry.key)) for want, entry in entries.items()
        }
        records = await self.fetch(ranking.model, list(key_of.values()), ranking.session)
        return {key: records[own] for key in keys if (own := key_of.get(str(key))) in records}

    async def before(self, ranking: Ranking[Any], low: int, high: int) -> tuple[int, int]:
        """How many entries are better than all scores from `low` to `high`, and how many are at least as good
        as the worst of them.
        """
        index = ranking.declared
        await self.require_built(index)
        applier = self._appliers[index]
        ordering = index.rule.board.ordering
        most = INT64_MAX if ordering.int64 else EXACT_INTEGERS
        low, high = max(low, -most - 1), min(high, most)
        edges = [Position(*ordering.edge(edge)) for edge in (low, high + 1) if edge <= most]
        board = await applier.catalog.board(applier.ref)
        target = self._target(ranking)
        if target.zoned.how == "fold":
            await ranking.count()  # completes the window
        while True:
            try:
                window = ShardedWindow(self.laurels.valkey, board, target.address)
                total, counted = await window.count(edges)
                break
            except DefinitionChanged as changed:
                board = await applier.catalog.refresh(applier.ref, changed.known)
        ends = [each.before for each in counted]
        if len(ends) == 1:  # nothing is above `high`
            ends.append(0 if ordering.descending else total)
        return (ends[1], ends[0]) if ordering.descending else (ends[0], ends[1])

    def _target(self, ranking: Ranking[Any]) -> Target:
        """The window that a ranking reads. Raises `WindowGone` past its `keep`."""
        board, asked = ranking.declared.rule.board, ranking.where()
        cut: Cut = ranking.declared.cut(ranking.groups)
        zoned = board.zoned_window(asked["period"])
        slot = board.slot(zoned, asked["slot"], self.laurels.clock())
        return Target(WindowAddress(zoned.label, slot.text, cut), slot, zoned)


def _own_engine(engine: AsyncEngine | Engine) -> AsyncEngine:
    """The engine that applies changes: the given one, or another async one on the same database."""
    dialect = engine.dialect
    if dialect.name != "postgresql" or dialect.driver not in ("psycopg", "psycopg_async"):
        raise InvalidInput.at(
            "engine",
            f"is of {dialect.name}+{dialect.driver}; an index needs PostgreSQL with psycopg: "
            "create_async_engine('postgresql+psycopg://…'), or create_engine with the same URL",
        )
    return engine if isinstance(engine, AsyncEngine) else create_async_engine(engine.url, pool_size=3)
