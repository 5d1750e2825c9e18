"""The engine against a plain sort: random boards, random operations, every window and group compared."""

from __future__ import annotations

import asyncio
import itertools
import os
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from oracle import Oracle, Scored, Stand, group_text

from laurels import sync
from laurels.boards.definition import BoardDefinition
from laurels.clock import FixedClock
from laurels.errors import NotFound
from laurels.moments import datetime_of, moment_of
from laurels.scores.submission import Submission

if TYPE_CHECKING:
    from laurels.embedded import Endpoints
    from laurels.engine import Laurels

MEMBERS = ["a", "b", "ab", "a:b", "{x}", "é", "\n", "/", "%3A", "🏆", "x" * 256, "z", "A", "=,|"]
PLACES = ["BR", "x:y=z,", "%"]
CITIES = ["a|b"]
# Around Cairo's and New York's clock changes of autumn 2025 and the turn of an ISO year.
STARTS = [
    datetime(2025, 10, 30, 20, tzinfo=UTC),
    datetime(2025, 11, 2, 3, tzinfo=UTC),
    datetime(2025, 12, 28, tzinfo=UTC),
]
# From 2^53 on, several share a double.
INT64_SCORES = [
    *(-(2**63), -(2**63) + 1, -(2**53) - 2, -(2**53) - 1, -(2**53), -1, 0, 1),
    *(2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 2, 2**63 - 1),
]

# Submissions, removals, edits and steps of the clock, over as many boards as it takes.
OPERATIONS = int(os.environ.get("ORACLE_OPERATIONS", "2000"))
# Each within the time limit of a test, also on a busy machine.
PARTS = 4
EXAMPLES = 8
STEPS = 40
_boards = itertools.count(1)


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    windows: list[dict[str, Any]] = draw(
        st.lists(
            st.sampled_from(
                [
                    {"period": "daily", "keep": 3},
                    {"period": "hourly", "keep": 30},
                    {"period": "weekly", "keep": "P3D"},
                    {"period": "monthly"},
                    {"period": "all_time"},
                    {"period": "every", "seconds": 5400, "keep": 20},
                    {"period": "rolling", "days": 3, "keep": 2},
                    {"period": "yearly", "keep": 1},
                ]
            ),
            min_size=1,
            max_size=3,
            unique_by=lambda window: window["period"],
        )
    )
    periods = {window["period"] for window in windows}
    if "daily" in periods:
        derived = [
            {"period": "weekly", "sum_of": "daily", "name": "week_sum"},
            {"period": "rolling", "days": 2, "sum_of": "daily", "keep": 2},
            {"period": "all_time", "sum_of": "daily", "name": "total"},
        ]
        windows += draw(
            st.lists(st.sampled_from(derived), max_size=2, unique_by=lambda window: window["period"])
        )
    groups: list[list[str]] = draw(
        st.lists(st.sampled_from([["place"], ["place", "city"]]), max_size=2, unique_by=tuple)
    )
    dense = draw(st.booleans())
    definition: dict[str, Any] = {
        "windows": windows,
        "aggregate": draw(st.sampled_from(["best", "last", "first", "sum"])),
        "order": draw(st.sampled_from(["desc", "asc"])),
        "score": draw(st.sampled_from(["number", "int64"])),
        "ties": draw(st.sampled_from(["shared", "earliest", "member"])),
        "timezone": draw(st.sampled_from(["UTC", "Africa/Cairo", "America/New_York", "Pacific/Kiritimati"])),
        "groups": groups,
        "dense": dense,
        "allow_op": draw(st.booleans()),
        "shards": 1 if dense else draw(st.sampled_from([1, 1, 3])),
        "lateness": "P2D",
    }
    if groups and draw(st.booleans()):
        definition |= {"timezone_by": "place", "timezones": {"BR": "Pacific/Apia", "%": "America/Havana"}}
    return definition


