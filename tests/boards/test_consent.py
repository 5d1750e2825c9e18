"""A change drops entries only of windows that the caller has named."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from laurels.boards.define import Definer
from laurels.boards.definition import parse_definition
from laurels.boards.drop_counts import DropCounter
from laurels.boards.existing_keys import ExistingKeys
from laurels.boards.keys import BoardRef
from laurels.errors import Conflict, Drop, DropNotAllowed, InvalidInput, NotFound
from laurels.history.store.snapshots import SnapshotStore
from laurels.moments import moment_of
from laurels.scores.submission import Submission

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from laurels.boards.board import Board
    from laurels.clock import FixedClock
    from laurels.engine import Laurels as AsyncLaurels
    from laurels.sync import Laurels

    NewBoard = Callable[..., str]

DAILY: dict[str, Any] = {"period": "daily"}
WEEKLY: dict[str, Any] = {"period": "weekly"}
MONTHLY: dict[str, Any] = {"period": "monthly"}
ALL_TIME: dict[str, Any] = {"period": "all_time"}


@dataclass
class Race:
    """What happens behind the checks of a change: somebody submits behind the first, or another process lets
    go of the board behind the second.
    """

    engine: AsyncLaurels
    board: str
    submits: bool = True
    lets_go: int = 0
    checks: int = 0

    async def go_on(self) -> None:
        self.checks += 1
        if self.submits and self.checks == 1:
            assert (await self.engine.submit(self.board, "late", 1)).applied
        if self.lets_go and self.checks % 2 == 0:
            self.lets_go -= 1
            await self.engine.drops.finish(BoardRef.parse(self.board))


@dataclass(frozen=True)
class RacingLosses(DropCounter):
    race: Race

    async def of_change(self, old: Board, board_id: int, new: Board) -> tuple[Drop, ...]:
        found = await super().of_change(old, board_id, new)
        await self.race.go_on()
        return found

    async def of_board(self, old: Board, board_id: int) -> tuple[Drop, ...]:
        found = await super().of_board(old, board_id)
        await self.race.go_on()
        return found


def racing_definer(engine: Laurels, board: str, *, submits: bool = True) -> tuple[Definer, Race]:
    own = engine.engine
    race = Race(own, board, submits)
    drops = own.drops
    losses = RacingLosses(drops.retention, SnapshotStore(own.postgres).counts, own.clock, race)
    existing = ExistingKeys(own.valkey, drops.catalog, drops.retention, own.clock)
    definer = Definer(drops.catalog, own.store, drops, losses, existing)
    return definer, race


def submit(engine: Laurels, board: str, *members: str, **carried: Any) -> None:  # noqa: ANN401  # as `Submission`
    found = [Submission(member, number, **carried) for number, member in enumerate(members)]
    assert engine.submit_many(board, found).accepted == len(members)


def drops_of(engine: Laurels, board: str, **definition: object) -> Sequence[Drop]:
    """What preview says; it is what `define` refuses for, or `define` takes it without a word."""
    previewed = engine.preview(board, definition).drops
    if previewed:
        before = engine.run(engine.engine.definition(board))
        with pytest.raises(DropNotAllowed) as refused:
            engine.define(board, definition)
        assert refused.value.drops == previewed
        assert engine.run(engine.engine.definition_in_force(board)) == before
    else:
        engine.define(board, definition)
    return previewed


def test_a_named_window_is_dropped_with_its_entries(engine: Laurels, new_board: NewBoard):
    groups = [["country"]]
    board = new_board(windows=[ALL_TIME, DAILY, WEEKLY], groups=groups, shards=2)
    submit(engine, board, "ada", "bob", "eve", groups={"country": "BR"})
    last_week = datetime(2025, 10, 23, 13, tzinfo=UTC)
    submit(engine, board, "ada", at=last_week)
    without: dict[str, Any] = {"windows": [ALL_TIME], "groups": groups, "shards": 2}
    # Three members today whole and in Brazil, one yesterday; a week has both days.
    assert drops_of(engine, board, **without) == (Drop("daily", 7, 0), Drop("weekly", 6, 0))
    with pytest.raises(DropNotAllowed) as refused:
        engine.define(board, without, allow_drop="daily")
    assert refused.value.detail == (
        f"the new definition of {board} would drop daily (7 entries) and weekly (6 entries); "
        "to allow it, pass allow_drop=daily,weekly"
    )
    assert engine.page(board, period="weekly").total == 3
    engine.define(board, without, allow_drop=["daily", "weekly"])
    assert engine.page(board).total == 3
    engine.define(board, {**without, "windows": [ALL_TIME, DAILY, WEEKLY]})
    assert engine.page(board, period="weekly").total == 0


def test_a_window_without_entries_needs_no_consent(engine: Laurels, new_board: NewBoard):
    board = new_board(windows=[DAILY, WEEKLY], ties="member")
    submit(engine, board, "ada")
    engine.remove(board, "ada")
    engine.define(board, {"windows": [DAILY], "ties": "member"})
    submit(engine, board, "bob")
    assert engine.page(board).total == 1


def test_a_shorter_keep_drops_the_windows_beyond_it(engine: Laurels, new_board: NewBoard, clock: FixedClock):
    board = new_board(windows=[{**DAILY, "keep": 5}])
    for _ in range(4):
        submit(engine, board, "ada", "bob")
        clock.advance(timedelta(days=1))
    for keep in (6, "P9D", None, 5):
        assert drops_of(engine, board, windows=[{**DAILY, "keep": keep}]) == ()
    assert drops_of(engine, board, windows=[{**DAILY, "keep": 3}]) == (Drop("daily", 4, 0),)
    assert drops_of(engine, board, windows=[{**DAILY, "keep": "P2D"}]) == (Drop("daily", 4, 0),)
    engine.define(board, {"windows": [{**DAILY, "keep": 3}]}, allow_drop="daily")
    assert [window.entries for window in engine.windows(board)] == [0, 2, 2]


def test_windows_past_their_keep_need_no_consent(engine: Laurels, new_board: NewBoard, clock: FixedClock):
    board = new_board(windows=[{**DAILY, "keep": 2}, ALL_TIME], lateness="P3D")
    submit(engine, board, "ada")
    clock.advance(timedelta(days=2))
    assert drops_of(engine, board, windows=[ALL_TIME]) == ()


def test_a_group_is_dropped_with_its_entries_in_every_window(engine: Laurels, new_board: NewBoard):
    windows, both = [DAILY, ALL_TIME], [["country"], ["region", "city"]]
    board = new_board(windows=windows, groups=both)
    submit(engine, board, "ada", "bob", groups={"country": "BR", "region": "asia", "city": "a=b,c"})
    gone = (Drop("daily", 2, 0), Drop("all_time", 2, 0))
    assert drops_of(engine, board, windows=windows, groups=[["region", "city"]]) == gone
    # The order of the dimensions is a part of their names in Valkey.
    assert drops_of(engine, board, windows=windows, groups=[["country"], ["city", "region"]]) == gone
    assert drops_of(engine, board, windows=windows, groups=[*reversed(both)]) == ()
    engine.define(board, {"windows": windows, "groups": [["country"]]}, allow_drop="daily,all_time")
    assert engine.page(board, group="country=BR").total == 2


def test_days_that_only_a_rolling_window_needs_cannot_be_asked_for(engine: Laurels, new_board: NewBoard):
    rolling = {"period": "rolling", "days": 7}
    board = new_board(windows=[rolling, DAILY])
    submit(engine, board, "ada", "bob")
    assert drops_of(engine, board, windows=[rolling]) == (Drop("daily", 2, 0),)
    engine.define(board, {"windows": [rolling]}, allow_drop="daily")
    assert engine.page(board).total == 2
    # Tomorrow's window, which is computed ahead, is not counted.
    assert drops_of(engine, board, windows=[ALL_TIME]) == (Drop("rolling_7d", 2, 0),)


def test_a_timezone_where_a_kept_day_is_over_drops_it(engine: Laurels, new_board: NewBoard):
    windows = [{**DAILY, "keep": 1}, ALL_TIME]
    board = new_board(windows=windows)
    submit(engine, board, "ada")
    assert drops_of(engine, board, windows=windows, timezone="Asia/Tokyo") == ()
    # Where it is tomorrow already.
    assert drops_of(engine, board, windows=windows, timezone="Pacific/Kiritimati") == (Drop("daily", 1, 0),)


def test_an_hour_that_the_new_timezone_lacks_is_dropped(
    engine: Laurels, new_board: NewBoard, clock: FixedClock
):
    clock.now = moment_of(datetime(2025, 10, 26, 1, 30, tzinfo=UTC))  # Lisbon shows 01:30 a second time
    windows = [{"period": "hourly"}, ALL_TIME]
    board = new_board(windows=windows, timezone="Europe/Lisbon")
    submit(engine, board, "ada")
    assert engine.page(board).slot == "2025-10-26T01b"
    assert drops_of(engine, board, windows=windows) == (Drop("hourly", 1, 0),)


def test_a_change_that_drops_no_entries_needs_no_consent(engine: Laurels, new_board: NewBoard):
    windows = [DAILY, ALL_TIME]
    snapshot = [{"period": "daily"}]
    board = new_board(
        windows=windows, dense=True, lateness="P5D", archive={"snapshot": snapshot}, player_writes=True
    )
    submit(engine, board, "ada", "bob")
    assert drops_of(engine, board, windows=windows, archive={"journal": False}) == ()
    assert engine.page(board).total == 2


@pytest.mark.parametrize("removed", ["weekly", "daily"])
def test_entries_that_arrive_between_check_and_change_are_not_dropped(
    engine: Laurels, new_board: NewBoard, removed: str
):
    board = new_board(windows=[MONTHLY, DAILY, WEEKLY])
    submit(engine, board, "ada")
    engine.remove(board, "ada")
    left = [window for window in (MONTHLY, DAILY, WEEKLY) if window["period"] != removed]
    definer, racing = racing_definer(engine, board)
    with pytest.raises(DropNotAllowed) as refused:
        engine.run(definer.define(BoardRef.parse(board), parse_definition({"windows": left})))
    assert refused.value.drops == (Drop(removed, 1, 0),)
    assert racing.checks == 2
    assert engine.page(board, period=removed).total == 1
    submit(engine, board, "bob")
    assert engine.page(board, period=removed).total == 2


def test_entries_that_arrive_between_check_and_drop_keep_the_board(engine: Laurels, new_board: NewBoard):
    board = new_board(windows=[DAILY])
    definer, _ = racing_definer(engine, board)
    with pytest.raises(DropNotAllowed):
        engine.run(definer.drop(BoardRef.parse(board)))
    assert engine.page(board).total == 1
    engine.drop(board, allow_drop="all")


def test_entries_that_arrive_during_a_change_can_forbid_it(engine: Laurels, new_board: NewBoard):
    board = new_board(windows=[DAILY, WEEKLY])
    definer, _ = racing_definer(engine, board)
    wanted = parse_definition({"windows": [DAILY], "score": "int64"})
    with pytest.raises(Conflict, match="holds entries, so score cannot change"):
        engine.run(definer.define(BoardRef.parse(board), wanted))
    assert engine.page(board).total == 1


def test_a_board_that_another_process_lets_go_of_meanwhile_is_held_again(
    engine: Laurels, new_board: NewBoard
):
    board = new_board(windows=[DAILY, WEEKLY])
    definer, racing = racing_definer(engine, board, submits=False)
    racing.lets_go = 2
    engine.run(definer.define(BoardRef.parse(board), parse_definition({"windows": [DAILY]})))
    assert racing.lets_go == 0
    submit(engine, board, "ada")
    assert [window.period for window in engine.windows(board)] == ["daily"]


def test_writes_are_refused_while_the_board_is_held(
    engine: Laurels, other_engine: Laurels, new_board: NewBoard
):
    board = new_board(windows=[DAILY, WEEKLY])
    submit(other_engine, board, "ada")
    other_engine.remove(board, "ada")
    ref = BoardRef.parse(board)
    stored = engine.run(engine.engine.store.get(*ref))
    assert stored
    engine.run(engine.engine.store.hold(*ref, stored.version))
    catalog = engine.engine.drops.catalog
    engine.run(catalog.bar(catalog.compile(stored), stored.version + 1))
    for each in (engine, other_engine):
        with pytest.raises(Exception, match="its definition is being changed; try again"):
            each.submit(board, "bob", 1)
    engine.run(engine.engine.drops.finish_all())  # as the job does when the process that held it is gone
    for each in (engine, other_engine):
        assert each.submit(board, "bob", 1).score == 1


def test_a_board_is_dropped_with_its_entries_if_that_is_allowed(engine: Laurels, new_board: NewBoard):
    board = new_board(windows=[DAILY, ALL_TIME])
    submit(engine, board, "ada", "bob")
    for given in ((), "daily"):
        with pytest.raises(DropNotAllowed) as refused:
            engine.drop(board, allow_drop=given)
        assert refused.value.drops == (Drop("daily", 2, 0), Drop("all_time", 2, 0))
    assert refused.value.detail == (
        f"{board} holds daily (2 entries) and all_time (2 entries); "
        "to drop it with all of that, pass allow_drop=all"
    )
    assert engine.page(board).total == 2
    engine.drop(board, allow_drop="daily,all_time")
    with pytest.raises(NotFound):
        engine.page(board)


def test_an_empty_board_is_dropped_without_consent(engine: Laurels, new_board: NewBoard):
    board = new_board(windows=[DAILY], groups=[["country"]])
    submit(engine, board, "ada", groups={"country": "BR"})
    engine.remove(board, "ada")
    engine.drop(board)
    with pytest.raises(NotFound):
        engine.page(board)


def test_ratings_are_dropped_only_when_that_is_allowed(
    engine: Laurels, new_board: NewBoard, clock: FixedClock
):
    board = new_board(rating={"system": "elo"}, windows=[{**DAILY, "keep": 1}])
    engine.match(board, ["ada", "bob"], "ada")
    clock.advance(timedelta(days=2))
    with pytest.raises(DropNotAllowed) as refused:
        engine.drop(board)
    assert refused.value.drops == (Drop("ratings", 2, 0),)
    engine.drop(board, allow_drop="all")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("wekly", r"allow_drop: .* has no window 'wekly'; it has: daily, weekly"),
        (["weekly", "all"], r"allow_drop: .* has no window 'all'"),
        ("", "allow_drop: name the windows that may be dropped"),
        ("weekly,,daily", "allow_drop: write it as weekly,monthly: '' is not a window's name"),
        ("*", "allow_drop: write it as weekly,monthly: '\\*' is not a window's name"),
    ],
)
def test_consent_that_names_no_window_is_refused(
    engine: Laurels, new_board: NewBoard, given: str | list[str], complaint: str
):
    board = new_board(windows=[DAILY, WEEKLY])
    with pytest.raises(InvalidInput, match=complaint):
        engine.define(board, {"windows": [DAILY]}, allow_drop=given)


def test_consent_can_be_repeated_and_may_name_more_windows(engine: Laurels, new_board: NewBoard):
    board = new_board(windows=[DAILY, WEEKLY])
    submit(engine, board, "ada")
    for _ in range(2):  # again, since the first answer may have been lost
        engine.define(board, {"windows": [DAILY]}, allow_drop=" daily , weekly ")
    engine.define(f"{board}-new", {"windows": [DAILY]}, allow_drop="weekly")
    assert engine.page(board).total == 1
    with pytest.raises(InvalidInput, match="has no window 'weekly'"):
        engine.drop(board, allow_drop=["weekly", "daily"])


def test_a_flow_changes_and_drops_only_its_own_boards(engine: Laurels, new_board: NewBoard):
    flow = engine.engine.index_definer
    mine, theirs = f"{new_board()}-mine", new_board(windows=[DAILY, WEEKLY])
    submit(engine, theirs, "ada")
    both, one = (parse_definition({"windows": windows}) for windows in ([DAILY, WEEKLY], [DAILY]))
    engine.run(flow.define(BoardRef.parse(mine), both))
    catalog = engine.engine.drops.catalog
    board = engine.run(catalog.in_force(BoardRef.parse(mine)))
    assert board.owner == "index"
    engine.run(flow.define(BoardRef.parse(mine), one))
    engine.run(flow.drop(BoardRef.parse(mine)))
    for attempt in (flow.define(BoardRef.parse(theirs), one), flow.drop(BoardRef.parse(theirs))):
        with pytest.raises(DropNotAllowed):
            engine.run(attempt)
    assert engine.page(theirs).total == 1
