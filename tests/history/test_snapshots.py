from __future__ import annotations

import asyncio
import random
import signal
import sys
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from oracle import Oracle, Scored, group_text
from topologies import on_node

from laurels.boards.definition import BoardDefinition, Window
from laurels.boards.timezones import zone
from laurels.boards.windows import Calendar
from laurels.errors import Drop, DropNotAllowed, InvalidInput, NotFound
from laurels.history import snapshots as taking
from laurels.history.store.snapshots import SnapshotStore
from laurels.jobs.agenda import AGENDA
from laurels.jobs.runner import Runner
from laurels.moments import datetime_of, moment_of
from laurels.scores.submission import Submission

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from oracle import Groups, Stand

    from laurels.boards.board import Board
    from laurels.boards.windows import Slot
    from laurels.clock import FixedClock
    from laurels.engine import Laurels
    from laurels.history.records import SnapshotInfo, SnapshotPage
    from laurels.history.store.snapshots import SnapshotRow
    from laurels.moments import Moment
    from laurels.valkey.messages import EntryReply

_numbers = count(1)

SNAPSHOTS = [job for job in AGENDA if job.name == "snapshots"]
DRIVER = Path(__file__).parent / "snapshot_and_die.py"

Lines = list[tuple[int, str, float]]


async def define(laurels: Laurels, **definition: object) -> str:
    board = f"snapshots/board-{next(_numbers)}"
    await laurels.define(board, definition)
    return board


async def listed(laurels: Laurels, board: str, group: str | None = None) -> list[SnapshotInfo]:
    return (await laurels.snapshots(board, limit=1000, group=group)).snapshots


async def whole(laurels: Laurels, board: str, snapshot: SnapshotInfo) -> list[SnapshotPage]:
    pages = [await laurels.snapshot(board, snapshot.id, limit=400)]
    while pages[-1].next:
        pages.append(await laurels.snapshot(board, snapshot.id, limit=400, cursor=pages[-1].next))
    return pages


async def lines(laurels: Laurels, board: str, snapshot: SnapshotInfo) -> Lines:
    pages = await whole(laurels, board, snapshot)
    return [(entry.rank, entry.member, entry.score) for page in pages for entry in page.entries]


def ranked(stands: list[Stand]) -> Lines:
    return [(stand.rank, stand.entry.member, stand.entry.score) for stand in stands]


async def scored(laurels: Laurels, board: str, *scores: tuple[str, float]) -> None:
    await laurels.submit_many(board, [Submission(member, score) for member, score in scores])


