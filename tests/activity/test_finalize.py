from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest
from campus_stage import AUCKLAND, CAIRO, HONOLULU, KIRITIMATI, OSLO, PAGO_PAGO, Stage, user
from sqlalchemy import insert

from laurels.activity.store.people import Campus, User
from laurels.engine import Laurels
from laurels.postgres import tables

DIES = Path(__file__).with_name("finalize_and_die.py")


async def play_a_day(stage: Stage, day: str = "2025-10-24") -> None:
    """User 1 beats 2 and 3, and gets a message from 2."""
    stage.go_to(f"{day} 12:00")
    await stage.play(1, 2)
    await stage.play(1, 3)
    await stage.write(2, 1)


A_DAY = [(user(1), 11.0, 1), (user(2), 2.3, 2), (user(3), 2.0, 3)]


async def test_a_day_is_frozen_with_scores_ranks_and_counters(stage: Stage):
    await stage.open(OSLO)
    await play_a_day(stage)
    await stage.end_day("2025-10-24")
    rows = await stage.rows(
        "SELECT user_id::text, social, engagement, popularity, overall, rank_overall FROM lb_daily "
        "WHERE ymd = 20251024 ORDER BY rank_overall"
    )
    assert [(row[0], *map(float, row[1:])) for row in rows] == [
        (user(1), 0, 10, 1, 11, 1),
        (user(2), 0.3, 2, 0, 2.3, 2),
        (user(3), 0, 2, 0, 2, 3),
    ]
    counted = await stage.rows(
        "SELECT acts_played, acts_won, dm_sent, uniq_senders, peers, streak "
        "FROM laurels.lb_counters ORDER BY user_id"
    )
    assert counted == [(2, 2, 0, 1, 1, 1), (1, 0, 1, 0, 0, 1), (1, 0, 0, 0, 0, 1)]
    assert await stage.rows("SELECT policy, revision, active FROM laurels.lb_days WHERE ymd = 20251024") == [
        (1, 1, 3)
    ]


async def test_equal_scores_share_a_rank_and_a_user_without_a_score_has_a_row(stage: Stage):
    await stage.open(OSLO)
    stage.go_to("2025-10-24 12:00")
    await stage.play(1, 3)
    await stage.play(2, 4)
    await stage.beat(5)
    await stage.end_day("2025-10-24")
    assert await stage.daily(20251024) == [
        (user(1), 5, 1), (user(2), 5, 1), (user(3), 2, 3), (user(4), 2, 3), (user(5), 0, 5),
    ]  # fmt: skip
    assert (await stage.streak(5))[0] == 1


async def test_a_day_is_due_five_minutes_after_its_end_and_not_before(stage: Stage):
    await stage.open(OSLO)
    await play_a_day(stage)
    await stage.count()
    stage.go_to("2025-10-25 00:04:59")
    await stage.finalize()
    assert await stage.daily(20251024) == []
    stage.go_to("2025-10-25 00:05")
    await stage.finalize()
    assert await stage.daily(20251024) == A_DAY


async def test_finalizing_again_changes_nothing(stage: Stage):
    await stage.open(OSLO)
    await play_a_day(stage)
    await stage.end_day("2025-10-24")
    before = await stage.everything()
    stage.go_to("2025-10-25 09:00")
    await stage.laurels.activity.finalizer.finalize(OSLO, 20251024)
    await stage.finalize()
    assert await stage.everything() == before
    assert await stage.rows("SELECT revision FROM laurels.lb_days WHERE ymd = 20251024") == [(1,)]


async def test_two_workers_at_once_leave_the_same_rows_as_one(stage: Stage):
    await stage.open(OSLO)
    await play_a_day(stage)
    await stage.count()
    stage.go_to("2025-10-25 00:06")
    settings = stage.laurels.settings
    urls = settings.valkey_url, settings.postgres_url
    async with Laurels(valkey_url=urls[0], postgres_url=urls[1], clock=stage.clock) as other:
        both = (stage.laurels.activity.finalizer, other.activity.finalizer)
        await asyncio.gather(*(each.finalize(OSLO, 20251024) for each in both for _ in range(3)))
    assert await stage.daily(20251024) == A_DAY
    told = await stage.rows("SELECT event, count(*) FROM laurels.lb_outbox GROUP BY event ORDER BY event")
    assert told == [("badge:awarded", 3), ("day:finalized", 1), ("streak:changed", 3)]


