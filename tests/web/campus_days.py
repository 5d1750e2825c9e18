"""Campuses with two days behind them and a third under way, by the simulator; served, with no jobs beside.

It is between two and six in the afternoon on them, whenever the tests run: no day ends in the middle of one.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import httpx
import jwt
from cli_processes import Served, serving

from laurels.access.store.secrets import NewSecret
from laurels.activity import valkey_keys
from laurels.activity.simulator import SimulationPlan, World, simulate
from laurels.activity.store.people import Campus, User
from laurels.engine import Laurels

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

PROJECT = "campus"
PLAN = SimulationPlan(campuses=3, users=210, days=3, events=6_000)
SEED = 7
HOURS = (14, 16, 17)
CHUNK = 1_000


@dataclass(frozen=True)
class CampusDays:
    served: Served
    laurels: Laurels
    world: World
    secret: str

    def token(self, user_id: str) -> str:
        claims = {"sub": user_id, "project": PROJECT, "aud": "laurels"}
        ends = datetime.now(UTC) + timedelta(days=1)
        return jwt.encode({**claims, "exp": ends}, self.secret, algorithm="HS256")

    async def ask(self, path: str, by: str = "", **query: Any) -> Any:  # noqa: ANN401  # JSON
        """What the API says, by this user; without a user, by the holder of the key."""
        bearer = self.token(by) if by else self.served.welcome["key"]
        async with httpx.AsyncClient(base_url=self.served.url) as client:
            answer = await client.get(
                f"/leaderboards/{path}", params=query, headers={"Authorization": f"Bearer {bearer}"}
            )
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def table(self, campus: int = 0, scope: str = "overall", **query: Any) -> dict[str, Any]:  # noqa: ANN401  # as `ask`
        return await self.ask(scope, campus_id=self.world.campuses[campus].id, limit=50, **query)

    async def win(self, winner: str, loser: str, times: int) -> None:
        """Games that end now, counted and ranked."""
        game = {"event": "ended", "kind": "chess", "a": winner, "b": loser, "winner": winner}
        words = [word for pair in game.items() for word in pair]
        await self.laurels.valkey.commands([("XADD", valkey_keys.ACTIVITIES, "*", *words)] * times)
        await self.count()

    async def count(self) -> None:
        """Everything that was told is on the boards."""
        await self.laurels.activity.accrual.run_once()
        while await self.laurels.activity.rescorer.run_once():
            pass


@asynccontextmanager
async def campus_days(data_dir: Path) -> AsyncGenerator[CampusDays]:
    with serving(data_dir, "--no-jobs", settings={"LAURELS_RATE_LIMIT_PLAYER": "none"}) as served:
        async with Laurels(data_dir=data_dir) as laurels:
            chance = Random(SEED)  # noqa: S311  # the same people each time, not secrets
            world = World(PLAN, chance)
            now = datetime.now(UTC)
            zones = [_zone_where_it_is(hour, now) for hour in HOURS]
            world.campuses[:] = [
                campus._replace(timezone=zone) for campus, zone in zip(world.campuses, zones, strict=True)
            ]
            stage = CampusDays(served, laurels, world, await _secret(laurels))
            await _live(stage, chance)
            yield stage


async def _live(stage: CampusDays, chance: Random) -> None:
    laurels, world = stage.laurels, stage.world
    await laurels.activity.store.put_campuses([Campus(*campus) for campus in world.campuses])
    await laurels.activity.store.put_users(
        [User(person.id, world.campuses[person.campus].id, person.handle) for person in world.people]
    )
    written = [
        ("XADD", event.stream, "*", *(word for pair in event.fields.items() for word in pair))
        for event in simulate(world, PLAN, laurels.clock(), chance)
    ]
    for start in range(0, len(written), CHUNK):
        await laurels.valkey.commands(written[start : start + CHUNK])
    await stage.count()
    await laurels.activity.finalizer.run_due(_silently)
    await stage.count()


async def _secret(laurels: Laurels) -> str:
    _, secret = await laurels.secrets.create(PROJECT, NewSecret("players"))
    assert secret
    return secret


def _zone_where_it_is(hour: int, now: datetime) -> str:
    ahead = (hour - now.hour + 12) % 24 - 12
    return f"Etc/GMT{-ahead:+d}" if ahead else "UTC"  # whose signs are the other way round


async def _silently(_: str) -> None:
    pass
