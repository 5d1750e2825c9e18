"""Telling others: what finalized days changed goes into a stream, each once and in order.

An entry's id is made of its number in the outbox, and a stream takes no id that is not greater than its last:
so whoever sends, however often, and whoever dies between, each entry is there once.
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
"""About how many the stream keeps: those that are older are trimmed."""
KEPT: Final = timedelta(days=30)
"""How long PostgreSQL keeps what was told: a stream that is lost gets it again."""

ENTRIES_A_TIME: Final = 500


@dataclass(frozen=True)
class Relay:
    valkey: Valkey
    store: OutboxStore
    clock: Clock

    async def run_once(self) -> int:
        """Sends what the stream does not have yet; how many entries."""
        await self.store.number()
        began = sent = await last_number(self.valkey, STREAM)
        if sent > (newest := await self.store.newest()):
            raise LaurelsError(
                f"{STREAM} has the id {sent}-0 and the outbox goes to {newest}: somebody else writes there"
            )
        while told := await self.store.after(sent, ENTRIES_A_TIME):
            entries = [(each.number, _fields(each)) for each in told]
            last = await append_numbered(self.valkey, STREAM, entries, MOST_ENTRIES)
            if last <= sent:
                raise Unavailable(f"{STREAM} took nothing; try again")
            sent = last
        return sent - began

    async def forget(self) -> int:
        """Lets go of what was told long ago; how much it was."""
        return await self.store.forget(datetime_of(self.clock()) - KEPT)


def _fields(told: OutboxEvent) -> dict[str, Value]:
    """Text as it is; what is more than a number as JSON."""
    fields: dict[str, Value] = {"event": told.event}
    for name, value in told.payload.items():
        fields[name] = value if isinstance(value, str | int | float) else msgspec.json.encode(value)
    return fields
