"""Exactly once: simulated campuses, two workers killed again and again, and a plain fold beside them."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from accrual_oracle import Folded
from accrual_stage import NOON

from laurels.activity.seed import add_events, populate
from laurels.activity.simulator import SimulationPlan, World, simulate
from laurels.valkey import hashes, sets

if TYPE_CHECKING:
    from accrual_stage import AccrualStage

# `make campus` runs a million.
EVENTS = int(os.environ.get("CAMPUS_EVENTS", "50000"))
SEED = int(os.environ.get("CAMPUS_SEED", "7"))
SCRIPT = Path(__file__).with_name("accrue_until_killed.py")
DEADLINE_SECONDS = 60 + EVENTS / 1000


async def played(stage: AccrualStage, events: int) -> tuple[int, Folded]:
    """The number of entries in the streams, and the expected result."""
    chance = random.Random(SEED)  # noqa: S311  # no secret
    plan = SimulationPlan(users=300, events=events)
    world = World(plan, chance)
    await populate(stage.laurels.activity.store, world)
    told = list(simulate(world, plan, stage.clock(), chance))
    zones = {person.id: world.campuses[person.campus].timezone for person in world.people}
    return await add_events(stage.valkey, told), Folded(zones, NOON).add_all(told)


async def count_while_killing(stage: AccrualStage, entries: int, kills: int, together: int) -> None:
    """Kills workers this often, spread over all entries; their successors apply the rest."""
    chance = random.Random(SEED)  # noqa: S311  # no secret
    moments = sorted(chance.randrange(entries * 9 // 10) for _ in range(kills))
    settings = stage.laurels.settings
    words = settings.valkey_url, settings.postgres_url, stage.clock(), SEED, together, *moments, entries
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), *map(str, words), stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            told, _ = await process.communicate()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, told.split()) == (0, [b"%d" % signal.SIGKILL] * kills)


async def check_equal(stage: AccrualStage, folded: Folded) -> None:
    """Compares every hash and every set, and checks that there are no others."""
    expected = folded.hashes()
    places = [(int(ymd), user) for ymd, user in expected]
    held = await stage.valkey.run_all(hashes.get_texts(stage.keys.counters(*place)) for place in places)
    senders = await stage.valkey.run_all(sets.members(stage.keys.senders(*place)) for place in places)
    accepts = await stage.valkey.run_all(sets.members(stage.keys.accepts(*place)) for place in places)
    for place, found, wrote, accepted in zip(expected, held, senders, accepts, strict=True):
        counters = {
            name: count
            for name, count in found.items()
            if name not in {"campus", "muted_for_lb"} and count != "0"
        }
        assert counters == expected[place], place
        assert ("muted_for_lb" in found) == bool(folded.muted(place)), place
        assert (wrote, accepted) == (folded.senders[place], folded.accepts[place]), place
    there = 0
    for primary in await stage.primaries():
        there += len(await primary.execute_command("KEYS", "*lb:day:*:user:*"))
    assert there == len(expected)


@pytest.mark.parametrize("accruing", ["node"], indirect=True)
async def test_every_event_counts_once_while_workers_are_killed(accruing: AccrualStage):
    entries, folded = await played(accruing, EVENTS)
    await count_while_killing(accruing, entries, max(12, EVENTS // 10_000), together=1000)
    assert any(folded.muted(place) for place in folded.counters)
    await check_equal(accruing, folded)
    assert {lag.waiting for lag in (await accruing.accrual.lags()).values()} == {0}


@pytest.mark.parametrize("accruing", ["cluster"], indirect=True)
async def test_every_event_counts_once_on_a_cluster(accruing: AccrualStage):
    entries, folded = await played(accruing, min(EVENTS, 3000))
    await count_while_killing(accruing, entries, kills=3, together=200)
    await check_equal(accruing, folded)
