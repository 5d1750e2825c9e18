"""`journal/member_fold.py` and `valkey/lua/submit.lua` have the same rules: what Valkey accepts of random
submissions and imports is folded in Python too, and leaves the same entries.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from laurels.boards.board import Board, WindowAddress
from laurels.boards.definition import parse_definition
from laurels.boards.keys import WHOLE, BoardRef, parse_cut
from laurels.boards.ordering import unpack_int64
from laurels.clock import FixedClock
from laurels.errors import InvalidInput
from laurels.history.export_file import (
    FORMAT,
    FORMAT_VERSION,
    BoardLine,
    EntryLine,
    ExportWriter,
    Manifest,
    WindowLine,
)
from laurels.journal.entry import PLACE, REMOVE, JournalRow, read_entry
from laurels.journal.entry import START as FIRST
from laurels.journal.member_fold import Fold
from laurels.moments import datetime_of, moment_of
from laurels.scores.submission import Submission
from laurels.sync import Laurels
from laurels.valkey import hashes, streams

if TYPE_CHECKING:
    from laurels.embedded import Endpoints
    from laurels.moments import Moment

EXAMPLES = 60
DAYS: list[dict[str, Any]] = [
    {"period": "daily", "keep": 4},
    {"period": "rolling", "days": 2, "keep": 3},
    {"period": "rolling", "days": 3, "keep": 2, "sum_of": "daily"},
    {"period": "all_time", "sum_of": "daily"},
]
HOURS: list[dict[str, Any]] = [
    {"period": "hourly", "keep": 90},
    {"period": "daily", "keep": 4, "sum_of": "hourly"},
    {"period": "all_time"},
]
AGGREGATES = ["best", "last", "first", "sum"]
SMALL = st.integers(-3, 6)
SCORES = {
    "number": st.one_of(SMALL, st.sampled_from([0.1, -0.25, 2.0**53 - 1, 1e17, 1e308, -1e308])),
    "int64": st.one_of(SMALL, st.sampled_from([-(2**63), -(2**53) - 1, 2**53, 2**63 - 1])),
}
START = moment_of(datetime(2025, 10, 31, 20, tzinfo=UTC))  # before New York's clocks change
_numbers = count(1)


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "windows": draw(st.sampled_from([DAYS, DAYS, HOURS])),
        "aggregate": draw(st.sampled_from(AGGREGATES)),
        "allow_op": True,
        "order": draw(st.sampled_from(["desc", "asc"])),
        "score": draw(st.sampled_from(["number", "int64"])),
        "ties": draw(st.sampled_from(["shared", "earliest", "earliest", "member"])),
        "timezone": draw(st.sampled_from(["UTC", "America/New_York"])),
        "groups": draw(st.sampled_from([[], [["country"]]])),
        "limits": draw(st.sampled_from([{}, {}, {"max_change": 4}])),
        "lateness": "P2D",
    }


def submissions(definition: dict[str, Any], now: datetime) -> st.SearchStrategy[Submission]:
    late = st.sampled_from([0, 0, 1, 90, 1500, 2879]).map(lambda minutes: now - timedelta(minutes=minutes))
    groups = st.sampled_from([{"country": "BR"}, {"country": "JP"}, None])
    return st.builds(
        Submission,
        member=st.sampled_from("abcd"),
        score=SCORES[definition["score"]],
        at=st.one_of(st.none(), late),
        groups=groups if definition["groups"] else st.none(),
        id=st.sampled_from([None, None, "one", "two"]),
        op=st.sampled_from([None, None, *AGGREGATES]),
    )


def a_file(
    board: str, definition: dict[str, Any], window: tuple[str, str], entries: list[EntryLine]
) -> list[bytes]:
    writer = ExportWriter()
    lines = [Manifest(FORMAT, FORMAT_VERSION, [board], ""), BoardLine(board, definition)]
    return [*map(writer.line, [*lines, WindowLine(*window, {}), *entries]), writer.ending()]


def imports(definition: dict[str, Any], now: datetime) -> st.SearchStrategy[list[EntryLine]]:
    """Entries with any scores and moments, whatever the sum of the days: an import takes them as given."""
    entry = st.builds(
        EntryLine,
        st.sampled_from("abcd"),
        SCORES[definition["score"]].map(repr),
        st.just(1),
        st.integers(0, 5000).map(lambda minutes: moment_of(now - timedelta(minutes=minutes))),
    )
    return st.lists(entry, min_size=1, max_size=3, unique_by=lambda each: each.member)


def play(
    engine: Laurels, clock: FixedClock, board: str, definition: dict[str, Any], data: st.DataObject
) -> None:
    steps = ["submit", "submit", "submit", "remove", "wait", "import"]
    for _ in range(data.draw(st.integers(2, 12))):
        now = datetime_of(clock())
        match data.draw(st.sampled_from(steps)):
            case "submit":
                engine.submit_many(
                    board, data.draw(st.lists(submissions(definition, now), min_size=1, max_size=9))
                )
            case "remove":
                engine.remove(board, data.draw(st.sampled_from("abcd")))
            case "import":
                period = definition["windows"][0]["period"]
                for window in engine.windows(board, period=period)[:3]:
                    file = a_file(
                        board, definition, (period, window.slot), data.draw(imports(definition, now))
                    )
                    engine.import_lines(lambda file=file: file)
            case _:
                clock.advance(
                    data.draw(st.sampled_from([timedelta(hours=1), timedelta(hours=17), timedelta(days=2)]))
                )
        clock.advance(timedelta(milliseconds=1))


def rows_by_member(engine: Laurels, board: Board) -> dict[bytes, list[JournalRow]]:
    """The journal rows of what Valkey accepted."""
    entries = engine.run(engine.engine.valkey.run(streams.entries(board.keys.of_board(0, "journal"))))
    rows: dict[bytes, list[JournalRow]] = defaultdict(list)
    for _, fields in entries:
        for row in read_entry(FIRST, fields).rows:
            rows[row.member].append(row)
    return rows


def concerns(fold: Fold, row: JournalRow) -> bool:
    """Whether PostgreSQL would return the row: it selects entries that were placed by their window."""
    windows, beginning = fold.places()
    of_base = beginning is not None and row.op.startswith(beginning)
    return row.kind != PLACE or row.op in windows or of_base


def check(engine: Laurels, name: str, definition: dict[str, Any]) -> None:
    board = engine.run(engine.engine._catalog.board(BoardRef.parse(name)))  # pyright: ignore[reportPrivateUsage]  # its windows
    rows = rows_by_member(engine, board)
    for group in (None, "country=BR") if definition["groups"] else (None,):
        cut = parse_cut(group, board.definition) if group else WHOLE
        for zoned in board.zoned_windows(board.zone_of(cut)):
            if zoned.is_hidden:
                continue
            for window in engine.windows(name, period=zoned.label, group=group):
                fold = Fold(board, zoned, zoned.calendar.parse(window.slot), cut)
                held = {
                    member.decode(): fold.entry([row for row in of_member if concerns(fold, row)])
                    for member, of_member in rows.items()
                }
                expected = {member: each for member, each in held.items() if each is not None}
                page = engine.page(name, period=zoned.label, slot=window.slot, group=group, limit=1000)
                found = {each.member: each.score for each in page.entries}
                assert found == {member: each.score for member, each in expected.items()}, window
                if board.ordering.timed:
                    key = board.window_key(0, WindowAddress(zoned.label, window.slot, cut))
                    prefixes = engine.run(engine.engine.valkey.run(hashes.get_all(f"{key}|prefixes")))
                    moments = {member: unpack_int64(prefix[-8:]) for member, prefix in prefixes.items()}
                    assert moments == {member.encode(): each.moment for member, each in expected.items()}, (
                        window
                    )


def test_python_folds_what_valkey_accepted_to_the_entries_that_valkey_holds(endpoints: Endpoints):
    clock = FixedClock()
    with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=clock) as engine:

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
            print_blob=True,
            # As the oracle: shrinking replays thousands of calls.
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
        )
        @given(definition=definitions(), data=st.data())
        def hold_together(definition: dict[str, Any], data: st.DataObject) -> None:
            clock.now = START
            board = f"fold/board-{next(_numbers)}"
            engine.define(board, definition)
            play(engine, clock, board, definition, data)
            check(engine, board, definition)
            engine.drop(board, allow_drop="all")

        hold_together()


def test_both_take_the_earlier_of_equal_days(endpoints: Endpoints):
    clock = FixedClock()
    clock.now = START
    with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=clock) as engine:
        board = f"fold/board-{next(_numbers)}"
        definition = {"windows": DAYS[:2], "ties": "earliest", "groups": []}
        engine.define(board, definition)
        for hours in (24, 0):
            at = datetime_of(START) - timedelta(hours=hours)
            engine.submit(board, "a", 5, at=at)
        later = EntryLine("a", "5", 1, START + 1)
        yesterday = engine.windows(board, period="daily")[1].slot
        engine.import_lines(lambda: a_file(board, definition, ("daily", yesterday), [later]))
        check(engine, board, definition)


@pytest.mark.parametrize(
    ("score", "days", "corrected", "total"),
    [("int64", [2**63 - 1, 5], -10, 2**63 - 11), ("number", [1e308, 1e308], -10, 1e308)],
)
@pytest.mark.parametrize("ties", ["shared", "earliest"])
def test_a_rolling_sum_out_of_range_is_left_out_until_it_is_back_in_range(
    endpoints: Endpoints, score: str, days: list[float], corrected: int, total: float, ties: str
):
    clock = FixedClock()
    clock.now = START
    definition = {
        "windows": [{"period": "daily", "keep": 4}, {"period": "rolling", "days": 3, "sum_of": "daily"}],
        "aggregate": "last", "score": score, "ties": ties, "groups": [], "dense": True, "lateness": "P2D",
    }  # fmt: skip
    with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=clock) as engine:

        def listed(period: str) -> dict[str, float]:
            return {each.member: each.score for each in engine.page(board, period=period).entries}

        board = f"fold/board-{next(_numbers)}"
        engine.define(board, definition)
        moments = [datetime_of(START) - timedelta(days=ago) for ago in (2, 1)]
        for at, imported in zip(moments, days, strict=True):
            engine.submit_many(board, [Submission("a", 1, at=at), Submission("b", 2, at=at)])
            entry = EntryLine("a", repr(imported), 1, moment_of(at))
            file = a_file(board, definition, ("daily", f"{at:%Y-%m-%d}"), [entry])
            engine.import_lines(lambda file=file: file)
        assert listed("rolling_3d") == {"b": 4}
        check(engine, board, definition)
        with pytest.raises(InvalidInput, match="leave the range"):
            engine.submit(board, "a", 1)
        engine.submit(board, "b", 1)
        assert (listed("daily"), listed("rolling_3d")) == ({"b": 1}, {"b": 5})
        engine.submit(board, "a", corrected, at=moments[1])
        assert listed("rolling_3d") == {"a": total, "b": 5}
        check(engine, board, definition)


def test_a_row_counts_until_the_moment_at_which_its_window_may_be_deleted():
    """From that moment on Valkey may not have the window any more, so neither scores nor removals count."""
    definition = parse_definition({"windows": [{"period": "daily", "keep": 1}]})
    board = Board(BoardRef.parse("fold/ended"), definition, 1, cluster=False)
    (zoned,) = board.zoned_windows(board.zone_of(WHOLE))
    slot = zoned.calendar.at(START)
    until = zoned.held_until(slot)
    assert until is not None
    fold = Fold(board, zoned, slot, WHOLE)

    def submitted(score: float, now: Moment) -> JournalRow:
        return JournalRow(0, "", b"a", score, START, op="last", now=now)

    def placed(score: float, now: Moment) -> JournalRow:
        return JournalRow(0, "", b"a", score, START, op=f"daily|{slot.text}", kind=PLACE, now=now)

    def removed(now: Moment) -> JournalRow:
        return JournalRow(0, "", b"a", kind=REMOVE, now=now)

    before = submitted(1, START)
    for row in (submitted, placed):
        assert fold.entry([before, row(2, until - 1)]) == (2, START)
        assert fold.entry([before, row(2, until)]) == (1, START)
        assert fold.entry([row(2, until)]) is None
    assert fold.entry([before, removed(until - 1)]) is None
    assert fold.entry([before, removed(until)]) == (1, START)
