"""Loads a simulated world: its people into PostgreSQL, its events into the streams."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from laurels.activity.store.people import Campus, User
from laurels.valkey import streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from laurels.activity.simulator import SimulatedEvent, World
    from laurels.activity.store.people import CampusStore
    from laurels.valkey.client import Valkey

EVENTS_A_CALL: Final = 1000


async def populate(store: CampusStore, world: World) -> None:
    """Stores the campuses and users."""
    await store.put_campuses(Campus(*campus) for campus in world.campuses)
    await store.put_users(
        User(person.id, world.campuses[person.campus].id, person.handle) for person in world.people
    )


async def add_events(
    valkey: Valkey, events: Iterable[SimulatedEvent], progress: Callable[[int], None] = lambda _: None
) -> int:
    """Adds the events to their streams, in order; returns their number."""
    added, rest = 0, iter(events)
    while chunk := list(islice(rest, EVENTS_A_CALL)):
        await valkey.run_all(streams.add(event.stream, event.fields) for event in chunk)
        added += len(chunk)
        progress(added)
    return added
