"""Partitioned tables: every way in which rows come, move and go, compared with the table by `verify`."""

# ruff: noqa: S608  # the tables are the tests' own

from __future__ import annotations

from datetime import datetime  # noqa: TC003  # SQLAlchemy reads the annotations
from typing import TYPE_CHECKING, Any

import pytest
from index_models import make, new_base, new_table
from sqlalchemy import BigInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from laurels.index import Indexes, LeaderboardIndex, install, leaderboard, uninstall

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.clock import FixedClock
    from laurels.engine import Laurels

DAY = 86_400_000_000


def partitioned(**declared: Any) -> type[Any]:  # noqa: ANN401  # fields of a LeaderboardIndex
    class Take(new_base()):
        __tablename__ = new_table()
        __table_args__ = {"postgresql_partition_by": "LIST (region)"}  # noqa: RUF012  # SQLAlchemy's own way
        __leaderboards__ = (LeaderboardIndex(score="score", **declared),)
        region: Mapped[str] = mapped_column(primary_key=True)
        id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
        player: Mapped[int] = mapped_column(default=0)
        score: Mapped[int | None] = mapped_column(BigInteger)
        seen: Mapped[datetime | None]

    return Take


class Table:
    """A partitioned table with the partitions `eu` and `asia`, and its open index."""

    def __init__(self, engine: AsyncEngine, index: Indexes, model: type[Any]) -> None:
        self.engine, self.index, self.model = engine, index, model
        self.name: str = model.__tablename__

    async def run(self, *statements: str) -> None:
        async with self.engine.begin() as connection:
            for statement in statements:
                await connection.execute(text(statement.replace("@", self.name)))

    async def ranked(self) -> list[tuple[str, int, int]]:
        """Region, id and score of all entries in the current window, which must equal the table."""
        await self.index.caught_up()
        assert (await self.index.verify()).differences == []
        found = await leaderboard(self.model).entries(1000)
        return [(*each.key, each.score) for each in found]


@pytest.fixture
def model() -> type[Any]:
    return partitioned()


@pytest.fixture
async def table(laurels: Laurels, engine: AsyncEngine, model: type[Any]) -> AsyncGenerator[Table]:
    async with engine.begin() as connection:
        await connection.run_sync(model.metadata.create_all)
        for region in ("eu", "asia"):
            await connection.execute(
                text(
                    f"CREATE TABLE {model.__tablename__}_{region} PARTITION OF {model.__tablename__} "
                    f"FOR VALUES IN ('{region}')"
                )
            )
    await make(engine, model)
    async with Indexes(laurels, engine, [model]) as index:
        yield Table(engine, index, model)
    await uninstall(engine, model)


BOTH = "INSERT INTO @ (region, id, player, score) VALUES ('eu', 1, 0, 10), ('asia', 2, 0, 20)"


async def test_writes_to_a_partition_by_its_name_are_captured(table: Table):
    await table.run(BOTH, "INSERT INTO @_eu (region, id, player, score) VALUES ('eu', 3, 0, 30)")
    assert await table.ranked() == [("eu", 3, 30), ("asia", 2, 20), ("eu", 1, 10)]
    await table.run("UPDATE @_eu SET score = 15 WHERE id = 3", "DELETE FROM @_asia")
    assert await table.ranked() == [("eu", 3, 15), ("eu", 1, 10)]


async def test_a_row_that_moves_between_partitions_keeps_its_window_unless_its_score_changes(
    table: Table, clock: FixedClock
):
    await table.run(BOTH)
    await table.ranked()
    clock.now += DAY
    await table.run("UPDATE @ SET region = 'asia' WHERE id = 1")
    # Its key has changed, as that of any table: a record of today.
    assert await table.ranked() == [("asia", 1, 10)]
    await table.run("UPDATE @ SET region = 'eu', score = 12 WHERE id = 2")
    assert await table.ranked() == [("eu", 2, 12), ("asia", 1, 10)]


async def test_one_truncated_partition_takes_its_rows_along(table: Table, clock: FixedClock):
    await table.run(BOTH)
    await table.ranked()
    clock.now += DAY
    await table.run("INSERT INTO @ (region, id, player, score) VALUES ('eu', 3, 0, 30)", "TRUNCATE @_asia")
    assert await table.ranked() == [("eu", 3, 30)]
    today, yesterday = await leaderboard(table.model).windows()
    assert (today.entries, yesterday.entries) == (1, 1)  # the other rows stay in their windows
    await table.run("TRUNCATE @")
    assert await table.ranked() == []


async def test_a_partition_that_is_made_later_is_captured_by_either_name(table: Table):
    await table.run(
        "CREATE TABLE @_us PARTITION OF @ FOR VALUES IN ('us')",
        "INSERT INTO @ (region, id, player, score) VALUES ('us', 4, 0, 40)",
        "INSERT INTO @_us (region, id, player, score) VALUES ('us', 5, 0, 50)",
    )
    assert await table.ranked() == [("us", 5, 50), ("us", 4, 40)]
    await table.run("UPDATE @_us SET score = 1 WHERE id = 5", "TRUNCATE @_eu")
    assert await table.ranked() == [("us", 4, 40), ("us", 5, 1)]


