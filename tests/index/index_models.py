"""Models with a table for each test, and open indexes on them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import datetime  # noqa: TC003  # SQLAlchemy reads the annotations
from itertools import count
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, DateTime, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from laurels.index import Indexes, LeaderboardIndex, install

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.engine import Laurels

_numbers = count(1)
_made: list[str] = []


def new_base() -> type[DeclarativeBase]:
    class Base(DeclarativeBase):
        pass

    return Base


def new_table() -> str:
    return f"scores_{next(_numbers)}"


def score_model(**declared: Any) -> type[Any]:  # noqa: ANN401  # fields of a LeaderboardIndex
    """Players with an integer key, a region, a city and a score; indexed as these fields say."""
    fields: dict[str, Any] = {"score": "score", "dense": True, **declared}

    class GameScore(new_base()):
        __tablename__ = new_table()
        __leaderboards__ = (LeaderboardIndex(**fields),)
        id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
        region: Mapped[str | None]
        city: Mapped[str | None]
        score: Mapped[int | None] = mapped_column(BigInteger)
        level: Mapped[int] = mapped_column(default=1)
        seen: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
        player: Mapped[int | None]

    return GameScore


@asynccontextmanager
async def opened(laurels: Laurels, engine: AsyncEngine, *models: type[Any]) -> AsyncGenerator[Indexes]:
    """Makes the tables, installs the triggers and opens the indexes."""
    await make(engine, *models)
    async with Indexes(laurels, engine, list(models)) as index:
        yield index


async def make(engine: AsyncEngine, *models: type[Any]) -> None:
    async with engine.begin() as connection:
        for model in models:
            await connection.run_sync(model.metadata.create_all)
            _made.append(model.__table__.fullname)
    await install(engine, *models)


async def drop(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        while _made:
            await connection.execute(text(f"DROP TABLE IF EXISTS {_made.pop()} CASCADE"))
