"""Days of two campuses with workers stopped at random; boards, rows and streaks equal a plain count."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from campus_stage import AUCKLAND, OSLO, Stage, user

from laurels.activity.scoring import SCOPES
from laurels.activity.store.people import User
from laurels.moments import moment_of

BEGINS = datetime(2025, 10, 24, 0, tzinfo=UTC)
EVENTS = 250
HOURS = 72
HOMES = {user(n): (OSLO, AUCKLAND)[n % 2] for n in range(1, 25)}
ZONES = {member: ZoneInfo(home.timezone) for member, home in HOMES.items()}


@dataclass
class Count:
    """What one user did on one day."""

    done: dict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))
    writers: set[str] = field(default_factory=set[str])
    accepting: set[str] = field(default_factory=set[str])

    def pillars(self) -> dict[str, Fraction]:
        done = self.done
        return {
            "social": 3 * done["invites"]
            + 5 * done["friends"]
            + Fraction(3, 10) * min(done["dm"], 60)
            + Fraction(15, 100) * min(done["room"], 80),
            "engagement": Fraction(
                2 * done["played"] + 3 * done["won"] + min(done["join"], 6) + 2 * min(done["created"], 2)
            ),
            "popularity": Fraction(min(len(self.writers), 20) + 2 * min(len(self.accepting), 10)),
        }


Days = dict[tuple[str, int], Count]


def ymd_of(member: str, at: datetime) -> int:
    return int(f"{at.astimezone(ZONES[member]):%Y%m%d}")


def some_events(chosen: random.Random) -> list[tuple[datetime, str, dict[str, str]]]:
    """Too far apart for a burst."""
    events: list[tuple[datetime, str, dict[str, str]]] = []
    for number in range(EVENTS):
        at = BEGINS + timedelta(hours=HOURS) * number / EVENTS
        one, other = chosen.sample(sorted(HOMES), 2)
        stream, fields = chosen.choice(
            [
                ("x:invites.events", {"event": "accepted", "from": one, "to": other}),
                ("x:friendships.events", {"event": "accepted", "user_a": one, "user_b": other}),
                ("x:chat.events", {"event": "msg:new", "from": one, "to": other}),
                ("x:roomchat.events", {"event": "msg:new", "user_id": one}),
                ("x:rooms.events", {"event": chosen.choice(["created", "join", "leave"]), "user_id": one}),
                ("x:activities.events", {"event": "ended", "a": one, "b": other, "winner": one}),
                ("x:presence.heartbeats", {"user_id": one}),
            ]
        )
        late = timedelta(hours=chosen.randrange(12)) if chosen.random() < 0.1 else timedelta(0)
        events.append((at - late, stream, fields))
    return events


def counted(events: list[tuple[datetime, str, dict[str, str]]]) -> Days:  # a case a stream
    days: Days = defaultdict(Count)
    for at, stream, fields in events:

        def of(member: str, at: datetime = at) -> Count:
            return days[member, ymd_of(member, at)]

        match stream:
            case "x:invites.events":
                of(fields["from"]).done["invites"] += 1
                of(fields["to"]).accepting.add(fields["from"])
            case "x:friendships.events":
                of(fields["user_a"]).done["friends"] += 1
                of(fields["user_b"]).done["friends"] += 1
            case "x:chat.events":
                of(fields["from"]).done["dm"] += 1
                of(fields["to"]).writers.add(fields["from"])
            case "x:roomchat.events":
                of(fields["user_id"]).done["room"] += 1
            case "x:activities.events":
                of(fields["a"]).done["played"] += 1
                of(fields["b"]).done["played"] += 1
                of(fields["winner"]).done["won"] += 1
            case _:
                of(fields["user_id"]).done[fields.get("event", "")] += 1
    return days


def streak(days: Days, member: str, ymd: int) -> int:
    """All days are in one month."""
    return 1 + streak(days, member, ymd - 1) if (member, ymd) in days else 0


def scores(days: Days) -> dict[tuple[str, int], dict[str, float]]:
    found: dict[tuple[str, int], dict[str, float]] = {}
    for (member, ymd), count in days.items():
        pillars = count.pillars()
        times = 1 + Fraction(streak(days, member, ymd) - 1, 58)
        overall = sum(pillars.values(), Fraction(0)) * times
        found[member, ymd] = {name: float(value) for name, value in {**pillars, "overall": overall}.items()}
    return found


async def work_and_stop(stage: Stage, chosen: random.Random) -> None:
    """Two workers for each task, stopped at random."""
    activity = stage.laurels.activity
    works: list[Any] = [activity.accrual.run_once, activity.rescorer.run_once, stage.finalize]
    tasks = [asyncio.ensure_future(work()) for work in works for _ in range(2)]
    for task in chosen.sample(tasks, len(tasks)):
        for _ in range(chosen.randrange(60)):
            await asyncio.sleep(0)
        if chosen.random() < 0.7:
            task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task


async def test_everything_equals_a_plain_count_while_workers_are_stopped(stage: Stage):
    await stage.open(OSLO, AUCKLAND)
    await stage.laurels.activity.store.put_users([User(each, home.id) for each, home in HOMES.items()])
    chosen = random.Random(20251024)  # noqa: S311  # a seed, not a secret
    events = some_events(chosen)
    for number, (at, stream, fields) in enumerate(events):
        stage.clock.now = moment_of(BEGINS + timedelta(hours=HOURS) * number / EVENTS)
        await stage.tell(stream, fields, at)
        if number % 50 == 49:
            await work_and_stop(stage, chosen)
    await stage.count()  # what those left that were stopped, before its days expire
    stage.clock.now = moment_of(BEGINS + timedelta(hours=HOURS + 26))
    for _ in range(2):
        await stage.count()
        await stage.finalize()

    days = counted(events)
    expected = scores(days)
    stored = {
        (row[0], row[1]): dict(zip(SCOPES, map(float, row[2:6]), strict=True))
        for row in await stage.rows(
            "SELECT user_id::text, ymd, social, popularity, engagement, overall FROM lb_daily"
        )
    }
    assert stored == expected
    ranks = await stage.rows("SELECT user_id::text, ymd, rank_overall FROM lb_daily")
    for member, ymd, rank in ranks:
        rivals = [
            values["overall"]
            for (other, day), values in expected.items()
            if day == ymd and HOMES[other] == HOMES[member]
        ]
        assert rank == 1 + sum(each > expected[member, ymd]["overall"] for each in rivals)

    for home in (OSLO, AUCKLAND):
        stage.campus = home
        for ymd in {ymd for _, ymd in expected}:
            for scope in SCOPES:
                on_board = await stage.board(scope, day=str(ymd))
                assert on_board == {
                    member: values[scope]
                    for (member, day), values in expected.items()
                    if day == ymd and HOMES[member] == home
                }, (home.name, ymd, scope)

    kept = await stage.rows("SELECT user_id::text, current, best, last_active_ymd FROM streaks ORDER BY 1")
    assert kept == [
        (
            member,
            streak(days, member, max(ymd for other, ymd in days if other == member)),
            max(streak(days, member, ymd) for other, ymd in days if other == member),
            max(ymd for other, ymd in days if other == member),
        )
        for member in sorted({member for member, _ in days})
    ]
