"""Indexes of members: all records of a player are one entry, in every window and group."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from index_models import new_base, new_table, opened, score_model
from sqlalchemy import BigInteger, delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from laurels.errors import InvalidInput
from laurels.index import LeaderboardIndex, Ranked, leaderboard

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.clock import FixedClock
    from laurels.engine import Laurels


def game_score(**fields: Any) -> type[Any]:  # noqa: ANN401  # of a LeaderboardIndex
    """As the first use case of the document has it."""

    class GameScore(new_base()):
        __tablename__ = new_table()
        __leaderboards__ = (LeaderboardIndex(score="score", member="player_id", **fields),)
        id: Mapped[str] = mapped_column(primary_key=True)
        player_id: Mapped[str]
        score: Mapped[int] = mapped_column(BigInteger)
        level: Mapped[int] = mapped_column(default=1)

    return GameScore


GAMES = [("01A", "player123", 50), ("01B", "player123", 80), ("01C", "zoe", 70), ("01D", "player123", 60)]


async def put(engine: AsyncEngine, model: type[Any], *games: tuple[str, str, int]) -> None:
    async with engine.begin() as connection:
        names = ("id", "player_id", "score")
        await connection.execute(insert(model), [dict(zip(names, game, strict=True)) for game in games])


def told(ranked: list[Ranked[Any]]) -> list[tuple[str, str, int, int]]:
    return [(each.item.id, each.item.player_id, each.score, each.rank) for each in ranked]


async def test_the_first_use_case_of_the_document(laurels: Laurels, engine: AsyncEngine):
    model = game_score(window="daily", keep=7)
    async with opened(laurels, engine, model) as index:
        await put(engine, model, *GAMES)
        await index.caught_up()
        ranking = leaderboard(model).index(model.score)
        assert told(await ranking.top(10)) == [("01B", "player123", 80, 1), ("01C", "zoe", 70, 2)]
        assert await ranking.rank("player123") == 1
        assert await ranking.rank("nobody") is None
        assert [each.key for each in await ranking.entries(10)] == ["player123", "zoe"]
        async with AsyncSession(engine) as session:
            record = await session.get_one(model, "01A")
        assert await ranking.rank(record) == 1  # its player's
        assert [each.key for each in await ranking.among(["zoe", record])] == ["player123", "zoe"]


@pytest.mark.parametrize(
    ("aggregate", "entries", "shown"),
    [
        ("best", [("player123", 80), ("zoe", 70)], "01B"),
        ("last", [("zoe", 70), ("player123", 60)], "01D"),
        ("first", [("zoe", 70), ("player123", 50)], "01A"),
        ("sum", [("player123", 190), ("zoe", 70)], "01D"),
    ],
)
async def test_each_aggregate_of_a_members_records(
    laurels: Laurels, engine: AsyncEngine, aggregate: str, entries: list[tuple[str, int]], shown: str
):
    model = game_score(aggregate=aggregate)
    async with opened(laurels, engine, model) as index:
        await put(engine, model, *GAMES)
        await index.caught_up()
        ranking = leaderboard(model)
        assert [(each.key, each.score) for each in await ranking.entries(9)] == entries
        items = {each.item.player_id: each.item.id for each in await ranking.top(9)}
        assert items["player123"] == shown
        assert (await index.verify()).is_equal


async def test_the_next_best_counts_when_the_best_is_deleted_lowered_or_given_away(
    laurels: Laurels, engine: AsyncEngine
):
    model = game_score(windows=["daily", "all_time"])
    async with opened(laurels, engine, model) as index:
        await put(engine, model, *GAMES)
        changes = [
            (delete(model).where(model.id == "01B"), {"player123": 60, "zoe": 70}),
            (update(model).where(model.id == "01D").values(score=10), {"player123": 50, "zoe": 70}),
            (update(model).where(model.id == "01A").values(player_id="zoe"), {"player123": 10, "zoe": 70}),
            (update(model).where(model.id == "01D").values(player_id="ada"), {"ada": 10, "zoe": 70}),
            (delete(model).where(model.player_id == "zoe"), {"ada": 10}),
        ]
        for change, expected in changes:
            async with engine.begin() as connection:
                await connection.execute(change)
            await index.caught_up()
            for period in ("daily", "all_time"):
                found = await leaderboard(model).period(period).entries(9)
                assert {each.key: each.score for each in found} == expected
        assert (await index.verify()).is_equal


async def test_a_record_that_moves_leaves_its_player_what_is_left_in_each_window(
    laurels: Laurels, engine: AsyncEngine, clock: FixedClock
):
    model = game_score(windows=["daily", "weekly", "all_time"], timezone="Europe/Berlin")
    async with opened(laurels, engine, model) as index:  # a Friday
        await put(engine, model, *GAMES)
        clock.advance(timedelta(days=1))
        await put(engine, model, ("02A", "player123", 5))
        async with engine.begin() as connection:
            await connection.execute(update(model).where(model.id == "01B").values(score=81))
        await index.caught_up()
        daily = leaderboard(model)
        assert [(each.key, each.score) for each in await daily.entries(9)] == [("player123", 81)]
        friday = await daily.window("2025-10-24").entries(9)
        assert [(each.key, each.score) for each in friday] == [("zoe", 70), ("player123", 60)]
        assert [each.score for each in await daily.period("weekly").entries(9)] == [81, 70]
        assert (await index.verify()).is_equal


async def test_a_members_groups_are_those_of_its_records(laurels: Laurels, engine: AsyncEngine):
    model = score_model(member="player", aggregate="sum", group_by=["region"], window="all_time")
    async with opened(laurels, engine, model) as index:
        async with engine.begin() as connection:
            rows = [(1, "eu", 5), (2, "asia", 6), (3, "eu", 7)]
            await connection.execute(
                insert(model),
                [{"id": key, "region": at, "score": score, "player": 1} for key, at, score in rows],
            )
        await index.caught_up()
        ranking = leaderboard(model)
        groups = (ranking, ranking.group("eu"), ranking.group("asia"))
        assert [await each.score(1) for each in groups] == [18, 12, 6]
        async with engine.begin() as connection:
            await connection.execute(update(model).where(model.id == 2).values(region="eu"))
        await index.caught_up()
        assert [await each.score(1) for each in groups] == [18, 18, None]


async def test_a_sum_beyond_64_bits_has_no_entry_and_stops_nobody_else(laurels: Laurels, engine: AsyncEngine):
    model = game_score(aggregate="sum")
    async with opened(laurels, engine, model) as index:
        await put(engine, model, ("1", "ada", 2**63 - 1), ("2", "ada", 1), ("3", "zoe", 5))
        await index.caught_up()
        assert [each.key for each in await leaderboard(model).entries(9)] == ["zoe"]
        async with engine.begin() as connection:
            await connection.execute(delete(model).where(model.id == "2"))
        await index.caught_up()
        assert [each.key for each in await leaderboard(model).entries(9)] == ["ada", "zoe"]


async def test_many_records_of_many_members_in_one_statement(laurels: Laurels, engine: AsyncEngine):
    model = game_score(windows=["all_time", "daily"], aggregate="sum")
    async with opened(laurels, engine, model) as index:
        await index.caught_up()
        games = [(f"{number:04}", f"p{number % 37:02}", number) for number in range(3000)]
        await put(engine, model, *games)
        async with engine.begin() as connection:
            await connection.execute(delete(model).where(func.length(model.id) == 4, model.score % 3 == 0))
            sums = select(model.player_id, func.sum(model.score)).group_by(model.player_id)
            expected = {player: int(score) for player, score in await connection.execute(sums)}
        await index.caught_up()
        assert {each.key: each.score for each in await leaderboard(model).entries(99)} == expected
        assert await index.rebuild() == 2000
        assert {each.key: each.score for each in await leaderboard(model).entries(99)} == expected
        assert (await index.verify()).is_equal


async def test_an_entry_is_found_by_an_index_on_the_member_and_not_by_a_scan(
    laurels: Laurels, engine: AsyncEngine
):
    model = game_score(window="all_time")
    async with opened(laurels, engine, model) as index:
        async with engine.begin() as connection:
            table = model.__tablename__
            await connection.execute(
                text(
                    f"INSERT INTO {table} SELECT i::text, 'p' || i % 5000, i, 1 "  # noqa: S608  # the test's own table
                    "FROM generate_series(1, 50000) i"
                )
            )
        await index.caught_up()
        async with engine.begin() as connection:
            await connection.execute(text(f"ANALYZE {table}"))
        read = text("SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = :table")
        applier = next(iter(index._appliers.values()))  # pyright: ignore[reportPrivateUsage]  # to see what it reads
        entries, seen = applier.rows.entries, list[tuple[int, int]]()

        async def watched(connection: Any, wants: Any) -> Any:  # noqa: ANN401  # as `entries`
            found = await entries(connection, wants)
            seen.append(tuple((await connection.execute(read, {"table": table})).one()))
            return found

        vars(applier.rows)["entries"] = watched
        async with engine.begin() as connection:
            await connection.execute(delete(model).where(model.id == "50000"))
        await index.caught_up()
        assert await leaderboard(model).score("p0") == 45_000
        ((scanned, fetched),) = seen
        assert scanned == 0
        assert fetched <= 3


async def test_a_record_without_a_member_or_of_a_member_that_is_too_long_is_left_out(
    laurels: Laurels, engine: AsyncEngine
):
    model = game_score()
    async with opened(laurels, engine, model) as index:
        await put(engine, model, ("1", "é" * 128, 5), ("2", "é" * 128 + "x", 6), ("k" * 300, "ada", 7))
        await index.caught_up()
        assert [each.key for each in await leaderboard(model).entries(9)] == ["ada", "é" * 128]


async def test_a_record_that_is_not_flushed_or_of_another_model_has_no_rank(
    laurels: Laurels, engine: AsyncEngine
):
    model = game_score()
    async with opened(laurels, engine, model) as index:
        await index.caught_up()
        with pytest.raises(InvalidInput, match="this GameScore has no player_id yet: flush it first"):
            await leaderboard(model).rank(model(id="1", score=5))
        with pytest.raises(InvalidInput, match="must be a GameScore or its key, not a GameScore"):
            await leaderboard(model).rank(score_model()(id=1))
