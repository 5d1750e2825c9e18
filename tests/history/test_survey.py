"""Writes are announced to background work, and the survey finds those that were not."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from redis.crc import key_slot
from valkey_cluster import SLOTS, cluster_servers, cluster_url
from waiting import eventually

from laurels.boards.definition import BoardDefinition
from laurels.boards.keys import BoardRef, KeySpace, board_of
from laurels.engine import Laurels
from laurels.history import survey
from laurels.moments import DAY, SECOND
from laurels.valkey.announcements import announced, looked_at
from laurels.valkey.names import DEAD_LETTERS, JOURNALS, WINDOWS

if TYPE_CHECKING:
    import pytest

    from laurels.boards.board import Board
    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints
    from laurels.moments import Moment

MINUTE = 60 * SECOND
DIE = Path(__file__).parent / "submit_and_die.py"


async def tell_nobody(_: str) -> None:
    pass


async def rows_of(laurels: Laurels, board: str) -> int:
    stored = await laurels.store.get(*BoardRef.parse(board))
    assert stored is not None
    return len(await laurels.drain.store.rows(stored.id))


def journal_of(board: str) -> str:
    return f"lb:{{{board}}}:journal"


async def test_a_write_is_announced_and_archived(alone: Laurels):
    await alone.define("survey/written")
    await alone.submit("survey/written", "ada", 1)
    assert (await alone.drain.run_once()).rows == 1
    assert (await alone.drain.run_once()).rows == 0
    assert journal_of("survey/written") not in await announced(alone.valkey, JOURNALS)
    assert await alone.remove("survey/written", "ada")
    assert (await alone.drain.run_once()).rows == 1


async def test_a_journal_that_a_killed_process_did_not_announce_is_found(
    alone: Laurels, valkey_url: str, migrated_postgres_url: str
):
    await alone.define("survey/killed")
    await alone.submit("survey/killed", "eve", 1)
    await alone.drain.run_once()
    await alone.drain.run_once()
    words = (sys.executable, str(DIE), valkey_url, migrated_postgres_url, "survey/killed")
    process = await asyncio.create_subprocess_exec(*words)
    assert await process.wait() == -signal.SIGKILL
    assert (await alone.drain.run_once()).rows == 0
    assert (await alone.drain.journal_streams.backlog()).calls == 0
    await alone.survey.run(tell_nobody)
    assert (await alone.drain.journal_streams.backlog()).calls == 1
    assert (await alone.drain.run_once()).rows == 1
    assert await rows_of(alone, "survey/killed") == 2


async def test_a_name_that_is_announced_while_it_is_looked_at_stays(alone: Laurels):
    key = journal_of("survey/raced")
    alone.valkey.announcer.journal(key)
    await alone.valkey.announcer.flush()
    seen = await announced(alone.valkey, JOURNALS)
    alone.valkey.announcer.journal(key)
    await alone.valkey.announcer.flush()
    await looked_at(alone.valkey, JOURNALS, {key: seen[key]})
    again = await announced(alone.valkey, JOURNALS)
    assert again[key] < seen[key]
    await looked_at(alone.valkey, JOURNALS, {key: again[key]})
    assert key not in await announced(alone.valkey, JOURNALS)


async def test_a_lost_list_is_made_again_from_all_boards(alone: Laurels, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(survey, "BOARDS_A_QUERY", 2)
    monkeypatch.setattr(survey, "BOARDS_A_RUN", 4)
    boards = [f"survey/lost-{number}" for number in range(7)]
    for board in boards:
        await alone.define(board, {"shards": 2})
        await alone.submit(board, "ada", 1)
    assert (await alone.survey.run(tell_nobody))[0] == 7, "a worker begins with all boards"
    await alone.drain.finish()
    await alone.drain.run_once()
    looked = [(await alone.survey.run(tell_nobody))[0] for _ in range(4)]
    assert looked == [4, 3, 4, 3]
    for board in boards:
        await alone.submit(board, "eve", 2)
    await alone.valkey.announcer.flush()
    for key in (JOURNALS, DEAD_LETTERS, WINDOWS):
        await alone.valkey.command("UNLINK", key)
    monkeypatch.setattr(type(alone.valkey), "losses", alone.valkey.losses + 1)
    assert await alone.survey.run(tell_nobody) == (7, 14), "a journal and the windows of each"
    assert (await alone.drain.run_once()).rows == 7
    assert (await alone.survey.run(tell_nobody))[1] == 0


async def test_writes_do_not_wait_for_the_node_that_has_the_list(endpoints: Endpoints):
    with cluster_servers(3, 0) as servers:
        urls = {"valkey_url": cluster_url(servers), "postgres_url": endpoints.postgres_url}
        silent = key_slot(JOURNALS.encode()) * 3 // SLOTS
        names = (f"survey/apart-{number}" for number in range(100))
        board = next(name for name in names if key_slot(name.encode()) * 3 // SLOTS != silent)
        async with Laurels(**urls, jobs=False) as laurels:  # pyright: ignore[reportArgumentType]
            await laurels.define(board, {})
            await laurels.submit(board, "ada", 1)
            await laurels.valkey.announcer.flush()
            servers[silent].process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            for number in range(20):
                await laurels.submit(board, f"m{number}", number)
            assert time.monotonic() - began < 2
            servers[silent].process.send_signal(signal.SIGCONT)
            await eventually(lambda: _is_archived(laurels, board, 21))
            await laurels.drop(board, allow_drop="all")


async def _is_archived(laurels: Laurels, board: str, rows: int) -> bool:
    await laurels.drain.run_once()
    return await rows_of(laurels, board) == rows


class TestTheSweep:
    """It looks at the boards that were written, and then when something is due."""

    async def swept(self, laurels: Laurels, monkeypatch: pytest.MonkeyPatch) -> set[str]:
        retention, boards = laurels.maintenance.retention, set[str]()
        sweep = type(retention).sweep

        async def noted(of: object, board: Board) -> Moment:
            boards.add(board.ref.board)
            return await sweep(retention, board)

        with monkeypatch.context() as patched:
            patched.setattr(type(retention), "sweep", noted)
            await laurels.maintenance.sweep(tell_nobody)
        return boards

    async def test_looks_at_boards_when_windows_end(
        self, alone: Laurels, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
    ):
        await alone.define("sweep/short", {"windows": [{"period": "hourly", "keep": 1}]})
        await alone.define("sweep/long", {"windows": [{"period": "all_time"}]})
        await alone.define("sweep/unused")
        for board in ("sweep/short", "sweep/long"):
            await alone.submit(board, "ada", 1)
        assert await self.swept(alone, monkeypatch) == {"short", "long"}
        assert await self.swept(alone, monkeypatch) == set()
        clock.now += 59 * MINUTE
        assert await self.swept(alone, monkeypatch) == set()
        clock.now += 61 * MINUTE + 5 * MINUTE
        assert await self.swept(alone, monkeypatch) == {"short"}
        assert await alone.valkey.command("ZCARD", "lb:{sweep/short}:windows") == 0
        await alone.submit("sweep/short", "eve", 1)
        assert await self.swept(alone, monkeypatch) == {"short"}
        clock.now += DAY
        assert await self.swept(alone, monkeypatch) == {"short", "long"}
        await alone.drop("sweep/long", allow_drop="all")
        assert "sweep/long" not in await announced(alone.valkey, WINDOWS)

    async def test_forgets_boards_that_do_not_exist(
        self, alone: Laurels, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
    ):
        alone.valkey.announcer.windows("sweep/never")
        assert await self.swept(alone, monkeypatch) == set()
        assert (await announced(alone.valkey, WINDOWS))["sweep/never"] == clock.now + DAY
        clock.now += DAY
        await self.swept(alone, monkeypatch)
        assert "sweep/never" not in await announced(alone.valkey, WINDOWS)


async def test_rolling_windows_turn_over_once_a_day(alone: Laurels, clock: FixedClock):
    await alone.define("survey/rolling", {"windows": [{"period": "rolling", "days": 7}]})
    await alone.define(
        "survey/zoned", {"windows": [{"period": "rolling", "days": 2}], "timezone": "Asia/Tokyo"}
    )
    turn_over, noon = alone.maintenance.turn_over, clock.now
    assert await turn_over(None, tell_nobody) == 4
    assert await turn_over(noon, tell_nobody) == 0
    clock.now += 3 * 60 * MINUTE
    assert await turn_over(noon, tell_nobody) == 2, "midnight in Tokyo"
    clock.now += DAY
    assert await turn_over(noon, tell_nobody) == 4


def test_the_board_of_a_key_is_read_from_it():
    ref, templates = BoardRef("acme", "arcade"), {"all_time": "scores:all"}
    windows = [{"period": "all_time"}]
    for definition in (
        {"windows": windows},
        {"windows": windows, "shards": 3},
        {"windows": windows, "keys": templates},
    ):
        for cluster in (False, True):
            keys = KeySpace(ref, BoardDefinition.model_validate(definition), cluster=cluster)
            for shard in range(keys.shards):
                for name in ("journal", "dead"):
                    assert board_of(keys.of_board(shard, name)) == ref
