"""Streams in a test: events written, counted, and read back as any Redis client reads them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from laurels.activity.dirty_days import DirtyDays
from laurels.activity.store.people import Campus, User
from laurels.activity.valkey_keys import GROUP
from laurels.valkey import hashes, sets
from laurels.valkey.command import pairs

if TYPE_CHECKING:
    from laurels.activity.consume import Accrual
    from laurels.activity.valkey_keys import ActivityKeys
    from laurels.clock import FixedClock
    from laurels.engine import Laurels
    from laurels.valkey.client import Valkey

NOON = datetime(2025, 10, 24, 12, tzinfo=UTC)
TODAY = 20251024


@dataclass
class AccrualStage:
    laurels: Laurels
    clock: FixedClock

    @property
    def valkey(self) -> Valkey:
        return self.laurels.valkey

    @property
    def accrual(self) -> Accrual:
        return self.laurels.activity.accrual

    @property
    def keys(self) -> ActivityKeys:
        return self.laurels.activity.keys

    @property
    def marks(self) -> DirtyDays:
        return DirtyDays(self.valkey, self.keys)

    async def campus(self, timezone: str = "UTC") -> str:
        campus = Campus(str(uuid4()), f"a campus in {timezone}", timezone)
        await self.laurels.activity.store.put_campuses([campus])
        return campus.id

    async def users(self, count: int, campus: str | None = None) -> list[str]:
        """Users of this campus, or of a new one."""
        campus = campus or await self.campus()
        users = [str(uuid4()) for _ in range(count)]
        await self.laurels.activity.store.put_users([User(user, campus) for user in users])
        return users

    async def add(self, stream: str, fields: dict[str, str], at: datetime = NOON) -> str:
        """Returns the id of the entry."""
        words = [word for pair in {"at": at.isoformat(), **fields}.items() for word in pair]
        return (await self.valkey.command("XADD", stream, "*", *words)).decode()

    async def day(self, user: str, ymd: int = TODAY) -> dict[str, str]:
        """The hash of a user's day without the campus."""
        held = await self.valkey.run(hashes.get_texts(self.keys.counters(ymd, user)))
        held.pop("campus", None)
        return held

    async def primaries(self) -> list[Any]:
        """A client of each node."""
        return await self.valkey._primaries()  # pyright: ignore[reportPrivateUsage]  # what no code of ours needs

    async def members(self, key: str) -> set[str]:
        return await self.valkey.run(sets.members(key))

    async def lag(self, stream: str) -> int | None:
        """The lag that Valkey itself shows for the group."""
        for group in await self.valkey.command("XINFO", "GROUPS", stream):
            described: dict[bytes, Any] = dict(pairs(group))
            if described[b"name"] == GROUP.encode():
                return described[b"lag"]
        return None


def message(writer: str, reader: str) -> dict[str, str]:
    return {"event": "msg:new", "convo_id": "c", "from": writer, "to": reader}