async def test_a_rerun_repairs_what_a_killed_worker_left(stage: Stage):
    await stage.open(OSLO)
    await play_a_day(stage)
    await stage.count()
    stage.go_to("2025-10-25 00:06")
    settings = stage.laurels.settings
    urls = settings.valkey_url or "", settings.postgres_url or ""
    command = [sys.executable, str(DIES), *urls, str(stage.clock.now)]
    died = await asyncio.to_thread(subprocess.run, command, check=False)
    assert died.returncode == -signal.SIGKILL
    assert await stage.rows("SELECT asked, answered FROM laurels.lb_days WHERE ymd = 20251024") == [(1, 0)]
    assert await stage.daily(20251024) == []
    await stage.finalize()
    assert await stage.daily(20251024) == A_DAY
    assert await stage.board(day="20251024") == {member: score for member, score, _ in A_DAY}
    told = await stage.rows(
        "SELECT event, count(*) FROM laurels.lb_outbox "
        "WHERE (payload ->> 'ymd')::int = 20251024 OR event LIKE 'badge%' GROUP BY event ORDER BY event"
    )
    assert told == [("badge:awarded", 3), ("day:finalized", 1), ("streak:changed", 3)]


async def test_events_that_come_late_correct_the_day(stage: Stage):
    await stage.open(OSLO)
    await play_a_day(stage)
    await stage.end_day("2025-10-24")
    for _ in range(2):
        await stage.play(3, 4, at=stage.at("2025-10-24 23:59"))
    await stage.count()
    await stage.finalize()
    corrected = [(user(3), 12.0, 1), (user(1), 11.0, 2), (user(4), 4.0, 3), (user(2), 2.3, 4)]
    assert await stage.daily(20251024) == corrected
    assert await stage.board(day="20251024") == {member: score for member, score, _ in corrected}
    assert await stage.rows("SELECT revision, active FROM laurels.lb_days WHERE ymd = 20251024") == [(2, 4)]


async def test_a_late_event_lets_the_days_after_it_follow(stage: Stage):
    await stage.open(OSLO)
    stage.go_to("2025-10-23 12:00")
    await stage.beat(1)
    await stage.end_day("2025-10-23")
    stage.go_to("2025-10-25 12:00")
    await stage.play(1, 2)
    await stage.end_day("2025-10-25")
    assert await stage.streak(1) == (1, 1, 20251025)
    assert await stage.daily(20251025) == [(user(1), 5, 1), (user(2), 2, 2)]
    await stage.beat(1, at=stage.at("2025-10-24 20:00"))
    await stage.count()
    await stage.finalize()
    assert await stage.streak(1) == (3, 3, 20251025)
    assert await stage.daily(20251025) == [(user(1), 5 * 60 / 58, 1), (user(2), 2, 2)]
    assert (await stage.board(day="20251025"))[user(1)] == 5 * 60 / 58


async def test_an_event_that_comes_when_the_counters_are_gone_is_counted_as_late_and_changes_nothing(
    stage: Stage,
):
    await stage.open(OSLO)
    await play_a_day(stage)
    await stage.end_day("2025-10-24")
    before = await stage.everything()
    stage.go_to("2025-10-27 00:00:01")
    await stage.play(3, 4, at=stage.at("2025-10-24 23:59"))
    await stage.count()
    assert sum(lag.late for lag in (await stage.laurels.activity.accrual.lags()).values()) == 3
    await stage.laurels.activity.finalizer.finalize(OSLO, 20251024)
    after = await stage.everything()
    assert {table: after[table] for table in after if table != "laurels.lb_outbox"} == {
        table: before[table] for table in before if table != "laurels.lb_outbox"
    }


