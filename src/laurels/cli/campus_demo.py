"""Invented campuses for `laurels serve`, and a token to look at them as one of their people."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from laurels import demo
from laurels.access.store.secrets import NewSecret
from laurels.activity.rankings import PROJECT
from laurels.activity.simulator import SimulationPlan, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from laurels.engine import Laurels

PLAN: Final = SimulationPlan(campuses=3, users=180, days=3, events=6_000)
SEED: Final = 7
LABEL: Final = "demo"
PERSON: Final = 9
"""Lively, but not the liveliest: there is somebody to overtake."""
LASTS: Final = 30 * 86_400
"""Seconds."""


async def fill(laurels: Laurels, progress: Callable[[int, int], None]) -> None:
    """Nothing happens where there are campuses already."""
    if not await laurels.activity.store.campuses():
        await demo.play_campuses(laurels, PLAN, SEED, progress)


async def token(laurels: Laurels) -> str | None:
    """Of one of the invented people, if they are there; the one before is out of force."""
    # The same people as were invented: they depend on the seed alone.
    person = World(PLAN, Random(SEED)).people[PERSON]  # noqa: S311  # no secret
    if not await laurels.activity.store.users([person.id]):
        return None
    for old in await laurels.secrets.secrets(PROJECT):
        if old.label == LABEL and old.revoked_at is None:
            await laurels.secrets.revoke(old.id, project=PROJECT)
    _, secret = await laurels.secrets.create(PROJECT, NewSecret("players", label=LABEL))
    from laurels.access.players import signed  # noqa: PLC0415  # half a second that other commands do without

    claims = {
        "sub": person.id,
        "project": PROJECT,
        "aud": laurels.settings.token_audience,
        "exp": laurels.clock() // 1_000_000 + LASTS,  # from microseconds
    }
    return signed(claims, secret or "")
