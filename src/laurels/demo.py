"""Invented data, always the same: the board `demo/arcade` with a week of scores, and campuses with events."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from laurels.activity.seed import add_events, populate
from laurels.activity.simulator import World, expected_events, simulate
from laurels.errors import NotFound
from laurels.moments import datetime_of
from laurels.scores.submission import Submission

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from laurels.activity.simulator import SimulationPlan
    from laurels.engine import Laurels
    from laurels.moments import Moment

BOARD: Final = "demo/arcade"
DEFINITION: Final[dict[str, Any]] = {
    "aggregate": "best",
    "windows": [
        {"period": "daily", "keep": 30},
        {"period": "weekly", "keep": 12},
        {"period": "all_time"},
    ],
    "groups": [["country"]],
    "lateness": "P8D",
}
MEMBERS: Final = 5_000
SEED: Final = 1972  # the year of Pong
SPREAD: Final = timedelta(days=7, hours=12)
"""How far back the scores go: within the board's lateness, and across the end of a week."""
PLAYING_NOW: Final = 60
"""Members with a score in the last minute, so that today's window is never empty."""
CHUNK: Final = 2_000

ADJECTIVES: Final = """
    amber arctic atomic brave bright broken calm chrome cosmic crimson dizzy dusty electric fading
    fearless frozen gentle ghostly golden hidden hollow humble icy jade lazy little loud lucky lunar
    mellow midnight misty neon nimble noble northern pixel quiet rapid rusty salty scarlet secret shiny
    silent silver sleepy solar stormy sunny swift tiny turbo velvet violet wandering wild winter wooden
""".split()  # noqa: SIM905  # words read best as words
CREATURES: Final = """
    badger beetle bison comet condor cricket crow dingo dolphin falcon ferret finch fox gecko goose hare
    hawk heron ibis jackal kestrel koala lemur llama lynx magpie manta marten mole moose moth newt ocelot
    orca osprey otter owl panda penguin pigeon puffin quokka raven robin rocket sparrow squid stoat
    swallow tapir tiger toad turtle viper walrus weasel wolf wombat yak zebra
""".split()  # noqa: SIM905  # words read best as words
COUNTRIES: Final = {
    "BR": 16, "US": 15, "JP": 10, "DE": 8, "IN": 8, "FR": 6, "GB": 6, "MX": 5, "KR": 5, "PL": 4, "ES": 4,
    "IT": 3, "CA": 3, "AR": 3, "TR": 3, "ID": 3, "NG": 2, "PT": 2, "SE": 2, "AU": 2, "NZ": 1, "CL": 1,
}  # fmt: skip
"""The weight of each country among the players."""


async def fill(
    laurels: Laurels, *, reset: bool = False, progress: Callable[[int, int], None] = lambda _done, _of: None
) -> int:
    """Fills the demo board unless it has entries already, and returns how many scores were submitted.
    `reset` drops the board first.
    """
    if reset:
        with suppress(NotFound):
            await laurels.drop(BOARD, allow_drop="all")
    elif await holds_entries(laurels):
        return 0
    await laurels.define(BOARD, DEFINITION)
    submissions = list(plays(laurels.clock()))
    for start in range(0, len(submissions), CHUNK):
        progress(start, len(submissions))
        await laurels.submit_many(BOARD, submissions[start : start + CHUNK])
    progress(len(submissions), len(submissions))
    return len(submissions)


async def play_campuses(
    laurels: Laurels,
    plan: SimulationPlan,
    seed: int,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> tuple[World, int]:
    """Simulates campuses up to now, and applies their events to counters and boards. Returns the people and
    the number of events.
    """
    chance = random.Random(seed)  # noqa: S311  # the same people each time, not secrets
    world = World(plan, chance)
    await populate(laurels.activity.store, world)
    of = expected_events(plan)
    events = simulate(world, plan, laurels.clock(), chance)
    added = await add_events(laurels.valkey, events, lambda done: progress(min(done, of), of))
    await laurels.activity.accrual.run_once()
    while await laurels.activity.rescorer.run_once():
        pass
    return world, added


async def holds_entries(laurels: Laurels) -> bool:
    try:
        return any(window.entries for window in await laurels.windows(BOARD))
    except NotFound:
        return False


def plays(now: Moment, seed: int = SEED) -> Iterator[Submission]:
    """Every score of the week before `now`. A skilled player scores high most of the time."""
    chance = random.Random(seed)  # noqa: S311  # the same players each time, not secrets
    handles = _handles(chance)
    countries, weights = list(COUNTRIES), list(COUNTRIES.values())
    present = datetime_of(now)
    for index in range(MEMBERS):
        member = next(handles)
        country = chance.choices(countries, weights)[0]
        skill = chance.lognormvariate(9.0, 0.75)
        ages = [SPREAD * chance.random() for _ in range(1 + int(chance.expovariate(0.6)))]
        if index % (MEMBERS // PLAYING_NOW) == 0:
            ages.append(timedelta(minutes=1) * chance.random())
        for age in ages:
            score = max(10, round(skill * chance.lognormvariate(0, 0.35), -1))
            yield Submission(member, int(score), present - age, {"country": country})


def _handles(chance: random.Random) -> Iterator[str]:
    """Distinct names as players choose them."""
    taken: set[str] = set()
    while True:
        adjective, creature = chance.choice(ADJECTIVES), chance.choice(CREATURES)
        number = chance.choice(["", "", "", str(chance.randint(2, 9)), str(chance.randint(10, 99))])
        handle = chance.choice(
            [
                f"{adjective}_{creature}{number}",
                f"{adjective}{creature}{number}",
                f"{adjective.title()}{creature.title()}{number}",
                f"{adjective}-{creature}{number}",
                f"{creature}{number or chance.randint(100, 999)}",
                f"the_{adjective}_{creature}{number}",
            ]
        )
        if handle not in taken:
            taken.add(handle)
            yield handle
