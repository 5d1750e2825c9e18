"""Boards rebuilt from their journals have the same pages, ranks, metadata and order."""

from __future__ import annotations

import asyncio
import random
import secrets
import signal
import sys
import time
from asyncio.subprocess import PIPE
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from topologies import on_node
from waiting import PAUSE

from laurels.boards.keys import BoardRef
from laurels.errors import Conflict
from laurels.journal.entry import StreamId
from laurels.moments import datetime_of
from laurels.valkey import functions, streams
from laurels.valkey.messages import Fence

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints
    from laurels.engine import Laurels

    NewBoard = Callable[..., Awaitable[str]]

KILLED = str(Path(__file__).parent / "killed_rebuild.py")

EVERYTHING: dict[str, Any] = {
    "windows": [
        {"period": "daily", "keep": 3},
        {"period": "weekly", "sum_of": "daily", "name": "week_sum"},
        {"period": "rolling", "days": 3, "keep": 2},
        {"period": "all_time"},
    ],
    "groups": [["country"], ["country", "city"]],
    "ties": "earliest",
    "aggregate": "best",
    "lateness": "P2D",
}


async def forget_everything(laurels: Laurels, board: str) -> None:
    """Deletes every key of one board."""
    # Tomorrow's windows are completed in the background; what that wrote meanwhile would stay behind.
    under_way = laurels._rolling._under_way  # pyright: ignore[reportPrivateUsage]  # there is no public way to wait for it
    await asyncio.gather(*under_way.values(), return_exceptions=True)
    name = BoardRef.parse(board)
    for key in await keys_of(laurels, f"*{name}*"):
        await laurels.valkey.command("DEL", key)


async def keys_of(laurels: Laurels, pattern: str) -> list[str]:
    nodes = await laurels.valkey._primaries()  # pyright: ignore[reportPrivateUsage]  # every key there is
    found = [await node.execute_command("KEYS", pattern) for node in nodes]
    return [key.decode() for of_node in found for key in of_node]


async def pictures(laurels: Laurels, board: str, groups: tuple[str | None, ...] = (None,)) -> list[Any]:
    """Every read of a board."""
    seen: list[Any] = []
    for group in groups:
        for window in await laurels.windows(board, group=group, limit=1000):
            where: Any = {"period": window.period, "slot": window.slot or None, "group": group}
            page = await laurels.page(board, limit=1000, **where)
            standings = [await laurels.standing(board, entry.member, **where) for entry in page.entries[:5]]
            seen.append((where, page.total, page.entries, standings))
    return seen


async def play(laurels: Laurels, board: str, clock: FixedClock, rounds: int = 60, seed: str = "") -> None:
    chosen = random.Random(seed)  # noqa: S311  # data, not secrets
    for number in range(rounds):
        member = f"m{chosen.randrange(12)}"
        groups = chosen.choice(
            [None, {"country": "BR"}, {"country": "DE", "city": "köln"}, {"country": "x:y=z,"}]
        )
        late = chosen.choice([0, 0, 3600, 90_000])
        await laurels.submit(
            board,
            member,
            chosen.randrange(20),
            at=datetime_of(clock.now - late * 1_000_000),
            groups=groups,
            metadata=chosen.choice([None, {"round": number}]),
        )
        if number % 13 == 7:
            await laurels.remove(board, f"m{chosen.randrange(12)}")
        clock.advance(timedelta(minutes=chosen.choice([0, 1, 300, 700])))


GROUPS = (None, "country=BR", "country=DE,city=köln", "country=DE")


