"""What the five examples share: a database with their tables, Laurels beside it, and a clock to set."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from sqlalchemy import func, inspect, select, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from examples.stage import opened
from laurels import embedded
from laurels.errors import Conflict
from laurels.index import Indexes, install
from laurels.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence
    from datetime import datetime

    from rich.table import Table
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncEngine
    from sqlalchemy.orm import DeclarativeBase

    from examples.stage import Stage


@dataclass(frozen=True)
class Place:
    stage: Stage
    engine: AsyncEngine
    index: Indexes

    @asynccontextmanager
    async def writing(self, now: datetime) -> AsyncGenerator[AsyncSession]:
        """A transaction at this moment. What it commits is in the indexes when the block is over."""
        self.stage.turn_to(now)
        async with AsyncSession(self.engine) as session, session.begin():
            await session.execute(select(func.set_config("laurels.now", now.isoformat(), True)))
            yield session
        await self.index.caught_up()


class Example(Protocol):
    """A module of this folder."""

    @property
    def Base(self) -> type[DeclarativeBase]: ...  # noqa: N802  # a class

    @property
    def BEGIN(self) -> datetime: ...  # noqa: N802  # a constant

    async def play(self, place: Place) -> None:
        """Writes records, up to the moment that the tables are of."""
        ...

    async def tables(self) -> Sequence[Table]:
        """What the indexes tell then."""
        ...


@contextmanager
def servers(data_dir: Path | None = None) -> Generator[tuple[str, str]]:
    """The URLs of the settings; else of embedded servers, in a folder that goes with them unless named."""
    settings = load_settings(data_dir=data_dir)
    if settings.valkey_url and settings.postgres_url:
        yield settings.valkey_url, settings.postgres_url
        return
    with ExitStack() as stack:
        if data_dir is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="laurels-example-")))
            folder.chmod(0o711)  # root's servers run as another user
            data_dir = folder / "data"
        started = stack.enter_context(embedded.start(data_dir))
        yield started.endpoints.valkey_url, started.endpoints.postgres_url


@asynccontextmanager
async def on(example: Example, valkey_url: str, postgres_url: str) -> AsyncGenerator[Place]:
    """The tables of an example, new, with their triggers."""
    metadata = example.Base.metadata
    engine = create_async_engine(postgres_url)

    def create(connection: Connection) -> None:
        if there := set(metadata.tables) & set(inspect(connection).get_table_names()):
            raise Conflict(f"{', '.join(sorted(there))} is there already: play on another data folder")
        metadata.create_all(connection)

    async with opened(example.BEGIN, valkey_url=valkey_url, postgres_url=postgres_url) as stage:
        async with engine.begin() as connection:
            await connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
            await connection.run_sync(create)
            await install(connection, metadata)
        async with Indexes(stage.laurels, engine, metadata) as index:
            yield Place(stage, engine, index)
    await engine.dispose()


def perform(*examples: Example, data_dir: Path | None = None) -> None:
    """Plays them one after another, in a terminal."""
    console = Console(highlight=False, emoji=False)

    async def played(example: Example, valkey_url: str, postgres_url: str) -> None:
        async with on(example, valkey_url, postgres_url) as place:
            await example.play(place)
            console.rule((example.__doc__ or "").partition(":")[0])
            console.print(*await example.tables(), sep="\n")

    with servers(data_dir) as urls:
        for example in examples:
            asyncio.run(played(example, *urls))
