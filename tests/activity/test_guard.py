"""Valkey applies the rule of bursts, whatever the order and batches of the messages."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from accrual_stage import NOON
from hypothesis import given, settings
from hypothesis import strategies as some

from laurels.activity.accumulate import DayChange, FoldedEffects
from laurels.activity.days import day_at
from laurels.activity.guard import LENGTH, RATE, SentMessages
from laurels.activity.shard_changes import ShardCall
from laurels.activity.valkey_keys import ActivityKeys, shard_of
from laurels.moments import SECOND, moment_of
from laurels.valkey import activity, hashes
from laurels.valkey.client import Valkey

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from laurels.embedded import Endpoints

START = int(NOON.timestamp())

# What of a day's messages counts, and the first and last second of the last burst.
Judged = tuple[SentMessages, tuple[int, int] | None]


def judged(seconds: dict[int, SentMessages]) -> Judged:
    """The rule, applied to all messages of a day at once."""
    runs: list[list[int]] = []
    for second in sorted(second for second, sent in seconds.items() if sum(sent) > RATE):
        if runs and runs[-1][-1] == second - 1:
            runs[-1].append(second)
        else:
            runs.append([second])
    bursts = [run for run in runs if len(run) > LENGTH]
    muted = {second for burst in bursts for second in burst}
    counting = [sent for second, sent in seconds.items() if second not in muted]
    counted = SentMessages(sum(sent.dms for sent in counting), sum(sent.room for sent in counting))
    return counted, (bursts[-1][0], bursts[-1][-1]) if bursts else None


def steady(dms: int, room: int, seconds: int, start: int = START) -> dict[int, SentMessages]:
    return {start + i: SentMessages(dms, room) for i in range(seconds)}


@pytest.fixture(scope="module")
async def valkey(endpoints: Endpoints) -> AsyncGenerator[Valkey]:
    opened = Valkey(endpoints.valkey_url)
    await opened.load_functions()
    yield opened
    await opened.close()


async def send(valkey: Valkey, user: str, cursor: int, seconds: dict[int, SentMessages]) -> None:
    """Applies one batch of messages of this user."""
    keys, day = ActivityKeys(cluster=False), day_at("UTC", START * SECOND)
    folded = FoldedEffects({(day.ymd, user): DayChange(day, user, "a campus", seconds=seconds)})
    call = ShardCall(keys, shard_of(user), moment_of(NOON))
    stream = f"messages:{user}"
    parked: list[str] = []
    message = *call.effects(folded), stream, f"{cursor}-0" if cursor else "", f"{cursor + 1}-0", parked
    assert await activity.accrue(valkey, [activity.ActivityCall(call.keys, message)]) == [None]


async def kept(valkey: Valkey, user: str) -> Judged:
    held = await valkey.run(hashes.get_texts(ActivityKeys(cluster=False).counters(20251024, user)))
    first, _, last = held.get("muted_for_lb", "").partition("-")
    muted = (int(first), int(last)) if first else None
    return SentMessages(int(held.get("dm_sent", 0)), int(held.get("room_sent", 0))), muted


def together(batches: list[dict[int, SentMessages]]) -> dict[int, SentMessages]:
    seconds: dict[int, SentMessages] = {}
    for batch in batches:
        for second, sent in batch.items():
            before = seconds.get(second, SentMessages(0, 0))
            seconds[second] = SentMessages(before.dms + sent.dms, before.room + sent.room)
    return seconds


@pytest.mark.parametrize(
    ("seconds", "counted", "muted"),
    [
        ({}, SentMessages(0, 0), None),
        (steady(6, 0, 10), SentMessages(60, 0), None),
        (steady(6, 0, 11), SentMessages(0, 0), (START, START + 10)),
        (steady(5, 0, 60), SentMessages(300, 0), None),
        (steady(3, 2, 60), SentMessages(180, 120), None),
        (steady(3, 3, 11), SentMessages(0, 0), (START, START + 10)),
        (steady(100, 0, 10), SentMessages(1000, 0), None),
        # What surrounds a burst counts.
        (
            steady(1, 0, 5, START - 5) | steady(0, 9, 12) | steady(2, 1, 3, START + 12),
            SentMessages(5 + 6, 3),
            (START, START + 11),
        ),
        # A second of silence ends a run.
        (steady(6, 0, 10) | steady(6, 0, 10, START + 11), SentMessages(120, 0), None),
        (
            steady(6, 0, 10) | steady(6, 0, 10, START + 11) | steady(6, 0, 1, START + 10),
            SentMessages(0, 0),
            (START, START + 20),
        ),
        # The last of two bursts is told.
        (steady(6, 0, 11) | steady(7, 0, 12, START + 100), SentMessages(0, 0), (START + 100, START + 111)),
    ],
)
async def test_messages_count_except_in_bursts(
    valkey: Valkey, seconds: dict[int, SentMessages], counted: SentMessages, muted: tuple[int, int] | None
):
    user = str(uuid4())
    await send(valkey, user, 0, seconds)
    assert await kept(valkey, user) == judged(seconds) == (counted, muted)


# Few seconds and many messages, so that runs grow, meet and become bursts.
some_second = some.integers(0, 45).map(lambda offset: START + offset)
some_messages = some.builds(SentMessages, some.integers(0, 7), some.integers(0, 4)).filter(any)
some_batches = some.lists(some.dictionaries(some_second, some_messages, min_size=1, max_size=40), max_size=8)


@settings(max_examples=100, deadline=None)
@given(some_batches)
async def test_batches_do_not_change_which_messages_count(
    valkey: Valkey, batches: list[dict[int, SentMessages]]
):
    user = str(uuid4())
    for cursor, batch in enumerate(batches):
        await send(valkey, user, cursor, batch)
    assert await kept(valkey, user) == judged(together(batches))


@pytest.mark.parametrize("before", range(13))
async def test_a_second_joins_the_runs_beside_it(valkey: Valkey, before: int):
    for after in range(13):
        user, joint = str(uuid4()), START + 12
        runs = (
            steady(6, 0, before, joint - before),
            steady(0, 7, after, joint + 1),
            {joint: SentMessages(3, 3)},
        )
        batches = [run for run in runs if run]
        for cursor, batch in enumerate(batches):
            await send(valkey, user, cursor, batch)
        assert await kept(valkey, user) == judged(together(batches)), after


async def test_a_second_that_joins_a_long_burst_to_the_last_one_makes_them_one(valkey: Valkey):
    user = str(uuid4())
    batches = [steady(6, 0, 200), steady(0, 6, 12, START + 201), {START + 200: SentMessages(6, 0)}]
    for cursor, batch in enumerate(batches):
        await send(valkey, user, cursor, batch)
    assert await kept(valkey, user) == (SentMessages(0, 0), (START, START + 212)) == judged(together(batches))


async def test_thousands_of_seconds_come_at_once(valkey: Valkey):
    user = str(uuid4())
    batch = steady(1, 1, 6000) | steady(6, 0, 1500, START + 6000)
    await send(valkey, user, 0, batch)
    assert await kept(valkey, user) == judged(batch)
