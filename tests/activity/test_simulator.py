from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo

import pytest
from accrual_oracle import Folded

from laurels.activity.events import read_event
from laurels.activity.simulator import SimulatedEvent, SimulationPlan, World, simulate
from laurels.activity.valkey_keys import STREAMS
from laurels.errors import InvalidInput
from laurels.moments import moment_of

NOON = datetime(2025, 11, 3, 12, tzinfo=UTC)  # the day after New York's clocks went back
PLAN = SimulationPlan(campuses=3, users=120, days=3, events=8000)


def play(seed: int, plan: SimulationPlan = PLAN) -> tuple[World, list[SimulatedEvent]]:
    chance = Random(seed)  # noqa: S311  # no secret
    world = World(plan, chance)
    return world, list(simulate(world, plan, moment_of(NOON), chance))


def test_the_same_seed_plays_the_same():
    one, again, other = play(7), play(7), play(8)
    assert (one[0].people, one[1]) == (again[0].people, again[1])
    assert one[1] != other[1]


def test_every_event_is_one_that_can_be_read():
    _, events = play(7)
    for event in events:
        fields = {name.encode(): value.encode() for name, value in event.fields.items()}
        assert read_event(event.stream, 0, fields, moment_of(NOON) // 1000).at == event.at
    assert {event.stream for event in events} == set(STREAMS)


def test_events_come_in_order_and_about_as_many_as_were_asked_for():
    _, events = play(7)
    assert all(one.at <= next_.at for one, next_ in pairwise(events))
    assert events[-1].at < moment_of(NOON) // 1000
    assert 0.95 * 8000 <= len(events) <= 1.05 * 8000


def test_campuses_lie_on_both_sides_of_the_date_line_and_one_has_summer_time():
    world, _ = play(7)
    offsets = [NOON.astimezone(ZoneInfo(campus.timezone)).utcoffset() for campus in world.campuses]
    hours = [offset.total_seconds() / 3600 for offset in offsets if offset is not None]
    assert max(hours) - min(hours) > 22
    summer = NOON.replace(month=7)
    assert any(
        NOON.astimezone(ZoneInfo(campus.timezone)).utcoffset()
        != summer.astimezone(ZoneInfo(campus.timezone)).utcoffset()
        for campus in world.campuses
    )


def test_people_sleep_have_friends_and_some_write_too_much():
    world, events = play(7)
    zones = {person.id: world.campuses[person.campus].timezone for person in world.people}
    hours: Counter[int] = Counter()
    for event in events:
        if user := event.fields.get("user_id"):
            hours[datetime.fromtimestamp(event.at / 1000, ZoneInfo(zones[user])).hour] += 1
    assert hours[20] > 4 * hours[3]
    folded = Folded(zones, NOON).add_all(events)
    muted = {user for ymd, user in list(folded.counters) if folded.muted((ymd, user))}
    assert 0 < len(muted) <= 2


@pytest.mark.parametrize(("plan", "field"), [({"campuses": 9}, "campuses"), ({"users": 5}, "users")])
def test_a_plan_that_cannot_be_played_is_refused(plan: dict[str, int], field: str):
    with pytest.raises(InvalidInput, match=field):
        SimulationPlan(**plan)
