"""Random sessions against brute force: whatever is written, committed, undone or interrupted, every window
and group says the same as a sorted list.
"""

# ruff: noqa: S311, S608  # nothing is secret, and the tables are the tests' own

from __future__ import annotations

import random
from contextlib import suppress
from datetime import timedelta
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from index_models import opened, score_model
from index_oracle import Entry, Oracle, Row, dense_rank, percentile
from sqlalchemy import URL, Engine, create_engine, delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.orm import Session

from laurels.boards.keys import BoardRef
from laurels.index import Ranking, leaderboard
from laurels.index.outbox import Outbox
from laurels.index.writes import IndexWriter
from laurels.moments import datetime_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from laurels.clock import FixedClock
    from laurels.engine import Laurels
    from laurels.index import Indexes

REGIONS = ["asia", "eu", "", "a=b,c:{}|%é🎲", None]
CITIES = ["x", "tokyo", None]
PLAYERS = [1, 2, 3, -4, None]
SCORES = [*range(5), -1, 2**63 - 1, -(2**63), 2**53 + 1, None]
PLAIN: dict[str, Any] = {"region": "eu", "city": "x", "player": 2}
SHARES = [0, 0.25, 0.5, 0.9, 1]


@cache
def sync_engine(url: URL) -> Engine:
    return create_engine(url)


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
        seen = datetime_of(self._clock()) - timedelta(hours=self._random.choice([0, 3, 20, 50]))
        return Row(
            choose(REGIONS), choose(CITIES), choose(SCORES), choose(PLAYERS), choose([seen, seen, None])
        )

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
                record.region, record.city, record.score, record.player, record.seen = row
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
        seen = datetime_of(self._clock())
        row = Row(**PLAIN, score=2, seen=seen)
        async with self._engine.begin() as late:
            await late.execute(insert(model), [{"id": first, **PLAIN, "score": 1, "seen": seen}])
            written_late = self._clock()
            self._clock.advance(timedelta(hours=self._random.choice([0, 5, 30])))
            async with self._engine.begin() as early:
                await early.execute(
                    insert(model),
                    [{"id": key, **row._asdict()} for key in (second, third)],
                )
                oracle.become(oracle.rows | dict.fromkeys((second, third), row), self._clock())
            await late.execute(update(model).where(model.id == second).values(score=3))
            oracle.become(oracle.rows | {first: row._replace(score=1)}, written_late)
            oracle.become(oracle.rows | {second: row._replace(score=3)}, written_late)

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
    """Every window and group: all ranks, dense ranks, percentiles, counts, pages and ranges of scores."""
    columns = (model.id, model.region, model.city, model.score, model.player, model.seen)
    async with index.engine.connect() as connection:
        rows = (await connection.execute(select(*columns))).all()
    assert {row[0]: Row(*row[1:]) for row in rows} == oracle.rows
    for period in oracle.windows:
        ranking = leaderboard(model).period(period)
        windows = await ranking.windows()
        if period.startswith("rolling"):
            windows = windows[:1]
        else:
            assert [each.id for each in windows] == oracle.asked(period, now)
        for window in windows:
            assert window.entries == len(oracle.ranking(period, window.id, ()))
            for group in oracle.groups():
                asked = ranking.group(*group).window(window)
                await agree_on_one(
                    asked, oracle, oracle.ranking(period, window.id, group), is_whole=not group
                )
        await agree_on_records(index, ranking, oracle, oracle.ranking(period, windows[0].id, ()))


async def agree_on_one(asked: Ranking[Any], oracle: Oracle, expected: list[Entry], *, is_whole: bool) -> None:
    listed = [(each.key, each.score, oracle.rank(expected, place)) for place, each in enumerate(expected)]
    found = [(each.key, each.score, each.rank) for each in await asked.entries(10_000)]
    assert found == listed
    assert [each.key for each in await asked.entries(10_000, "bottom")] == [key for key, *_ in listed[::-1]]
    assert [await asked.percentile(share) for share in SHARES] == [
        percentile(expected, share) for share in SHARES
    ]
    assert await asked.rank(10**9) is None
    for place in range(0, len(expected), 1 if is_whole else 4):
        standing = await asked.standing(expected[place].key)
        assert standing is not None
        assert (standing.rank, standing.score) == (listed[place][2], expected[place].score)
        assert standing.dense_rank == dense_rank(expected, place)
    if is_whole:
        for skip in (1, 3):
            assert [each.key for each in await asked.entries(2, skip=skip)] == [
                key for key, *_ in listed[skip : skip + 2]
            ]
            assert [each.key for each in await asked.entries(2, "bottom", skip=skip)] == [
                key for key, *_ in listed[::-1][skip : skip + 2]
            ]
        for score in (-(2**63), -1, 2, 3, 2**63 - 1):
            assert await asked.rank_of_score(score) == 1 + oracle.better(expected, score)


