"""Erases a user from what campuses keep: the user's rows and keys get a random name, without anything else.

So every rank, sum, streak and count of others stays as it is, and a day that is finalized again has the same
result. What only says who the user is goes: the campus of the user, waiting events, and the entries of
streams that name the user, as far as they are counted.

Everything that waits is counted first. An event that comes later is about a new user of the same name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from laurels.activity.outbox import STREAM
from laurels.activity.store.erase import ActivityEraseStore
from laurels.activity.valkey_keys import DEAD, GROUP, SHARDS, STREAMS, shard_of
from laurels.valkey import activity, keyspace, lists, sets, sorted_sets, streams
from laurels.valkey.names import CAMPUS_DAY, CAMPUS_PARKED, STREAK, USER_CAMPUS

if TYPE_CHECKING:
    from laurels.activity.consume import Accrual
    from laurels.activity.rescore import Rescorer
    from laurels.postgres.engine import Postgres
    from laurels.valkey.client import Valkey

ENTRIES_AT_ONCE: Final = 1000


@dataclass(frozen=True)
class ActivityEraser:
    valkey: Valkey
    postgres: Postgres
    accrual: Accrual
    rescorer: Rescorer

    async def erase(self, user: str) -> tuple[str, int]:
        """Returns the random name, which the boards have to use too, and how many rows were renamed."""
        await self.accrual.run_once()
        while await self.rescorer.run_once():
            pass
        named = str(uuid4())
        while shard_of(named) != shard_of(user):  # the keys of a user lie in the slot of its shard
            named = str(uuid4())
        await self._rename_keys(user, named)
        await self._rename_in_sets(user, named)
        await self._rename_marks(user, named)
        rows = await ActivityEraseStore(self.postgres).rename(user, named)
        for stream in (*STREAMS, STREAM, DEAD):
            await self._forget_entries(stream, user.encode())
        return named, rows

    async def _rename_keys(self, user: str, named: str) -> None:
        """The keys of the user's days and streak; what else has the user's name is deleted."""
        async for keys in self.valkey.keys_like(f"*:{user}"):
            for key in keys:
                own = key.partition("}")[2] or key
                if own.startswith((CAMPUS_DAY, STREAK)):
                    await self.valkey.run(keyspace.rename(key, key.removesuffix(user) + named))
                elif own.startswith((USER_CAMPUS, CAMPUS_PARKED)):
                    await self.valkey.run(keyspace.unlink(key))

    async def _rename_in_sets(self, user: str, named: str) -> None:
        """In the sets of distinct users of others, and of the users of a campus."""
        async for keys in self.valkey.keys_like(f"*{CAMPUS_DAY}*"):
            listed = [key for key in keys if ":user:" not in key and ":seconds:" not in key]
            held = await self.valkey.run_all(sets.are_members(key, [user]) for key in listed)
            for key in (key for key, (is_there,) in zip(listed, held, strict=True) if is_there):
                await self.valkey.run_all((sets.add(key, [named]), sets.remove(key, [user])))
        async for keys in self.valkey.keys_like(f"*{CAMPUS_PARKED}of:*"):
            for key in keys:
                for effect in await self.valkey.run(lists.texts(key)):
                    if user in effect:
                        renamed = effect.replace(user, named)
                        await self.valkey.run_all((lists.append(key, renamed), lists.remove(key, effect)))

    async def _rename_marks(self, user: str, named: str) -> None:
        keys = self.accrual.keys
        for shard in range(SHARDS):
            await self.valkey.run(sets.remove(keys.parked(shard), [user]))
        changed = keys.changed(shard_of(user))
        async for marks in sorted_sets.scan(self.valkey, changed, ENTRIES_AT_ONCE):
            for mark, number in marks:
                ymd, _, marked = mark.decode().partition(":")
                if marked == user:
                    await self.valkey.run_all(
                        (
                            sorted_sets.add(changed, f"{ymd}:{named}", int(number)),
                            sorted_sets.remove(changed, [mark]),
                        )
                    )

    async def _forget_entries(self, stream: str, user: bytes) -> None:
        """Deletes entries that name the user; of a stream of events, those that are counted."""
        last = await activity.join(self.valkey, stream, GROUP) if stream in STREAMS else "+"
        after = "-"
        while last is not None:
            listed = await self.valkey.run(streams.entries(stream, after, last, count=ENTRIES_AT_ONCE))
            naming = [
                name for name, fields in listed if any(user in value.lower() for value in fields.values())
            ]
            await self.valkey.run_all(streams.delete(stream, name) for name in naming)
            if len(listed) < ENTRIES_AT_ONCE:
                return
            after = f"({listed[-1][0].decode()}"