class TestASnapshotIsTaken:
    async def test_as_deep_as_the_deepest_that_is_asked_for(self, alone: Laurels, clock: FixedClock):
        policies = [{"period": "daily", "top": top} for top in (1, 3, 2)]
        board = await define(alone, windows=[{"period": "daily"}], archive={"snapshot": policies})
        for score in range(5):
            await alone.submit(board, f"m{score}", score)
        clock.advance(timedelta(days=1))
        await alone.snapshot_taker.take_due(None)
        (snapshot,) = await listed(alone, board)
        assert (snapshot.total, snapshot.kept) == (5, 3)

    async def test_at_the_end_of_its_window(self, alone: Laurels, clock: FixedClock):
        board = await define(
            alone, windows=[{"period": "daily"}], archive={"snapshot": [{"period": "daily"}]}
        )
        await scored(alone, board, ("ada", 3), ("bob", 2))
        assert (await alone.snapshot_taker.take_due(None)).snapshots == 0
        clock.advance(timedelta(hours=12))
        await alone.snapshot_taker.take_due(None)
        (snapshot,) = await listed(alone, board)
        assert (snapshot.period, snapshot.slot) == ("daily", "2025-10-24")
        assert (snapshot.total, snapshot.kept) == (2, 2)
        assert snapshot.taken_for == datetime(2025, 10, 25, tzinfo=UTC)
        assert await lines(alone, board, snapshot) == [(1, "ada", 3), (2, "bob", 2)]

    async def test_again_when_nothing_late_can_come_any_more(self, alone: Laurels, clock: FixedClock):
        board = await define(
            alone,
            windows=[{"period": "daily", "keep": 1}],
            lateness="PT6H",
            archive={"snapshot": [{"period": "daily"}]},
        )
        await scored(alone, board, ("ada", 3))
        clock.advance(timedelta(hours=12))
        await alone.snapshot_taker.take_due(None)
        first = await listed(alone, board)
        await alone.submit(board, "bob", 5, at=datetime(2025, 10, 24, 23, tzinfo=UTC))
        clock.advance(timedelta(hours=5))
        assert (await alone.snapshot_taker.take_due(None)).snapshots == 0
        clock.advance(timedelta(hours=1))
        assert (await alone.snapshot_taker.take_due(None)).snapshots == 1
        (final,) = await listed(alone, board)
        assert final.id == first[0].id
        assert await lines(alone, board, final) == [(1, "bob", 5), (2, "ada", 3)]
        assert (await alone.snapshot_taker.take_due(None)).snapshots == 0

    async def test_every_day_of_a_window_that_never_ends(self, alone: Laurels, clock: FixedClock):
        board = await define(alone, archive={"snapshot": [{"period": "all_time", "every": "day"}]})
        await scored(alone, board, ("ada", 1))
        previous = clock()
        for day in range(1, 4):
            clock.advance(timedelta(days=1))
            await scored(alone, board, ("ada", day + 1))
            await alone.snapshot_taker.take_due(previous)
            previous = clock()
        found = await listed(alone, board)
        assert [snapshot.taken_for.day for snapshot in found] == [27, 26, 25]
        assert [await lines(alone, board, each) for each in found] == [
            [(1, "ada", 4)], [(1, "ada", 3)], [(1, "ada", 2)]
        ]  # fmt: skip

    async def test_of_a_running_window_only_for_the_last_midnight_that_was_missed(
        self, alone: Laurels, clock: FixedClock
    ):
        board = await define(alone, archive={"snapshot": [{"period": "all_time", "every": "day"}]})
        await scored(alone, board, ("ada", 1))
        previous = clock()
        clock.advance(timedelta(days=5))
        await alone.snapshot_taker.take_due(previous)
        assert [snapshot.taken_for.day for snapshot in await listed(alone, board)] == [29]

    async def test_of_every_window_that_ended_while_all_workers_were_away(
        self, alone: Laurels, clock: FixedClock
    ):
        board = await define(
            alone,
            windows=[{"period": "daily", "keep": 1}],
            archive={"snapshot": [{"period": "daily"}]},
        )
        previous = clock()
        for day in range(3):
            await scored(alone, board, ("ada", day))
            clock.advance(timedelta(days=1))
        await alone.snapshot_taker.take_due(previous)
        found = await listed(alone, board)
        assert [snapshot.slot for snapshot in found] == ["2025-10-26", "2025-10-25", "2025-10-24"]
        assert [await lines(alone, board, each) for each in found] == [
            [(1, "ada", 2)], [(1, "ada", 1)], [(1, "ada", 0)]
        ]  # fmt: skip

    async def test_of_the_whole_board_and_of_each_group(self, alone: Laurels, clock: FixedClock):
        board = await define(
            alone,
            windows=[{"period": "daily"}],
            groups=[["country"]],
            archive={"snapshot": [{"period": "daily"}]},
        )
        await alone.submit(board, "ada", 3, groups={"country": "GB"})
        await alone.submit(board, "bob", 2, groups={"country": "BR"})
        clock.advance(timedelta(days=1))
        await alone.snapshot_taker.take_due(None)
        found = await listed(alone, board)
        assert sorted(snapshot.group for snapshot in found) == ["", "country=BR", "country=GB"]
        (brazil,) = await listed(alone, board, group="country=BR")
        assert await lines(alone, board, brazil) == [(1, "bob", 2)]

    async def test_not_of_windows_that_no_policy_names(self, alone: Laurels, clock: FixedClock):
        board = await define(
            alone,
            windows=[{"period": "daily"}, {"period": "hourly"}],
            archive={"snapshot": [{"period": "daily"}]},
        )
        await scored(alone, board, ("ada", 3))
        clock.advance(timedelta(days=1))
        await alone.snapshot_taker.take_due(None)
        assert {snapshot.period for snapshot in await listed(alone, board)} == {"daily"}