async def test_a_day_is_scored_again_from_what_was_stored_when_valkey_has_lost_it(stage: Stage):
    await stage.open(OSLO)
    await play_a_day(stage)
    await stage.end_day("2025-10-24")
    before = await stage.everything()
    await stage.laurels.valkey.command("FLUSHDB")
    await stage.laurels.activity.finalizer.finalize(OSLO, 20251024)
    assert await stage.everything() == before
    assert await stage.board(day="20251024") == {member: score for member, score, _ in A_DAY}


async def test_missed_days_are_finalized_in_order(stage: Stage):
    await stage.open(OSLO)
    for day in ("2025-10-24", "2025-10-25"):
        await play_a_day(stage, day)
        await stage.count()
    stage.go_to("2025-10-26 15:00")
    await stage.finalize()
    assert await stage.rows("SELECT DISTINCT ymd FROM lb_daily ORDER BY 1") == [(20251024,), (20251025,)]
    assert await stage.streak(1) == (2, 2, 20251025)
    stage.go_to("2025-10-30 15:00")
    await stage.finalize()
    days = await stage.rows("SELECT ymd, active FROM laurels.lb_days WHERE ymd >= 20251024 ORDER BY ymd")
    assert days == [(20251024, 3), (20251025, 3), (20251026, 0), (20251027, 0), (20251028, 0), (20251029, 0)]
    assert await stage.streak(1) == (2, 2, 20251025)


async def test_thirty_days_in_a_row_across_a_change_of_clocks_are_a_streak_of_thirty(stage: Stage):
    await stage.open(OSLO)
    first = date(2025, 10, 5)  # clocks go back on October 26
    for number in range(32):
        stage.go_to(f"{first + timedelta(days=number)} {('00:01', '23:59')[number % 2]}")
        await stage.beat(1)
        if number == 29:
            await stage.play(1, 2)
        await stage.laurels.activity.accrual.run_once()
        if number == 1:
            await stage.finalize()
    await stage.end_day(f"{first + timedelta(days=31)}")
    reached = await stage.rows(
        "SELECT streak FROM laurels.lb_counters WHERE user_id = :user ORDER BY ymd", user=user(1)
    )
    assert [row[0] for row in reached] == list(range(1, 33))
    assert await stage.streak(1) == (32, 32, 20251105)
    assert await stage.badges("streak_30") == [(user(1), 20251103)]
    assert await stage.daily(20251103) == [(user(1), 7.5, 1), (user(2), 2, 2)]


async def test_a_missed_day_leaves_the_streak_until_the_next_touch(stage: Stage):
    await stage.open(OSLO)
    for day in ("2025-10-23", "2025-10-24"):
        stage.go_to(f"{day} 12:00")
        await stage.beat(1)
        await stage.end_day(day)
    stage.go_to("2025-10-26 12:00")
    await stage.finalize()
    assert await stage.streak(1) == (2, 2, 20251024)
    await stage.beat(1)
    await stage.end_day("2025-10-26")
    assert await stage.streak(1) == (1, 2, 20251026)


async def test_an_existing_streak_goes_on(stage: Stage):
    await stage.open(OSLO)
    row = {"user_id": user(1), "current": 14, "best": 20, "last_active_ymd": 20251023}
    async with stage.laurels.postgres.writing() as connection:
        await connection.execute(insert(tables.streaks).values(row))
    stage.go_to("2025-10-24 12:00")
    await stage.play(1, 2)
    await stage.end_day("2025-10-24")
    assert await stage.streak(1) == (15, 20, 20251024)
    assert await stage.daily(20251024) == [(user(1), 5 * 72 / 58, 1), (user(2), 2, 2)]
    await stage.laurels.activity.finalizer.finalize(OSLO, 20251024)
    assert await stage.streak(1) == (15, 20, 20251024)


