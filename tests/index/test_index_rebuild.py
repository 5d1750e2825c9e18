"""Rebuild and verify: Valkey is brought in line with PostgreSQL while records change."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from index_models import opened, score_model
from sqlalchemy import delete, insert, text, update

from laurels.boards.keys import BoardRef
from laurels.errors import IndexNotReady
from laurels.index import leaderboard
from laurels.index.outbox import Outbox
from laurels.index.rebuild import IndexRebuild
from laurels.index.writes import IndexWriter
from laurels.moments import datetime_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.clock import FixedClock
    from laurels.engine import Laurels
    from laurels.index import Indexes


@pytest.fixture
def model() -> type[Any]:
    return score_model(group_by=["region"], keep=3)


@pytest.fixture
async def index(
    laurels: Laurels, engine: AsyncEngine, model: type[Any], clock: FixedClock
) -> AsyncGenerator[Indexes]:
    """Ten records of yesterday, ten of today."""
    async with opened(laurels, engine, model) as indexes:
        for first in (0, 10):
            async with engine.begin() as connection:
                rows = [{"id": key, "region": "eu", "score": key} for key in range(first, first + 10)]
                await connection.execute(insert(model), rows)
            clock.advance(timedelta(days=1 if first == 0 else 0))
        await indexes.caught_up()
        yield indexes


def key_of(index: Indexes, model: type[Any], slot: int, group: str = "") -> str:
    return f"lb:{{{index.board(leaderboard(model).declared)}}}:every_86400s:{slot}{group}"


async def left_behind(index: Indexes, model: type[Any]) -> list[bytes]:
    """The temporary keys of a rebuild."""
    board = index.board(leaderboard(model).declared)
    return [key for key in await index.laurels.valkey.command("KEYS", "rebuild-*") if board.encode() in key]


async def test_an_index_that_is_right_has_no_differences(index: Indexes, model: type[Any]):
    found = await index.verify(model)
    assert found.is_equal
    assert (found.records, found.entries, found.differences) == (20, 40, [])


async def test_each_kind_of_difference_is_found(index: Indexes, model: type[Any], laurels: Laurels):
    board = index.board(leaderboard(model).declared)
    # As if a version of Laurels had written that knew of no owners.
    known = await laurels._catalog.board(BoardRef.parse(board))  # pyright: ignore[reportPrivateUsage]  # as above
    known.owner = None
    await laurels.submit(board, f"{15:019}", 999)  # another score, in everybody's window alone
    await laurels.submit(board, "somebody", 1)  # no record
    await laurels.remove(board, f"{3:019}")
    found = await index.verify()
    assert {(each.key, each.window, each.group, each.expected, each.found) for each in found.differences} == {
        (15, "every_86400s 20386", (), 15, 999),
        (None, "every_86400s 20386", (), None, 1),
        (3, "every_86400s 20385", (), 3, None),
        (3, "every_86400s 20385", ("eu",), 3, None),
    }
    assert found.different == 4
    told = sorted(map(str, found.differences))
    assert told[-1].endswith(".score None, window every_86400s 20386: 1 should not be there")
    assert any(each.endswith(".score 3, window every_86400s 20385 of eu: 3 is missing") for each in told)
    assert any(each.endswith(".score 15, window every_86400s 20386: 999 should be 15") for each in told)
    await index.rebuild()
    assert (await index.verify()).is_equal


async def test_prefixes_without_entries_are_found(index: Indexes, model: type[Any], laurels: Laurels):
    await laurels.valkey.command("ZPOPMIN", key_of(index, model, 20386))
    missing, uneven = (await index.verify()).differences
    assert (missing.expected is None, missing.found, missing.window) == (False, None, "every_86400s 20386")
    assert (uneven.expected, uneven.found, uneven.window) == (10, 9, "every_86400s 20386")


async def test_pending_changes_are_no_difference(index: Indexes, model: type[Any], engine: AsyncEngine):
    async with engine.begin() as connection:
        await connection.execute(update(model).values(score=model.score + 1))
    assert (await index.verify()).is_equal


async def test_writes_without_triggers_are_found_and_rebuilt(
    index: Indexes, model: type[Any], engine: AsyncEngine
):
    """Changed records keep their last captured moment; new records get the moment of the rebuild."""
    async with engine.begin() as connection:
        await connection.execute(text("SET LOCAL session_replication_role = replica"))
        await connection.execute(update(model).where(model.id == 1).values(score=77))
        await connection.execute(delete(model).where(model.id == 2))
        await connection.execute(insert(model), [{"id": 50, "region": "eu", "score": 5}])
    found = await index.verify()
    assert {each.key for each in found.differences} == {1, 2, 50}
    assert await index.rebuild() == 20
    assert (await index.verify()).is_equal
    assert [each.key for each in await leaderboard(model).window(20385).entries(2)] == [1, 9]
    assert await leaderboard(model).score(50) == 5


async def test_a_rebuild_puts_records_back_into_the_windows_they_were_in(
    index: Indexes, model: type[Any], laurels: Laurels
):
    before = {slot: await leaderboard(model).window(slot).entries(99) for slot in (20385, 20386)}
    await laurels.index_definer.drop(BoardRef.parse(index.board(leaderboard(model).declared)))
    await index.open()
    await index.caught_up()
    await index.close()
    assert {slot: await leaderboard(model).window(slot).entries(99) for slot in before} == before
    assert await left_behind(index, model) == []


async def test_a_record_whose_window_is_over_does_not_come_back_by_a_rebuild(
    index: Indexes, model: type[Any], clock: FixedClock
):
    clock.advance(timedelta(days=2))
    assert await index.rebuild() == 10
    assert [(each.id, each.entries) for each in await leaderboard(model).windows()] == [
        (20388, 0),
        (20386, 10),
    ]
    assert (await index.verify()).is_equal


async def test_permanent_windows_stay_after_a_rebuild(laurels: Laurels, engine: AsyncEngine):
    model = score_model(keep=None)
    async with opened(laurels, engine, model) as index:
        async with engine.begin() as connection:
            await connection.execute(insert(model), [{"id": 1, "score": 5}])
        await index.rebuild()
        assert await laurels.valkey.command("TTL", key_of(index, model, 20385)) == -1


async def test_a_rebuild_under_writes_ends_equal(
    index: Indexes, model: type[Any], engine: AsyncEngine, laurels: Laurels
):
    writing = True

    async def write() -> None:
        number = 100
        while writing:
            number += 1
            async with engine.begin() as connection:
                await connection.execute(insert(model), [{"id": number, "region": "asia", "score": number}])
                await connection.execute(update(model).where(model.id % 7 == number % 7).values(score=number))
                await connection.execute(delete(model).where(model.id == number - 5))

    async def read() -> None:
        """Readers see a whole window at any moment: the old one or the new one."""
        while writing:
            assert await leaderboard(model).window(20386).count() >= 10

    async with index.maintaining():
        others = [asyncio.create_task(write()), asyncio.create_task(read())]
        for _ in range(4):
            await index.rebuild()
        writing = False
        await asyncio.gather(*others)
    await index.caught_up()
    found = await index.verify()
    assert [str(each) for each in found.differences] == []
    assert await left_behind(index, model) == []


@pytest.mark.parametrize("where", ["_fill", "_switch"])
async def test_an_interrupted_rebuild_is_repaired(
    index: Indexes, model: type[Any], laurels: Laurels, monkeypatch: pytest.MonkeyPatch, where: str
):
    original = getattr(IndexRebuild, where)

    async def die(*given: Any) -> None:  # noqa: ANN401  # what the original takes
        await original(*given)
        raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(IndexRebuild, where, die)
        with pytest.raises(asyncio.CancelledError):
            await index.rebuild()
    await index.caught_up()
    assert await left_behind(index, model) == []
    assert (await index.verify()).is_equal
    assert [each.entries for each in await leaderboard(model).windows()] == [10, 10]


KINDS: dict[str, dict[str, Any]] = {
    "records": {"group_by": ["region"], "windows": ["daily", "all_time"]},
    "computed records": {"group_by": ["region"], "at": "seen"},
    "kept records": {"group_by": ["region"], "on_update": "keep"},
    "members": {"member": "player", "aggregate": "sum", "windows": ["daily", "all_time"]},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("killed_in", ["place:4", "save_build:6", "save_build:7"])
async def test_a_killed_build_goes_on_where_it_was_while_records_change(  # fixtures
    laurels: Laurels,
    engine: AsyncEngine,
    clock: FixedClock,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    killed_in: str,
):
    """Killed before or after it has written a chunk; then every kind of change, and a day that passes."""
    monkeypatch.setattr("laurels.index.rebuild.RECORDS_AT_ONCE", 10)
    model = score_model(**KINDS[kind])
    seen = datetime_of(clock())
    async with opened(laurels, engine, model) as index:
        async with engine.begin() as connection:
            rows = [
                {"id": key, "region": "eu", "score": key, "player": key % 9, "seen": seen}
                for key in range(60)
            ]
            await connection.execute(insert(model), rows)
        where, times = killed_in.split(":")
        home: type[Any] = IndexWriter if where == "place" else Outbox
        original, left = getattr(home, where), iter(range(int(times) - 1))

        async def die(*given: Any) -> None:  # noqa: ANN401  # what the original takes
            is_last = next(left, None) is None
            if not is_last or where == "place":
                await original(*given)
            if is_last:
                raise asyncio.CancelledError

        with monkeypatch.context() as patched:
            patched.setattr(home, where, die)
            with pytest.raises(asyncio.CancelledError):
                await index.build()
        with pytest.raises(IndexNotReady, match="is not built yet"):
            await leaderboard(model).top(3)
        clock.advance(timedelta(days=1))
        async with engine.begin() as connection:
            await connection.execute(update(model).where(model.id % 4 == 0).values(region="asia", score=500))
            await connection.execute(update(model).where(model.id % 4 == 1).values(player=3))
            await connection.execute(delete(model).where(model.id % 4 == 2))
            await connection.execute(insert(model), [{**rows[0], "id": key} for key in (-5, 100)])
        seen_progress: list[int] = []
        await index.build(progress=seen_progress.append)
        assert seen_progress[0] > 10  # not from the beginning
        found = await index.verify()
        assert [str(each) for each in found.differences] == []
        assert await left_behind(index, model) == []


async def test_truncate_empties_the_index_and_what_follows_counts(
    index: Indexes, model: type[Any], engine: AsyncEngine
):
    async with engine.begin() as connection:
        await connection.execute(insert(model), [{"id": 60, "region": "eu", "score": 1}])
        await connection.execute(text(f"TRUNCATE {model.__tablename__}"))
        await connection.execute(insert(model), [{"id": 61, "region": "eu", "score": 2}])
    await index.caught_up()
    assert [each.key for each in await leaderboard(model).entries(99)] == [61]
    assert (await index.verify()).entries == 2
