"""Capturing changes in their own transaction, whichever program makes them."""

# ruff: noqa: S608  # the tables are the tests' own

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from index_models import make, new_base, new_table, opened, score_model
from sqlalchemy import BigInteger, DateTime, String, delete, insert, text, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from laurels.errors import InvalidInput, StartupError
from laurels.index import Indexes, LeaderboardIndex, ddl, install, leaderboard, uninstall
from laurels.index.declare import declared

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.clock import FixedClock
    from laurels.engine import Laurels


async def captured(engine: AsyncEngine, model: type[Any]) -> list[tuple[str, str, int | None]]:
    """Key, op and score of each row of the outbox."""
    asked = text("SELECT key, op, score FROM laurels_index.outbox WHERE index = :index ORDER BY seq")
    async with engine.connect() as connection:
        rows = await connection.execute(asked, {"index": declared(model)[0].name})
        return [tuple(row) for row in rows]


async def test_every_kind_of_write_is_captured_once(engine: AsyncEngine):
    model = score_model(group_by=["region"])
    await make(engine, model)
    async with engine.begin() as connection:
        await connection.execute(
            insert(model), [{"id": key, "region": "eu", "score": key * 10} for key in (1, 2, 3)]
        )
    assert await captured(engine, model) == [("1", "put", 10), ("2", "put", 20), ("3", "put", 30)]
    async with engine.begin() as connection:
        await connection.execute(text("DELETE FROM laurels_index.outbox"))
        await connection.execute(update(model).where(model.id > 1).values(score=model.score + 1))
        await connection.execute(update(model).where(model.id == 3).values(region=None))
        await connection.execute(update(model).where(model.id == 2).values(id=4))
        await connection.execute(delete(model).where(model.id == 1))
    assert await captured(engine, model) == [
        ("2", "put", 21), ("3", "put", 31),
        ("3", "nil", 31),
        ("2", "gone", None), ("4", "put", 21),
        ("1", "gone", None),
    ]  # fmt: skip
    async with engine.begin() as connection:
        await connection.execute(text("DELETE FROM laurels_index.outbox"))
        await connection.execute(text(f"TRUNCATE {model.__tablename__}"))
    assert await captured(engine, model) == [(None, "clear", None)]


async def test_changes_of_other_columns_are_not_captured(engine: AsyncEngine):
    model = score_model(group_by=["region"])
    await make(engine, model)
    async with engine.begin() as connection:
        await connection.execute(insert(model), [{"id": 1, "region": None, "score": 5}])
        await connection.execute(insert(model), [{"id": 2, "region": "eu", "score": None}])
        await connection.execute(update(model).values(level=2))
        await connection.execute(update(model).values(score=model.score))
    assert await captured(engine, model) == []


async def test_an_upsert_is_captured_as_what_it_did(engine: AsyncEngine):
    model = score_model()
    await make(engine, model)
    async with engine.begin() as connection:
        await connection.execute(insert(model), [{"id": 1, "score": 5}])
        await connection.execute(
            text(
                f"INSERT INTO {model.__tablename__} (id, score, level) VALUES (1, 6, 1), (2, 7, 1) "
                "ON CONFLICT (id) DO UPDATE SET score = excluded.score"
            )
        )
    assert sorted(await captured(engine, model)) == [("1", "put", 5), ("1", "put", 6), ("2", "put", 7)]


async def test_a_large_update_after_a_small_one_is_not_planned_as_a_small_one(engine: AsyncEngine):
    model = score_model()
    await make(engine, model)
    table = model.__tablename__
    async with engine.connect() as connection:
        await connection.execute(
            text(f"INSERT INTO {table} SELECT i, 'eu', 'x', i, 1 FROM generate_series(1, 20000) i")
        )
        for _ in range(8):  # past the plans that are made for one execution each
            await connection.execute(update(model).where(model.id == 1).values(score=model.score + 1))
        await connection.execute(text("SET LOCAL statement_timeout = '20s'"))  # a loop takes a minute
        await connection.execute(update(model).values(score=model.score + 1))
        await connection.commit()
    assert len(await captured(engine, model)) == 40_008