async def agree_on_records(
    index: Indexes, ranking: Ranking[Any], oracle: Oracle, expected: list[Entry]
) -> None:
    """Records of the current window, in both kinds of session and in neither."""
    url = index.engine.url
    first = [(each.score, oracle.rank(expected, place)) for place, each in enumerate(expected[:5])]
    inside = [each.score for each in expected if 1 <= each.score <= 3]
    with Session(sync_engine(url)) as session:
        async with AsyncSession(index.engine) as async_session:
            for asked in (ranking, ranking.using(session), ranking.using(async_session)):
                found = await asked.top(5)
                assert [(each.score, each.rank) for each in found] == first
                assert [each.score for each in await asked.between(1, 3, 1000)] == inside
                for each, entry in zip(found, expected, strict=False):
                    assert (each.item.player if oracle.aggregate else each.item.id) == entry.key
                    if oracle.moves and oracle.aggregate != "sum":  # else the row may have moved on
                        assert each.item.score == each.score
                    if oracle.ties != "shared":
                        assert found[(await asked.rank(each.item) or 0) - 1] is each


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


KINDS: list[dict[str, Any]] = [
    {},
    {"on_update": "keep"},
    {"windows": ["daily", "all_time", "weekly"], "ties": "shared"},
    {"windows": ["all_time", "daily"], "on_update": "keep", "ties": "earliest"},
    {"at": "seen", "windows": ["daily", "monthly"], "timezone": "Asia/Tokyo"},
    {"window": "all_time"},
    {"at": "seen", "windows": ["weekly", "rolling_3d", "yearly"], "timezone": "America/Sao_Paulo"},
    {"member": "player", "windows": ["daily", "all_time"]},
    {"member": "player", "aggregate": "last", "at": "seen", "windows": ["daily", "all_time"]},
    {"member": "player", "aggregate": "sum", "windows": ["all_time", "daily"], "ties": "earliest"},
    {"member": "player", "aggregate": "first", "windows": ["daily", "weekly"], "timezone": "Asia/Tokyo"},
    {"member": "player", "aggregate": "best", "at": "seen", "windows": ["rolling_3d", "all_time"]},
    {"member": "player", "aggregate": "best", "window": "all_time", "ties": "shared"},
]


async def play(  # fixtures
    laurels: Laurels,
    engine: AsyncEngine,
    clock: FixedClock,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    steps: int,
) -> None:
    kind = KINDS[seed % len(KINDS)]
    print("seed", seed, kind)  # noqa: T201  # what to repeat when it fails
    chance = random.Random(seed)
    ascending = seed % 3 == 0
    model = score_model(group_by=["region", "city"], keep=3, order="asc" if ascending else "desc", **kind)
    monkeypatch.setattr("laurels.index.writes.WRITES_A_CALL", 12)
    oracle = Oracle(
        moves=kind.get("on_update") != "keep",
        is_ascending=ascending,
        ties=kind.get("ties", "member"),
        aggregate=kind.get("aggregate", "best") if "member" in kind else None,
        windows=tuple(kind.get("windows", [kind.get("window", "daily")])),
        timezone=kind.get("timezone"),
        has_at="at" in kind,
    )
    driver = Driver(seed, engine, clock, model, oracle)
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


@pytest.mark.parametrize("seed", range(len(KINDS)))
async def test_every_window_equals_a_sorted_list(
    laurels: Laurels, engine: AsyncEngine, clock: FixedClock, monkeypatch: pytest.MonkeyPatch, seed: int
):
    await play(laurels, engine, clock, monkeypatch, seed, steps=16)


@pytest.mark.parametrize("seed", [100])
async def test_every_window_equals_a_sorted_list_on_a_cluster(
    clustered: Laurels, engine: AsyncEngine, clock: FixedClock, monkeypatch: pytest.MonkeyPatch, seed: int
):
    await play(clustered, engine, clock, monkeypatch, seed, steps=16)
