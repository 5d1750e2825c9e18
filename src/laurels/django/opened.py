"""The Laurels of this process: opened at the first read, on a thread of its own, and closed at the exit."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.apps import apps
from django.db import connections, router
from sqlalchemy.ext.asyncio import create_async_engine

from laurels.django.configuration import configuration, own_postgres_url, project_of, url_of
from laurels.django.index import leaderboards_of
from laurels.django.twins import twin_of
from laurels.errors import InvalidInput, StartupError
from laurels.index import Indexes
from laurels.index.declare import declared
from laurels.index.installed import installed
from laurels.sync import Laurels

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from django.db.models import Model
    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.django.configuration import Configuration
    from laurels.index import Ranking

Answer = TypeVar("Answer")

# How long the first read waits for indexes that are not built yet.
BUILD_SECONDS: Final = 5.0


class DjangoIndexes(Indexes):
    """Indexes whose records stay keys, for Django to load."""

    async def fetch(self, model: type[Any], keys: Sequence[Any], session: Any = None) -> dict[Any, Any]:
        return {key: key for key in keys}


class Opened:
    """Open indexes, by the alias of their database."""

    def __init__(self, *, maintain: bool | None = None) -> None:
        """`maintain`: whether to apply commits in the background; by default as the settings say."""
        self._configuration = configuration()
        self._maintain = self._configuration.maintain if maintain is None else maintain
        self.laurels = Laurels(**_options(self._configuration))
        self.twins = twins()
        self._engines: list[AsyncEngine] = []
        self._indexes: dict[str, DjangoIndexes] = {}
        self._maintaining: list[asyncio.Task[Any]] = []

    def open(self) -> None:
        self.laurels.open()
        try:
            self.run(self._open())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        try:
            self.run(self._close())
        finally:
            self.laurels.close()

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return self.laurels.run(work)

    def ranking(self, alias: str, model: type[Model], which: str | None) -> Ranking[Any]:
        return self._of(alias, model).leaderboard(self.twins[model], which)

    def caught_up(self, alias: str, model: type[Model]) -> None:
        self.run(self._of(alias, model).caught_up(self.twins[model]))

    def made_by(
        self, alias: str, model: type[Model], ranking: Ranking[Any], members: list[Any]
    ) -> dict[Any, Any]:
        """The primary keys of the rows that make the entries of these members."""
        return self.run(self._of(alias, model).records(ranking, members))

    def indexes(self) -> dict[str, DjangoIndexes]:
        return self._indexes

    async def wait(self) -> None:
        """Maintains the indexes until it is cancelled."""
        await asyncio.gather(*self._maintaining)

    def _of(self, alias: str, model: type[Model]) -> DjangoIndexes:
        if alias not in self._indexes:
            raise InvalidInput.at(
                "using", f"{alias!r} has no table of {model.__name__}, by the database routers"
            )
        return self._indexes[alias]

    async def _open(self) -> None:
        for alias in connections:
            models = [twin for model, twin in self.twins.items() if router.db_for_write(model) == alias]
            if models:
                self._indexes[alias] = await self._open_on(alias, models)
        if self._maintain and self._indexes:
            # Most are built in a moment. Readers of a large one are told that it is not ready, meanwhile.
            built = [asyncio.create_task(each.build()) for each in self._indexes.values()]
            await asyncio.wait(built, timeout=BUILD_SECONDS)
            self._maintaining = [
                *built,
                *(asyncio.create_task(each.run()) for each in self._indexes.values()),
            ]

    async def _open_on(self, alias: str, models: list[type[Any]]) -> DjangoIndexes:
        engine = create_async_engine(url_of(alias))
        self._engines.append(engine)
        async with engine.connect() as connection:
            there = await connection.run_sync(installed)
        for index in (index for model in models for index in declared(model)):
            if index.name not in there or not there[index.name].is_of(index):
                raise StartupError(
                    f"the leaderboard {index.name} is not installed in the database {alias!r} as "
                    f"{index.model.__name__} declares it: run manage.py makemigrations and manage.py migrate"
                )
        indexes = DjangoIndexes(
            self.laurels.engine, engine, models, project=project_of(self._configuration, alias)
        )
        await indexes.open()
        return indexes

    async def _close(self) -> None:
        for task in self._maintaining:
            task.cancel()
        await asyncio.gather(*self._maintaining, return_exceptions=True)
        for indexes in self._indexes.values():
            await indexes.close()
        for engine in self._engines:
            await engine.dispose()


def twins() -> dict[type[Model], type[Any]]:
    """The twin of each model with leaderboards. Raises `InvalidInput` for a wrong declaration."""
    found: dict[type[Model], type[Any]] = {}
    for model in apps.get_models():
        indexes = [index.on(model) for index in leaderboards_of(model)]
        if indexes and not model._meta.swapped:
            found[model] = twin_of(model, indexes)
    return found


def _options(chosen: Configuration) -> dict[str, Any]:
    return {
        "valkey_url": chosen.valkey_url,
        "postgres_url": own_postgres_url(chosen),
        "data_dir": chosen.data_dir,
    }


_lock = threading.Lock()
_opened: Opened | None = None


def opened() -> Opened:
    """Opens Laurels at the first call of a process. Raises `StartupError` if an index is not installed."""
    global _opened  # noqa: PLW0603  # one for each process
    if _opened is None:
        with _lock:
            if _opened is None:
                starting = Opened()
                starting.open()
                _opened = starting
    return _opened


def close() -> None:
    """Closes Laurels in this process; the next read opens it again."""
    global _opened  # as above
    with _lock:
        closing, _opened = _opened, None
    if closing is not None:
        closing.close()


def _forget() -> None:
    """A forked process has no threads but its own: it opens a Laurels of its own."""
    global _opened, _lock  # as above
    _opened, _lock = None, threading.Lock()


atexit.register(close)
os.register_at_fork(after_in_child=_forget)
