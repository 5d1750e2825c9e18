"""An index declared on a model, measured by its document's table: inserts, tops, ranks, updates, deletes.

Reads return records through SQLAlchemy's sessions. Writes are single statements through its engine, each
committed to disk, and count once they are in the index. Plain SQL beside it is the machine's floor: the same
on another table with an index by score. The targets are the document's, from another machine. The leaderboard
index is built, empty, before the first insert.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

from rich.progress import track
from sqlalchemy import BigInteger, Index, bindparam, delete, event, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from bench.ground import console, ground
from bench.memory import used
from bench.results import Results, Row, Tail, judged, tail_of
from laurels.index import Indexes, LeaderboardIndex, install, leaderboard
from laurels.moments import datetime_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy import Delete, Update
    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.clock import FixedClock

    Question = Callable[[], Awaitable[object]]

NOON: Final = datetime(2025, 10, 24, 12, tzinfo=UTC)
SMALL: Final = (1_000, 10_000)
BATCH: Final = 1_000
QUESTIONS: Final = 200
SECONDS: Final = 5.0
"""The longest time for one kind of read or write."""
MOST_BYTES: Final = 150
"""An entry in Valkey, of a 64-bit score in one window."""
DOCUMENTED_INSERTS: Final = 5_000
"""A second."""
DOCUMENTED: Final = {
    "top 10": 2.0,
    "top 100": 5.0,
    "top 1,000": 15.0,
    "rank of #1": 1.0,
    "update, same window": 3.0,
    "update, new window": 5.0,
    "delete": 2.0,
}
"""Milliseconds, p50."""
DOCUMENTED_RANKS: Final = {1_000: (5.0, 10.0), 10_000: (30.0, None)}
"""In the middle and at the end, by the number of entries."""
FLAT: Final = 2.0
"""How many times as long a rank may take among the most records as among the fewest."""


class Base(DeclarativeBase):
    id: Mapped[int] = mapped_column(primary_key=True)
    player: Mapped[str]
    score: Mapped[int] = mapped_column(BigInteger)


class Score(Base):
    __tablename__ = "bench_scores"
    __leaderboards__ = (LeaderboardIndex(score="score", window="daily", keep=7),)


class Few(Base):
    """A small table: ranks among many records are compared with ranks here, in turns."""

    __tablename__ = "bench_few"
    __leaderboards__ = (LeaderboardIndex(score="score", window="daily", keep=7),)


class Game(Base):
    """Every player has ten games, and is ranked by the best."""

    __tablename__ = "bench_games"
    __leaderboards__ = (LeaderboardIndex(score="score", member="player", window="all_time"),)


class Plain(Base):
    __tablename__ = "bench_plain"


Index("ix_bench_plain_score", Plain.score.desc(), Plain.id)
Index("ix_bench_plain_player", Plain.player, Plain.score.desc())


@dataclass
class Measured:
    """Of the index and of plain SQL."""

    ours: dict[str, Tail] = field(default_factory=dict[str, Tail])
    sql: dict[str, Tail] = field(default_factory=dict[str, Tail])
    inserts: tuple[float, float] = (0, 0)
    """A second."""
    bytes_an_entry: float = 0
    """In Valkey."""
    beside_few: float = 1
    """How many times as long a rank takes as among the fewest records."""


@dataclass(frozen=True)
class Field:
    engine: AsyncEngine
    writer: AsyncEngine
    """Each statement is a transaction."""
    index: Indexes
    records: int

    async def fill(self, model: type[Score | Few | Game | Plain]) -> float:
        """Inserts the records, and returns how many were applied a second."""
        chosen = random.Random(1)  # noqa: S311  # data, not secrets
        began = time.perf_counter()
        batches = range(0, self.records, BATCH)
        for first in track(batches, f"inserting into {model.__tablename__}", console=console, transient=True):
            rows = [
                {"id": number, "player": f"player {number // 10}", "score": chosen.randrange(1_000_000)}
                for number in range(first + 1, min(first + BATCH, self.records) + 1)
            ]
            async with self.writer.connect() as connection:
                await connection.execute(insert(model), rows)
        if model is not Plain:
            await self.index.caught_up(model)
        return self.records / (time.perf_counter() - began)

    async def at_rank(self, rank: int) -> int:
        """The key of the record with this rank."""
        ordered = select(Plain.id).order_by(Plain.score.desc(), Plain.id).offset(rank - 1).limit(1)
        async with AsyncSession(self.engine) as session:
            return (await session.scalars(ordered)).one()


async def run(records: int) -> Results:
    most = max(records, SMALL[0])
    sizes = [*(size for size in SMALL if size < most), most]
    found = {size: await measure(size) for size in sizes}
    flat = found[sizes[-1]].beside_few
    growth = Row(f"rank among {sizes[-1]:,}", "", f"among {SMALL[0]:,}", flat, *judged(flat, most=FLAT))
    return Results([*(row for size in sizes for row in rows(size, found[size])), growth])


async def measure(records: int) -> Measured:
    async with ground(NOON) as here:
        url = here.laurels.settings.postgres_url or ""
        engine, writer = create_async_engine(url), writing_at(here.clock, url)
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
            await install(connection, Score, Few, Game)
        async with Indexes(here.laurels, engine, [Score, Game]) as index:
            field_ = Field(engine, writer, index, records)
            await index.caught_up()
            async with writer.connect() as connection:  # opens the connection before the first insert
                await connection.execute(text("SELECT 1"))
            before = used(here)
            found = Measured(inserts=(await field_.fill(Score), await field_.fill(Plain)))
            await index.waiting()
            found.bytes_an_entry = (used(here) - before) / records
            await field_.fill(Game)
            await index.waiting()
            async with writer.connect() as connection:
                await connection.execute(text("VACUUM ANALYZE"))  # autovacuum does the same within a minute
            await reads(field_, found)
            async with Indexes(here.laurels, engine, [Few]) as few:
                found.beside_few = await beside_few(Field(engine, writer, few, SMALL[0]), records)
            await next_best(field_, found)
            await writes(field_, found, here.clock)
        await writer.dispose()
        await engine.dispose()
    return found


def writing_at(clock: FixedClock, url: str) -> AsyncEngine:
    """An engine whose connections write at the time that the clock showed when they were opened."""
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")

    def set_moment(*given: Any) -> None:  # noqa: ANN401  # as SQLAlchemy calls it
        given[-1]["options"] = f"-c laurels.now={datetime_of(clock()).isoformat()}"

    event.listen(engine.sync_engine, "do_connect", set_moment)
    return engine


async def reads(here: Field, found: Measured) -> None:
    ranking = leaderboard(Score)
    order = Plain.score.desc(), Plain.id

    async def top(most: int) -> object:
        return await ranking.top(most)

    async def top_by_sql(most: int) -> object:
        ranked = select(Plain, func.row_number().over(order_by=order)).order_by(*order).limit(most)
        async with AsyncSession(here.engine) as session:
            return (await session.execute(ranked)).all()

    async def rank(key: int) -> object:
        return await ranking.rank(key)

    async def rank_by_sql(key: int) -> object:
        ranked = select(Plain.id, func.row_number().over(order_by=order).label("rank")).subquery()
        async with AsyncSession(here.engine) as session:
            return await session.scalar(select(ranked.c.rank).where(ranked.c.id == key))

    for most in (10, 100, 1_000):
        await compare(found, f"top {most:,}", partial(top, most), partial(top_by_sql, most))
    for name, place in (("of #1", 1), ("in the middle", here.records // 2), ("at the end", here.records)):
        key = await here.at_rank(place)
        if (await rank(key), await rank_by_sql(key)) != (place, place):
            raise AssertionError(f"record #{place} has another rank")
        await compare(found, f"rank {name}", partial(rank, key), partial(rank_by_sql, key))


async def writes(here: Field, found: Measured, clock: FixedClock) -> None:
    """Updates the score of a record today, then tomorrow, then deletes a record; each time another record."""
    chosen = random.Random(2)  # noqa: S311  # data, not secrets
    keys = {model: iter(chosen.sample(range(1, here.records + 1), 3 * QUESTIONS)) for model in (Score, Plain)}

    async def write(model: type[Score | Plain], statement: Update | Delete) -> None:
        given = {"key": next(keys[model]), "new_score": chosen.randrange(1_000_000, 2_000_000)}
        async with here.writer.connect() as connection:
            await connection.execute(statement, given)
        if model is Score:
            await here.index.caught_up(Score)

    def change(model: type[Score | Plain]) -> Update:
        return update(model).where(model.id == bindparam("key")).values(score=bindparam("new_score"))

    def removal(model: type[Score | Plain]) -> Delete:
        return delete(model).where(model.id == bindparam("key"))

    for name, days, statement in (
        ("update, same window", 0, change),
        ("update, new window", 1, change),
        ("delete", 0, removal),
    ):
        clock.advance(timedelta(days=days))
        await here.writer.dispose()
        ours, sql = (partial(write, model, statement(model)) for model in (Score, Plain))
        await compare(found, name, ours, sql, between=here.index.waiting)


async def next_best(here: Field, found: Measured) -> None:
    """Deletes players' best games, until the next best is seen, and asks for players' ranks."""
    chosen = random.Random(4)  # noqa: S311  # data, not secrets
    players = [f"player {number}" for number in chosen.sample(range(1, here.records // 10), QUESTIONS // 4)]
    best = select(Plain.id).where(Plain.player == bindparam("name")).order_by(Plain.score.desc()).limit(1)
    names = {model: cycle(players) for model in (Game, Plain)}

    async def lose_best(model: type[Game | Plain]) -> None:
        async with here.writer.connect() as connection:
            statement = delete(model).where(model.id == best.scalar_subquery())
            await connection.execute(statement, {"name": next(names[model])})
        if model is Game:
            await here.index.caught_up(Game)

    async def rank() -> object:
        return await leaderboard(Game).rank(chosen.choice(players))

    async def rank_by_sql() -> object:
        of_player = select(func.max(Plain.score)).where(Plain.player == chosen.choice(players))
        better = (
            select(Plain.player)
            .group_by(Plain.player)
            .having(func.max(Plain.score) > of_player.scalar_subquery())
        )
        async with AsyncSession(here.engine) as session:
            return await session.scalar(select(func.count()).select_from(better.subquery()))

    await compare(found, "rank of a player", rank, rank_by_sql)
    ours, sql = partial(lose_best, Game), partial(lose_best, Plain)
    await compare(found, "delete of a player's best", ours, sql, between=here.index.waiting)


async def beside_few(here: Field, records: int) -> float:
    """How many times as long a rank takes among many records as among few, for random records."""
    await here.fill(Few)
    chosen = random.Random(3)  # noqa: S311  # data, not secrets
    many, few = leaderboard(Score), leaderboard(Few)
    among_many, among_few = await in_turns(
        lambda: many.rank(chosen.randrange(1, records + 1)),
        lambda: few.rank(chosen.randrange(1, here.records + 1)),
    )
    return among_many.p50 / among_few.p50


async def compare(
    found: Measured,
    name: str,
    ours: Question,
    sql: Question,
    *,
    between: Question | None = None,
) -> None:
    found.ours[name], found.sql[name] = await in_turns(ours, sql, between)


async def in_turns(one: Question, other: Question, between: Question | None = None) -> tuple[Tail, Tail]:
    """Times both in turns, so that both meet the same noise. `between` finishes the work that one leaves
    behind, so that the other does not pay for it.
    """
    times: tuple[list[float], list[float]] = ([], [])
    until = time.perf_counter() + SECONDS
    while len(times[0]) < QUESTIONS and (time.perf_counter() < until or not times[0]):
        for ask, taken in zip((one, other), times, strict=True):
            began = time.perf_counter()
            await ask()
            taken.append(time.perf_counter() - began)
            if between:
                await between()
    return tail_of(times[0]), tail_of(times[1])


def rows(records: int, found: Measured) -> list[Row]:
    ours, sql = found.inserts
    among = f", {records:,} records"
    bound = judged(ours, least=DOCUMENTED_INSERTS)
    found_rows = [Row(f"inserts{among}", f"{ours:,.0f}/s", f"{sql:,.0f}/s", ours / sql, *bound)]
    memory = found.bytes_an_entry
    most_bytes = MOST_BYTES if records > SMALL[0] else None  # of few records, the board takes most
    found_rows.append(
        Row(f"Valkey{among}", f"{memory:.0f} B an entry", "", None, *judged(memory, most=most_bytes))
    )
    middle, end = DOCUMENTED_RANKS.get(records, DOCUMENTED_RANKS[10_000])
    documented = {
        **dict.fromkeys(found.ours, None),
        **DOCUMENTED,
        "rank in the middle": middle,
        "rank at the end": end,
    }
    for name, taken in found.ours.items():
        beside = found.sql[name].p50
        found_rows.append(
            Row(
                f"{name}{among}",
                f"{taken.p50:.2f} ms",
                f"{beside:.2f} ms",
                taken.p50 / beside,
                *judged(taken.p50, most=documented[name]),
                taken,
            )
        )
    return found_rows
