"""Leaderboards declared on models, without async: `Session`, `Engine` and `laurels.sync`.

    engine = create_engine("postgresql+psycopg://…")
    install(engine, GameScore)
    with Laurels() as laurels, Indexes(laurels, engine, [GameScore]) as index, index.maintaining():
        best = leaderboard(GameScore).group("asia").top(10)
        with Session(engine) as session:
            mine = leaderboard(GameScore).using(session).around("ada", 5)

Everything runs on the loop of `laurels.sync.Laurels`. Records are loaded by the caller's engine or session.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from sqlalchemy import Connection, Engine

from laurels.errors import InvalidInput
from laurels.index import indexes, query
from laurels.index.triggers import installation, removal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Generator
    from datetime import datetime

    from sqlalchemy.orm import InstrumentedAttribute, Session

    from laurels import sync
    from laurels.index.results import IndexStatus, Placing, Ranked, RankedPage, Window
    from laurels.index.verify import Verification
    from laurels.scores.results import Standing

Model = TypeVar("Model")
Answer = TypeVar("Answer")


def install(on: Engine | Connection, *models: object, notify: bool = True) -> None:
    """As `laurels.index.install`."""
    _run(on, installation(*models, notify=notify))


def uninstall(on: Engine | Connection, *models: object) -> None:
    """As `laurels.index.uninstall`."""
    _run(on, removal(*models))


def _run(on: Engine | Connection, statements: list[str]) -> None:
    if isinstance(on, Engine):
        with on.begin() as connection:
            _run(connection, statements)
        return
    for statement in statements:
        on.exec_driver_sql(statement, execution_options={"no_parameters": True})


class Indexes:
    """As `laurels.index.Indexes`, each call of which waits for its answer."""

    def __init__(
        self, laurels: sync.Laurels, engine: Engine, models: object, *, project: str = indexes.PROJECT
    ) -> None:
        """`engine`: that of the records, with psycopg."""
        if not isinstance(engine, Engine):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
            raise InvalidInput.at("engine", "is async: use laurels.index.Indexes, or create_engine")
        self._laurels = laurels
        self._indexes = indexes.Indexes(laurels.engine, engine, models, project=project)
        self._maintaining: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Raises `StartupError` when the triggers of an index are not installed."""
        self.run(self._indexes.open())
        for model in self._indexes.models:
            _bound.setdefault(model, []).append(self)

    def close(self) -> None:
        for model in self._indexes.models:
            _bound[model].remove(self)
        self.run(self._indexes.close())

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return self._laurels.run(work)

    @contextmanager
    def maintaining(self) -> Generator[None]:
        """Applies commits in the background while the block lasts."""
        self.run(self._start())
        try:
            yield
        finally:
            self.run(self._stop())

    async def _start(self) -> None:
        self._maintaining = asyncio.create_task(self._indexes.run())

    async def _stop(self) -> None:
        if self._maintaining:
            self._maintaining.cancel()
            await asyncio.gather(self._maintaining, return_exceptions=True)

    def leaderboard(
        self, model: type[Model], index: str | InstrumentedAttribute[Any] | None = None
    ) -> Ranking[Model]:
        return Ranking(self._indexes.leaderboard(model, index), self)

    def caught_up(self, model: type[Any] | None = None) -> None:
        self.run(self._indexes.caught_up(model))

    def waiting(self) -> int:
        return self.run(self._indexes.waiting())

    def status(self, model: type[Any] | None = None) -> list[IndexStatus]:
        return self.run(self._indexes.status(model))

    def build(self, model: type[Any] | None = None, progress: Callable[[int], None] = lambda _: None) -> int:
        return self.run(self._indexes.build(model, progress))

    def rebuild(
        self, model: type[Any] | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> int:
        return self.run(self._indexes.rebuild(model, progress))

    def verify(self, model: type[Any] | None = None) -> Verification:
        return self.run(self._indexes.verify(model))

    def drop(self, model: type[Any]) -> None:
        self.run(self._indexes.drop(model))


@dataclass(frozen=True)
class Ranking(Generic[Model]):
    """As `laurels.index.Ranking`, each call of which waits for its answer."""

    asked: query.Ranking[Model]
    opened: Indexes

    def index(self, which: str | InstrumentedAttribute[Any]) -> Ranking[Model]:
        return replace(self, asked=self.asked.index(which))

    def group(self, *values: object) -> Ranking[Model]:
        return replace(self, asked=self.asked.group(*values))

    def period(self, name: str) -> Ranking[Model]:
        return replace(self, asked=self.asked.period(name))

    def window(self, window: Window | datetime | int | str) -> Ranking[Model]:
        return replace(self, asked=self.asked.window(window))

    def using(self, session: Session) -> Ranking[Model]:
        return replace(self, asked=self.asked.using(session))

    def top(self, k: int) -> list[Ranked[Model]]:
        return self.opened.run(self.asked.top(k))

    def bottom(self, k: int) -> list[Ranked[Model]]:
        return self.opened.run(self.asked.bottom(k))

    def entries(self, k: int, start: query.End = "top", *, skip: int = 0) -> list[Placing]:
        return self.opened.run(self.asked.entries(k, start, skip=skip))

    def page(self, limit: int = 100, *, cursor: str | None = None, skip: int = 0) -> RankedPage[Model]:
        return self.opened.run(self.asked.page(limit, cursor=cursor, skip=skip))

    def between(self, low: int, high: int, limit: int = 100) -> list[Ranked[Model]]:
        return self.opened.run(self.asked.between(low, high, limit))

    def rank_of_score(self, score: int) -> int:
        return self.opened.run(self.asked.rank_of_score(score))

    def among(self, keys: Collection[Any]) -> list[Placing]:
        return self.opened.run(self.asked.among(keys))

    def rank(self, key: Any) -> int | None:  # noqa: ANN401  # a primary key of any type, or a record
        return self.opened.run(self.asked.rank(key))

    def dense_rank(self, key: Any) -> int | None:  # noqa: ANN401  # as `rank`
        return self.opened.run(self.asked.dense_rank(key))

    def score(self, key: Any) -> int | None:  # noqa: ANN401  # as `rank`
        return self.opened.run(self.asked.score(key))

    def standing(self, key: Any) -> Standing | None:  # noqa: ANN401  # as `rank`
        return self.opened.run(self.asked.standing(key))

    def percentile(self, p: float) -> int | None:
        return self.opened.run(self.asked.percentile(p))

    def count(self) -> int:
        return self.opened.run(self.asked.count())

    def around(self, key: Any, above: int = 5, below: int | None = None) -> list[Ranked[Model]]:  # noqa: ANN401  # as `rank`
        return self.opened.run(self.asked.around(key, above, below))

    def windows(self) -> list[Window]:
        return self.opened.run(self.asked.windows())


_bound: dict[type[Any], list[Indexes]] = {}


def leaderboard(model: type[Model], index: str | InstrumentedAttribute[Any] | None = None) -> Ranking[Model]:
    """The ranking of a model in its open `Indexes`, by its only index or the one with this name or score."""
    if not _bound.get(model):
        raise InvalidInput.at(
            "model",
            f"no Indexes are open for {model.__name__}: `with Indexes(laurels, engine, "
            f"[{model.__name__}]):` first",
        )
    return _bound[model][-1].leaderboard(model, index)