class TestASnapshotHolds:
    @pytest.mark.parametrize("top", [2, 1500])
    async def test_the_top_alone_and_how_many_there_were(self, alone: Laurels, clock: FixedClock, top: int):
        board = await define(
            alone,
            windows=[{"period": "weekly"}],
            archive={"snapshot": [{"period": "weekly", "top": top}]},
        )
        await scored(alone, board, *((f"m{i}", i) for i in range(1600)))
        clock.advance(timedelta(days=7))
        await alone.snapshot_taker.take_due(None)
        (snapshot,) = await listed(alone, board)
        assert (snapshot.total, snapshot.kept) == (1600, top)
        assert await lines(alone, board, snapshot) == [(i + 1, f"m{1599 - i}", 1599 - i) for i in range(top)]

    @pytest.mark.parametrize("order", ["desc", "asc"])
    @pytest.mark.parametrize("ties", ["shared", "earliest", "member"])
    @pytest.mark.parametrize("shards", [1, 3])
    async def test_ranks_as_the_live_window_had_them(
        self, alone: Laurels, clock: FixedClock, order: str, ties: str, shards: int
    ):
        board = await define(
            alone,
            windows=[{"period": "daily"}],
            order=order,
            ties=ties,
            shards=shards,
            archive={"snapshot": [{"period": "daily"}]},
        )
        for number in range(40):
            clock.advance(timedelta(seconds=1))
            await alone.submit(board, f"m{number * 7 % 40}", number % 5, metadata={"n": number})
        live = await alone.page(board, limit=1000)
        clock.advance(timedelta(days=1))
        await alone.snapshot_taker.take_due(None)
        (snapshot,) = await listed(alone, board)
        (page,) = await whole(alone, board, snapshot)
        assert page.entries == live.entries

    async def test_int64_scores_and_any_member_exactly(self, alone: Laurels, clock: FixedClock):
        board = await define(
            alone,
            score="int64",
            windows=[{"period": "daily"}],
            archive={"snapshot": [{"period": "daily"}]},
        )
        scores = {"\0": 2**63 - 1, "\t\\N\n": 2**63 - 2, "é": -(2**63)}
        await scored(alone, board, *scores.items())
        clock.advance(timedelta(days=1))
        await alone.snapshot_taker.take_due(None)
        (snapshot,) = await listed(alone, board)
        assert await lines(alone, board, snapshot) == [
            (rank, member, score) for rank, (member, score) in enumerate(scores.items(), 1)
        ]

    @pytest.mark.parametrize("score", [0.1, 1e300, -5e-324, 1 / 3, 2**53, -0.0])
    async def test_doubles_to_the_last_bit(self, alone: Laurels, clock: FixedClock, score: float):
        board = await define(
            alone, windows=[{"period": "daily"}], archive={"snapshot": [{"period": "daily"}]}
        )
        await scored(alone, board, ("ada", score))
        clock.advance(timedelta(days=1))
        await alone.snapshot_taker.take_due(None)
        (snapshot,) = await listed(alone, board)
        assert await lines(alone, board, snapshot) == [(1, "ada", score)]

    async def test_everybody_once_though_scores_change_while_it_is_taken(
        self, alone: Laurels, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
    ):
        board = await define(alone, archive={"snapshot": [{"period": "all_time", "every": "day"}]})
        members = [f"m{i}" for i in range(3000)]
        await scored(alone, board, *((member, 0) for member in members))
        previous = clock()
        clock.advance(timedelta(days=1))
        changing = asyncio.Event()

        chance = random.Random(1)  # noqa: S311  # data, not secrets

        async def rows(
            compiled: Board, found: AsyncIterator[list[EntryReply]]
        ) -> AsyncIterator[Sequence[SnapshotRow]]:
            async for some in taken(compiled, found):
                yield some
                changing.set()
                await scored(alone, board, *((member, chance.randint(1, 10**6)) for member in members[::3]))

        taken = taking._rows  # pyright: ignore[reportPrivateUsage]  # to be slowed down
        monkeypatch.setattr(taking, "_rows", rows)
        await alone.snapshot_taker.take_due(previous)
        assert changing.is_set()
        (snapshot,) = await listed(alone, board)
        found = await lines(alone, board, snapshot)
        assert sorted(member for _, member, _ in found) == sorted(members)
        scores = [score for _, _, score in found]
        assert scores == sorted(scores, reverse=True)
        assert [rank for rank, _, _ in found] == [1 + scores.index(score) for score in scores]


