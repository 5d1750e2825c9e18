"""A fed board counts every submission of its feeder exactly once, whatever happens between the two calls."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from topologies import on_node

from laurels.errors import OutcomeUnknown, Unavailable
from laurels.moments import datetime_of
from laurels.scores.submission import Submission
from laurels.valkey import functions
from laurels.valkey.streams import stream_entries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from laurels.clock import FixedClock
    from laurels.engine import Laurels
    from laurels.valkey import messages

    NewBoard = Callable[..., Awaitable[str]]


async def scores(laurels: Laurels, board: str, **where: Any) -> dict[str, float]:  # noqa: ANN401  # keyword arguments
    return {entry.member: entry.score for entry in (await laurels.page(board, **where)).entries}


@contextmanager
def out_of_reach(monkeypatch: pytest.MonkeyPatch, board: str) -> Generator[None]:
    """Makes calls to this board fail."""
    submit = functions.submit

    async def breaking(valkey: Any, keys: Any, *words: Any) -> messages.SubmitReply:  # noqa: ANN401  # passed on
        if f"{{{board}" in keys[0]:
            raise OutcomeUnknown("the connection broke")
        return await submit(valkey, keys, *words)

    with monkeypatch.context() as patched:
        patched.setattr(functions, "submit", breaking)
        yield


async def marks(laurels: Laurels, board: str) -> int:
    return await laurels.valkey.command("SCARD", f"lb:{{{board}}}:fed")


async def forget_calls(laurels: Laurels, board: str) -> None:
    """Deletes the calls that the board remembers, as if hours had passed."""
    for name in ("ids", "calls"):
        for number in range(3):
            await laurels.valkey.command("DEL", f"lb:{{{board}}}:{name}:{number}")


class TestTheJournal:
    async def test_completes_what_a_killed_process_had_not_carried_over(
        self, laurels: Laurels, new_board: NewBoard
    ):
        total = await new_board(aggregate="sum")
        game = await new_board(feeds=[total], aggregate="sum")
        settings = laurels.settings
        program = Path(__file__).with_name("feed_and_die.py")
        words = [str(settings.valkey_url), str(settings.postgres_url), game]
        killed = await asyncio.to_thread(subprocess.run, [sys.executable, program, *words], check=False)
        assert killed.returncode == -signal.SIGKILL
        everyone = {f"m{number}": 1 for number in range(20)}
        assert (await scores(laurels, game), await scores(laurels, total)) == (everyone, {})
        for _ in range(2):
            await laurels.archived(game)
        assert await scores(laurels, total) == everyone

    @pytest.mark.parametrize(("of_game", "of_total"), [(1, 1), (3, 1), (1, 3), (3, 2)])
    async def test_completes_boards_with_shards(
        self,
        laurels: Laurels,
        new_board: NewBoard,
        monkeypatch: pytest.MonkeyPatch,
        of_game: int,
        of_total: int,
    ):
        total = await new_board(aggregate="sum", shards=of_total)
        game = await new_board(feeds=[total], aggregate="sum", shards=of_game)
        batch = [Submission(f"m{number}", 1) for number in range(20)]
        await laurels.submit_many(game, batch)
        with out_of_reach(monkeypatch, total), pytest.raises(OutcomeUnknown):
            await laurels.submit_many(game, batch)
        await laurels.submit_many(game, batch)
        await laurels.archived(game)
        assert await scores(laurels, game) == await scores(laurels, total) == {f"m{n}": 3 for n in range(20)}

    async def test_carries_groups_metadata_op_and_moment_over_however_late(
        self,
        laurels: Laurels,
        new_board: NewBoard,
        monkeypatch: pytest.MonkeyPatch,
        clock: FixedClock,
    ):
        definition = {"groups": [["country"]], "windows": [{"period": "daily", "keep": 30}], "allow_op": True}
        total = await new_board(**definition, lateness="PT1H")
        game = await new_board(**definition, lateness="PT1H", feeds=[total])
        at = datetime_of(clock.now) - timedelta(minutes=59)
        given: dict[str, Any] = {"groups": {"country": "BR"}, "metadata": {"level": 3}, "op": "sum", "at": at}
        with out_of_reach(monkeypatch, total):
            for _ in range(2):
                with pytest.raises(OutcomeUnknown):
                    await laurels.submit(game, "ada", 2.5, **given)
        clock.advance(timedelta(days=3))
        await laurels.archived(game)
        for board in (game, total):
            page = await laurels.page(board, period="daily", slot="2025-10-24", group="country=BR")
            assert [(entry.member, entry.score, entry.metadata) for entry in page.entries] == [
                ("ada", 5, {"level": 3})
            ]

    async def test_is_not_needed_by_boards_that_feed_none(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        await laurels.submit(board, "ada", 1)
        ((_, fields),) = stream_entries(
            await laurels.valkey.command("XRANGE", f"lb:{{{board}}}:journal", "-", "+")
        )
        assert len(msgspec.msgpack.decode(fields[b"body"])) == 5


class TestExactlyOnce:
    async def test_a_counted_call_is_not_completed_again_after_it_was_forgotten(
        self, laurels: Laurels, new_board: NewBoard
    ):
        total = await new_board(aggregate="sum")
        game = await new_board(feeds=[total], aggregate="sum")
        await laurels.submit(game, "ada", 5)
        await laurels.submit(game, "ada", 5, id="one")
        await forget_calls(laurels, total)
        await laurels.archived(game)
        assert await scores(laurels, total) == {"ada": 10}

    @pytest.mark.parametrize("given", [None, "match-1"])
    async def test_a_retry_counts_once_before_the_completion_and_after_it(
        self, laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch, given: str | None
    ):
        total = await new_board(aggregate="sum")
        game = await new_board(feeds=[total], aggregate="sum", shards=2)
        for is_archived in (False, True):
            with out_of_reach(monkeypatch, total), pytest.raises(OutcomeUnknown) as unknown:
                await laurels.submit(game, "ada", 5, id=given and f"{given}-{is_archived}")
            if is_archived:
                await laurels.archived(game)
            for _ in range(2):
                await laurels.submit(game, "ada", 5, id=unknown.value.retry_with)
            await laurels.archived(game)
        assert await scores(laurels, game) == await scores(laurels, total) == {"ada": 10}

    async def test_a_call_that_arrives_after_its_completion_counts_once(
        self, laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        total = await new_board(aggregate="sum")
        game = await new_board(feeds=[total], aggregate="sum")
        submit, is_slow = functions.submit, True

        async def slow(valkey: Any, keys: Any, *words: Any) -> messages.SubmitReply:  # noqa: ANN401  # passed on
            nonlocal is_slow
            if f"{{{total}}}" in keys[0] and is_slow:
                is_slow = False
                await laurels.archived(game)
            return await submit(valkey, keys, *words)

        monkeypatch.setattr(functions, "submit", slow)
        await laurels.submit(game, "ada", 5)
        await laurels.archived(game)
        assert await scores(laurels, total) == {"ada": 5}

    async def test_a_drain_that_stops_before_it_commits_completes_nothing_twice(
        self, laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        total = await new_board(aggregate="sum")
        game = await new_board(feeds=[total], aggregate="sum")
        with out_of_reach(monkeypatch, total), pytest.raises(OutcomeUnknown):
            await laurels.submit(game, "ada", 5)

        async def breaks(*_: object) -> None:
            raise Unavailable("PostgreSQL went away")

        with monkeypatch.context() as patched:
            patched.setattr(laurels.drain.store, "move", breaks)
            with pytest.raises(Unavailable):
                await laurels.archived(game)
        assert await scores(laurels, total) == {"ada": 5}
        await forget_calls(laurels, total)
        await laurels.archived(game)
        assert await scores(laurels, total) == {"ada": 5}

    async def test_calls_that_are_archived_are_forgotten_though_the_drain_stops_behind_it(
        self, laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        total = await new_board(aggregate="sum")
        game = await new_board(feeds=[total])

        async def breaks(*_: object) -> None:
            raise Unavailable("Valkey went away")

        with monkeypatch.context() as patched:
            patched.setattr(laurels.feeds, "forget", breaks)
            await laurels.submit(game, "ada", 5)
            await laurels.drain.run_once()
        assert await marks(laurels, total) == 1
        await laurels.archived(game)
        assert await marks(laurels, total) == 0
        assert await scores(laurels, total) == {"ada": 5}


class TestAFedBoard:
    async def test_that_is_out_of_reach_delays_only_its_feeders(
        self, laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        total, fine = await new_board(aggregate="sum"), await new_board(aggregate="sum")
        game, other = await new_board(feeds=[total, fine], aggregate="sum"), await new_board()
        await laurels.submit(game, "ada", 1)
        with out_of_reach(monkeypatch, total):
            with pytest.raises(OutcomeUnknown):
                await laurels.submit(game, "ada", 5)
            await laurels.submit(other, "ada", 5)
            for _ in range(2):
                await laurels.drain.run_once()
            await laurels.archived(other)
            with pytest.raises(Unavailable):
                await laurels.archived(game)
            assert await scores(laurels, fine) == {"ada": 6}
        await laurels.archived(game)
        assert await scores(laurels, total) == await scores(laurels, fine) == {"ada": 6}
        assert (await marks(laurels, total), await marks(laurels, fine)) == (0, 0)

    async def test_that_was_dropped_and_defined_again_gets_no_older_submissions(
        self, laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        total = await new_board(aggregate="sum")
        game = await new_board(feeds=[total])
        with out_of_reach(monkeypatch, total), pytest.raises(OutcomeUnknown):
            await laurels.submit(game, "ada", 5)
        await laurels.define(game, {})
        await laurels.drop(total, allow_drop="all")
        await laurels.define(total, {"aggregate": "sum"})
        await laurels.archived(game)
        assert await scores(laurels, total) == {}

    async def test_that_is_dropped_does_not_hold_its_feeder_back(
        self, laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        total = await new_board(aggregate="sum")
        game = await new_board(feeds=[total])
        with out_of_reach(monkeypatch, total), pytest.raises(OutcomeUnknown):
            await laurels.submit(game, "ada", 5)
        await laurels.define(game, {})
        await laurels.drop(total, allow_drop="all")
        await laurels.archived(game)

    async def test_that_was_redefined_takes_what_its_definition_allows(
        self, laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        total = await new_board(aggregate="sum", groups=[["country"]])
        game = await new_board(feeds=[total], groups=[["country"]])
        with out_of_reach(monkeypatch, total):
            for member, score in (("ada", 5), ("eve", 50)):
                with pytest.raises(OutcomeUnknown):
                    await laurels.submit(game, member, score, groups={"country": "BR"})
        await laurels.define(total, {"aggregate": "sum", "limits": {"max": 10}})
        await laurels.archived(game)
        assert await scores(laurels, total) == {"ada": 5}

    @on_node
    async def test_of_a_feeder_without_a_journal_keeps_no_marks(self, laurels: Laurels, new_board: NewBoard):
        total = await new_board(aggregate="sum")
        game = await new_board(feeds=[total], archive={"journal": False})
        await laurels.submit(game, "ada", 5)
        assert await marks(laurels, total) == 0
        assert await scores(laurels, total) == {"ada": 5}
