"""Random sessions against brute force: whatever is written, committed, undone or interrupted, every window
and group says the same as a sorted list.
"""

# ruff: noqa: S311, S608  # nothing is secret, and the tables are the tests' own

from __future__ import annotations

import random
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from index_models import opened, score_model
from index_oracle import Oracle, Row, dense_rank, percentile
from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from laurels.boards.keys import BoardRef
from laurels.index import leaderboard
from laurels.index.outbox import Outbox
from laurels.index.writes import IndexWriter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from laurels.clock import FixedClock
    from laurels.engine import Laurels
    from laurels.index import Indexes

REGIONS = ["asia", "eu", "", "a=b,c:{}|%é🎲", None]
CITIES = ["x", "tokyo", None]
SCORES = [*range(5), -1, 2**63 - 1, -(2**63), 2**53 + 1, None]
SHARES = [0, 0.25, 0.5, 0.9, 1]


class Interrupted(Exception):
    pass


class Driver:
    """Applies the same changes to a table and to the oracle."""

    def __init__(
        self, seed: int, engine: AsyncEngine, clock: FixedClock, model: type[Any], oracle: Oracle
    ) -> None:
        self._random = random.Random(seed)
        self._engine = engine
        self._clock = clock
        self._model = model
        self.oracle = oracle
        self._keys = count(1)

    def _row(self) -> Row:
        choose = self._random.choice
        return Row(choose(REGIONS), choose(CITIES), choose(SCORES))

    async def insert_some(self, connection: AsyncConnection, oracle: Oracle) -> None:
        new = {
            next(self._keys) * self._random.choice([1, -1]): self._row()
            for _ in range(self._random.randint(1, 12))
        }
        await connection.execute(
            insert(self._model), [{"id": key, **row._asdict()} for key, row in new.items()]
        )
        oracle.become(oracle.rows | new, self._clock())

    async def update_one(self, connection: AsyncConnection, oracle: Oracle) -> None:
        if oracle.rows:
            key, row = self._random.choice(list(oracle.rows)), self._row()
            async with AsyncSession(connection, join_transaction_mode="create_savepoint") as session:
                record = await session.get_one(self._model, key)
                record.region, record.city, record.score = row
                await session.commit()
            oracle.become(oracle.rows | {key: row}, self._clock())

    async def update_another_column(self, connection: AsyncConnection, _oracle: Oracle) -> None:
        await connection.execute(update(self._model).values(level=self._model.level + 1))

    async def update_in_bulk(self, connection: AsyncConnection, oracle: Oracle) -> None:
        region, score = self._random.choice(REGIONS), self._random.choice(SCORES)
        await connection.execute(update(self._model).where(self._model.region == region).values(score=score))
        rows = {
            key: row._replace(score=score) if row.region == region else row
            for key, row in oracle.rows.items()
        }
        oracle.become(rows, self._clock())

    async def move_in_bulk(self, connection: AsyncConnection, oracle: Oracle) -> None:
        old, new = self._random.choice(CITIES), self._random.choice(CITIES)
        await connection.execute(update(self._model).where(self._model.city == old).values(city=new))
        rows = {key: row._replace(city=new) if row.city == old else row for key, row in oracle.rows.items()}
        oracle.become(rows, self._clock())

    async def shift_keys(self, connection: AsyncConnection, oracle: Oracle) -> None:
        """Every record takes the key of another while that is still in use."""
        keys = sorted(oracle.rows)
        if len(keys) > 1:
            table = self._model.__tablename__
            await connection.execute(text(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey"))
            nexts = dict(zip(keys, [*keys[1:], keys[0]], strict=True))
            pairs = ", ".join(f"({old}, {new})" for old, new in nexts.items())
            await connection.execute(
                text(
                    f"UPDATE {table} SET id = n.to_key FROM (VALUES {pairs}) n (old, to_key) WHERE id = n.old"
                )
            )
            await connection.execute(text(f"ALTER TABLE {table} ADD PRIMARY KEY (id)"))
            oracle.become({nexts[key]: row for key, row in oracle.rows.items()}, self._clock())

    async def change_a_key(self, connection: AsyncConnection, oracle: Oracle) -> None:
        if oracle.rows:
            old, new = self._random.choice(list(oracle.rows)), next(self._keys)
            await connection.execute(update(self._model).where(self._model.id == old).values(id=new))
            rows = dict(oracle.rows)
            rows[new] = rows.pop(old)
            oracle.become(rows, self._clock())

    async def delete_one(self, connection: AsyncConnection, oracle: Oracle) -> None:
        if oracle.rows:
            key = self._random.choice(list(oracle.rows))
            await connection.execute(delete(self._model).where(self._model.id == key))
            oracle.become({other: row for other, row in oracle.rows.items() if other != key}, self._clock())

    async def delete_in_bulk(self, connection: AsyncConnection, oracle: Oracle) -> None:
        await connection.execute(delete(self._model).where(func.abs(self._model.id) % 7 == 0))
        rows = {key: row for key, row in oracle.rows.items() if abs(key) % 7}
        oracle.become(rows, self._clock())

    async def truncate(self, connection: AsyncConnection, oracle: Oracle) -> None:
        await connection.execute(text(f"TRUNCATE {self._model.__tablename__}"))
        oracle.become({}, self._clock())

    def _change(self) -> Callable[[AsyncConnection, Oracle], Awaitable[None]]:
        changes = {
            self.insert_some: 5, self.update_one: 6, self.update_in_bulk: 3, self.move_in_bulk: 2,
            self.update_another_column: 1, self.change_a_key: 2, self.shift_keys: 1,
            self.delete_one: 2, self.delete_in_bulk: 1, self.truncate: 0.2,
        }  # fmt: skip
        (change,) = self._random.choices(list(changes), list(changes.values()))
        return change

    async def commit(self) -> None:
        async with self._engine.begin() as connection:
            for _ in range(self._random.randint(1, 3)):
                await self._change()(connection, self.oracle)

    async def roll_back(self) -> None:
        undone = self.oracle.copy()
        async with self._engine.connect() as connection:
            begun = await connection.begin()
            await self._change()(connection, undone)
            await begun.rollback()

    async def roll_back_to_a_savepoint(self) -> None:
        async with self._engine.begin() as connection:
            await self._change()(connection, self.oracle)
            undone = self.oracle.copy()
            savepoint = await connection.begin_nested()
            await self._change()(connection, undone)
            await savepoint.rollback()
            await self._change()(connection, self.oracle)

    async def commit_in_the_other_order(self) -> None:
        """The first to write is the last to commit, and changes a record that the other made."""
        model, oracle = self._model, self.oracle
        first, second, third = (next(self._keys) for _ in range(3))
        async with self._engine.begin() as late:
            await late.execute(insert(model), [{"id": first, "region": "eu", "city": "x", "score": 1}])
            written_late = self._clock()
            self._clock.advance(timedelta(hours=self._random.choice([0, 5, 30])))
            async with self._engine.begin() as early:
                await early.execute(
                    insert(model),
                    [{"id": key, "region": "eu", "city": "x", "score": 2} for key in (second, third)],
                )
                oracle.become(oracle.rows | dict.fromkeys((second, third), Row("eu", "x", 2)), self._clock())
            await late.execute(update(model).where(model.id == second).values(score=3))
            oracle.become(oracle.rows | {first: Row("eu", "x", 1)}, written_late)
            oracle.become(oracle.rows | {second: Row("eu", "x", 3)}, written_late)

    async def let_time_pass(self) -> None:
        self._clock.advance(timedelta(hours=self._random.choice([1, 11, 24, 49])))

    def step(self) -> Callable[[], Awaitable[None]]:
        steps = {
            self.commit: 6, self.roll_back: 1, self.roll_back_to_a_savepoint: 1,
            self.commit_in_the_other_order: 1, self.let_time_pass: 2,
        }  # fmt: skip
        (step,) = self._random.choices(list(steps), list(steps.values()))
        return step


async def agree(index: Indexes, model: type[Any], oracle: Oracle, now: int) -> None:
    """Every window and group, all ranks, dense ranks, percentiles and counts."""
    async with index.engine.connect() as connection:
        rows = (await connection.execute(select(model.id, model.region, model.city, model.score))).all()
    assert {row[0]: Row(*row[1:]) for row in rows} == oracle.rows
    ranking = leaderboard(model)
    windows = await ranking.windows()
    assert [each.id for each in windows] == oracle.asked(now)
    for window in windows:
        assert window.entries == len(oracle.ranking(window.id, ()))
        for group in oracle.groups():
            expected = oracle.ranking(window.id, group)
            asked = ranking.group(*group).window(window)
            found = await asked.entries(10_000)
            assert [(each.key, each.score, each.rank) for each in found] == [
                (key, score, rank) for rank, (key, score) in enumerate(expected, 1)
            ]
            assert [each.key for each in await asked.entries(10_000, "bottom")] == [
                key for key, _ in reversed(expected)
            ]
            assert [await asked.percentile(share) for share in SHARES] == [
                percentile(expected, share) for share in SHARES
            ]
            for key, score in expected[:: 1 + len(group) * 3]:
                standing = await asked.standing(key)
                assert standing is not None
                assert (standing.rank, standing.score) == (expected.index((key, score)) + 1, score)
                assert standing.dense_rank == dense_rank(expected, key)
            assert await asked.rank(10**9) is None


async def interrupted(index: Indexes, monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """Interrupts a round after this many calls, or before PostgreSQL knows of any of them."""
    place = IndexWriter.place
    left = iter(range(calls))

    async def die_soon(*given: Any) -> None:  # noqa: ANN401  # what `place` takes
        if next(left, None) is None:
            raise Interrupted
        await place(*given)

    async def die(*_: object) -> None:
        raise Interrupted

    with monkeypatch.context() as patched:
        patched.setattr(IndexWriter, "place", die_soon)
        patched.setattr(Outbox, "consume", die)
        with suppress(Interrupted):
            await index.caught_up()
        for applier in index._appliers.values():  # pyright: ignore[reportPrivateUsage]  # what goes on behind
            await applier.settled()


async def forgotten(index: Indexes, model: type[Any], driver: random.Random) -> None:
    """Valkey loses the whole index, or only its cursor."""
    board = index.board(leaderboard(model).declared)
    if driver.random() < 0.5:
        await index.laurels.index_definer.drop(BoardRef.parse(board))
        await index.open()
        await index.close()
    else:
        await index.laurels.valkey.command("UNLINK", f"lb:{{{board}}}:index")


async def play(
    laurels: Laurels,
    engine: AsyncEngine,
    clock: FixedClock,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    steps: int,
) -> None:
    print("seed", seed)  # noqa: T201  # what to repeat when it fails
    chance = random.Random(seed)
    moves, ascending = seed % 2 == 0, seed % 3 == 0
    model = score_model(
        group_by=["region", "city"],
        window="daily",
        keep=3,
        on_update="move" if moves else "keep",
        order="asc" if ascending else "desc",
    )
    monkeypatch.setattr("laurels.index.writes.WRITES_A_CALL", 12)
    driver = Driver(seed, engine, clock, model, Oracle(moves, 3, ascending))
    async with opened(laurels, engine, model) as index:
        for number in range(steps):
            await driver.step()()
            happens = chance.random()
            if happens < 0.15:
                await interrupted(index, monkeypatch, chance.randint(0, 4))
            elif happens < 0.18:
                await forgotten(index, model, chance)
            elif happens < 0.5:
                await index.caught_up()
            if number % 8 == 7:
                await index.caught_up()
                await agree(index, model, driver.oracle, clock())
        found = await index.verify()
        assert [str(each) for each in found.differences] == []
        assert found.records == len(driver.oracle.rows)


@pytest.mark.parametrize("seed", range(4))
async def test_every_window_equals_a_sorted_list(
    laurels: Laurels, engine: AsyncEngine, clock: FixedClock, monkeypatch: pytest.MonkeyPatch, seed: int
):
    await play(laurels, engine, clock, monkeypatch, seed, steps=24)


@pytest.mark.parametrize("seed", [100])
async def test_every_window_equals_a_sorted_list_on_a_cluster(
    clustered: Laurels, engine: AsyncEngine, clock: FixedClock, monkeypatch: pytest.MonkeyPatch, seed: int
):
    await play(clustered, engine, clock, monkeypatch, seed, steps=16)