class TestTakingItAgain:
    async def test_gives_the_same_rows_after_a_worker_was_killed_in_the_middle(
        self, alone: Laurels, clock: FixedClock, migrated_postgres_url: str
    ):
        board = await define(
            alone, windows=[{"period": "daily"}], archive={"snapshot": [{"period": "daily"}]}
        )
        await scored(alone, board, *((f"m{i}", i % 97) for i in range(2500)))
        live = await alone.page(board, limit=1000)
        clock.advance(timedelta(days=1))
        settings = alone.settings
        for chunks in (1, 3):
            worker = await asyncio.create_subprocess_exec(
                sys.executable,
                str(DRIVER),
                str(settings.valkey_url),
                migrated_postgres_url,
                str(clock()),
                str(chunks),
            )
            assert await worker.wait() == -signal.SIGKILL
            assert await listed(alone, board) == []
        await alone.snapshot_taker.take_due(None)
        (snapshot,) = await listed(alone, board)
        found = await lines(alone, board, snapshot)
        assert len(found) == 2500
        assert found[:1000] == [(entry.rank, entry.member, entry.score) for entry in live.entries]

    async def test_leaves_the_one_before_when_it_fails(
        self, alone: Laurels, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
    ):
        board = await define(
            alone,
            windows=[{"period": "daily"}],
            lateness="PT1H",
            archive={"snapshot": [{"period": "daily"}]},
        )
        await scored(alone, board, ("ada", 3))
        clock.advance(timedelta(hours=12))
        await alone.snapshot_taker.take_due(None)
        clock.advance(timedelta(hours=1))

        async def broken(*_: object) -> AsyncIterator[Sequence[SnapshotRow]]:
            yield []
            raise NotImplementedError

        with monkeypatch.context() as patched:
            patched.setattr(taking, "_rows", broken)
            with pytest.raises(NotImplementedError):
                await alone.snapshot_taker.take_due(None)
        (snapshot,) = await listed(alone, board)
        assert await lines(alone, board, snapshot) == [(1, "ada", 3)]


class TestADefinition:
    def test_names_windows_that_the_board_has(self):
        with pytest.raises(ValueError, match=r"snapshot\[0\].period: the board has no window 'daily'"):
            BoardDefinition.model_validate({"archive": {"snapshot": [{"period": "daily"}]}})

    def test_says_how_often_where_a_window_never_ends(self):
        with pytest.raises(ValueError, match=r"archive.snapshot\[0\].every: an all_time window never ends"):
            BoardDefinition.model_validate({"archive": {"snapshot": [{"period": "all_time"}]}})


