"""Invented campuses for `laurels serve`, and a player's token for one of their people."""

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
"""The index of a person who is active, but not the most active."""
LASTS: Final = 30 * 86_400
"""How long the token is valid, in seconds."""


async def fill(laurels: Laurels, progress: Callable[[int, int], None]) -> None:
    """Invents campuses, unless there are some already."""
    if not await laurels.activity.store.campuses():
        await demo.play_campuses(laurels, PLAN, SEED, progress)


async def token(laurels: Laurels) -> str | None:
    """A token for one of the invented people, if they exist. Revokes the previous token."""
    # The same people as `fill` invented: they depend only on the seed.
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
