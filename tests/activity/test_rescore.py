from __future__ import annotations

from typing import TYPE_CHECKING

from campus_stage import OSLO, Stage, user

from laurels.activity.rankings import PERIODS, Rankings, board_of
from laurels.activity.scoring import SCOPES
from laurels.activity.valkey_keys import SHARDS
from laurels.clock import FixedClock
from laurels.engine import Laurels

if TYPE_CHECKING:
    import pytest

    from laurels.activity.days import Day
    from laurels.activity.scoring import Scores
    from laurels.activity.store.people import Campus


async def marks(stage: Stage) -> int:
    keys = stage.laurels.activity.keys
    return sum([await stage.laurels.valkey.command("ZCARD", keys.changed(n)) for n in range(SHARDS)])


async def test_a_changed_user_is_on_every_board_under_its_documented_name(stage: Stage):
    await stage.open(OSLO)
    stage.go_to("2025-10-24 12:00")
    await stage.play(1, 2)
    await stage.write(2, 1)
    await stage.count()
    expected = {
        "social": {user(1): 0, user(2): 0.3},
        "engagement": {user(1): 5, user(2): 2},
        "popularity": {user(1): 1, user(2): 0},
        "overall": {user(1): 6, user(2): 2.3},
    }
    for scope in SCOPES:
        for period in PERIODS:
            assert await stage.board(scope, period) == expected[scope], (scope, period)
    assert await marks(stage) == 0
    assert await stage.laurels.activity.rescorer.run_once() == 0


async def test_boards_live_as_long_as_documented(stage: Stage):
    await stage.open(OSLO)
    stage.go_to("2025-10-24 12:00")
    await stage.play(1, 2)
    await stage.count()
    for period, days in (("daily", 30), ("weekly", 84), ("monthly", 180)):
        key = f"lb:z:overall:{period}:{OSLO.id}:20251024"
        lives = await stage.laurels.valkey.command("TTL", key)
        assert days * 86_400 <= lives <= (days + 15) * 86_400, period


async def test_weeks_and_months_are_sums_of_the_last_days(stage: Stage):
    await stage.open(OSLO)
    for day, games in (("2025-10-01", 1), ("2025-10-18", 2), ("2025-10-24", 3)):
        stage.go_to(f"{day} 12:00")
        for _ in range(games):
            await stage.play(1, 2)
        await stage.end_day(day)
    await stage.finalize()
    sums = {
        (period, day): (await stage.board("engagement", period, day))[user(1)]
        for period, day in (("weekly", "20251024"), ("monthly", "20251024"), ("daily", "20251024"))
    }
    assert sums == {("weekly", "20251024"): 25, ("monthly", "20251024"): 30, ("daily", "20251024"): 15}
    stage.go_to("2025-10-25 12:00")
    page = await stage.laurels.page(str(board_of("engagement", OSLO.id)), period="rolling_7d")
    assert [entry.score for entry in page.entries] == [15, 6]


async def test_boards_after_midnight_count_the_streak_before_the_day_is_finalized(stage: Stage):
    await stage.open(OSLO)
    for day in ("2025-10-23", "2025-10-24"):
        stage.go_to(f"{day} 12:00")
        await stage.play(1, 2)
        await stage.end_day(day) if day == "2025-10-23" else await stage.count()
    stage.go_to("2025-10-25 00:01")
    await stage.play(1, 2)
    await stage.count()
    provisional = await stage.board()
    assert provisional[user(1)] == 5 * 60 / 58
    stage.go_to("2025-10-25 00:06")
    await stage.finalize()
    await stage.play(3, 4)
    await stage.end_day("2025-10-25")
    final = await stage.board(day="20251025")
    assert {member: final[member] for member in provisional} == provisional


async def test_a_change_while_scores_are_computed_is_scored_in_the_next_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    await stage.open(OSLO)
    stage.go_to("2025-10-24 12:00")
    await stage.play(1, 2)
    await stage.laurels.activity.accrual.run_once()
    place = Rankings.place

    async def meanwhile(self: Rankings, campus: Campus, day: Day, scores: dict[str, Scores]) -> int:
        monkeypatch.setattr(Rankings, "place", place)
        await stage.play(1, 2)
        await stage.laurels.activity.accrual.run_once()
        return await place(self, campus, day, scores)

    monkeypatch.setattr(Rankings, "place", meanwhile)
    await stage.laurels.activity.rescorer.run_once()
    assert await stage.board() == {user(1): 5, user(2): 2}
    assert await marks(stage) == 2
    await stage.laurels.activity.rescorer.run_once()
    assert await stage.board() == {user(1): 10, user(2): 4}


async def test_a_day_that_is_finalized_while_scores_are_placed_is_finalized_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    await stage.open(OSLO)
    stage.go_to("2025-10-24 12:00")
    await stage.play(1, 2)
    await stage.laurels.activity.accrual.run_once()
    stage.go_to("2025-10-25 00:06")
    place = Rankings.place

    async def meanwhile(self: Rankings, campus: Campus, day: Day, scores: dict[str, Scores]) -> int:
        monkeypatch.setattr(Rankings, "place", place)
        await stage.finalize()
        return await place(self, campus, day, scores)

    monkeypatch.setattr(Rankings, "place", meanwhile)
    await stage.laurels.activity.rescorer.run_once()
    asked = "SELECT asked - answered FROM laurels.lb_days WHERE ymd = 20251024"
    assert await stage.rows(asked) == [(1,)]
    await stage.finalize()
    assert await stage.rows(asked) == [(0,)]


async def test_marks_of_a_finalized_day_request_it_again(stage: Stage):
    await stage.open(OSLO)
    stage.go_to("2025-10-24 12:00")
    await stage.play(1, 2)
    await stage.end_day("2025-10-24")
    assert await marks(stage) == 2
    await stage.count()
    assert await marks(stage) == 0
    assert await stage.rows("SELECT asked, answered FROM laurels.lb_days WHERE ymd = 20251024") == [(2, 1)]


async def test_a_campus_lives_on_a_cluster_too(campus_urls: tuple[str, str], cluster_url: str, stage: Stage):
    """Uses `stage` for its empty tables."""
    clock = FixedClock()
    async with Laurels(valkey_url=cluster_url, postgres_url=campus_urls[1], clock=clock) as laurels:
        spread = Stage(laurels, clock)
        await spread.open(OSLO)
        spread.go_to("2025-10-24 12:00")
        await spread.play(1, 2)
        await spread.write(2, 1)
        await spread.count()
        board = str(board_of("overall", OSLO.id))
        for period in PERIODS.values():
            page = await laurels.page(board, period=period)
            assert [(entry.member, entry.score) for entry in page.entries] == [(user(1), 6), (user(2), 2.3)]
        await spread.end_day("2025-10-24")
        assert await spread.daily(20251024) == [(user(1), 6, 1), (user(2), 2.3, 2)]
        assert await spread.streak(1) == (1, 1, 20251024)
        assert await laurels.activity.relay.run_once() > 0
