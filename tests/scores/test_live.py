"""Followers of a board, on one node and on a cluster: what they hear, and that nothing is left of them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from places import fast_place, folder_that_anybody_may_pass
from waiting import eventually

from laurels import embedded
from laurels.engine import Laurels as AsyncLaurels
from laurels.errors import InvalidInput, NotFound
from laurels.moments import DAY
from laurels.scores import live
from laurels.scores.view_diff import Change, Snapshot
from laurels.sync import Laurels

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints
    from laurels.scores.view_diff import Update

DEADLINE = 30.0


@pytest.fixture
def engine(valkey_url: str, endpoints: Endpoints, clock: FixedClock) -> Generator[Laurels]:
    """Each test's own: who follows is counted."""
    with Laurels(valkey_url=valkey_url, postgres_url=endpoints.postgres_url, clock=clock) as opened:
        yield opened


@asynccontextmanager
async def watching(laurels: AsyncLaurels, board: str, **what: Any) -> AsyncGenerator[Watching]:  # noqa: ANN401  # as `watch` takes it
    async with aclosing(laurels.watch(board, **what)) as updates:
        yield Watching(updates)


class Watching:
    """One who watches, and never waits for long."""

    def __init__(self, updates: AsyncGenerator[Update]) -> None:
        self._updates = updates
        self.last_id = ""

    async def update(self) -> Update:
        async with asyncio.timeout(DEADLINE):
            update = await anext(self._updates)
        assert update.id != self.last_id
        self.last_id = update.id
        return update

    async def snapshot(self) -> Snapshot:
        value = (await self.update()).value
        assert isinstance(value, Snapshot)
        return value

    async def change(self) -> Change:
        value = (await self.update()).value
        assert isinstance(value, Change)
        return value

    async def member(self) -> object:
        """Where who is followed stands next."""
        change = await self.change()
        assert change.entries == []
        return change.member


def moves(change: Change) -> list[tuple[int, str, float, int | None]]:
    return [(each.rank, each.member, each.score, each.previous_rank) for each in change.entries]


