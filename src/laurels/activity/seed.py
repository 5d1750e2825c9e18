"""An invented world put where a real one would be: people into PostgreSQL, events into the streams."""

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

EVENTS_TOGETHER: Final = 1000


async def populate(store: CampusStore, world: World) -> None:
    """Campuses and users; those that are there already stay."""
    await store.put_campuses(Campus(*campus) for campus in world.campuses)
    await store.put_users(
        User(person.id, world.campuses[person.campus].id, person.handle) for person in world.people
    )


async def pour(
    valkey: Valkey, events: Iterable[SimulatedEvent], progress: Callable[[int], None] = lambda _: None
) -> int:
    """Adds the events to their streams, in order; how many there were."""
    added, coming = 0, iter(events)
    while some := list(islice(coming, EVENTS_TOGETHER)):
        await valkey.run_all(streams.add(event.stream, event.fields) for event in some)
        added += len(some)
        progress(added)
    return added