class Boards(RuleBasedStateMachine):
    """Drives one board and its oracle through the same operations."""

    engine: sync.Laurels
    laurels: Laurels
    """The same without waiting: reads that go out together."""
    clock: FixedClock
    performed = 0
    """Operations, over all examples."""

    @initialize(definition=definitions(), start=st.sampled_from(STARTS))
    def define(self, definition: dict[str, Any], start: datetime) -> None:
        self.clock.now = moment_of(start)
        self.board = f"oracle/{next(_boards)}"
        self.oracle = Oracle(BoardDefinition.model_validate(definition))
        self.engine.define(self.board, definition)
        self.operations = 0
        self.arrivals = itertools.count()

    def teardown(self) -> None:
        if hasattr(self, "oracle"):
            self.engine.drop(self.board, allow_drop="all")

    def scores(self, data: st.DataObject, op: str) -> int | float:
        if self.oracle.definition.score == "int64":
            if op != "sum" and not self.sums_anything():
                return data.draw(st.sampled_from(INT64_SCORES))
            return data.draw(st.integers(-5, 5))
        # Sums of quarters are exact in any order.
        return data.draw(st.integers(-20, 20).map(lambda quarter: quarter / 4))

    def sums_anything(self) -> bool:
        definition = self.oracle.definition
        return (
            definition.aggregate == "sum" or definition.allow_op or any(w.sum_of for w in definition.windows)
        )

    def draw_submission(self, data: st.DataObject) -> tuple[Submission, Scored, str | None]:
        definition = self.oracle.definition
        op = (
            data.draw(st.sampled_from([None, "best", "last", "first", "sum"]))
            if definition.allow_op
            else None
        )
        score = self.scores(data, op or definition.aggregate)
        late = data.draw(st.sampled_from([0, 0, 0, 1, 3600, 90_000, 170_000]))
        moment = self.clock.now - late * 1_000_000
        groups = None
        if definition.groups and data.draw(st.booleans()):
            groups = {"place": data.draw(st.sampled_from(PLACES))}
            if "city" in definition.dimensions and data.draw(st.booleans()):
                groups["city"] = data.draw(st.sampled_from(CITIES))
        member = data.draw(st.sampled_from(MEMBERS))
        metadata = data.draw(st.sampled_from([None, None, None, {"level": 3}]))
        at = datetime_of(moment) if late else None
        given = Submission(member, score, at=at, groups=groups, op=op, metadata=metadata)
        return given, Scored(member, score, moment, metadata, next(self.arrivals)), op

    @rule(data=st.data())
    def submit(self, data: st.DataObject) -> None:
        given, scored, op = self.draw_submission(data)
        window = self.oracle.definition.windows[0]
        now = self.clock.now if window.period == "rolling" else scored.moment
        slot = self.oracle.calendar(window).at(now)
        kept = self.oracle.calendar(window).kept_until(slot)
        before = self.stand_of(given.member, self.oracle.standings(window, slot, ()))
        answer = self.engine.submit(
            self.board,
            given.member,
            given.score,
            at=given.at,
            groups=given.groups,
            op=op,
            metadata=given.metadata,
        )
        self.oracle.submit(scored, self.clock.now, given.groups, op)
        is_kept = kept is None or self.clock.now < kept
        if is_kept and (window.label, slot.text) not in self.oracle.ended:
            after = self.stand_of(given.member, self.oracle.standings(window, slot, ()))
            told = (answer.score, answer.rank, answer.previous_score, answer.previous_rank)
            assert told == (
                after and after.entry.score,
                after and after.rank,
                before and before.entry.score,
                before and before.rank,
            )
        self.clock.now += 1000  # more than arrive together: these take a microsecond each

    @rule(data=st.data(), size=st.integers(1, 12))
    def submit_batch(self, data: st.DataObject, size: int) -> None:
        batch: list[Submission] = []
        for _ in range(size):
            given, scored, op = self.draw_submission(data)
            batch.append(given)
            self.oracle.submit(scored, self.clock.now, given.groups, op)
        Boards.performed += size - 1
        answer = self.engine.submit_many(self.board, batch)
        assert (answer.accepted, answer.rejected) == (size, [])
        self.clock.now += 1000  # more than arrive together: these take a microsecond each

    @rule(member=st.sampled_from(MEMBERS))
    def remove(self, member: str) -> None:
        was_seen = any(
            self.stand_of(member, self.oracle.standings(window, slot, group))
            for group in self.oracle.known_groups()
            for window in self.oracle.definition.windows
            for slot in self.oracle.queryable(window, group, self.clock.now)
        )
        was_ever = any(member in entries for entries in self.oracle.entries.values())
        self.oracle.remove(member)
        was_there = self.engine.remove(self.board, member)
        assert was_seen <= was_there <= was_ever

    @rule(
        data=st.data(),
        member=st.sampled_from(MEMBERS),
        metadata=st.sampled_from([None, {"level": 4}, {"é": "\0"}]),
    )
    def set_metadata(self, data: st.DataObject, member: str, metadata: dict[str, Any] | None) -> None:
        """In all windows, in the current one of a period, in a past one; of everybody or of a group."""
        group = data.draw(st.sampled_from([(), *self.oracle.known_groups()]))
        windows = [None, *(window for window in self.oracle.definition.windows if window.period != "rolling")]
        window = data.draw(st.sampled_from(windows))
        label = slot = None
        if window:
            slots = self.oracle.queryable(window, group, self.clock.now)
            label, slot = window.label, data.draw(st.sampled_from(slots)).text if slots else None
        if len(windows) == 1 or (window and slot is None):
            return
        expected = self.oracle.set_metadata(member, metadata, self.clock.now, (label, slot, group))
        where: Any = {"period": label, "slot": slot, "group": group_text(group)}
        try:
            entries = self.engine.set_metadata(self.board, member, metadata, **where).entries
        except NotFound:
            entries = 0
        assert entries >= expected

    @rule(hours=st.sampled_from([0.01, 1, 5, 24, 24, 50, 24 * 8]))
    def let_time_pass(self, hours: float) -> None:
        self.clock.advance(timedelta(hours=hours))

    @rule(keep=st.sampled_from([1, 4, "P2D", None]))
    def edit_keep(self, keep: int | str | None) -> None:
        definition = self.oracle.definition.model_dump(mode="json")
        for window in definition["windows"]:
            if window["period"] in ("hourly", "monthly"):
                window["keep"] = keep
        self.change(definition)

    @rule()
    def toggle_yearly(self) -> None:
        definition = self.oracle.definition.model_dump(mode="json")
        windows: list[dict[str, Any]] = definition["windows"]
        if any(window["period"] == "yearly" for window in windows):
            others = [window for window in windows if window["period"] != "yearly"]
            if not others:
                return
            definition["windows"] = others
            self.oracle.forget("yearly")
        else:
            windows.append({"period": "yearly"})
        self.change(definition)

    def change(self, definition: dict[str, Any]) -> None:
        labels = [window.label for window in self.oracle.definition.windows]
        self.engine.define(self.board, definition, allow_drop=labels)
        self.oracle.end_windows(self.clock.now)
        self.oracle.definition = BoardDefinition.model_validate(definition)
        self.oracle.end_windows(self.clock.now)

    @invariant()
    def every_window_is_as_sorted(self) -> None:
        if not hasattr(self, "oracle"):
            return
        self.operations += 1
        Boards.performed += 1
        windows: list[tuple[Any, list[Stand]]] = [
            (
                {"period": window.label, "slot": slot.text, "group": group_text(group)},
                self.oracle.standings(window, slot, group),
            )
            for group in self.oracle.known_groups()
            for window in self.oracle.definition.windows
            for slot in self.oracle.queryable(window, group, self.clock.now)
        ]
        self.engine.run(self.compare(windows))

    async def compare(self, windows: list[tuple[Any, list[Stand]]]) -> None:
        """All at once: one by one, most of the time goes into the switches between two threads."""
        filled = [(where, stands) for where, stands in windows if stands]
        paged = filled[self.operations % 3 :][:1]  # another window each time
        await asyncio.gather(
            *(self.compare_all(*window) for window in windows),
            *(self.compare_closely(*window) for window in filled),
            *(self.compare_pages(*window) for window in paged),
        )

    async def compare_all(self, where: Any, stands: list[Stand]) -> None:  # noqa: ANN401  # keyword arguments
        page, backwards = await asyncio.gather(
            self.laurels.page(self.board, limit=1000, **where),
            self.laurels.page(self.board, limit=1000, start="bottom", **where),
        )
        told = [(entry.rank, entry.member, entry.score, entry.metadata) for entry in page.entries]
        expected = [
            (stand.rank, stand.entry.member, stand.entry.score, stand.entry.metadata) for stand in stands
        ]
        assert told == expected, (where, set(map(str, told)) ^ set(map(str, expected)))
        assert page.total == len(stands)
        assert backwards.entries == page.entries[::-1]

    async def compare_closely(self, where: Any, stands: list[Stand]) -> None:  # noqa: ANN401  # keyword arguments
        chosen = stands[self.operations % len(stands)]
        friends = MEMBERS[:6]
        share = Fraction(self.operations % 21, 20)
        standing, around, among, percentile = await asyncio.gather(
            self.laurels.standing(self.board, chosen.entry.member, **where),
            self.laurels.around(self.board, chosen.entry.member, 2, 1, **where),
            self.laurels.among(self.board, friends, **where),
            self.laurels.percentile(self.board, float(share), **where),
        )
        assert (standing.rank, standing.ordinal, standing.percentile, standing.total) == (
            chosen.rank,
            chosen.ordinal,
            chosen.percentile,
            len(stands),
        )
        if self.oracle.definition.dense:
            assert standing.dense_rank == chosen.dense
        neighbours = stands[max(0, chosen.ordinal - 3) : chosen.ordinal + 1]
        assert [entry.member for entry in around.entries] == [stand.entry.member for stand in neighbours]
        ranked = self.oracle.ranked([stand.entry for stand in stands if stand.entry.member in friends])
        assert [(friend.rank, friend.member) for friend in among.entries] == [
            (stand.rank, stand.entry.member) for stand in ranked
        ]
        board_ranks = {stand.entry.member: stand.rank for stand in stands}
        assert all(friend.board_rank == board_ranks[friend.member] for friend in among.entries)
        assert percentile.score == self.oracle.score_at(stands, share)

    async def compare_pages(self, where: Any, stands: list[Stand]) -> None:  # noqa: ANN401  # keyword arguments
        limit = self.operations % 5 + 1
        start = "top" if self.operations % 2 else "bottom"
        listed: list[str] = []
        page = await self.laurels.page(self.board, limit=limit, start=start, **where)
        while True:
            listed += [entry.member for entry in page.entries]
            if page.next is None:
                break
            page = await self.laurels.page(self.board, limit=limit, cursor=page.next, **where)
        expected = [stand.entry.member for stand in stands]
        assert listed == (expected if start == "top" else expected[::-1])
        back: list[str] = []
        while page.previous is not None:
            page = await self.laurels.page(self.board, limit=limit, cursor=page.previous, **where)
            back = [entry.member for entry in page.entries] + back
        assert back == listed[: len(back)]
        rank = self.operations % len(stands) + 1
        jumped = await self.laurels.page(self.board, limit=limit, rank=rank, **where)
        assert [entry.member for entry in jumped.entries] == expected[rank - 1 : rank - 1 + limit]

    def stand_of(self, member: str, stands: list[Stand]) -> Stand | None:
        return next((stand for stand in stands if stand.entry.member == member), None)