class TestWhatIsHeard:
    def test_the_page_first_then_what_changes(self, engine: Laurels, new_board: Callable[..., str]):
        board = new_board()
        engine.submit(board, "ada", 10)
        engine.submit(board, "bob", 5)

        async def scenario() -> None:
            laurels = engine.engine
            async with watching(laurels, board) as watch:
                assert await watch.snapshot() == Snapshot(**msgspec.structs.asdict(await laurels.page(board)))
                await laurels.submit(board, "bob", 20, metadata={"level": 2})
                change = await watch.change()
                assert moves(change) == [(1, "bob", 20, 2), (2, "ada", 10, 1)]
                assert change.entries[0].metadata == {"level": 2}
                assert (change.total, change.left, change.member) == (2, [], msgspec.UNSET)
                await laurels.submit(board, "eve", 1)
                assert moves(await watch.change()) == [(3, "eve", 1, None)]
                await laurels.remove(board, "bob")
                change = await watch.change()
                assert change.left == ["bob"]
                assert moves(change) == [(1, "ada", 10, 2), (2, "eve", 1, 3)]

        engine.run(scenario())

    def test_who_drops_out_of_the_best_has_left(self, engine: Laurels, new_board: Callable[..., str]):
        board = new_board()
        for member, score in (("ada", 3), ("bob", 2), ("eve", 1)):
            engine.submit(board, member, score)

        async def scenario() -> None:
            async with watching(engine.engine, board, limit=2) as watch:
                assert len((await watch.snapshot()).entries) == 2
                await engine.engine.submit(board, "eve", 9)
                change = await watch.change()
                assert (moves(change), change.left) == ([(1, "eve", 9, None), (2, "ada", 3, 1)], ["bob"])
                await engine.engine.submit(board, "joe", 0)
                change = await watch.change()
                assert (change.total, change.entries, change.left) == (4, [], [])

        engine.run(scenario())

    @pytest.mark.parametrize(
        "definition",
        [
            {"archive": {"journal": False}},
            {"shards": 3},
            {"shards": 3, "archive": {"journal": False}},
            {"score": "int64", "ties": "earliest"},
            {"windows": [{"period": "rolling", "days": 7}]},
        ],
        ids=str,
    )
    def test_every_kind_of_board(
        self, engine: Laurels, new_board: Callable[..., str], definition: dict[str, Any]
    ):
        board = new_board(**definition)

        async def scenario() -> None:
            async with watching(engine.engine, board) as watch:
                assert (await watch.snapshot()).entries == []
                heard = set[str]()
                for number in range(4):
                    await engine.engine.submit(board, f"m{number}", number)
                    while f"m{number}" not in heard:
                        heard |= {each.member for each in (await watch.change()).entries}
                await engine.engine.remove(board, "m0")
                assert (await watch.change()).left == ["m0"]

        engine.run(scenario())

    def test_a_group_hears_of_itself_alone(self, engine: Laurels, new_board: Callable[..., str]):
        board = new_board(groups=[["country"]])

        async def scenario() -> None:
            async with watching(engine.engine, board, group="country=BR") as watch:
                assert (await watch.snapshot()).total == 0
                await engine.engine.submit(board, "ada", 10, groups={"country": "JP"})
                await engine.engine.submit(board, "bob", 5, groups={"country": "BR"})
                assert moves(await watch.change()) == [(1, "bob", 5, None)]

        engine.run(scenario())

    def test_a_member_is_followed_below_the_best(self, engine: Laurels, new_board: Callable[..., str]):
        board = new_board()
        for number in range(5):
            engine.submit(board, f"m{number}", 100 - number)

        async def scenario() -> None:
            async with watching(engine.engine, board, limit=1, member="zoe") as watch:
                assert (await watch.snapshot()).member is None
                await engine.engine.submit(board, "zoe", 1)
                assert await watch.member() == await engine.engine.standing(board, "zoe")
                await engine.engine.submit(board, "m9", 50)
                assert await watch.member() == await engine.engine.standing(board, "zoe")
                await engine.engine.remove(board, "zoe")
                assert await watch.member() is None

        engine.run(scenario())

    def test_many_changes_are_told_as_few(self, engine: Laurels, new_board: Callable[..., str]):
        board = new_board(aggregate="sum")

        async def scenario() -> None:
            laurels = engine.engine
            async with watching(laurels, board, limit=5) as watch:
                scores = {entry.member: entry.score for entry in (await watch.snapshot()).entries}
                updates = 0
                clock = asyncio.get_running_loop().time
                began = clock()
                await asyncio.gather(
                    *(laurels.submit(board, f"m{number % 9}", number) for number in range(2000))
                )
                wanted = {entry.member: entry.score for entry in (await laurels.page(board, limit=5)).entries}
                while scores != wanted:
                    update = (await watch.update()).value
                    updates += 1
                    if isinstance(update, Snapshot):  # a store did not answer in time: it begins again
                        scores = {}
                    scores |= {each.member: each.score for each in update.entries}
                    for member in update.left if isinstance(update, Change) else ():
                        del scores[member]
                assert updates <= (clock() - began) / live.LIVE_SECONDS + 2

        engine.run(scenario())

    def test_an_archived_journal_hides_nothing(self, engine: Laurels, new_board: Callable[..., str]):
        """A drain may trim an entry of the journal before it is heard of."""
        board = new_board()
        journal = f"lb:{{{board}}}:journal"

        async def scenario() -> None:
            laurels = engine.engine
            async with watching(laurels, board) as watch:
                await watch.snapshot()
                for number in range(5):
                    await laurels.submit(board, "ada", number)
                    await laurels.valkey.command("XTRIM", journal, "MAXLEN", 0)
                    while moves(await watch.change())[0][2] != number:
                        pass

        engine.run(scenario())


