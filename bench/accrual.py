"""Accrual: applies the events of simulated campuses to counters, beside a plain loop that reads the same
streams and sends the document's commands for each event, one after the other.

They take turns of a few thousand events, so that both meet the same noise. The plain loop looks up no campus,
expires nothing, has no guard, and may count twice after a crash.
"""

from __future__ import annotations

import gc
import random
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from bench.ground import Ground, Raw, ground
from bench.results import Results, rates_in_turns
from laurels.activity.seed import add_events, populate
from laurels.activity.simulator import SimulationPlan, World, simulate
from laurels.activity.valkey_keys import STREAMS

if TYPE_CHECKING:
    from collections.abc import Iterator

A_TURN = 10_000
TURNS = 5
TARGET = 5.0
Fields = dict[str, str]


async def run(users: int) -> Results:
    plain: list[float] = []
    ours: list[float] = []
    chance = random.Random(7)  # noqa: S311  # data, not secrets
    plan = SimulationPlan(users=users, events=A_TURN * (TURNS + 1))
    world = World(plan, chance)
    zones = {person.id: ZoneInfo(world.campuses[person.campus].timezone) for person in world.people}
    async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
        await populate(here.laurels.activity.store, world)
        events = list(simulate(world, plan, here.clock(), chance))
        gc.freeze()  # so that no turn pays for scanning the simulated events
        read: dict[str, str] = {}
        for turn in range(TURNS + 1):
            await add_events(here.laurels.valkey, events[turn * A_TURN : (turn + 1) * A_TURN])
            if turn % 2:
                theirs, own = time_plain(here.raw, zones, read), await time_ours(here)
            else:
                own, theirs = await time_ours(here), time_plain(here.raw, zones, read)
            if turn:  # the first turn opens connections
                plain.append(A_TURN / theirs)
                ours.append(A_TURN / own)
    return Results([rates_in_turns("events applied", ours, ("plain loop", plain), least=TARGET)])


async def time_ours(here: Ground) -> float:
    began = time.perf_counter()
    await here.laurels.activity.accrual.run_once()
    return time.perf_counter() - began


def time_plain(raw: Raw, zones: dict[str, ZoneInfo], read: dict[str, str]) -> float:
    began = time.perf_counter()
    for stream in STREAMS:
        while listed := raw.xrange(stream, f"({read.get(stream, '0-0')}", count=1000):
            for id_, held in listed:
                read[stream] = id_.decode()
                fields = {name.decode(): value.decode() for name, value in held.items()}
                for command in documented(stream, fields, zones):
                    raw.execute_command(*command)
    return time.perf_counter() - began


def documented(  # noqa: C901, PLR0912  # the seven streams, as documented
    stream: str, fields: Fields, zones: dict[str, ZoneInfo]
) -> Iterator[tuple[str, ...]]:
    """The commands of the document's pseudocode, with other key names."""

    def key(kind: str, user: str) -> str:
        day = datetime.fromtimestamp(int(fields["ts"]) / 1000, zones[user])
        return f"plain:lb:day:{day:%Y%m%d}:{kind}:{user}"

    touched: list[str] = []
    match stream, fields.get("event"):
        case "x:invites.events", "accepted":
            yield "HINCRBY", key("user", fields["from"]), "invites_accepted", "1"
            yield "SADD", key("uniq_accept_from", fields["to"]), fields["from"]
            touched = [fields["from"], fields["to"]]
        case "x:friendships.events", "accepted":
            touched = [fields["user_a"], fields["user_b"]]
            for user in touched:
                yield "HINCRBY", key("user", user), "friends_new", "1"
        case "x:chat.events", _:
            yield "HINCRBYFLOAT", key("user", fields["from"]), "dm_sent", "1"
            yield "SADD", key("uniq_senders", fields["to"]), fields["from"]
            touched = [fields["from"], fields["to"]]
        case "x:roomchat.events", _:
            yield "HINCRBYFLOAT", key("user", fields["user_id"]), "room_sent", "1"
            touched = [fields["user_id"]]
        case "x:rooms.events", event:
            if event in ("created", "join"):
                counter = "rooms_created" if event == "created" else "rooms_joined"
                yield "HINCRBY", key("user", fields["user_id"]), counter, "1"
            touched = [fields["user_id"]]
        case "x:activities.events", "ended":
            touched = [fields["a"], fields["b"]]
            for user in touched:
                yield "HINCRBY", key("user", user), "acts_played", "1"
                if fields.get("winner") == user:
                    yield "HINCRBY", key("user", user), "acts_won", "1"
        case "x:presence.heartbeats", _:
            touched = [fields["user_id"]]
        case _:
            pass
    for user in touched:
        yield "HSET", key("user", user), "touched", "1"