async def test_installing_again_changes_nothing_and_uninstalling_takes_everything(
    engine: AsyncEngine, laurels: Laurels
):
    model = score_model()
    await make(engine, model)
    await install(engine, model)
    async with engine.begin() as connection:
        await connection.execute(insert(model), [{"id": 1, "score": 5}])
    assert await captured(engine, model) == [("1", "put", 5)]
    await uninstall(engine, model)
    async with engine.begin() as connection:
        await connection.execute(insert(model), [{"id": 2, "score": 5}])
    assert await captured(engine, model) == []
    with pytest.raises(
        StartupError, match=r"is not installed .* run `await laurels.index.install\(engine, GameScore"
    ):
        await Indexes(laurels, engine, [model]).open()


async def test_an_index_whose_triggers_differ_from_its_declaration_does_not_open(
    engine: AsyncEngine, laurels: Laurels
):
    model = score_model()
    await make(engine, model)

    class Other(new_base()):
        __tablename__ = model.__tablename__
        __leaderboards__ = (LeaderboardIndex(score="level", name="score"),)
        id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
        level: Mapped[int]

    with pytest.raises(StartupError, match="is not installed in this database as Other declares it"):
        await Indexes(laurels, engine, [Other]).open()


async def test_triggers_that_are_disabled_are_not_installed(engine: AsyncEngine, laurels: Laurels):
    model = score_model()
    await make(engine, model)
    async with engine.begin() as connection:
        await connection.execute(text(f"ALTER TABLE {model.__tablename__} DISABLE TRIGGER USER"))
    with pytest.raises(StartupError, match="is not installed"):
        await Indexes(laurels, engine, [model]).open()


def test_ddl_is_statements_that_a_migration_can_run():
    statements = ddl(score_model())
    assert all(isinstance(each, str) for each in statements)
    assert sum(each.startswith("CREATE OR REPLACE TRIGGER") for each in statements) == 4
    assert not any("pg_notify" in each for each in ddl(score_model(), notify=False))


async def test_installing_no_index_is_an_error(engine: AsyncEngine):
    with pytest.raises(InvalidInput, match="none of them declares a leaderboard"):
        await install(engine, new_base())


async def test_tables_in_another_schema_and_with_odd_names_are_indexed(engine: AsyncEngine, laurels: Laurels):
    class Odd(new_base()):
        __tablename__ = "Odd 'name' %s"
        __table_args__ = {"schema": "elsewhere"}  # noqa: RUF012  # as SQLAlchemy has it
        __leaderboards__ = (LeaderboardIndex(score="Score", group_by=["in"], name="odd"),)
        id: Mapped[int] = mapped_column("Key", primary_key=True, autoincrement=False)
        group: Mapped[str] = mapped_column("in", String)
        Score: Mapped[int]

    async with engine.begin() as connection:
        await connection.execute(text("CREATE SCHEMA IF NOT EXISTS elsewhere"))
        await connection.run_sync(Odd.metadata.create_all)
    await install(engine, Odd)
    async with Indexes(laurels, engine, [Odd]) as index:
        async with AsyncSession(engine) as session:
            session.add(Odd(id=7, group="x", Score=1))
            await session.commit()
        await index.caught_up()
        assert [each.item.id for each in await leaderboard(Odd).group("x").top(3)] == [7]
        assert (await index.verify()).is_equal
    async with engine.begin() as connection:
        await connection.execute(text("DROP SCHEMA elsewhere CASCADE"))


class Timed:
    """A mixin of records with a timestamp."""

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    score: Mapped[int]