class TestWindowsAndDefinitions:
    def test_a_window_that_turns_begins_anew(
        self, engine: Laurels, new_board: Callable[..., str], clock: FixedClock
    ):
        board = new_board(windows=[{"period": "daily"}])
        engine.submit(board, "ada", 10)

        async def scenario() -> None:
            async with (
                watching(engine.engine, board) as current,
                watching(engine.engine, board, slot="2025-10-24") as pinned,
            ):
                assert (await current.snapshot()).slot == "2025-10-24"
                assert (await pinned.snapshot()).slot == "2025-10-24"
                clock.now += DAY
                turned = await current.snapshot()
                assert (turned.slot, turned.entries) == ("2025-10-25", [])
                await engine.engine.submit(board, "bob", 1)
                assert moves(await current.change()) == [(1, "bob", 1, None)]
                late = {"at": (await engine.engine.page(board)).starts_at}
                assert late["at"] is not None
                await engine.engine.submit(board, "eve", 2, at=late["at"].replace(day=24, hour=23))
                assert moves(await pinned.change()) == [(2, "eve", 2, None)]

        engine.run(scenario())

    def test_a_slot_that_is_no_longer_kept_is_at_its_end(
        self, engine: Laurels, new_board: Callable[..., str], clock: FixedClock
    ):
        board = new_board(windows=[{"period": "daily", "keep": 1}])

        async def scenario() -> None:
            async with watching(engine.engine, board, slot="2025-10-24") as watch:
                await watch.snapshot()
                clock.now += DAY
                with pytest.raises(NotFound, match="no longer kept"):
                    await watch.update()

        engine.run(scenario())

    def test_an_edit_by_another_process_begins_anew(
        self, engine: Laurels, other_engine: Laurels, new_board: Callable[..., str]
    ):
        board = new_board()
        engine.submit(board, "ada", 10)

        async def scenario() -> None:
            async with watching(engine.engine, board) as watch:
                await watch.snapshot()
                await asyncio.to_thread(other_engine.define, board, {"limits": {"max": 99}})
                assert [entry.member for entry in (await watch.snapshot()).entries] == ["ada"]
                await engine.engine.submit(board, "bob", 11)
                assert moves(await watch.change()) == [(1, "bob", 11, None), (2, "ada", 10, 1)]

        engine.run(scenario())

    def test_a_board_that_is_dropped_by_another_process_is_at_its_end(
        self, engine: Laurels, other_engine: Laurels, new_board: Callable[..., str]
    ):
        board = new_board()

        async def scenario() -> None:
            async with watching(engine.engine, board) as watch, watching(engine.engine, board) as beside:
                await watch.snapshot()
                await beside.snapshot()
                await asyncio.to_thread(other_engine.drop, board)
                for each in (watch, beside):
                    with pytest.raises(NotFound, match="there is no board"):
                        await each.update()

        engine.run(scenario())

    def test_what_cannot_be_asked_for_cannot_be_watched(self, engine: Laurels, new_board: Callable[..., str]):
        board = new_board()
        wrong: list[dict[str, Any]] = [
            {"period": "daily"}, {"group": "country=BR"}, {"limit": 0}, {"limit": 1001}, {"member": ""}
        ]  # fmt: skip

        async def scenario() -> None:
            for what in wrong:
                with pytest.raises(InvalidInput):
                    await anext(engine.engine.watch(board, **what))
            with pytest.raises(NotFound):
                await anext(engine.engine.watch("tests/nothing"))
            assert engine.engine.live.followers == {}

        engine.run(scenario())