class TestLists:
    async def test_are_paged_newest_first_and_filtered(self, alone: Laurels, clock: FixedClock):
        board = await define(
            alone,
            windows=[{"period": "daily"}, {"period": "hourly"}],
            archive={"snapshot": [{"period": "daily"}, {"period": "hourly"}]},
        )
        for _ in range(5):
            await scored(alone, board, ("ada", 3))
            clock.advance(timedelta(days=1))
        await alone.snapshot_taker.take_due(None)
        everything = await listed(alone, board)
        assert len(everything) == 10
        assert [each.taken_for for each in everything] == sorted(
            (each.taken_for for each in everything), reverse=True
        )
        found: list[SnapshotInfo] = []
        page = await alone.snapshots(board, period="daily", limit=2)
        found += page.snapshots
        while page.next:
            page = await alone.snapshots(board, period="daily", limit=2, cursor=page.next)
            found += page.snapshots
        assert found == [each for each in everything if each.period == "daily"]
        more = (await alone.snapshots(board, period="daily", limit=2)).next
        with pytest.raises(InvalidInput, match="cursor"):
            await alone.snapshots(board, period="hourly", cursor=more)

    async def test_of_one_board_show_nothing_of_another(self, alone: Laurels, clock: FixedClock):
        policy = {"windows": [{"period": "daily"}], "archive": {"snapshot": [{"period": "daily"}]}}
        one, other = await define(alone, **policy), await define(alone, **policy)
        await scored(alone, one, ("ada", 3))
        clock.advance(timedelta(days=1))
        await alone.snapshot_taker.take_due(None)
        (snapshot,) = await listed(alone, one)
        with pytest.raises(NotFound, match="there is no snapshot"):
            await alone.snapshot(other, snapshot.id)
        with pytest.raises(NotFound, match="there is no snapshot"):
            await alone.snapshot(one, "nonsense")

    async def test_are_counted_where_a_definition_would_hide_them(self, alone: Laurels, clock: FixedClock):
        daily, weekly = {"period": "daily", "keep": 1}, {"period": "weekly"}
        both = [["country"], ["region", "city"]]
        policy = {"snapshot": [{"period": "daily"}, {"period": "weekly"}]}
        board = await define(alone, windows=[daily, weekly], groups=both, archive=policy)
        groups = {"country": "B,R", "region": "asia", "city": "to=kyo"}
        assert (await alone.submit(board, "ada", 3, groups=groups)).applied
        clock.advance(timedelta(days=1))
        await alone.snapshot_taker.take_due(None)  # of the day: whole, and of each group
        assert await alone.remove(board, "ada")
        without: dict[str, Any] = {"windows": [weekly], "groups": both}
        assert (await alone.preview(board, without)).drops == (Drop("daily", 0, 3),)
        fewer: dict[str, Any] = {"windows": [daily, weekly], "groups": [["country"]]}
        with pytest.raises(DropNotAllowed) as refused:
            await alone.define(board, fewer)
        assert refused.value.drops == (Drop("daily", 0, 1),)
        no_policy: dict[str, Any] = {"windows": [daily, weekly], "groups": both}
        assert (await alone.preview(board, no_policy)).drops == ()
        # They stay in the archive, and are found again.
        await alone.define(board, without, allow_drop="daily")
        assert len(await listed(alone, board)) == 3
        await alone.define(board, no_policy)
        assert (await alone.page(board, period="daily", slot="2025-10-24")).total == 1
        with pytest.raises(DropNotAllowed) as refused:
            await alone.drop(board)
        assert refused.value.drops == (Drop("daily", 0, 3),)

    async def test_of_a_dropped_board_are_gone_and_swept(self, alone: Laurels, clock: FixedClock):
        policy = {"windows": [{"period": "daily"}], "archive": {"snapshot": [{"period": "daily"}]}}
        board = await define(alone, **policy)
        await scored(alone, board, ("ada", 3), ("bob", 2))
        clock.advance(timedelta(days=1))
        await alone.snapshot_taker.take_due(None)
        stored = await alone.store.get(*board.split("/"))
        assert stored is not None
        await alone.drop(board, allow_drop="all")
        await alone.define(board, policy)
        assert await listed(alone, board) == []
        store = SnapshotStore(alone.postgres)
        assert len(await store.listed(stored.id, 10)) == 1
        while await store.sweep():
            pass
        assert await store.listed(stored.id, 10) == []


