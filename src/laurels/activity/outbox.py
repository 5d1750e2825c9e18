"""Publishes the events of finalized days to a stream, each once and in order.

The id of an entry is its number in the outbox, and a stream accepts only ids greater than its last one. So
each entry appears once, however many workers send it and however often.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from laurels.errors import LaurelsError, Unavailable
from laurels.moments import datetime_of
from laurels.valkey.names import EVENTS
from laurels.valkey.streams import append_numbered, last_number

if TYPE_CHECKING:
    from laurels.activity.store.outbox import OutboxEvent, OutboxStore
    from laurels.clock import Clock
    from laurels.valkey.client import Valkey, Value

STREAM: Final = f"{EVENTS}leaderboards.events"
MOST_ENTRIES: Final = 1_000_000
"""About how many entries the stream keeps; older ones are trimmed."""
KEPT: Final = timedelta(days=30)
"""How long PostgreSQL keeps events that were sent, to send them again to a stream that was lost."""

ENTRIES_A_CALL: Final = 500


@dataclass(frozen=True)
class Relay:
    valkey: Valkey
    store: OutboxStore
    clock: Clock

    async def run_once(self) -> int:
        """Sends the events that the stream does not have yet; returns their number."""
        await self.store.number()
        began = sent = await last_number(self.valkey, STREAM)
        if sent > (newest := await self.store.newest()):
            raise LaurelsError(
                f"{STREAM} ends at {sent}-0, but the outbox at {newest}: another program writes to it. "
                "Stop it and delete the stream; Laurels then sends the events again"
            )
        while events := await self.store.after(sent, ENTRIES_A_CALL):
            entries = [(event.number, _fields(event)) for event in events]
            last = await append_numbered(self.valkey, STREAM, entries, MOST_ENTRIES)
            if last <= sent:
                raise Unavailable(f"{STREAM} accepted no entries; try again")
            sent = last
        return sent - began

    async def forget(self) -> int:
        """Deletes old events; returns their number."""
        return await self.store.forget(datetime_of(self.clock()) - KEPT)


def _fields(event: OutboxEvent) -> dict[str, Value]:
    """The fields of an entry: text and numbers as they are, other values as JSON."""
    fields: dict[str, Value] = {"event": event.event}
    for name, value in event.payload.items():
        fields[name] = value if isinstance(value, str | int | float) else msgspec.json.encode(value)
    return fields
