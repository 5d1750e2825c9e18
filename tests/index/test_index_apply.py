"""From the outbox to Valkey: once and in order, through interruptions and losses."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from index_models import make, opened, score_model
from sqlalchemy import delete, insert, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from waiting import eventually

from laurels.errors import IndexNotReady, OutcomeUnknown
from laurels.index import Indexes, LeaderboardIndex, install, leaderboard
from laurels.index.apply import Applier, read_cursor
from laurels.index.declare import declared
from laurels.index.outbox import Outbox
from laurels.index.writes import IndexWriter
from laurels.valkey.functions import CursorMoved

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.clock import FixedClock
    from laurels.engine import Laurels


async def put(engine: AsyncEngine, model: type[Any], *scores: int, first: int = 1) -> None:
    async with engine.begin() as connection:
        await connection.execute(
            insert(model),
            [{"id": key, "region": "eu", "score": score} for key, score in enumerate(scores, first)],
        )


async def scores(model: type[Any]) -> dict[int, int]:
    return {each.key: each.score for each in await leaderboard(model).entries(10_000)}


async def become(model: type[Any], is_so: Callable[[dict[int, int]], bool]) -> None:
    """Waits for these scores."""

    async def holds() -> bool:
        with suppress(IndexNotReady):
            return is_so(await scores(model))
        return False

    await eventually(holds)


async def in_outbox(engine: AsyncEngine, model: type[Any]) -> int:
    asked = text("SELECT count(*) FROM laurels_index.outbox WHERE index = :index")
    async with engine.connect() as connection:
        return (await connection.execute(asked, {"index": declared(model)[0].name})).scalar_one()


def applier(index: Indexes) -> Applier:
    return next(iter(index._appliers.values()))  # pyright: ignore[reportPrivateUsage]  # to look at its board


async def test_existing_records_of_a_table_are_indexed(laurels: Laurels, engine: AsyncEngine):
    model = score_model()
    async with engine.begin() as connection:
        await connection.run_sync(model.metadata.create_all)
    await put(engine, model, 5, 6, 7)
    async with opened(laurels, engine, model) as index:
        await index.caught_up()
        assert await scores(model) == {1: 5, 2: 6, 3: 7}


async def test_an_open_transaction_does_not_delay_others(laurels: Laurels, engine: AsyncEngine):
    model = score_model()
    async with opened(laurels, engine, model) as index, engine.begin() as late:
        await late.execute(insert(model), [{"id": 1, "score": 1}])
        await put(engine, model, 7, first=2)
        await index.caught_up()
        assert await scores(model) == {2: 7}
        await late.commit()
        await index.caught_up()
        assert await scores(model) == {1: 1, 2: 7}


async def test_changes_of_one_record_count_in_the_order_in_which_they_happened(
    laurels: Laurels, engine: AsyncEngine
):
    """Even if the transaction of the last change began first."""
    model = score_model()
    async with opened(laurels, engine, model) as index:
        await put(engine, model, 1)
        async with engine.begin() as late:
            await put(engine, model, 1, first=9)
            await late.execute(insert(model), [{"id": 10, "score": 1}])
            async with engine.begin() as early:
                await early.execute(update(model).where(model.id == 1).values(score=2))
            await late.execute(update(model).where(model.id == 1).values(score=3))
        await index.caught_up()
        assert (await scores(model))[1] == 3


async def test_a_round_interrupted_before_its_call_changes_nothing(
    laurels: Laurels, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
):
    model = score_model()
    async with opened(laurels, engine, model) as index:
        await index.caught_up()
        await put(engine, model, 5)

        async def fail(*_: object) -> None:
            raise OutcomeUnknown("Valkey stopped answering")

        with monkeypatch.context() as patched:
            patched.setattr(IndexWriter, "place", fail)
            with pytest.raises(OutcomeUnknown):
                await index.caught_up()
        assert await index.waiting() == 1
        with pytest.raises(IndexNotReady, match=r"1 committed changes .* wait, the oldest for .* no process"):
            await scores(model)
        await index.caught_up()
        assert (await scores(model), await index.waiting()) == ({1: 5}, 0)


async def test_changes_that_valkey_has_are_consumed_and_not_applied_again(
    laurels: Laurels, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
):
    model = score_model()
    async with opened(laurels, engine, model) as index:
        await index.caught_up()
        await put(engine, model, 5)

        async def die(*_: object) -> None:
            raise asyncio.CancelledError

        with monkeypatch.context() as patched:
            patched.setattr(Outbox, "consume", die)
            await index.caught_up()
            await applier(index).settled()
        assert (await scores(model), await index.waiting()) == ({1: 5}, 1)
        board = await applier(index).catalog.board(applier(index).ref)
        before = await read_cursor(laurels.valkey, board)
        place, refused = IndexWriter.place, list[CursorMoved]()

        async def note(writer: IndexWriter, *given: Any) -> None:  # noqa: ANN401  # what `place` takes
            with pytest.raises(CursorMoved) as caught:
                await place(writer, *given)
            refused.append(caught.value)
            raise caught.value

        with monkeypatch.context() as patched:
            patched.setattr(IndexWriter, "place", note)
            await index.caught_up()
        assert len(refused) == 1
        assert await read_cursor(laurels.valkey, board) == before
        assert await index.waiting() == 0
        await put(engine, model, 6, first=2)
        await index.caught_up()
        assert await scores(model) == {1: 5, 2: 6}


async def test_callers_continue_before_the_turn_ends(
    laurels: Laurels, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
):
    model = score_model()
    consume, may = Outbox.consume, asyncio.Event()

    async def slowly(*given: Any) -> None:  # noqa: ANN401  # what `consume` takes
        await may.wait()
        await consume(*given)

    async with opened(laurels, engine, model) as index, Indexes(laurels, engine, [model]) as other:
        await index.caught_up()
        monkeypatch.setattr(Outbox, "consume", slowly)
        await put(engine, model, 5)
        await index.caught_up()
        assert (await scores(model), await in_outbox(engine, model)) == ({1: 5}, 1)
        await put(engine, model, 6, first=2)
        another = asyncio.create_task(other.caught_up())
        assert await asyncio.wait([another], timeout=0.05) == (set(), {another})
        may.set()
        await another
        assert await scores(model) == {1: 5, 2: 6}
    assert await in_outbox(engine, model) == 0


async def test_a_connection_that_broke_is_replaced(laurels: Laurels, engine: AsyncEngine):
    model = score_model()
    await make(engine, model)
    own = create_async_engine(engine.url, pool_size=1)
    async with Indexes(laurels, own, [model]) as index:
        await index.caught_up()
        async with own.connect() as connection:
            pid = (await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one()
        await put(engine, model, 5)
        async with engine.connect() as connection:
            await connection.execute(text("SELECT pg_terminate_backend(:pid, 10000)"), {"pid": pid})
        with pytest.raises(DBAPIError, match="lost"):
            await index.caught_up()
        await index.caught_up()
        assert await scores(model) == {1: 5}
    await own.dispose()


async def test_a_round_that_lost_its_turn_is_refused(
    laurels: Laurels, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
):
    """A newer round was applied, so the old one finds that the cursor has moved."""
    model = score_model()
    async with opened(laurels, engine, model) as index:
        await put(engine, model, 5)
        await index.caught_up()
        sent: list[tuple[Any, ...]] = []
        place = IndexWriter.place

        async def remembering(writer: IndexWriter, *given: Any) -> None:  # noqa: ANN401  # what `place` takes
            sent.append((writer, *given))
            await place(writer, *given)

        with monkeypatch.context() as patched:
            patched.setattr(IndexWriter, "place", remembering)
            for score in (6, 7):
                async with engine.begin() as connection:
                    await connection.execute(update(model).values(score=score))
                await index.caught_up()
        with pytest.raises(CursorMoved):
            await place(*sent[0])
        assert await scores(model) == {1: 7}


async def test_an_idle_connection_loses_the_turn(engine: AsyncEngine):
    model = score_model()
    await make(engine, model)
    outbox = Outbox(declared(model)[0])
    async with engine.connect() as silent:
        await outbox.take_turn(silent, idle=1)
        async with asyncio.timeout(30), engine.begin() as other:
            await outbox.take_turn(other)
        with pytest.raises(DBAPIError, match="idle"):
            await silent.execute(text("SELECT 1"))
        await silent.invalidate()


async def test_several_processes_take_turns(laurels: Laurels, engine: AsyncEngine):
    model = score_model(group_by=["region"])
    async with opened(laurels, engine, model) as index, Indexes(laurels, engine, [model]) as other:

        async def write(number: int) -> None:
            for step in range(10):
                async with engine.begin() as connection:
                    await connection.execute(
                        insert(model), [{"id": number * 100 + step, "region": "eu", "score": step}]
                    )
                await (index if step % 2 else other).caught_up()

        await asyncio.gather(*map(write, range(4)))
        await index.caught_up()
        assert len(await scores(model)) == 40
        assert (await index.verify()).is_equal


async def test_maintaining_applies_commits_as_they_come(laurels: Laurels, engine: AsyncEngine):
    """Without a call; woken by a notification, well before the next poll."""
    model = score_model()
    async with opened(laurels, engine, model) as index, index.maintaining():
        for key in range(1, 4):
            await put(engine, model, key, first=key)
            await become(model, lambda found, key=key: len(found) == key)


async def test_maintaining_goes_on_after_errors(
    laurels: Laurels, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
):
    model = score_model()
    monkeypatch.setattr("laurels.index.maintain.LOOK_SECONDS", 0.01)
    failures = iter([OutcomeUnknown("Valkey stopped answering")])
    catch_up = Applier.catch_up

    async def failing(self: Applier) -> int:
        for failure in failures:
            raise failure
        return await catch_up(self)

    monkeypatch.setattr(Applier, "catch_up", failing)
    async with opened(laurels, engine, model) as index, index.maintaining():
        await put(engine, model, 5)
        await become(model, lambda found: found == {1: 5})
    assert list(failures) == []


@pytest.mark.parametrize("lost", ["all", "cursor", "some", "ahead"])
async def test_an_index_that_a_store_lost_is_rebuilt(
    laurels: Laurels, engine: AsyncEngine, lost: str, clock: FixedClock
):
    model = score_model(keep=3)
    async with opened(laurels, engine, model) as index:
        await put(engine, model, 5, 6)
        await index.caught_up()
        clock.advance(timedelta(days=1))
        await put(engine, model, 7, first=3)
        await index.caught_up()
        board = index.board(leaderboard(model).declared)
        cursor = f"lb:{{{board}}}:index"
        match lost:
            case "all":
                keys = [f"lb:{{{board}}}:every_86400s:{slot}" for slot in (20385, 20386)]
                await laurels.valkey.command("UNLINK", cursor, *keys, *(f"{key}|prefixes" for key in keys))
            case "cursor":
                await laurels.valkey.command("UNLINK", cursor)
            case "some":  # the last second, as after a crash with appendfsync everysec
                await laurels.valkey.command("HINCRBY", cursor, "cursor", -1)
                await laurels.valkey.command("UNLINK", f"lb:{{{board}}}:every_86400s:20386")
            case _:  # PostgreSQL came back from a copy of yesterday
                await laurels.valkey.command("HINCRBY", cursor, "cursor", 5)
        await index.caught_up()
        assert await scores(model) == {3: 7}
        assert {each.key for each in await leaderboard(model).window(20385).entries(9)} == {1, 2}
        assert (await index.verify()).is_equal


async def test_a_changed_declaration_rebuilds_the_index(
    laurels: Laurels, engine: AsyncEngine, clock: FixedClock
):
    model = score_model(window="daily", keep=3)
    async with opened(laurels, engine, model) as index:
        await put(engine, model, 5, 6)
        await index.caught_up()
    clock.advance(timedelta(hours=2))
    changed = score_model(window="hourly", keep=3, order="asc", group_by=["region"])
    changed.__table__.name = changed.__table__.fullname = model.__tablename__
    (index_of_changed,) = declared(changed)
    assert index_of_changed.name == declared(model)[0].name
    await install(engine, changed)
    async with Indexes(laurels, engine, [changed]) as index:
        await index.caught_up()
        ranking = leaderboard(changed)
        current, before = await ranking.windows()
        assert (current.entries, before.entries, int(current.id) - int(before.id)) == (0, 2, 2)
        assert [each.key for each in await ranking.window(before).group("eu").entries(9)] == [1, 2]
        assert (await index.verify()).is_equal


@pytest.mark.parametrize(
    ("before", "after"), [({"dense": False}, {"dense": True}), ({"keep": 1}, {"keep": 3})], ids=str
)
async def test_what_a_changed_declaration_adds_is_complete(
    laurels: Laurels, engine: AsyncEngine, clock: FixedClock, before: dict[str, Any], after: dict[str, Any]
):
    model = score_model(**before)
    async with opened(laurels, engine, model) as index:
        await put(engine, model, 5, 6, 6)
        await index.caught_up()
        clock.advance(timedelta(days=1))
        await put(engine, model, 7, first=9)
        await index.caught_up()
    changed = score_model(**after)
    changed.__table__.name = changed.__table__.fullname = model.__tablename__
    await install(engine, changed)
    async with Indexes(laurels, engine, [changed]) as index:
        with pytest.raises(IndexNotReady, match="is not built yet"):
            await leaderboard(changed).top(1)
        await index.build()
        yesterday = leaderboard(changed).window(20385)
        assert [await yesterday.dense_rank(key) for key in (1, 2, 3)] == [2, 1, 1]
        assert (await index.verify()).is_equal


async def test_more_changes_than_one_call_takes_are_applied_in_several(laurels: Laurels, engine: AsyncEngine):
    model = score_model(group_by=["region", "city"])
    async with opened(laurels, engine, model) as index:
        await index.caught_up()
        async with engine.begin() as connection:
            rows = [
                {"id": key, "region": f"r{key % 9}", "city": f"c{key % 2}", "score": key}
                for key in range(1000)
            ]
            await connection.execute(insert(model), rows)
            await connection.execute(update(model).where(model.id % 2 == 0).values(score=-model.id))
            await connection.execute(delete(model).where(model.id % 5 == 0))
        await index.caught_up()
        assert await scores(model) == {key: key if key % 2 else -key for key in range(1000) if key % 5}
        assert (await index.verify()).is_equal


async def test_keys_of_ended_windows_expire(laurels: Laurels, engine: AsyncEngine):
    """By the expiry that each write sets: a day's window that is kept for seven ends within seven days, and
    its memory goes half an hour later.
    """
    half_an_hour = 1_800
    model = score_model(window="daily", keep=7)
    async with opened(laurels, engine, model) as index:
        await put(engine, model, 5)
        await index.caught_up()
        key = f"lb:{{{index.board(leaderboard(model).declared)}}}:every_86400s:20385"
        for part in ("", "|prefixes", "|scores", "|counts"):
            seconds = await laurels.valkey.command("TTL", f"{key}{part}")
            assert 6.4 * 86_400 < seconds - half_an_hour <= 6.5 * 86_400


async def test_polling_applies_commits_that_do_not_notify(
    laurels: Laurels, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("laurels.index.maintain.LOOK_SECONDS", 0.01)
    model = score_model()
    await make(engine, model)
    await install(engine, model, notify=False)
    async with Indexes(laurels, engine, [model]) as index, index.maintaining():
        await put(engine, model, 5)
        await become(model, lambda found: found == {1: 5})


def test_only_the_score_is_a_positional_argument():
    with pytest.raises(TypeError):
        LeaderboardIndex("score", "region")  # pyright: ignore[reportCallIssue]  # the point


async def test_processes_that_open_at_the_same_moment_leave_the_board_alone(
    laurels: Laurels, engine: AsyncEngine
):
    model = score_model()
    await make(engine, model)
    many = [Indexes(laurels, engine, [model]) for _ in range(4)]
    await asyncio.gather(*(index.open() for index in many))
    await put(engine, model, 5)
    await asyncio.gather(*(index.caught_up() for index in many))
    assert await scores(model) == {1: 5}
    for index in many:
        await index.close()