ZONES = {"berlin": "Europe/Berlin", "cairo": "Africa/Cairo", "york": "America/New_York"}


@on_node
@pytest.mark.parametrize("seed", [1])
async def test_two_workers_take_each_snapshot_once_over_forty_days(
    alone: Laurels, clock: FixedClock, seed: int
):
    """Clocks change in all three zones; one of the workers is away for a week."""
    chance = random.Random(seed)  # noqa: S311  # data, not secrets
    fields: dict[str, Any] = {
        "aggregate": chance.choice(["sum", "best"]),
        "windows": [
            {"period": "daily", "keep": 1},
            {"period": "weekly", "keep": 1},
            {"period": "all_time"},
        ],
        "timezone": "Europe/Berlin",
        "timezone_by": "campus",
        "timezones": ZONES,
        "groups": [["campus"]],
        "lateness": "PT6H",
        "archive": {
            "snapshot": [
                {"period": "daily"},
                {"period": "weekly", "top": 3},
                {"period": "all_time", "every": "day"},
            ]
        },
    }
    board = await define(alone, **fields)
    oracle = Oracle(BoardDefinition.model_validate(fields))
    clock.now = moment_of(datetime(2025, 10, 7, tzinfo=UTC))
    began = clock.now
    workers = [Runner(alone, SNAPSHOTS, worker=name) for name in ("one", "two")]
    await workers[0].run_due()
    midnights: dict[tuple[Moment, Groups], Lines] = {}
    while clock.now < began + 40 * 86_400_000_000:
        before = clock.now
        clock.advance(timedelta(hours=6))
        submissions: list[Submission] = []
        for _ in range(chance.randint(0, 4)):
            late = clock.now - chance.choice([0, 0, chance.randint(0, 6 * 3_600_000_000)])
            member, score = f"m{chance.randint(0, 5)}", chance.randint(0, 9)
            groups = {"campus": chance.choice(list(ZONES))}
            submissions.append(Submission(member, score, at=datetime_of(late), groups=groups))
            oracle.submit(Scored(member, score, late), clock.now, groups)
        await alone.submit_many(board, submissions)
        away = timedelta(days=10) <= datetime_of(clock.now) - datetime_of(began) < timedelta(days=17)
        await asyncio.gather(*(worker.run_due() for worker in workers[: 1 if away else 2]))
        for groups in oracle.known_groups():
            midnight = Calendar(Window(period="daily"), oracle.zone(groups)).at(clock.now).starts or 0
            held = oracle.standings(Window(period="all_time"), oracle_slot(), groups)
            if before < midnight <= clock.now and held:
                midnights[midnight, groups] = ranked(held)
    for worker in workers:
        await worker.close()

    expected: dict[tuple[str, str, str | None, Moment], Lines] = {
        ("all_time", "", group_text(groups), midnight): held for (midnight, groups), held in midnights.items()
    }
    for (label, text, groups), held in oracle.entries.items():
        window = next(each for each in oracle.definition.windows if each.label == label)
        slot = oracle.calendar(window, groups).parse(text)
        if label != "all_time" and (slot.ends or 0) <= clock.now and held:
            stands = oracle.standings(window, slot, groups)
            shown = stands[:3] if label == "weekly" else stands
            expected[label, text, group_text(groups), slot.ends or 0] = ranked(shown)
    found = await listed(alone, board)
    assert len(found) == len({each.id for each in found})
    told = {(each.period, each.slot, each.group or None, moment_of(each.taken_for)): each for each in found}
    assert len(told) == len(found)
    assert told.keys() == expected.keys()
    assert len(found) > 300
    for key, snapshot in told.items():
        assert await lines(alone, board, snapshot) == expected[key], key


def oracle_slot() -> Slot:
    return Calendar(Window(period="all_time"), zone("UTC")).at(0)
