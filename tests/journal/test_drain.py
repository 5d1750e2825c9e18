from __future__ import annotations

import asyncio
import math
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from places import fast_place, folder_that_anybody_may_pass
from sqlalchemy import text
from waiting import eventually

from laurels import Submission, embedded
from laurels.boards.keys import BoardRef
from laurels.engine import Laurels
from laurels.errors import Unavailable
from laurels.journal.drain import ATTEMPTS, ENTRIES_AT_FIRST, Drain, DrainRound
from laurels.journal.entry import StreamId
from laurels.journal.streams import Backlog
from laurels.moments import datetime_of
from laurels.valkey.streams import stream_entries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from laurels.clock import FixedClock
    from laurels.journal.entry import JournalRow
    from laurels.journal.store.rows import Stream

    NewBoard = Callable[..., Awaitable[str]]


async def rows_of(laurels: Laurels, board: str) -> list[JournalRow]:
    """All rows of a board, in the order in which they were applied."""
    project, name = board.split("/")
    stored = await laurels.store.get(project, name)
    assert stored is not None
    rows: list[JournalRow] = []
    after: tuple[StreamId, int, int] | None = None
    while some := await laurels.drain.store.rows(stored.id, after=after, limit=97):
        rows += some
        after = some[-1].stream_id, some[-1].shard, some[-1].index
    return rows


async def streams_of(laurels: Laurels, board: str) -> list[Stream]:
    return await laurels.drain.journal_streams.of_board(BoardRef.parse(board))


async def in_stream(laurels: Laurels, key: str) -> list[tuple[bytes, dict[bytes, bytes]]]:
    return stream_entries(await laurels.valkey.command("XRANGE", key, "-", "+"))


def told(row: JournalRow) -> tuple[str, bytes, float | None, str]:
    return row.kind, row.member, row.score, row.id