async def test_rows_of_a_later_partition_that_are_known_keep_their_window(table: Table, clock: FixedClock):
    await table.run(BOTH)
    await table.ranked()
    await table.run("CREATE TABLE @_us PARTITION OF @ FOR VALUES IN ('us')")
    async with table.engine.begin() as connection:
        await connection.execute(
            text(f"INSERT INTO {table.name} (region, id, player, score) VALUES ('us', 4, 0, 40)")
        )
    clock.now += DAY
    assert await table.ranked() == []
    _, yesterday = await leaderboard(table.model).windows()
    assert yesterday.entries == 3


async def test_an_attached_partition_brings_its_rows_and_a_detached_one_takes_them(table: Table):
    await table.run(
        BOTH,
        "CREATE TABLE @_us (LIKE @)",
        "INSERT INTO @_us (region, id, player, score) VALUES ('us', 4, 0, 40)",
        "ALTER TABLE @ ATTACH PARTITION @_us FOR VALUES IN ('us')",
    )
    assert await table.ranked() == [("us", 4, 40), ("asia", 2, 20), ("eu", 1, 10)]
    await table.run(
        "ALTER TABLE @ DETACH PARTITION @_asia",
        "INSERT INTO @_asia (region, id, player, score) VALUES ('asia', 9, 0, 90)",
    )
    assert await table.ranked() == [("us", 4, 40), ("eu", 1, 10)]
    await table.run("UPDATE @_asia SET score = 99", "TRUNCATE @_asia")
    assert await table.ranked() == [("us", 4, 40), ("eu", 1, 10)]
    await table.run("DROP TABLE @_asia")


async def test_a_dropped_partition_takes_its_rows_along(table: Table, clock: FixedClock):
    await table.run(BOTH)
    await table.ranked()
    clock.now += DAY
    await table.run("DROP TABLE @_asia")
    assert await table.ranked() == []
    _, yesterday = await leaderboard(table.model).windows()
    assert yesterday.entries == 1


@pytest.mark.parametrize(
    "model",
    [partitioned(member="player", windows=["all_time"]), partitioned(at="seen", windows=["all_time"])],
)
async def test_members_and_timestamps_follow_partitions_too(table: Table):
    values = "(region, id, player, score, seen) VALUES"
    await table.run(
        f"INSERT INTO @ {values} ('eu', 1, 7, 10, now()), ('asia', 2, 7, 20, now())",
        f"INSERT INTO @ {values} ('asia', 3, 8, 5, now())",
        f"INSERT INTO @_eu {values} ('eu', 4, 8, 15, now())",
    )
    await table.index.caught_up()
    assert (await table.index.verify()).differences == []
    await table.run("TRUNCATE @_asia")
    await table.index.caught_up()
    assert (await table.index.verify()).differences == []
    assert {each.score for each in await leaderboard(table.model).entries(9)} == {10, 15}
    await table.run("ALTER TABLE @ DETACH PARTITION @_eu", "DROP TABLE @_eu")
    await table.index.caught_up()
    assert (await table.index.verify()).differences == []
    assert await leaderboard(table.model).count() == 0


async def test_partitions_of_partitions_are_captured(table: Table):
    await table.run(
        BOTH,
        "CREATE TABLE @_am PARTITION OF @ FOR VALUES IN ('us', 'br') PARTITION BY LIST (region)",
        "CREATE TABLE @_us PARTITION OF @_am FOR VALUES IN ('us')",
    )
    await table.ranked()
    await table.run(
        "INSERT INTO @_am (region, id, player, score) VALUES ('us', 4, 0, 40)",
        "INSERT INTO @_us (region, id, player, score) VALUES ('us', 5, 0, 50)",
    )
    assert await table.ranked() == [("us", 5, 50), ("us", 4, 40), ("asia", 2, 20), ("eu", 1, 10)]
    await table.run("TRUNCATE @_am")
    assert await table.ranked() == [("asia", 2, 20), ("eu", 1, 10)]


async def test_installing_again_and_removing_leave_nothing_behind(table: Table):
    await table.run(BOTH)
    await install(table.engine, table.model)
    assert await table.ranked() == [("asia", 2, 20), ("eu", 1, 10)]
    await uninstall(table.engine, table.model)
    async with table.engine.connect() as connection:
        left = await connection.execute(
            text("SELECT count(*) FROM pg_trigger WHERE tgrelid = CAST(:of AS regclass)"),
            {"of": f"{table.name}_eu"},
        )
        assert left.scalar_one() == 0
    await install(table.engine, table.model)