class TestAfterALossOfMemory:
    @pytest.mark.parametrize("shards", [1, 3])
    @pytest.mark.parametrize("aggregate", ["best", "sum", "last", "first"])
    async def test_a_rebuilt_board_reads_the_same(
        self, laurels: Laurels, new_board: NewBoard, clock: FixedClock, shards: int, aggregate: str
    ):
        board = await new_board(**{**EVERYTHING, "shards": shards, "aggregate": aggregate})
        await play(laurels, board, clock, seed=f"{aggregate}, {shards}")
        before = await pictures(laurels, board, GROUPS)
        await laurels.archived(board)
        await forget_everything(laurels, board)
        assert sum(total for _, total, *_ in await pictures(laurels, board)) == 0
        told = await laurels.rebuild(board)
        assert await pictures(laurels, board, GROUPS) == before
        assert told.rows > 60
        assert await keys_of(laurels, f"rebuild-*{board}*") == []

    async def test_metadata_corrected_by_an_equal_score_is_rebuilt(
        self, laurels: Laurels, new_board: NewBoard
    ):
        board = await new_board(**{**EVERYTHING, "aggregate": "last"})
        for level in (1, 2):
            await laurels.submit(board, "ada", 5, metadata={"level": level})
        await laurels.submit(board, "ada", 5)
        before = await pictures(laurels, board)
        await laurels.archived(board)
        await forget_everything(laurels, board)
        await laurels.rebuild(board)
        assert await pictures(laurels, board) == before
        assert (await laurels.standing(board, "ada", period="all_time")).metadata == {"level": 2}

    async def test_windows_live_as_long_as_before(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(
            windows=[{"period": "daily", "keep": 3}, {"period": "all_time"}], ties="member"
        )
        await laurels.submit(board, "ada", 1)
        keys = await keys_of(laurels, f"*{board}*:daily:*") + await keys_of(laurels, f"*{board}*:all_time*")
        before = {key: await laurels.valkey.command("TTL", key) for key in keys}
        assert {ttl == -1 for ttl in before.values()} == {True, False}
        await laurels.archived(board)
        await forget_everything(laurels, board)
        await laurels.rebuild(board)
        for key, ttl in before.items():
            assert abs(await laurels.valkey.command("TTL", key) - ttl) <= 5

    async def test_an_id_from_before_does_not_count_again(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(aggregate="sum")
        made = (await laurels.submit(board, "ada", 5)).id
        await laurels.submit(board, "ada", 5, id="game-1")
        await laurels.archived(board)
        await forget_everything(laurels, board)
        await laurels.rebuild(board)
        for name in ("game-1", made):
            assert not (await laurels.submit(board, "ada", 5, id=name)).applied
        assert (await laurels.standing(board, "ada")).score == 10

    async def test_a_repetition_after_valkey_lost_its_memory_counts_once(
        self, laurels: Laurels, new_board: NewBoard
    ):
        board = await new_board(aggregate="sum")
        made = (await laurels.submit(board, "ada", 1)).id
        await laurels.submit(board, "ada", 5, id="game-1")
        await laurels.archived(board)
        await forget_everything(laurels, board)
        for name in ("game-1", made):
            assert (await laurels.submit(board, "ada", 5, id=name)).applied
        told = await laurels.rebuild(board)
        assert (await laurels.standing(board, "ada")).score == 6
        assert told.doubled == 2

    async def test_submissions_that_came_since_are_kept(
        self, laurels: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = await new_board(**EVERYTHING)
        await play(laurels, board, clock, 20)
        await laurels.archived(board)
        await forget_everything(laurels, board)
        await laurels.submit(board, "zoe", 1000)
        await laurels.rebuild(board)
        page = await laurels.page(board, period="all_time")
        assert page.entries[0].member == "zoe"
        assert page.total > 5

    async def test_a_fed_board_is_rebuilt_from_its_own_journal(self, laurels: Laurels, new_board: NewBoard):
        fed = await new_board(aggregate="sum")
        board = await new_board(aggregate="sum", feeds=[fed])
        await laurels.submit(board, "ada", 5)
        await laurels.archived(fed)
        await laurels.archived(board)
        await forget_everything(laurels, fed)
        await forget_everything(laurels, board)
        await laurels.rebuild(board)
        assert (await laurels.page(fed)).total == 0
        await laurels.rebuild(fed)
        assert (await laurels.standing(fed, "ada")).score == 5

    async def test_keys_of_templates_are_the_same_to_the_letter(self, laurels: Laurels, new_board: NewBoard):
        name = secrets.token_hex(4)
        keys = {"all_time": f"{name}:xp", "all_time:country": f"{name}:xp:{{group.country}}"}
        board = await new_board(groups=[["country"]], keys=keys)
        await laurels.submit(board, "ada", 5, groups={"country": "GB"})
        before = await keys_of(laurels, f"{name}:xp*") + await keys_of(laurels, f"{{{name}:xp}}*")
        assert len(before) == 2
        await laurels.archived(board)
        for key in before:
            await laurels.valkey.command("DEL", key)
        await laurels.rebuild(board)
        after = await keys_of(laurels, f"{name}:xp*") + await keys_of(laurels, f"{{{name}:xp}}*")
        assert sorted(after) == sorted(before)
        assert (await laurels.page(board, group="country=GB")).entries[0].score == 5

    async def test_the_result_states_the_period_of_the_journal(
        self, laurels: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = await new_board()
        first = clock.now
        await laurels.submit(board, "ada", 5)
        clock.advance(timedelta(hours=1))
        await laurels.submit(board, "bob", 6)
        told = await laurels.rebuild(board)
        assert (told.rows, told.windows, told.entries) == (2, 1, 2)
        assert told.begins == datetime_of(first)
        (stream,) = await laurels.drain.journal_streams.of_board(BoardRef.parse(board))
        cursors = await laurels.drain.store.cursors(stream.board_id)
        assert told.watermark == cursors[stream.key].recorded_at

    async def test_new_journal_ids_lie_above_the_archived_ones(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        await laurels.submit(board, "ada", 5)
        await laurels.archived(board)
        (stream,) = await laurels.drain.journal_streams.of_board(BoardRef.parse(board))
        archived = (await laurels.drain.store.cursors(stream.board_id))[stream.key]
        await forget_everything(laurels, board)
        await laurels.rebuild(board)
        assert StreamId.parse((await streams.last_id(laurels.valkey, stream.key)).encode()) >= archived


class TestWhileSubmissionsGoOn:
    @pytest.mark.parametrize("definition", [{"aggregate": "sum"}, {"ties": "earliest"}, {"shards": 3}])
    async def test_none_is_lost_and_none_counts_twice(
        self, laurels: Laurels, new_board: NewBoard, definition: dict[str, Any]
    ):
        windows = [{"period": "all_time"}, {"period": "rolling", "days": 2}]
        board = await new_board(windows=windows, groups=[["country"]], **{"aggregate": "sum", **definition})
        totals: dict[str, int] = {}
        is_over = asyncio.Event()

        async def submit(seed: int) -> None:
            chosen = random.Random(seed)  # noqa: S311  # data, not secrets
            while not is_over.is_set():
                member, score = f"m{chosen.randrange(30)}", chosen.randrange(1, 9)
                await laurels.submit(board, member, score, groups={"country": chosen.choice("ab")})
                totals[member] = totals.get(member, 0) + score
                await asyncio.sleep(PAUSE)  # or the journal grows faster than it is replayed

        submitters = [asyncio.create_task(submit(seed)) for seed in range(4)]
        try:
            for _ in range(3):
                await laurels.rebuild(board)
                assert (await laurels.verify(board)).differences == []
        finally:
            is_over.set()
            await asyncio.gather(*submitters)
        for period in ("all_time", "rolling_2d"):
            page = await laurels.page(board, period=period, limit=1000)
            assert {entry.member: entry.score for entry in page.entries} == totals
        parts = [await laurels.page(board, group=f"country={country}", limit=100) for country in "ab"]
        assert sum(int(entry.score) for page in parts for entry in page.entries) == sum(totals.values())


class TestWhatCannotBe:
    async def test_a_board_without_a_journal_is_refused(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(archive={"journal": False})
        with pytest.raises(Conflict, match="keeps no journal"):
            await laurels.rebuild(board)

    async def test_entries_outside_the_journal_are_given_up_only_by_force(
        self, laurels: Laurels, new_board: NewBoard
    ):
        board = await new_board(archive={"journal": False})
        await laurels.submit(board, "old", 7)
        await laurels.define(board, {})
        await laurels.submit(board, "new", 5)
        with pytest.raises(Conflict, match="holds 1 entries in all_time that are not in its journal"):
            await laurels.rebuild(board)
        assert (await laurels.page(board)).total == 2
        assert (await laurels.submit(board, "new", 6)).applied, "writers wait no longer"
        await laurels.rebuild(board, force=True)
        assert [entry.member for entry in (await laurels.page(board)).entries] == ["new"]

    async def test_an_interrupted_rebuild_changes_nothing(
        self, laurels: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = await new_board(**EVERYTHING)
        await play(laurels, board, clock, 30)
        before = await pictures(laurels, board, GROUPS)

        def interrupt(_done: int, _of: int) -> None:
            rebuilding.cancel()

        rebuilding = asyncio.create_task(laurels.rebuild(board, interrupt))
        with pytest.raises(asyncio.CancelledError):
            await rebuilding
        assert await pictures(laurels, board, GROUPS) == before
        for key in await keys_of(laurels, f"rebuild-*{board}*"):
            assert await laurels.valkey.command("TTL", key) > 0
        await laurels.rebuild(board)
        assert await pictures(laurels, board, GROUPS) == before

    @on_node
    async def test_a_killed_rebuild_leaves_the_old_board_or_the_rebuilt_one(
        self, laurels: Laurels, endpoints: Endpoints, new_board: NewBoard, clock: FixedClock
    ):
        board = await new_board(**EVERYTHING)
        await play(laurels, board, clock, 30)
        before = await pictures(laurels, board, GROUPS)
        rebuild = (
            sys.executable,
            KILLED,
            endpoints.valkey_url,
            endpoints.postgres_url,
            board,
            str(clock.now),
        )

        async def run(commands: int) -> tuple[int | None, bytes]:
            process = await asyncio.create_subprocess_exec(*rebuild, str(commands), stdout=PIPE)
            told, _ = await process.communicate()
            return process.returncode, told

        plenty = 100_000
        status, left = await run(plenty)
        assert status == 0
        needed = plenty - int(left)
        deaths = 0
        for commands in (needed // 3, needed - 6):
            status, _ = await run(commands)
            deaths += status == -signal.SIGKILL
            assert await pictures(laurels, board, GROUPS) == before, f"killed after {commands} commands"
            assert (await laurels.submit(board, "m1", -1)).applied is False, "writers wait no longer"
        assert deaths
        await laurels.rebuild(board)
        assert await pictures(laurels, board, GROUPS) == before


class TestVerify:
    async def test_reports_every_difference_and_changes_nothing(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(groups=[["country"]])
        for member in ("ada", "bob", "eve"):
            await laurels.submit(board, member, 5, groups={"country": "GB"}, metadata={"who": member})
        assert (await laurels.verify(board)).differences == []
        (key,) = await keys_of(laurels, f"*{board}*:all_time")
        await laurels.valkey.command("ZADD", key, 6, "ada")
        await laurels.valkey.command("ZADD", key, 1, "zoe")
        await laurels.valkey.command("ZREM", key, "bob")
        await laurels.valkey.command("HDEL", f"{key}|metadata", "eve")
        told = await laurels.verify(board)
        assert sorted(told.differences) == [
            "all_time: ada: has 6, by the journal 5",
            "all_time: bob: is in the journal alone",
            "all_time: eve: has other metadata",
            "all_time: zoe: is not in the journal",
        ]
        assert told.different == 4
        assert (await laurels.standing(board, "ada")).score == 6
        await laurels.rebuild(board)
        assert (await laurels.verify(board)).differences == []


class TestAFence:
    async def test_that_is_not_removed_lapses(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        compiled = await laurels._catalog.board(BoardRef.parse(board))  # pyright: ignore[reportPrivateUsage]  # its keys
        keys = compiled.keys.of_board(0, "board"), compiled.keys.of_board(0, "journal")
        began = time.monotonic()
        await functions.fence(laurels.valkey, keys, compiled.version, Fence("gone", 300))
        waiting = asyncio.create_task(laurels.submit(board, "ada", 5))
        with pytest.raises(functions.FenceLapsed):
            await functions.switch(laurels.valkey, keys[:1], ("other", 300), ())
        assert (await waiting).applied
        assert time.monotonic() - began > 0.299  # Valkey counts whole milliseconds
        with pytest.raises(functions.FenceLapsed):
            await functions.switch(laurels.valkey, keys[:1], ("gone", 300), ())
