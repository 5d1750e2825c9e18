"""The methods of a ranking, and their results."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from datetime import UTC, date, datetime, timedelta  # SQLAlchemy reads the annotations
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from index_models import new_base, new_table, opened, score_model
from sqlalchemy import BigInteger, ForeignKey, delete, event, insert, text, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column, relationship
from sqlmodel import Field, SQLModel
from structlog.testing import capture_logs

from laurels.errors import IndexNotReady, InvalidInput, NotFound, WindowGone
from laurels.index import LeaderboardIndex, Ranked, install, leaderboard

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.clock import FixedClock
    from laurels.engine import Laurels
    from laurels.index import Indexes, Ranking

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


async def test_ranges_of_scores_and_ranks_of_scores_that_nobody_has(index: Indexes, model: type[Any]):
    ranking = leaderboard(model)
    assert told(await ranking.between(20, 50)) == [(1, 50, 3), (4, 20, 4)]
    assert told(await ranking.between(60, 2**63 - 1, limit=1)) == [(2, 70, 1)]
    assert await ranking.between(71, 90) == []
    assert await ranking.between(50, 20) == []
    asia = ranking.group("asia")
    assert [await asia.rank_of_score(score) for score in (71, 70, 60, 0, -(2**63))] == [1, 1, 2, 4, 4]


async def test_pages_go_on_after_a_cursor_or_a_number_of_entries(index: Indexes, model: type[Any]):
    ranking = leaderboard(model)
    page = await ranking.page(2)
    assert (told(page.entries), page.total, page.previous) == ([(2, 70, 1), (3, 70, 2)], 4, None)
    after = await ranking.page(2, cursor=page.next)
    assert (told(after.entries), after.next) == ([(1, 50, 3), (4, 20, 4)], None)
    assert told((await ranking.page(2, skip=1)).entries) == [(3, 70, 2), (1, 50, 3)]
    assert [each.key for each in await ranking.entries(2, "bottom", skip=1)] == [1, 3]
    assert told(await ranking.around(3, 1)) == [(2, 70, 1), (3, 70, 2), (1, 50, 3)]


WRONG: dict[str, tuple[Callable[[Ranking[Any]], Awaitable[object]], str]] = {
    "k as text": (lambda asked: asked.top(cast("int", "3")), "k: must be a whole number from 0 on, not '3'"),
    "k below 0": (lambda asked: asked.bottom(-1), "k: must be a whole number from 0 on, not -1"),
    "skip below 0": (lambda asked: asked.entries(2, skip=-1), "skip: must be a whole number from 0 on"),
    "no such end": (lambda asked: asked.entries(2, cast("Any", "middle")), "must be top or bottom, not"),
    "a page of none": (lambda asked: asked.page(0), "limit: must be a whole number from 1 to 1000, not 0"),
    "a fraction": (lambda asked: asked.between(cast("int", 0.5), 2), "low: must be a whole number"),
    "a score as text": (lambda asked: asked.rank_of_score(cast("int", "9")), "score: must be a whole number"),
    "a naive moment": (lambda asked: asked.window(datetime(2025, 10, 24)).count(), "has no UTC offset"),  # noqa: DTZ001  # the mistake
    "a window of true": (lambda asked: asked.window(True).count(), "must be one of windows()"),  # as above
    "a date for a number": (lambda asked: asked.window("2025-10-24").count(), "write it like 19750"),
    "no such period": (lambda asked: asked.period("weekly").count(), "has no window 'weekly'; it has: daily"),
    "no such index": (lambda asked: asked.index("scores").count(), "no index 'scores'; did you mean score?"),
    "an index by a number": (lambda asked: asked.index(cast("Any", 3)).count(), "must be a name or an"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.usefixtures("index")
async def test_a_wrong_question_says_what_to_ask(model: type[Any], what: str):
    ask, says = WRONG[what]
    with pytest.raises(InvalidInput, match=re.escape(says)):
        await ask(leaderboard(model))


async def test_a_window_is_found_by_its_number_text_and_moment(
    laurels: Laurels, engine: AsyncEngine, clock: FixedClock
):
    model = score_model(windows=["daily", "weekly", "yearly", "all_time"], timezone="America/Sao_Paulo")
    async with opened(laurels, engine, model) as opened_index:
        await put(engine, model, *PLAYERS)
        clock.advance(timedelta(days=6))
        await put(engine, model, (9, "eu", "rome", 5))
        await opened_index.caught_up()
        ranking = leaderboard(model)
        assert [each.key for each in await ranking.entries(9)] == [9]
        assert (await ranking.windows())[1].id == "2025-10-24"
        in_that_week = datetime(2025, 10, 26, 23, 30, tzinfo=ZoneInfo("America/Sao_Paulo"))
        for window in ("2025-w43", in_that_week):
            weekly = ranking.period("weekly").window(window)
            assert [each.key for each in await weekly.entries(9)] == [2, 3, 1, 4]
        assert [len(await ranking.period(name).entries(9)) for name in ("yearly", "all_time")] == [5, 5]
        (everything,) = await ranking.period("all_time").windows()
        assert (everything.id, everything.starts_at, everything.ends_at) == ("", None, None)
        assert await ranking.window(everything).count() == 5
        fixed = score_model()
    async with opened(laurels, engine, fixed) as opened_index:
        await opened_index.caught_up()
        await put(engine, fixed, *PLAYERS)
        await opened_index.caught_up()
        noon = datetime(2025, 10, 30, 12, tzinfo=UTC)
        assert await leaderboard(fixed).window(noon).count() == 4
        assert await leaderboard(fixed).window(20391).count() == 4
        with pytest.raises(NotFound, match="has not begun"):
            await leaderboard(fixed).window(noon + timedelta(days=1)).count()


async def test_shared_ranks_and_ranks_of_who_was_first(
    laurels: Laurels, engine: AsyncEngine, clock: FixedClock
):
    shared, earliest = score_model(ties="shared"), score_model(ties="earliest")
    async with opened(laurels, engine, shared, earliest) as opened_index:
        for model in (shared, earliest):
            for player in reversed(PLAYERS):
                await put(engine, model, player)
                clock.advance(timedelta(seconds=1))
        await opened_index.caught_up()
        assert told(await leaderboard(shared).top(9)) == [(3, 70, 1), (2, 70, 1), (1, 50, 3), (4, 20, 4)]
        assert [await leaderboard(shared).rank(key) for key in (2, 3, 1)] == [1, 1, 3]
        assert told(await leaderboard(earliest).top(2)) == [(3, 70, 1), (2, 70, 2)]
        async with engine.begin() as connection:
            for score in (71, 70):
                await connection.execute(update(earliest).where(earliest.id == 3).values(score=score))
        await opened_index.caught_up()
        assert told(await leaderboard(earliest).top(2)) == [(2, 70, 1), (3, 70, 2)]


async def test_dense_ranks_must_be_declared(laurels: Laurels, engine: AsyncEngine):
    model = score_model(dense=False)
    async with opened(laurels, engine, model) as opened_index:
        await opened_index.caught_up()
        with pytest.raises(InvalidInput, match=r"declare .* with dense=True"):
            await leaderboard(model).dense_rank(1)


async def test_an_empty_answer_without_triggers_is_an_error(
    laurels: Laurels, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
):
    """As a migration leaves it that makes the table again: today's rows are not captured."""
    model = score_model()
    monkeypatch.setattr("laurels.index.maintain.CHECK_SECONDS", 0)
    async with opened(laurels, engine, model) as opened_index:
        await opened_index.caught_up()
        async with engine.begin() as connection:
            await connection.execute(text(f"DROP TABLE {model.__tablename__}"))
            await connection.run_sync(model.metadata.create_all)
        await put(engine, model, *PLAYERS)
        (status,) = await opened_index.status()
        assert (status.is_installed, status.is_ready) == (False, False)
        with pytest.raises(IndexNotReady, match=r"triggers of the leaderboard .* are gone.*install\(engine"):
            await leaderboard(model).top(3)
        with capture_logs() as logged:
            async with opened_index.maintaining(), asyncio.timeout(10):
                while not any("triggers of an index are gone" in each["event"] for each in logged):
                    await opened_index.status()
        await install(engine, model)
        assert await opened_index.rebuild() == 4
        assert len(await leaderboard(model).top(9)) == 4