async def test_days_end_at_each_campuss_own_midnight_on_both_sides_of_the_date_line(stage: Stage):
    await stage.open(AUCKLAND, HONOLULU)
    await stage.laurels.activity.store.put_users([User(user(n), HONOLULU.id) for n in (11, 12)])
    stage.go_to("2025-10-25 00:30", AUCKLAND)  # 2025-10-24 01:30 in Honolulu
    await stage.play(1, 2)
    await stage.play(11, 12)
    await stage.count()
    stage.go_to("2025-10-25 00:06", HONOLULU)  # 2025-10-25 23:06 in Auckland
    await stage.finalize()
    found = "SELECT ymd, campus_id::text, count(*) FROM lb_daily GROUP BY 1, 2 ORDER BY 1"
    assert await stage.rows(found) == [(20251024, HONOLULU.id, 2)]
    stage.go_to("2025-10-26 00:06", AUCKLAND)
    await stage.finalize()
    assert await stage.rows(found) == [(20251024, HONOLULU.id, 2), (20251025, AUCKLAND.id, 2)]


async def test_a_streak_survives_a_move_across_the_date_line(stage: Stage):
    await stage.open(PAGO_PAGO, KIRITIMATI)
    stage.go_to("2025-10-24 10:00", PAGO_PAGO)
    await stage.beat(1)
    await stage.laurels.activity.accrual.run_once()
    await stage.laurels.valkey.command("SET", stage.laurels.activity.keys.campus_of(user(1)), KIRITIMATI.id)
    stage.go_to("2025-10-25 23:30", KIRITIMATI)
    await stage.play(1, 2)
    await stage.count()
    stage.campus = KIRITIMATI
    assert (await stage.board())[user(1)] == 5 * 59 / 58
    stage.go_to("2025-10-26 00:06", KIRITIMATI)
    await stage.finalize()
    assert [row[0] for row in await stage.rows("SELECT ymd FROM laurels.lb_counters")] == [20251025]
    stage.go_to("2025-10-25 00:06", PAGO_PAGO)
    await stage.finalize()
    assert await stage.streak(1) == (2, 2, 20251025)
    assert await stage.daily(20251025) == [(user(1), 5 * 59 / 58, 1)]
    assert (await stage.board(day="20251025"))[user(1)] == 5 * 59 / 58


async def test_a_day_whose_midnight_does_not_exist_ends_where_the_clock_lands(stage: Stage):
    await stage.open(CAIRO)
    stage.go_to("2025-04-24 23:59")  # the next thing that the clock shows is 01:00
    await stage.play(1, 2)
    stage.go_to("2025-04-25 01:00")
    await stage.play(3, 1)
    await stage.count()
    stage.go_to("2025-04-25 01:05")
    await stage.finalize()
    assert [row[0] for row in await stage.daily(20250424)] == [user(1), user(2)]
    assert (await stage.board(day="20250425"))[user(3)] == 5


async def test_a_user_who_changes_campus_stays_for_the_day_where_it_began(stage: Stage):
    await stage.open(OSLO, AUCKLAND)
    stage.go_to("2025-10-24 09:00")
    await stage.play(1, 2)
    await stage.count()
    await stage.laurels.valkey.command("SET", stage.laurels.activity.keys.campus_of(user(1)), AUCKLAND.id)
    stage.go_to("2025-10-24 10:00")
    await stage.play(1, 2)
    await stage.end_day("2025-10-24")
    assert (await stage.daily(20251024))[0] == (user(1), 10, 1)


async def test_a_failure_in_one_campus_stops_no_other(stage: Stage):
    await stage.open(OSLO, Campus(user(9100), "Nowhere", "Mars/Olympus"))
    await play_a_day(stage)
    await stage.end_day("2025-10-24")
    assert await stage.daily(20251024) == A_DAY
    assert [campus for campus, _ in await stage.laurels.activity.reader.campuses()] == [OSLO]