@pytest.mark.parametrize("timezone", [True, False])
async def test_a_timestamp_column_decides_the_window(
    engine: AsyncEngine, laurels: Laurels, clock: FixedClock, *, timezone: bool
):
    class Played(Timed, new_base()):
        __tablename__ = new_table()
        __leaderboards__ = (LeaderboardIndex(score="score", at="played_at", keep=3),)
        played_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=timezone))

    noon = datetime(2025, 10, 24, 12, tzinfo=UTC if timezone else None)
    async with opened(laurels, engine, Played) as index:
        async with engine.begin() as connection:
            await connection.execute(text("SET LOCAL TIME ZONE 'Asia/Tokyo'"))
            days = {1: 0, 2: -1, 3: -2, 4: -3, 5: 1}
            rows = [
                {"id": key, "score": 5, "played_at": noon + timedelta(days=ago)} for key, ago in days.items()
            ]
            await connection.execute(insert(Played), [*rows, {"id": 6, "score": 5, "played_at": None}])
            table = Played.__tablename__
            await connection.execute(
                text(f"INSERT INTO {table} (played_at, id, score) VALUES ('infinity', 7, 5)")
            )
        await index.caught_up()
        assert [(each.id, each.entries) for each in await leaderboard(Played).windows()] == [
            (20385, 1), (20384, 1), (20383, 1)
        ]  # fmt: skip
        clock.advance(timedelta(days=1))
        assert [each.key for each in await leaderboard(Played).entries(9)] == [5]
        async with engine.begin() as connection:
            await connection.execute(update(Played).where(Played.id == 1).values(score=6))
            await connection.execute(update(Played).where(Played.id == 2).values(played_at=noon))
        await index.caught_up()
        assert [each.key for each in await leaderboard(Played).window(20385).entries(9)] == [1, 2]
        assert (await index.verify()).is_equal


async def test_the_first_window_begins_before_the_first_moment_that_there_is(
    engine: AsyncEngine, laurels: Laurels
):
    class Ancient(Timed, new_base()):
        __tablename__ = new_table()
        __leaderboards__ = (
            LeaderboardIndex(score="score", at="played_at", window=timedelta(days=10), keep=None),
        )
        played_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))

    async with opened(laurels, engine, Ancient) as index:
        async with engine.begin() as connection:
            first = datetime(1, 1, 1, tzinfo=UTC)
            await connection.execute(insert(Ancient), [{"id": 1, "score": 5, "played_at": first}])
        await index.caught_up()
        assert [each.key for each in await leaderboard(Ancient).window(-71_917).entries(9)] == [1]
        assert (await index.verify()).is_equal


async def test_a_key_that_is_longer_than_a_member_is_not_indexed(engine: AsyncEngine, laurels: Laurels):
    class Named(new_base()):
        __tablename__ = new_table()
        __leaderboards__ = (LeaderboardIndex(score="score"),)
        name: Mapped[str] = mapped_column(primary_key=True)
        score: Mapped[int]

    async with opened(laurels, engine, Named) as index:
        names = ["", "é" * 128, "é" * 128 + "x", "a"]
        async with engine.begin() as connection:
            await connection.execute(insert(Named), [{"name": name, "score": 5} for name in names])
        await index.caught_up()
        assert [each.item.name for each in await leaderboard(Named).top(9)] == ["", "a", "é" * 128]
        assert await leaderboard(Named).rank("") == 1
        assert (await index.verify()).is_equal


async def test_a_role_without_rights_on_the_index_may_write(engine: AsyncEngine):
    model = score_model()
    await make(engine, model)
    async with engine.begin() as connection:
        await connection.execute(text("CREATE ROLE plain_writer"))
        await connection.execute(text(f"GRANT INSERT ON {model.__tablename__} TO plain_writer"))
        await connection.execute(text("SET LOCAL ROLE plain_writer"))
        await connection.execute(insert(model), [{"id": 1, "score": 5}])
        await connection.execute(text("RESET ROLE"))
        await connection.execute(text(f"REVOKE ALL ON {model.__tablename__} FROM plain_writer"))
        await connection.execute(text("DROP ROLE plain_writer"))
    assert await captured(engine, model) == [("1", "put", 5)]