def run(url: str, postgres_url: str, operations: int) -> None:
    clock = FixedClock()
    with sync.Laurels(valkey_url=url, postgres_url=postgres_url, clock=clock) as engine:
        Boards.engine, Boards.laurels, Boards.clock, Boards.performed = engine, engine.engine, clock, 0
        while Boards.performed < operations:
            run_state_machine_as_test(
                Boards,
                settings=settings(
                    max_examples=EXAMPLES,
                    stateful_step_count=STEPS,
                    deadline=None,
                    suppress_health_check=[
                        HealthCheck.too_slow,
                        HealthCheck.data_too_large,
                        HealthCheck.filter_too_much,
                    ],
                    print_blob=True,
                    report_multiple_bugs=False,
                    # Shrinking replays thousands of calls; the failing run is told as it was.
                    phases=(Phase.explicit, Phase.reuse, Phase.generate),
                ),
            )


@pytest.mark.parametrize("part", range(PARTS))
def test_every_answer_of_a_single_node_is_as_a_plain_sort_says(endpoints: Endpoints, part: int):
    run(endpoints.valkey_url, endpoints.postgres_url, OPERATIONS // PARTS)


def test_every_answer_of_a_cluster_is_as_a_plain_sort_says(endpoints: Endpoints, cluster_url: str):
    run(cluster_url, endpoints.postgres_url, OPERATIONS // 8)