async def test_the_best_of_seven_days_earn_a_badge_on_sunday_alone(stage: Stage):
    await stage.open(OSLO)
    for day in ("2025-10-24", "2025-10-25", "2025-10-26", "2025-10-27"):
        stage.go_to(f"{day} 12:00")
        for winner in range(1, 13):
            await stage.beat(winner)
        for _ in range(3 if day == "2025-10-24" else 1):
            await stage.play(1, 2)
        await stage.end_day(day)
    earned = await stage.badges("weekly_top10")
    assert earned == [(user(1), 20251026), (user(2), 20251026)]
    (meta,) = await stage.rows(
        "SELECT meta FROM badges WHERE kind = 'weekly_top10' AND user_id = :user", user=user(1)
    )
    assert meta[0]["score"] == pytest.approx(15 + 5 * 59 / 58 + 5 * 60 / 58)
    assert len(await stage.badges("daily_top10")) == 8


async def test_a_late_event_of_a_day_before_changes_the_weeks_badges(stage: Stage):
    await stage.open(OSLO)
    stage.go_to("2025-10-25 12:00")
    await stage.play(1, 2)
    await stage.end_day("2025-10-25")
    stage.go_to("2025-10-26 12:00")
    await stage.beat(1)
    await stage.end_day("2025-10-26")
    assert await stage.badges("weekly_top10") == [(user(1), 20251026), (user(2), 20251026)]
    await stage.play(3, 4, at=stage.at("2025-10-25 13:00"))
    await stage.count()
    await stage.finalize()
    assert await stage.badges("weekly_top10") == [(user(n), 20251026) for n in (1, 2, 3, 4)]


async def test_a_correction_revokes_a_badge_and_publishes_it(stage: Stage):
    await stage.open(OSLO)
    stage.go_to("2025-10-24 12:00")
    await stage.play(1, 2)
    for n in range(3, 12):
        await stage.write(n, 1)
    await stage.end_day("2025-10-24")
    assert len(await stage.badges("daily_top10")) == 11  # nine share the third rank
    for n in range(12, 21):
        await stage.play(n, n + 10, at=stage.at("2025-10-24 13:00"))
    await stage.count()
    await stage.finalize()
    assert {holder for holder, _ in await stage.badges("daily_top10")} == {user(1), *map(user, range(12, 21))}
    told = await stage.rows(
        "SELECT payload ->> 'user_id' FROM laurels.lb_outbox WHERE event = 'badge:revoked'"
    )
    assert {row[0] for row in told} == {user(2), *map(user, range(3, 12))}


async def test_fifteen_peers_in_seven_days_earn_a_badge_once_in_any_seven_days(stage: Stage):
    await stage.open(OSLO)
    for number in range(10):
        stage.go_to(f"{date(2025, 10, 20) + timedelta(days=number)} 12:00")
        for sender in range(2, 7):  # the same five each day
            await stage.write(sender, 1)
        await stage.laurels.activity.accrual.run_once()
        if number == 1:
            await stage.finalize()
    await stage.end_day("2025-10-29")
    assert await stage.badges("social_butterfly") == [(user(1), 20251022), (user(1), 20251029)]


async def test_a_user_who_wrote_and_accepted_is_one_peer(stage: Stage):
    await stage.open(OSLO)
    stage.go_to("2025-10-24 12:00")
    await stage.write(2, 1)
    await stage.write(3, 1)
    for accepting in (3, 4):
        await stage.accept(accepting, 1)
    await stage.end_day("2025-10-24")
    assert await stage.rows("SELECT peers FROM laurels.lb_counters WHERE user_id = :user", user=user(1)) == [
        (3,)
    ]


async def test_scores_are_stored_without_rounding(stage: Stage):
    await stage.open(OSLO)
    stage.go_to("2025-10-24 12:00")
    for reader in range(2, 9):
        await stage.write(1, reader)
    await stage.end_day("2025-10-24")
    stage.go_to("2025-10-25 12:00")
    await stage.write(1, 2)
    await stage.end_day("2025-10-25")
    (row,) = [row for row in await stage.daily(20251025) if row[0] == user(1)]
    assert row[1] == 0.3 * 59 / 58
    assert (await stage.board(day="20251025"))[user(1)] == row[1]