class TestComingBack:
    def test_whoever_comes_back_hears_what_it_missed(self, engine: Laurels, new_board: Callable[..., str]):
        board = new_board()

        async def scenario() -> None:
            laurels = engine.engine
            async with watching(laurels, board) as watch, watching(laurels, board) as beside:
                await watch.snapshot()
                await beside.snapshot()
                left_at = watch.last_id
                heard: list[str] = []
                for number in range(3):
                    await laurels.submit(board, "ada", number)
                    await beside.change()
                    heard.append(beside.last_id)
            for last_id, missed in ((left_at, heard), (heard[0], heard[1:])):
                async with watching(laurels, board, last_id=last_id) as back:
                    for expected in missed:
                        assert (await back.update()).id == expected
            async with watching(laurels, board, last_id=heard[-1]) as back:
                await laurels.submit(board, "bob", 1)
                assert moves(await back.change()) == [(2, "bob", 1, None)]

        engine.run(scenario())

    @pytest.mark.parametrize(
        "forged", ["", "7", "-1", "{other}-0", "{own}-99", "{own}--1", "{own}-²", "x-y-z"]
    )
    def test_an_id_that_says_nothing_gets_a_snapshot(
        self, engine: Laurels, new_board: Callable[..., str], forged: str
    ):
        board, other = new_board(), new_board()

        async def scenario() -> None:
            laurels = engine.engine
            async with watching(laurels, board) as watch, watching(laurels, other) as beside:
                await watch.snapshot()
                await beside.snapshot()
                own, another = (each.last_id.rpartition("-")[0] for each in (watch, beside))
                last_id = forged.format(own=own, other=another)
                async with watching(laurels, board, last_id=last_id) as back:
                    await back.snapshot()

        engine.run(scenario())

    def test_an_id_from_before_the_window_turned_gets_a_snapshot(
        self, engine: Laurels, new_board: Callable[..., str], clock: FixedClock
    ):
        board = new_board(windows=[{"period": "daily"}])

        async def scenario() -> None:
            async with watching(engine.engine, board) as watch:
                await watch.snapshot()
                old = watch.last_id
                clock.now += DAY
                await watch.snapshot()
                async with watching(engine.engine, board, last_id=old) as back:
                    assert (await back.snapshot()).slot == "2025-10-25"

        engine.run(scenario())

    def test_who_lags_behind_gets_a_snapshot_and_holds_nobody(
        self, engine: Laurels, new_board: Callable[..., str], monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(live, "MOST_WAITING", 2)
        board = new_board()

        async def scenario() -> None:
            laurels = engine.engine
            async with watching(laurels, board) as slow, watching(laurels, board) as quick:
                await slow.snapshot()
                await quick.snapshot()
                for number in range(4):
                    await laurels.submit(board, "ada", number)
                    await quick.change()
                assert (await slow.snapshot()).entries[0].score == 3
                assert slow.last_id == quick.last_id
                await laurels.submit(board, "ada", 9)
                assert moves(await slow.change()) == [(1, "ada", 9, 1)]

        engine.run(scenario())


class TestNothingIsLeft:
    def test_all_who_look_at_the_same_share_a_watcher(self, engine: Laurels, new_board: Callable[..., str]):
        board = new_board()

        async def scenario() -> None:
            laurels = engine.engine
            async with (
                watching(laurels, board) as first,
                watching(laurels, board, period="all_time", limit=100) as same,
                watching(laurels, board, limit=5) as other,
            ):
                for each in (first, same, other):
                    await each.snapshot()
                assert sorted(laurels.live.followers.values()) == [1, 2]
                assert len(laurels.live.boards) == 1
                assert first.last_id == same.last_id != other.last_id

        engine.run(scenario())

    def test_when_the_last_one_leaves_tasks_and_connections_go(
        self, engine: Laurels, new_board: Callable[..., str]
    ):
        board = new_board(shards=2)

        async def connections() -> int:
            info = await engine.engine.valkey.info("clients")
            return int(info["connected_clients"])

        async def scenario() -> None:
            laurels = engine.engine
            laurels.live.linger_seconds = 0
            # The pool that everybody shares is as large as it will be.
            await asyncio.gather(*(laurels.page(board) for _ in range(20)))
            tasks, connected = len(asyncio.all_tasks()), await connections()
            async with watching(laurels, board) as first, watching(laurels, board, limit=3) as second:
                await first.snapshot()
                await second.snapshot()
                assert len(asyncio.all_tasks()) > tasks
                if not laurels.valkey.is_cluster:
                    assert await connections() > connected

            async def is_quiet() -> bool:
                return len(asyncio.all_tasks()) <= tasks and await connections() <= connected

            await eventually(is_quiet)
            assert (laurels.live.followers, laurels.live.boards) == ({}, [])

        engine.run(scenario())

    def test_who_comes_back_in_time_finds_the_same_watcher(
        self, engine: Laurels, new_board: Callable[..., str]
    ):
        board = new_board()

        async def scenario() -> None:
            laurels = engine.engine
            async with watching(laurels, board) as watch:
                await watch.snapshot()
            await laurels.submit(board, "ada", 1)
            async with watching(laurels, board, last_id=watch.last_id) as back:
                assert moves(await back.change()) == [(1, "ada", 1, None)]

        engine.run(scenario())

    def test_a_stop_ends_everybody_in_peace(self, engine: Laurels, new_board: Callable[..., str]):
        board = new_board()

        async def scenario() -> None:
            laurels = engine.engine
            async with watching(laurels, board) as watch:
                await watch.snapshot()
                laurels.live.stop()
                with pytest.raises(StopAsyncIteration):
                    await watch.update()

        engine.run(scenario())


async def test_a_valkey_that_goes_and_comes_back_is_waited_for():
    with folder_that_anybody_may_pass(fast_place()) as folder, embedded.start(folder / "data") as servers:
        urls = servers.endpoints
        async with AsyncLaurels(valkey_url=urls.valkey_url, postgres_url=urls.postgres_url) as laurels:
            await laurels.define("tests/away", {})
            await laurels.submit("tests/away", "ada", 1, id="first")
            async with watching(laurels, "tests/away") as watch:
                await watch.snapshot()
                with pytest.raises(Exception, match="Valkey"):
                    await laurels.valkey.command("SHUTDOWN")
                recovered = await watch.snapshot()
                assert [entry.member for entry in recovered.entries] == ["ada"]

                async def is_submitted() -> bool:
                    try:
                        await laurels.submit("tests/away", "bob", 2, id="second")
                    except Exception:  # noqa: BLE001  # whatever a server says that is just starting
                        return False
                    return True

                await eventually(is_submitted)
                members = set[str]()
                while "bob" not in members:
                    value = (await watch.update()).value
                    members |= {entry.member for entry in value.entries}
