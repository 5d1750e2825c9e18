from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest

from laurels.activity import valkey_keys
from laurels.activity.accumulate import EventSource, SourcedEffect, fold
from laurels.activity.days import day_at, day_of
from laurels.activity.events import ACCEPT, SENDER, TOUCH, Effect
from laurels.activity.guard import SentMessages
from laurels.activity.store.people import Campus
from laurels.moments import HOUR, moment_of

NOON = moment_of(datetime(2025, 10, 24, 12, tzinfo=UTC))
UTC_CAMPUS = Campus("c", "here", "UTC")


def sourced(
    user: str, what: str, other: str = "", at: int = NOON, stream: str = valkey_keys.CHAT
) -> SourcedEffect:
    return SourcedEffect(Effect(user, what, other), EventSource(stream, "5-1", at // 1000))


def test_effects_fold_into_one_change_for_each_user_and_day():
    second = NOON // 10**6
    effects = [
        sourced("ada", "dm_sent"),
        sourced("ada", "dm_sent", at=NOON + 999_000),
        sourced("ada", "room_sent"),
        sourced("ada", "room_sent", at=NOON - 10**6),
        sourced("ada", SENDER, "bob"),
        sourced("ada", SENDER, "bob"),
        sourced("ada", ACCEPT, "eve"),
        sourced("ada", "friends_new"),
        sourced("ada", "friends_new"),
        sourced("bob", TOUCH),
        sourced("ada", TOUCH, at=NOON - 12 * HOUR - 1000),
    ]
    folded = fold(effects, dict.fromkeys(["ada", "bob"], UTC_CAMPUS), NOON)
    assert list(folded.days) == [(20251024, "ada"), (20251024, "bob"), (20251023, "ada")]
    change = folded.days[20251024, "ada"]
    assert change.seconds == {second: SentMessages(2, 1), second - 1: SentMessages(0, 1)}
    assert (change.senders, change.accepts, change.counts) == ({"bob"}, {"eve"}, {"friends_new": 2})


def test_the_order_of_effects_makes_no_difference():
    chance = Random(3)  # noqa: S311  # no secret
    whats = ("dm_sent", "room_sent", "friends_new", SENDER, ACCEPT, TOUCH)
    effects = [
        sourced(
            chance.choice("abc"),
            chance.choice(whats),
            chance.choice("xyz"),
            NOON - chance.randrange(72) * HOUR,
        )
        for _ in range(300)
    ]
    campuses = {"a": UTC_CAMPUS, "b": Campus("d", "there", "Pacific/Apia")}
    before = fold(effects, campuses, NOON)
    chance.shuffle(effects)
    after = fold(effects, campuses, NOON)
    assert (before.days, before.late) == (after.days, after.late)
    assert {user: sorted(waits) for user, waits in before.parked.items()} == {
        user: sorted(waits) for user, waits in after.parked.items()
    }


def test_late_effects_are_counted_by_stream():
    ended = moment_of(datetime(2025, 10, 23, tzinfo=UTC))
    effects = [sourced("ada", TOUCH, at=ended - 1000), sourced("ada", TOUCH, at=ended)]
    campuses = {"ada": UTC_CAMPUS}
    assert fold(effects, campuses, ended + 48 * HOUR).late == {valkey_keys.CHAT: 1}
    assert fold(effects, campuses, ended + 48 * HOUR - 1).late == {}


def test_parked_effects_are_written_and_read_without_loss():
    waits = [sourced("ada", "dm_sent"), sourced("ada", SENDER, "bob", stream=valkey_keys.INVITES)]
    folded = fold(waits, {}, NOON)
    assert folded.days == {}
    assert [SourcedEffect.from_text("ada", text) for text in folded.parked["ada"]] == waits


@pytest.mark.parametrize(
    ("timezone", "ymd", "hours"),
    [
        ("UTC", 20251024, 24),
        ("America/New_York", 20251102, 25),
        ("America/New_York", 20250309, 23),
        ("Africa/Cairo", 20250425, 23),  # its midnight does not exist
        ("Asia/Kathmandu", 20251024, 24),
    ],
)
def test_a_day_is_found_by_its_date_and_by_every_moment_of_it(timezone: str, ymd: int, hours: int):
    day = day_of(timezone, ymd)
    assert day.ends - day.begins == hours * HOUR
    for moment in (day.begins, day.begins + HOUR, day.ends - 1):
        assert day_at(timezone, moment) == day
    assert day_at(timezone, day.begins - 1).ends == day.begins
    assert day_at(timezone, day.ends).begins == day.ends


def test_a_date_that_a_calendar_skipped_is_no_day():
    with pytest.raises(ValueError, match="Pacific/Apia had no 20111230"):
        day_of("Pacific/Apia", 20111230)