class TestRows:
    async def test_hold_every_field_of_a_submission(
        self, laurels: Laurels, new_board: NewBoard, clock: FixedClock
    ):
        board = await new_board(allow_op=True, groups=[["country"]])
        at = datetime_of(clock.now - 1)
        await laurels.submit(
            board,
            "ä\x00\t\\N\n",
            -0.1,
            at=at,
            groups={"country": "B\x00R\t"},
            id="ä\x00\\.",
            op="sum",
            metadata={"b": ["\x00", "\\N\t"], "a": 1.0},
        )
        await laurels.archived(board)
        (row,) = await rows_of(laurels, board)
        assert (row.kind, row.index, row.shard, row.now, row.at) == ("submit", 0, 0, clock.now, clock.now - 1)
        assert (row.member, row.id, row.op) == ("ä\x00\t\\N\n".encode(), "ä\x00\\.", "sum")
        assert row.groups == {"country": "B\x00R\t"}
        assert row.metadata == msgspec.json.encode({"b": ["\x00", "\\N\t"], "a": 1.0}).decode()

    @pytest.mark.parametrize(
        "score", [0.0, 0.1, -1e300, 5e-324, 1.7976931348623157e308, 2.0**53, math.pi, 1e16, 123456789.125]
    )
    async def test_hold_doubles_to_the_last_bit(self, laurels: Laurels, new_board: NewBoard, score: float):
        board = await new_board()
        await laurels.submit(board, "ada", score)
        await laurels.archived(board)
        (row,) = await rows_of(laurels, board)
        assert row.score is not None
        assert float(row.score).hex() == score.hex()

    async def test_hold_every_int64(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(score="int64")
        scores = [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1]
        await laurels.submit_many(board, [Submission(f"m{score}", score) for score in scores])
        await laurels.archived(board)
        assert [row.score for row in await rows_of(laurels, board)] == scores

    async def test_exist_only_for_accepted_submissions(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(limits={"max_change": 10})
        await laurels.submit(board, "ada", 1, id="one")
        again = [
            Submission("ada", 2, id="one"),
            Submission("ada", 3, id="two"),
            Submission("ada", 99, id="far"),
        ]
        result = await laurels.submit_many(board, again)
        assert result.accepted == 2  # the duplicate is no error
        await laurels.archived(board)
        assert [told(row) for row in await rows_of(laurels, board)] == [
            ("submit", b"ada", 1, "one"),
            ("submit", b"ada", 3, "two"),
        ]

    async def test_have_the_made_ids_that_clients_received(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        answers = await asyncio.gather(*(laurels.submit(board, f"m{i}", i) for i in range(5)))
        await laurels.archived(board)
        assert {row.id for row in await rows_of(laurels, board)} == {answer.id for answer in answers}

    async def test_an_id_used_again_after_valkey_forgot_it_is_a_row_again(
        self, laurels: Laurels, new_board: NewBoard
    ):
        board = await new_board()
        await laurels.submit(board, "ada", 1, id="one")
        await laurels.valkey.command("DEL", f"lb:{{{board}}}:ids:0")
        await laurels.submit(board, "ada", 2, id="one")
        await laurels.archived(board)
        assert [row.score for row in await rows_of(laurels, board)] == [1, 2]

    async def test_exist_for_removed_members(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        await laurels.submit(board, "ada", 1)
        await laurels.remove(board, "ada")
        await laurels.archived(board)
        assert [(row.kind, row.member, row.score) for row in await rows_of(laurels, board)] == [
            ("submit", b"ada", 1),
            ("remove", b"ada", None),
        ]

    async def test_of_all_shards_are_there(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(shards=3)
        await laurels.submit_many(board, [Submission(f"m{i}", i) for i in range(50)])
        await laurels.archived(board)
        rows = await rows_of(laurels, board)
        assert sorted(row.member for row in rows) == sorted(f"m{i}".encode() for i in range(50))
        assert {row.shard for row in rows} == {0, 1, 2}

    async def test_of_a_board_without_a_journal_there_are_none(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board(archive={"journal": False})
        await laurels.submit(board, "ada", 1)
        await laurels.archived(board)
        assert await rows_of(laurels, board) == []

    async def test_of_months_without_a_partition_find_one(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        await laurels.submit(board, "ada", 1)
        (stream,) = await streams_of(laurels, board)
        ((_, fields),) = await in_stream(laurels, stream.key)
        in_2071 = StreamId(3_200_000_000_000, 7)
        await laurels.valkey.command("XADD", stream.key, str(in_2071), "body", fields[b"body"], "skipped", "")
        await laurels.archived(board)
        assert [row.stream_id for row in await rows_of(laurels, board)][1] == in_2071
        async with laurels.postgres.reading() as connection:
            rows = await connection.execute(
                text("SELECT 1 FROM laurels.journal_2071_05 WHERE board_id = :board"),
                {"board": stream.board_id},
            )
            assert len(rows.all()) == 1


class TestTheStream:
    async def test_is_trimmed_when_its_entries_are_archived(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        (stream,) = await streams_of(laurels, board)
        await laurels.submit(board, "ada", 1)
        assert len(await in_stream(laurels, stream.key)) == 1
        await laurels.archived(board)
        assert await in_stream(laurels, stream.key) == []

    async def test_grows_without_bound_until_then(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        (stream,) = await streams_of(laurels, board)
        for first in range(0, 1500, 50):
            await asyncio.gather(*(laurels.submit(board, "ada", first + i) for i in range(50)))
        entries = len(await in_stream(laurels, stream.key))
        assert entries == 1500  # one member: a call each
        await laurels.archived(board)
        assert len(await rows_of(laurels, board)) == 1500

    async def test_is_not_trimmed_when_the_commit_fails(
        self, laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        board = await new_board()
        (stream,) = await streams_of(laurels, board)
        await laurels.submit(board, "ada", 1)

        async def breaks(*_: object) -> None:
            raise Unavailable("PostgreSQL went away")

        with monkeypatch.context() as patched:
            patched.setattr(laurels.drain.store, "move", breaks)
            with pytest.raises(Unavailable):
                await laurels.archived(board)
        assert len(await in_stream(laurels, stream.key)) == 1
        assert await rows_of(laurels, board) == []
        await laurels.archived(board)
        assert len(await rows_of(laurels, board)) == 1

    async def test_that_was_not_trimmed_is_not_archived_twice(
        self, laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        board = await new_board()
        (stream,) = await streams_of(laurels, board)
        await laurels.submit_many(board, [Submission(f"m{i}", i) for i in range(10)])

        async def does_not(*_: object) -> None:
            raise Unavailable("Valkey went away")

        with monkeypatch.context() as patched:
            patched.setattr(laurels.drain, "_trim", does_not)
            with pytest.raises(Unavailable):
                await laurels.archived(board)
        await laurels.submit(board, "eve", 1)
        assert len(await in_stream(laurels, stream.key)) == 2
        await laurels.archived(board)
        assert len(await rows_of(laurels, board)) == 11
        assert await in_stream(laurels, stream.key) == []

    async def test_that_restarts_under_old_ids_is_archived(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        (stream,) = await streams_of(laurels, board)
        for score in range(3):
            await laurels.submit(board, "ada", score)
        ((first, fields), *_) = before = await in_stream(laurels, stream.key)
        await laurels.archived(board)
        # As after a loss of memory with a clock behind: the id of an archived entry again, and one before it.
        old = StreamId.parse(first)
        earlier = StreamId(old.milliseconds - 5, 0)
        await laurels.valkey.command("DEL", stream.key)
        for stream_id, call, score in ((earlier, "x", 10.0), (old, "y", 11.0), (None, "z", 12.0)):
            kind, _, now, version, parts = msgspec.msgpack.decode(fields[b"body"])
            parts[0][3] = score
            body = msgspec.msgpack.encode((kind, call * 22, now, version, parts))
            name = str(stream_id) if stream_id else f"{old.milliseconds}-{old.seq + 1}"
            await laurels.valkey.command("XADD", stream.key, name, "body", body, "skipped", "")
        # And one that is archived: it comes from a copy of the memory.
        last, copied = before[-1]
        await laurels.valkey.command(
            "XADD", stream.key, last, "body", copied[b"body"], "skipped", copied[b"skipped"]
        )
        await laurels.archived(board)
        await laurels.archived(board)  # those that got new ids
        await laurels.submit(board, "ada", 13)
        await laurels.archived(board)
        assert [row.score for row in await rows_of(laurels, board)] == [0, 1, 2, 10, 11, 12, 13]
        assert await in_stream(laurels, stream.key) == []

    async def test_of_a_board_that_had_the_name_before_is_passed_by(
        self, laurels: Laurels, new_board: NewBoard
    ):
        board = await new_board()
        (stream,) = await streams_of(laurels, board)
        await laurels.submit(board, "ada", 1)
        ((_, fields),) = await in_stream(laurels, stream.key)
        await laurels.drop(board, allow_drop="all")
        await laurels.define(board)
        await laurels.valkey.command("XADD", stream.key, "*", "body", fields[b"body"], "skipped", "")
        await laurels.submit(board, "eve", 2)
        await laurels.archived(board)
        assert [row.member for row in await rows_of(laurels, board)] == [b"eve"]

    async def test_is_archived_before_the_board_changes_its_shards(
        self, laurels: Laurels, new_board: NewBoard
    ):
        board = await new_board(shards=2)
        await laurels.submit_many(board, [Submission("ada", 1), Submission("bob", 1)])
        for member in ("ada", "bob"):
            await laurels.remove(board, member)
        await laurels.define(board, {"shards": 3})
        await laurels.submit(board, "eve", 1)
        await laurels.archived(board)
        assert len(await rows_of(laurels, board)) == 5

    async def test_is_archived_when_the_board_gives_up_its_journal(
        self, laurels: Laurels, new_board: NewBoard
    ):
        board = await new_board()
        await laurels.submit(board, "ada", 1)
        await laurels.define(board, {"archive": {"journal": False}})
        await laurels.submit(board, "ada", 2)
        assert [row.score for row in await rows_of(laurels, board)] == [1]


async def test_a_round_says_whether_it_left_entries_that_were_there(laurels: Laurels, new_board: NewBoard):
    await laurels.drain.finish()  # other tests' boards
    board = await new_board()
    for number in range(ENTRIES_AT_FIRST + 1):
        await laurels.submit(board, "ada", number)
    rounds: list[DrainRound] = []
    while sum(each.rows for each in rounds) < ENTRIES_AT_FIRST + 1:
        rounds += [each for each in [await laurels.drain.run_once()] if each.rows]
    assert [(each.rows, each.is_behind) for each in rounds] == [(ENTRIES_AT_FIRST, True), (1, False)]


class TestWhatCannotBeArchived:
    @pytest.mark.parametrize(
        "body",
        [
            b"\xc1",
            msgspec.msgpack.encode(["dance", "c", 1, 2**60, []]),
            msgspec.msgpack.encode(["submit", "c", 1, 2**60, [[0, "", b"m", "score"]]]),
            # It can be read; but the op of a submission is text, which cannot hold this.
            msgspec.msgpack.encode(["submit", "c", 1, 2**60, [[0, "", b"m", 1, 1, None, "\x00", ""]]]),
        ],
    )
    async def test_goes_to_the_dead_letters_and_the_rest_is_archived(
        self, laurels: Laurels, new_board: NewBoard, body: bytes
    ):
        board = await new_board()
        (stream,) = await streams_of(laurels, board)
        await laurels.submit(board, "ada", 1)
        bad = await laurels.valkey.command("XADD", stream.key, "*", "body", body, "skipped", "")
        await laurels.submit(board, "eve", 2)
        drained = [await laurels.drain.run_once() for _ in range(ATTEMPTS)]
        assert any(each.watermark is not None for each in drained)
        assert [row.member for row in await rows_of(laurels, board)] == [b"ada"]
        await laurels.archived(board)
        assert [row.member for row in await rows_of(laurels, board)] == [b"ada", b"eve"]
        ((name, letter),) = await in_stream(laurels, stream.dead_letters)
        assert (name, letter[b"body"]) == (bad, body)
        assert letter[b"why"]
        await laurels.drain.finish()  # other tests' boards too
        backlog = await laurels.drain.journal_streams.backlog()
        assert backlog.dead_letters == 1
        assert backlog.alarms(2**60) == ["1 entries of the journal could not be archived"]
        await laurels.drop(board, allow_drop="all")
        assert (await laurels.drain.journal_streams.backlog()).dead_letters == 0

    async def test_is_buried_once_though_the_worker_dies_behind_it(
        self, laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
    ):
        board = await new_board()
        (stream,) = await streams_of(laurels, board)
        await laurels.valkey.command("XADD", stream.key, "*", "body", b"\xc1", "skipped", "")
        laurels.valkey.announcer.journal(stream.key)
        for _ in range(ATTEMPTS - 1):
            await laurels.drain.run_once()

        async def breaks(*_: object) -> None:
            raise Unavailable("PostgreSQL went away")

        with monkeypatch.context() as patched:
            patched.setattr(laurels.drain.store, "move", breaks)
            for _ in range(2):
                with pytest.raises(Unavailable):
                    await laurels.drain.run_once()
        assert len(await in_stream(laurels, stream.dead_letters)) == 1
        assert len(await in_stream(laurels, stream.key)) == 1
        await laurels.archived(board)
        assert len(await in_stream(laurels, stream.dead_letters)) == 1
        await laurels.drop(board, allow_drop="all")


class TestABoardThatIsDropped:
    async def test_leaves_no_rows_behind(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        await laurels.submit_many(board, [Submission(f"m{i}", i) for i in range(100)])
        await laurels.archived(board)
        stored = await laurels.store.get(*board.split("/"))
        assert stored is not None
        await laurels.drop(board, allow_drop="all")
        assert stored.id in await laurels.drain.store.dropped()
        await laurels.drain.add_partitions()
        assert stored.id not in await laurels.drain.store.dropped()
        assert await laurels.drain.store.rows(stored.id) == []

    async def test_does_not_mix_with_one_of_the_same_name(self, laurels: Laurels, new_board: NewBoard):
        board = await new_board()
        await laurels.submit(board, "ada", 1)
        await laurels.archived(board)
        await laurels.drop(board, allow_drop="all")
        await laurels.define(board)
        await laurels.submit(board, "eve", 1)
        await laurels.archived(board)
        await laurels.drain.add_partitions()
        assert [row.member for row in await rows_of(laurels, board)] == [b"eve"]


class TestTheBacklog:
    async def test_has_the_size_and_age_of_the_unarchived_entries(
        self, laurels: Laurels, new_board: NewBoard
    ):
        await laurels.journal_drained()
        assert (await laurels.drain.journal_streams.backlog()).calls == 0
        board = await new_board()
        await laurels.submit(board, "ada", 1)
        await laurels.submit(board, "ada", 2)
        backlog = await laurels.drain.journal_streams.backlog()
        assert backlog.calls == 2
        assert backlog.bytes > 0
        assert 0 <= backlog.age_seconds < 60
        (stream,) = await streams_of(laurels, board)
        oldest = StreamId.parse((await in_stream(laurels, stream.key))[0][0])
        assert backlog.oldest == oldest.milliseconds * 1000
        await laurels.journal_drained()
        assert (await laurels.drain.journal_streams.backlog()).age_seconds == 0

    def test_alarms_when_it_is_old_or_large(self):
        assert Backlog(calls=3, bytes=100, age_seconds=60).alarms(100) == []
        old, large = Backlog(calls=3, bytes=3 * 2**20, age_seconds=61).alarms(2**20)
        assert old == "the journal is 61 s behind (3 calls)"
        assert large == "3 MiB of Valkey's memory wait to be archived"


class TestSeveralAtOnce:
    @pytest.mark.parametrize("seed", range(3))
    async def test_leave_each_submission_once_and_in_order(
        self, laurels: Laurels, new_board: NewBoard, seed: int
    ):
        chosen = random.Random(seed)  # noqa: S311  # data, not secrets
        aggregate = chosen.choice(["best", "last", "first", "sum"])
        board = await new_board(aggregate=aggregate, allow_op=True, shards=chosen.choice([1, 3]))
        accepted = 0

        async def submit(number: int) -> None:
            nonlocal accepted
            own = random.Random(f"{seed} {number}")  # noqa: S311  # as above
            for turn in range(25):
                members = [f"m{own.randrange(12)}" for _ in range(own.randrange(1, 9))]
                what = own.random()
                if what < 0.1:
                    accepted += await laurels.remove(board, members[0])
                elif what < 0.5:
                    op = own.choice([None, "best", "last", "first", "sum"])
                    await laurels.submit(board, members[0], own.randrange(100), op=op)
                    accepted += 1
                else:
                    batch = [Submission(member, own.randrange(100)) for member in members]
                    batch.append(Submission(members[0], 5, id=f"{number}.{turn // 2}"))
                    accepted += (await laurels.submit_many(board, batch)).accepted

        stores = laurels.valkey, laurels.postgres, laurels.store
        drains = [Drain(*stores, laurels.feeds, laurels.clock) for _ in range(2)]
        stop = asyncio.Event()

        async def drain(one: Drain) -> None:
            while not stop.is_set():
                await one.run_once()

        draining = [asyncio.create_task(drain(one)) for one in drains]
        await asyncio.gather(*(submit(number) for number in range(4)))
        stop.set()
        await asyncio.gather(*draining)
        await laurels.archived(board)
        rows = await rows_of(laurels, board)
        assert len({(row.stream_id, row.shard, row.index) for row in rows}) == len(rows)
        page = await laurels.page(board, limit=1000)
        assert {entry.member: entry.score for entry in page.entries} == folded(rows, aggregate)


def folded(rows: list[JournalRow], aggregate: str) -> dict[str, float]:
    """The entries that the rows leave in an empty window."""
    entries: dict[str, Any] = {}
    for row in rows:
        member, op = row.member.decode(), row.op or aggregate
        if row.kind == "remove":
            entries.pop(member, None)
        elif member not in entries or op == "last":
            entries[member] = row.score
        elif op == "best":
            entries[member] = max(entries[member], row.score)
        elif op == "sum":
            entries[member] += row.score
    return entries


@pytest.fixture
def own_servers() -> Generator[embedded.EmbeddedServers]:
    """Servers that the test may stop."""
    with folder_that_anybody_may_pass(fast_place()) as folder, embedded.start(folder / "data") as servers:
        yield servers


async def test_nothing_is_lost_while_postgresql_is_down(own_servers: embedded.EmbeddedServers):
    urls = own_servers.endpoints
    async with Laurels(valkey_url=urls.valkey_url, postgres_url=urls.postgres_url) as laurels:
        await laurels.define("acme/score")
        await laurels.submit("acme/score", "ada", 0)
        stop = asyncio.Event()
        refused = 0

        async def drain() -> None:
            nonlocal refused
            while not stop.is_set():
                try:
                    await laurels.drain.run_once()
                except Unavailable:
                    refused += 1
                await asyncio.sleep(0)

        def kill_postgres() -> bool:
            postgres = own_servers.pids.get("postgres")
            if postgres:
                os.kill(postgres, signal.SIGKILL)
            return postgres is not None

        draining = asyncio.create_task(drain())
        submitted = 1
        for _ in range(3):
            before = refused
            await eventually(kill_postgres)
            while refused == before:
                await laurels.submit("acme/score", f"m{submitted}", submitted)
                submitted += 1
        stop.set()
        await draining
        while True:
            try:
                await laurels.archived("acme/score")
                break
            except Unavailable:
                await asyncio.sleep(0)
        assert len(await rows_of(laurels, "acme/score")) == submitted


async def test_a_worker_killed_a_hundred_times_before_it_trims_archives_nothing_twice(
    laurels: Laurels, new_board: NewBoard
):
    await laurels.journal_drained()
    board = await new_board()
    settings = laurels.settings
    assert settings.valkey_url is not None
    assert settings.postgres_url is not None
    program = Path(__file__).with_name("drain_and_die.py")
    accepted = 0
    worker = subprocess.Popen(  # noqa: ASYNC220  # it answers line by line
        [sys.executable, program, settings.valkey_url, settings.postgres_url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    with worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        turns = 10 if laurels.valkey.is_cluster else 100
        for turn in range(turns):
            batch = [Submission(f"m{number}", turn) for number in range(turn % 7 + 1)]
            accepted += (await laurels.submit_many(board, batch)).accepted
            worker.stdin.write("\n")
            assert await asyncio.to_thread(worker.stdout.readline) == f"{signal.SIGKILL:d}\n"
            assert len(await rows_of(laurels, board)) == accepted
        worker.stdin.close()
    (stream,) = await streams_of(laurels, board)
    assert len(await in_stream(laurels, stream.key)) == turns
    await laurels.archived(board)
    assert len(await rows_of(laurels, board)) == accepted
    assert await in_stream(laurels, stream.key) == []
