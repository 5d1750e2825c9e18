"""The methods of a ranking, and their results."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import date, timedelta  # SQLAlchemy reads the annotations
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from index_models import new_base, new_table, opened, score_model
from sqlalchemy import BigInteger, ForeignKey, delete, event, insert, text, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column, relationship
from sqlmodel import Field, SQLModel

from laurels.errors import InvalidInput, NotFound, WindowGone
from laurels.index import LeaderboardIndex, Ranked, leaderboard

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.clock import FixedClock
    from laurels.engine import Laurels
    from laurels.index import Indexes

PLAYERS = [
    (1, "asia", "tokyo", 50),
    (2, "asia", "seoul", 70),
    (3, "eu", "rome", 70),
    (4, "asia", "tokyo", 20),
]


@pytest.fixture
def model() -> type[Any]:
    return score_model(group_by=["region", "city"], window="daily", keep=3)


@pytest.fixture
async def index(laurels: Laurels, engine: AsyncEngine, model: type[Any]) -> AsyncGenerator[Indexes]:
    async with opened(laurels, engine, model) as indexes:
        await put(engine, model, *PLAYERS)
        await indexes.caught_up()
        yield indexes


async def put(engine: AsyncEngine, model: type[Any], *players: tuple[int, str, str, int]) -> None:
    async with engine.begin() as connection:
        names = ("id", "region", "city", "score")
        await connection.execute(insert(model), [dict(zip(names, each, strict=True)) for each in players])


def told(ranked: list[Ranked[Any]]) -> list[tuple[int, int, int]]:
    return [(each.item.id, each.score, each.rank) for each in ranked]


async def test_the_best_come_first_and_ties_go_by_key(index: Indexes, model: type[Any]):
    assert told(await leaderboard(model).top(3)) == [(2, 70, 1), (3, 70, 2), (1, 50, 3)]
    assert told(await leaderboard(model).bottom(2)) == [(4, 20, 4), (1, 50, 3)]
    assert await leaderboard(model).top(0) == []
    assert len(await leaderboard(model).top(5000)) == 4


async def test_bottom_is_top_reversed_and_ranks_are_places(index: Indexes, model: type[Any]):
    top, bottom = await leaderboard(model).top(9), await leaderboard(model).bottom(9)
    assert told(bottom) == told(top)[::-1]
    for each in top:
        assert top[(await leaderboard(model).rank(each.item.id) or 0) - 1] is each


async def test_a_group_is_ranked_by_itself_at_every_level(index: Indexes, model: type[Any]):
    asia = leaderboard(model).group("asia")
    assert told(await asia.top(9)) == [(2, 70, 1), (1, 50, 2), (4, 20, 3)]
    assert told(await leaderboard(model).group("asia", "tokyo").top(9)) == [(1, 50, 1), (4, 20, 2)]
    assert await asia.rank(1) == 2
    assert await asia.rank(3) is None
    assert await leaderboard(model).group("nowhere").top(3) == []
    with pytest.raises(InvalidInput, match=r"has 2 levels of groups \(region, city\)"):
        await leaderboard(model).group("asia", "tokyo", "x").top(3)
    with pytest.raises(InvalidInput, match="None is not a group"):
        leaderboard(model).group(None)


async def test_one_record_has_rank_dense_rank_score_and_neighbours(index: Indexes, model: type[Any]):
    ranking = leaderboard(model, "score")
    assert [await ranking.rank(key) for key in (2, 3, 1, 99)] == [1, 2, 3, None]
    assert [await ranking.dense_rank(key) for key in (2, 3, 1, 99)] == [1, 1, 2, None]
    assert [await ranking.score(key) for key in (2, 99)] == [70, None]
    assert told(await ranking.around(3, above=1, below=1)) == [(2, 70, 1), (3, 70, 2), (1, 50, 3)]
    assert await ranking.around(99) == []
    assert await ranking.count() == 4
    assert [await ranking.percentile(share) for share in (0, 0.5, 0.75, 1)] == [20, 50, 70, 70]
    with pytest.raises(InvalidInput, match="id is a column of integers"):
        await ranking.rank("ada")


async def test_a_ranking_is_a_value_that_each_step_leaves_alone(index: Indexes, model: type[Any]):
    everybody = leaderboard(model)
    assert everybody.group("eu") != everybody
    assert everybody.index(model.score).group("eu").group() == everybody.index(model.score)
    assert await everybody.count() == 4
    assert await everybody.group("eu").count() == 1
    assert index.leaderboard(model).opened is index


async def test_records_come_in_one_query(index: Indexes, model: type[Any], engine: AsyncEngine):
    statements: list[str] = []
    event.listen(engine.sync_engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    assert len(await leaderboard(model).top(4)) == 4
    assert sum(f"FROM {model.__tablename__}" in each for each in statements) == 1
    assert len([each for each in statements if "laurels.now" not in each]) == 1


async def test_deleted_records_that_are_still_ranked_are_replaced(
    index: Indexes, model: type[Any], engine: AsyncEngine
):
    async with engine.begin() as connection:
        await connection.execute(delete(model).where(model.id.in_([2, 3])))
    assert told(await leaderboard(model).top(1)) == [(1, 50, 1)]
    assert told(await leaderboard(model).top(2)) == [(1, 50, 1), (4, 20, 2)]
    assert told(await leaderboard(model).top(3)) == [(1, 50, 1), (4, 20, 2)]
    await index.caught_up()
    assert told(await leaderboard(model).top(3)) == [(1, 50, 1), (4, 20, 2)]


async def test_records_stay_in_the_session_that_is_given(
    index: Indexes, model: type[Any], engine: AsyncEngine
):
    async with AsyncSession(engine) as session:
        (best,) = await leaderboard(model).using(session).top(1)
        assert best.item in session
    (best,) = await leaderboard(model).top(1)
    assert (best.item.region, best.item.level) == ("asia", 1)


async def test_windows_follow_the_clock_and_are_kept_for_as_long_as_declared(
    index: Indexes, model: type[Any], engine: AsyncEngine, clock: FixedClock
):
    (first,) = await leaderboard(model).windows()
    assert (first.id, first.entries) == (20385, 4)
    clock.advance(timedelta(days=1))
    assert await leaderboard(model).top(9) == []
    async with engine.begin() as connection:
        await connection.execute(update(model).where(model.id == 4).values(score=99))
    await index.caught_up()
    assert told(await leaderboard(model).top(9)) == [(4, 99, 1)]
    current, before = await leaderboard(model).windows()
    assert (current.id, current.entries, before.id, before.entries) == (20386, 1, 20385, 3)
    assert told(await leaderboard(model).window(before).top(9)) == [(2, 70, 1), (3, 70, 2), (1, 50, 3)]
    assert await leaderboard(model).window(before).rank(4) is None
    clock.advance(timedelta(days=2))
    assert [each.id for each in await leaderboard(model).windows()] == [20388, 20386]
    with pytest.raises(WindowGone):
        await leaderboard(model).window(before).top(9)
    with pytest.raises(WindowGone):
        await leaderboard(model).window(before).rank(1)
    with pytest.raises(NotFound, match="has not begun"):
        await leaderboard(model).window(20389).count()


async def test_the_engine_reads_the_index_as_any_board(index: Indexes, model: type[Any], laurels: Laurels):
    board = index.board(leaderboard(model).declared)
    assert board == f"index/{model.__tablename__}.score"
    page = await laurels.page(board, group="region=asia,city=tokyo")
    assert [(each.rank, each.member, each.score) for each in page.entries] == [
        (1, "0000000000000000001", 50), (2, "0000000000000000004", 20)
    ]  # fmt: skip


async def test_watching_the_board_shows_changes(
    index: Indexes, model: type[Any], engine: AsyncEngine, laurels: Laurels
):
    async with aclosing(laurels.watch(index.board(leaderboard(model).declared))) as updates:
        assert len((await anext(updates)).value.entries) == 4
        await put(engine, model, (9, "eu", "rome", 99))
        assert await index.waiting() == 1
        await index.caught_up()
        assert await index.waiting() == 0
        async with asyncio.timeout(10):
            changed = await anext(updates)
        assert [each.member for each in changed.value.entries][:1] == [f"{9:019}"]


async def test_more_than_one_page_is_read_completely(laurels: Laurels, engine: AsyncEngine):
    model = score_model(keep=None)
    async with opened(laurels, engine, model) as index:
        await put(engine, model, *((key, "eu", "x", key // 3) for key in range(1200)))
        await index.caught_up()
        expected = sorted(range(1200), key=lambda key: (-(key // 3), key))
        assert [each.item.id for each in await leaderboard(model).top(1150)] == expected[:1150]
        assert [each.key for each in await leaderboard(model).entries(1150, "bottom")] == expected[::-1][
            :1150
        ]


async def test_a_model_may_have_several_indexes(laurels: Laurels, engine: AsyncEngine):
    class Run(new_base()):
        __tablename__ = new_table()
        __leaderboards__ = (
            LeaderboardIndex(score="points"),
            LeaderboardIndex(
                score="seconds", name="fastest", order="asc", window="hourly", group_by=["track"]
            ),
        )
        id: Mapped[int] = mapped_column(primary_key=True)
        track: Mapped[str]
        points: Mapped[int]
        seconds: Mapped[int]

    async with opened(laurels, engine, Run) as index:
        async with AsyncSession(engine) as session:
            session.add_all(
                [Run(id=1, track="a", points=5, seconds=60), Run(id=2, track="a", points=3, seconds=50)]
            )
            await session.commit()
        await index.caught_up()
        assert [each.item.id for each in await leaderboard(Run, "points").top(2)] == [1, 2]
        assert [each.item.id for each in await leaderboard(Run).index(Run.seconds).group("a").top(2)] == [
            2,
            1,
        ]
        with pytest.raises(InvalidInput, match="has several"):
            await leaderboard(Run).top(2)


async def test_keys_of_any_kind_and_of_several_columns_are_found_again(laurels: Laurels, engine: AsyncEngine):
    class Hero(SQLModel, table=True):
        __tablename__ = new_table()  # pyright: ignore[reportAssignmentType]  # SQLModel's own annotation
        __leaderboards__ = [LeaderboardIndex(score="power")]  # as users write it
        id: UUID = Field(primary_key=True)
        power: int = Field(sa_type=BigInteger)

    class Daily(new_base()):
        __tablename__ = new_table()
        __leaderboards__ = (LeaderboardIndex(score="steps"),)
        player: Mapped[str] = mapped_column(primary_key=True)
        day: Mapped[date] = mapped_column(primary_key=True)
        number: Mapped[int] = mapped_column(primary_key=True)
        steps: Mapped[int]

    heroes = sorted(uuid4() for _ in range(3))
    days = [('a"b', date(2025, 10, 24), -1), ('a"b', date(2025, 10, 24), 2), ("é", date(2024, 1, 1), 0)]
    async with opened(laurels, engine, Hero, Daily) as index:
        async with AsyncSession(engine) as session:
            await session.execute(text("SET LOCAL DateStyle = 'German'"))
            session.add_all([Hero(id=key, power=2**62) for key in reversed(heroes)])
            session.add_all([Daily(player=key[0], day=key[1], number=key[2], steps=1) for key in days])
            await session.commit()
        await index.caught_up()
        assert [each.item.id for each in await leaderboard(Hero).top(9)] == heroes
        assert await leaderboard(Hero).rank(str(heroes[1])) == 2
        assert [each.key for each in await leaderboard(Daily).entries(9)] == days
        assert [(each.item.player, each.item.number) for each in await leaderboard(Daily).top(9)] == [
            ('a"b', -1), ('a"b', 2), ("é", 0)
        ]  # fmt: skip
        assert await leaderboard(Daily).rank(days[2]) == 3
        with pytest.raises(InvalidInput, match=r"has 3 columns \(player, day, number\), not 1"):
            await leaderboard(Daily).rank("é")
        assert (await index.verify()).is_equal


async def test_a_record_that_comes_with_a_joined_collection_comes_once(laurels: Laurels, engine: AsyncEngine):
    base, players, medals = new_base(), new_table(), new_table()

    class Medal(base):
        __tablename__ = medals
        id: Mapped[int] = mapped_column(primary_key=True)
        player_id: Mapped[int] = mapped_column(ForeignKey(f"{players}.id"))

    class Player(base):
        __tablename__ = players
        __leaderboards__ = (LeaderboardIndex(score="score"),)
        id: Mapped[int] = mapped_column(primary_key=True)
        score: Mapped[int] = mapped_column(BigInteger)
        medals: Mapped[list[Medal]] = relationship(Medal, lazy="joined")

    async with opened(laurels, engine, Player) as index:
        async with engine.begin() as connection:
            await connection.execute(insert(Player), [{"id": 1, "score": 5}, {"id": 2, "score": 7}])
            await connection.execute(insert(Medal), [{"player_id": 2}, {"player_id": 2}])
        await index.caught_up()
        found = await leaderboard(Player).top(10)
        assert [(each.item.id, len(each.item.medals)) for each in found] == [(2, 2), (1, 0)]
