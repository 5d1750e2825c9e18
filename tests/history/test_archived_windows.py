"""Windows that ended, told by Valkey, snapshots and journal: all must say what a plain count says."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from oracle import Oracle, Scored, group_text
from topologies import on_node

from laurels.boards.board import Board
from laurels.boards.definition import BoardDefinition, parse_definition
from laurels.boards.keys import BoardRef
from laurels.errors import InvalidInput, NotFound
from laurels.history import member_history
from laurels.moments import datetime_of
from laurels.scores.submission import Submission

if TYPE_CHECKING:
    from oracle import Groups, Stand

    from laurels.arguments import InWindow, Start
    from laurels.boards.windows import Slot
    from laurels.clock import FixedClock
    from laurels.engine import Laurels
    from laurels.history.records import PastStanding
    from laurels.scores.results import Entry

_numbers = count(1)

DAYS = 9
DAILY = {"period": "daily", "keep": 2}
KINDS: dict[str, dict[str, Any]] = {
    "best": {"windows": [DAILY]},
    "best, ascending, earliest": {"windows": [DAILY], "order": "asc", "ties": "earliest"},
    "last, by member": {"windows": [DAILY], "aggregate": "last", "ties": "member", "dense": True},
    "first, int64": {"windows": [DAILY], "aggregate": "first", "score": "int64"},
    "sum, by country": {"windows": [DAILY], "aggregate": "sum", "groups": [["country"]]},
    "any op, earliest": {"windows": [DAILY], "allow_op": True, "ties": "earliest"},
    "any op, ascending": {"windows": [DAILY], "allow_op": True, "order": "asc", "shards": 2},
    "a sum of days": {
        "windows": [
            {"period": "every", "seconds": 172_800, "name": "pair", "keep": 2, "sum_of": "hours"},
            {"period": "every", "seconds": 3600, "name": "hours", "keep": 72},
        ],
        "ties": "earliest",
    },
    "rolling": {"windows": [{"period": "rolling", "days": 3, "keep": 2}], "ties": "earliest"},
    "in a zone where clocks change": {
        "windows": [DAILY],
        "timezone": "Africa/Cairo",
        "timezone_by": "country",
        "timezones": {"BR": "America/Sao_Paulo", "JP": "Asia/Tokyo"},
        "groups": [["country"]],
    },
}
POLICIES: dict[str, list[dict[str, Any]]] = {"nothing": [], "the top": [{"top": 2}], "everything": [{}]}


class Played:
    """A board, what was played on it for some days, and what that must have come to."""

    def __init__(self, laurels: Laurels, clock: FixedClock, fields: dict[str, Any]) -> None:
        self.laurels = laurels
        self.clock = clock
        self.definition: BoardDefinition = parse_definition(fields)
        self.oracle = Oracle(self.definition)
        self.board = f"past/board-{next(_numbers)}"
        self.label = self.definition.windows[0].label
        self.compiled = Board(BoardRef.parse(self.board), self.definition, 1, cluster=False)

    async def play(self, chance: random.Random, *, removals: bool) -> None:
        await self.laurels.define(self.board, self.definition)
        previous = None
        for _ in range(DAYS * 4):
            self.clock.advance(timedelta(hours=6))
            for _ in range(chance.randint(0, 5)):
                self.clock.advance(timedelta(seconds=1))
                await self.submit(chance)
            if removals and chance.random() < 0.2:
                await self.remove(f"m{chance.randint(0, 6)}")
            # What the job's memory of its last run is for: not to look where nothing can have ended.
            await self.laurels.snapshot_taker.take_due(previous)
            previous = self.clock()
        await self.laurels.archived(self.board)

    async def submit(self, chance: random.Random) -> None:
        now = self.clock()
        late = now - chance.choice([0, 0, chance.randint(0, 5 * 3_600_000_000)])
        member, score = f"m{chance.randint(0, 6)}", chance.randint(-3, 9)
        op = chance.choice([None, "best", "last", "first", "sum"]) if self.definition.allow_op else None
        groups = None
        if self.definition.groups and chance.random() < 0.8:
            groups = {"country": chance.choice(["BR", "JP"])}
        given = Submission(member, score, at=datetime_of(late), groups=groups, op=op)
        assert (await self.laurels.submit_many(self.board, [given])).accepted == 1
        self.oracle.submit(Scored(member, score, late), now, groups, op)

    async def remove(self, member: str) -> None:
        await self.laurels.remove(self.board, member)
        for (label, text, groups), held in self.oracle.entries.items():
            zoned = next(
                each
                for each in self.compiled.zoned_windows(str(self.oracle.zone(groups)))
                if each.label == label
            )
            until = zoned.held_until(zoned.calendar.parse(text))
            if until is None or self.clock() < until:
                held.pop(member, None)

    def ended(self, groups: Groups) -> list[Slot]:
        """Every window that is over, newest first."""
        calendar = self.oracle.calendar(self.definition.windows[0], groups)
        slots = calendar.slots(self.clock() - (DAYS + 3) * 86_400_000_000, self.clock())
        return [slot for slot in reversed(slots) if slot.ends is not None and slot.ends <= self.clock()]

    def stands(self, slot: Slot, groups: Groups) -> list[Stand]:
        return self.oracle.standings(self.definition.windows[0], slot, groups)

    def is_live(self, slot: Slot, groups: Groups) -> bool:
        return not self.oracle.is_over(self.definition.windows[0], slot, groups, self.clock())

    async def history(self, member: str, groups: Groups, limit: int = 100) -> list[PastStanding]:
        found: list[PastStanding] = []
        cursor: str | None = None
        while True:
            answer = await self.laurels.history(
                self.board, member, group=group_text(groups), limit=limit, cursor=cursor
            )
            found += answer.windows
            cursor = answer.next
            if cursor is None:
                return found


def lines(entries: list[Entry]) -> list[tuple[int, str, float]]:
    return [(entry.rank, entry.member, entry.score) for entry in entries]


def ranked(stands: list[Stand]) -> list[tuple[int, str, float]]:
    return [(stand.rank, stand.entry.member, stand.entry.score) for stand in stands]


@on_node
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", KINDS)
async def test_history_of_every_member_matches_a_count(
    alone: Laurels, clock: FixedClock, kind: str, policy: str
):
    chance = random.Random(f"{kind}, {policy}")  # noqa: S311  # data, not secrets
    fields = {**KINDS[kind], "lateness": "PT6H"}
    label = parse_definition(fields).windows[0].label
    fields["archive"] = {"snapshot": [{"period": label, **each} for each in POLICIES[policy]]}
    played = Played(alone, clock, fields)
    # The oracle makes rolling windows from their days each time: it would take members out of those that were
    # gone before it was removed.
    await played.play(chance, removals=policy == "nothing" and kind != "rolling")
    told: set[str] = set()
    for groups in played.oracle.known_groups():
        for number in range(7):
            expected: list[tuple[str, int, float, int, str]] = []
            for slot in played.ended(groups):
                stands = played.stands(slot, groups)
                for stand in stands:
                    if stand.entry.member == f"m{number}":
                        source = "live" if played.is_live(slot, groups) else "snapshot"
                        is_left_out = policy == "nothing" or (policy == "the top" and stand.ordinal > 2)
                        source = "journal" if source == "snapshot" and is_left_out else source
                        expected.append((slot.text, stand.rank, stand.entry.score, len(stands), source))
                        told.add(source)
            found = await played.history(f"m{number}", groups, limit=chance.choice([2, 100]))
            assert [(each.slot, each.rank, each.score, each.total, each.source) for each in found] == expected
    wanted = {"nothing": {"live", "journal"}, "the top": {"live", "snapshot", "journal"}}
    assert told == wanted.get(policy, {"live", "snapshot"})


@on_node
@pytest.mark.parametrize("kind", ["best", "best, ascending, earliest", "last, by member", "sum, by country"])
async def test_pages_and_standings_of_expired_windows_match_a_count(
    alone: Laurels, clock: FixedClock, kind: str
):
    fields = {**KINDS[kind], "lateness": "PT6H", "archive": {"snapshot": [{"period": "daily"}]}}
    played = Played(alone, clock, fields)
    await played.play(random.Random(kind), removals=False)  # noqa: S311  # as above
    gone = 0
    for groups in played.oracle.known_groups():
        for slot in played.ended(groups):
            stands = played.stands(slot, groups)
            if played.is_live(slot, groups) or not stands:
                continue
            gone += 1
            where: InWindow = {"slot": slot.text, "group": group_text(groups)}
            page = await alone.page(played.board, **where)
            assert (lines(page.entries), page.total) == (ranked(stands), len(stands))
            assert (page.next, page.previous) == (None, None)
            assert (page.slot, page.starts_at, page.ends_at) == (slot.text, slot.starts_at, slot.ends_at)
            await check_paging(alone, played.board, where, stands)
            for stand in stands:
                found = await alone.standing(played.board, stand.entry.member, **where)
                assert (found.rank, found.ordinal, found.score) == (
                    stand.rank, stand.ordinal, stand.entry.score
                )  # fmt: skip
                assert found.percentile == pytest.approx(stand.percentile)
                if played.definition.dense:
                    assert found.dense_rank == stand.dense
                around = await alone.around(played.board, stand.entry.member, 1, 2, **where)
                first = max(0, stand.ordinal - 2)
                assert lines(around.entries) == ranked(stands)[first : stand.ordinal + 2]
    assert gone >= 5


async def check_paging(laurels: Laurels, board: str, where: InWindow, stands: list[Stand]) -> None:
    """Forward from the top, back again, from the bottom, and by jumps."""
    everything = ranked(stands)
    starts: tuple[Start, ...] = ("top", "bottom")
    for start in starts:
        page = await laurels.page(board, **where, limit=2, start=start)
        forward = [page]
        while page.next:
            page = await laurels.page(board, limit=2, cursor=page.next)
            forward.append(page)
        found = [line for each in forward for line in lines(each.entries)]
        assert found == (everything if start == "top" else everything[::-1])
        back = [page]
        while page.previous:
            page = await laurels.page(board, limit=2, cursor=page.previous)
            back.insert(0, page)
        assert [line for each in back for line in lines(each.entries)][-len(everything) :] == found
    for rank in range(1, len(stands) + 2):
        page = await laurels.page(board, **where, rank=rank, limit=2)
        assert lines(page.entries) == everything[rank - 1 : rank + 1]


@pytest.fixture
async def archived(alone: Laurels, clock: FixedClock) -> str:
    """A daily board, by country, of which the top 2 are kept; two days ago ada led, yesterday bob."""
    board = f"past/board-{next(_numbers)}"
    await alone.define(
        board,
        {
            "windows": [{"period": "daily", "keep": 1}],
            "lateness": "PT0S",
            "archive": {"snapshot": [{"period": "daily", "top": 2}]},
        },
    )
    for scores in ({"ada": 3, "bob": 2, "eve": 1}, {"ada": 1, "bob": 3, "eve": 2}):
        await alone.submit_many(board, [Submission(*each) for each in scores.items()])
        clock.advance(timedelta(days=1))
        await alone.snapshot_taker.take_due(None)
    await alone.submit_many(board, [Submission("bob", 1), Submission("ada", 2), Submission("zoe", 3)])
    await alone.archived(board)
    return board


class TestOfATopThatWasKept:
    async def test_a_page_shows_what_there_is_of_all_that_there_were(self, alone: Laurels, archived: str):
        page = await alone.page(archived, slot="2025-10-24")
        assert (lines(page.entries), page.total, page.next) == ([(1, "ada", 3), (2, "bob", 2)], 3, None)

    async def test_the_rest_stands_where_the_journal_says(self, alone: Laurels, archived: str):
        standing = await alone.standing(archived, "eve", slot="2025-10-24")
        assert (standing.rank, standing.score, standing.total) == (3, 1, 3)
        with pytest.raises(NotFound, match="zoe"):
            await alone.standing(archived, "zoe", slot="2025-10-24")

    async def test_the_rest_has_no_neighbourhood(self, alone: Laurels, archived: str):
        with pytest.raises(NotFound, match="'eve' has no archived entry"):
            await alone.around(archived, "eve", slot="2025-10-24")


class TestChange:
    async def test_of_the_current_window_is_told_against_an_archived_one(self, alone: Laurels, archived: str):
        page = await alone.page(archived, change=True)
        assert [(entry.member, entry.change) for entry in page.entries] == [
            ("zoe", None), ("ada", None), ("bob", -2)
        ]  # fmt: skip

    async def test_of_an_archived_window_is_told_against_the_one_before(self, alone: Laurels, archived: str):
        page = await alone.page(archived, slot="2025-10-25", change=True)
        assert [(entry.member, entry.change) for entry in page.entries] == [("bob", 1), ("eve", None)]


class TestWindows:
    async def test_that_nobody_archived_are_gone(self, alone: Laurels, clock: FixedClock):
        board = f"past/board-{next(_numbers)}"
        await alone.define(board, {"windows": [{"period": "daily", "keep": 1}]})
        await alone.submit(board, "ada", 3)
        clock.advance(timedelta(days=1))
        with pytest.raises(NotFound, match="is over and no longer kept"):
            await alone.page(board, slot="2025-10-24")

    async def test_that_have_not_begun_are_not_looked_for(self, alone: Laurels, archived: str):
        with pytest.raises(NotFound, match="has not begun"):
            await alone.page(archived, slot="2026-10-24")

    async def test_go_on_being_paged_where_the_live_page_ended(self, alone: Laurels, clock: FixedClock):
        board = f"past/board-{next(_numbers)}"
        await alone.define(
            board,
            {
                "windows": [{"period": "daily", "keep": 1}],
                "ties": "earliest",
                "archive": {"snapshot": [{"period": "daily"}]},
            },
        )
        for member in ("ada", "bob", "eve", "joe"):
            clock.advance(timedelta(seconds=1))
            await alone.submit(board, member, 7)
        live = await alone.page(board, limit=2)
        clock.advance(timedelta(days=1))
        await alone.snapshot_taker.take_due(None)
        page = await alone.page(board, cursor=live.next)
        assert lines(page.entries) == [(3, "eve", 7), (4, "joe", 7)]


class TestHistory:
    async def test_of_a_board_without_journal_or_snapshots_tells_what_is_live(
        self, alone: Laurels, clock: FixedClock
    ):
        board = f"past/board-{next(_numbers)}"
        fields = {"windows": [{"period": "daily", "keep": 2}], "archive": {"journal": False}}
        await alone.define(board, fields)
        for day in range(4):
            await alone.submit(board, "ada", day)
            clock.advance(timedelta(days=1))
        history = await alone.history(board, "ada")
        told = [(each.slot, each.score, each.source) for each in history.windows]
        assert told == [("2025-10-27", 3, "live")]
        assert history.next is None

    async def test_leaves_the_current_window_out(self, alone: Laurels):
        board = f"past/board-{next(_numbers)}"
        await alone.define(board, {"windows": [{"period": "daily"}, {"period": "all_time"}]})
        await alone.submit(board, "ada", 1)
        assert (await alone.history(board, "ada")).windows == []
        assert (await alone.history(board, "ada", period="all_time")).windows == []

    async def test_is_counted_in_parts_when_much_must_be_recounted(
        self, alone: Laurels, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(member_history, "MOST_RECOUNTS", 2)
        board = f"past/board-{next(_numbers)}"
        await alone.define(board, {"windows": [{"period": "daily", "keep": 1}]})
        for _ in range(5):
            await alone.submit(board, "ada", 1)
            clock.advance(timedelta(days=1))
        await alone.archived(board)
        sizes: list[int] = []
        cursor: str | None = None
        while not sizes or cursor:
            history = await alone.history(board, "ada", cursor=cursor)
            sizes.append(len(history.windows))
            cursor = history.next
        assert sizes == [2, 2, 1]

    async def test_refuses_the_cursor_of_another(self, alone: Laurels, clock: FixedClock):
        board = f"past/board-{next(_numbers)}"
        await alone.define(board, {"windows": [{"period": "daily"}]})
        for _ in range(3):
            await alone.submit(board, "ada", 1, at=datetime_of(clock()))
            clock.advance(timedelta(days=1))
        more = (await alone.history(board, "ada", limit=1)).next
        assert more is not None
        for member, cursor in (("bob", more), ("ada", more[:-3])):
            with pytest.raises(InvalidInput, match="cursor"):
                await alone.history(board, member, cursor=cursor)

    async def test_knows_windows_by_their_own_time(self, alone: Laurels, clock: FixedClock):
        board = f"past/board-{next(_numbers)}"
        await alone.define(board, {"windows": [{"period": "daily", "keep": 2}]})
        await alone.submit(board, "ada", 1, at=datetime(2025, 10, 23, 13, tzinfo=UTC))
        clock.advance(timedelta(days=3))
        await alone.archived(board)
        history = await alone.history(board, "ada")
        assert [(each.slot, each.source) for each in history.windows] == [("2025-10-23", "journal")]
