"""Descriptions: plain data that install the same triggers as the model."""

from __future__ import annotations

from datetime import date, datetime, timedelta  # SQLAlchemy reads the annotations
from enum import Enum
from typing import TYPE_CHECKING, Any
from uuid import UUID  # noqa: TC003  # as above

import pytest
from index_models import make, new_base, new_table, score_model
from sqlalchemy import BigInteger, String, TypeDecorator, text
from sqlalchemy.orm import Mapped, mapped_column

from laurels.index import LeaderboardIndex, ddl
from laurels.index.declare import declared
from laurels.index.description import Description
from laurels.index.triggers import ddl_of

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine


class League(Enum):
    GOLD = 1


class Code(TypeDecorator[str]):
    impl = String
    cache_ok = True


def with_every_kind() -> type[Any]:
    class Take(new_base()):
        __tablename__ = new_table()
        __table_args__ = {"schema": "public"}  # noqa: RUF012  # SQLAlchemy's own way
        __leaderboards__ = (
            LeaderboardIndex(
                score="points", group_by=["league", "day", "fair"], at="seen", window=timedelta(hours=2)
            ),
            LeaderboardIndex(score="points", name="by-code", group_by=["code"], order="asc", keep=None),
        )
        day: Mapped[date] = mapped_column(primary_key=True)
        player: Mapped[UUID] = mapped_column(primary_key=True)
        number: Mapped[int] = mapped_column("No", primary_key=True)
        code: Mapped[str] = mapped_column("a 'code'", Code, primary_key=True)
        points: Mapped[int] = mapped_column("p", BigInteger)
        league: Mapped[League]
        fair: Mapped[bool]
        seen: Mapped[datetime]

    return Take


@pytest.mark.parametrize(
    "model",
    [
        score_model(),
        score_model(group_by=["region", "city"], on_update="keep"),
        score_model(member="level", at="seen"),
        score_model(member="level", windows=["weekly", "all_time"]),
        score_model(member="level", windows=["all_time"], at="seen", group_by=["region"]),
        score_model(member="level", aggregate="sum", windows=["all_time"]),
    ],
)
def test_a_description_installs_the_same_triggers_as_its_model(model: type[Any]):
    (index,) = declared(model)
    assert ddl_of(Description.read(str(Description.of(index))).declared()) == ddl(model)


def test_columns_of_every_kind_are_described():
    one, other = declared(with_every_kind())
    for index in (one, other):
        assert ddl_of(Description.read(str(Description.of(index))).declared()) == ddl_of(index)
    assert Description.of(one).fields() == {
        "table": one.table.name,
        "score": "p",
        "key": {"day": "date", "player": "uuid", "No": "integer", "a 'code'": "text"},
        "group_by": {"league": "text", "day": "date", "fair": "boolean"},
        "at": "seen",
        "name": "points",
        "schema": "public",
    }


async def test_the_description_is_stored_beside_the_triggers(engine: AsyncEngine):
    model = score_model(group_by=["region"])
    await make(engine, model)
    asked = text(
        "SELECT obj_description(oid, 'pg_trigger') FROM pg_trigger "
        "WHERE tgrelid = CAST(:of AS regclass) AND tgname LIKE 'laurels%insert'"
    )
    async with engine.connect() as connection:
        stored = (await connection.execute(asked, {"of": model.__tablename__})).scalar_one()
    assert Description.read(stored) == Description.of(declared(model)[0])
