"""Deletes large keys in chunks.

Valkey frees an unlinked or expired key in a thread. With the allocator of glibc, the next request for memory
then has to tidy what that thread freed: after a million entries, calls took up to 300 ms. So a large key is
renamed, which takes no time, and then emptied a thousand entries at a time; a stream ten at a time, because
one of its entries holds a whole call.

A renamed key expires by itself, in case no worker empties it.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from laurels.valkey import functions, sets
from laurels.valkey.messages import Guard
from laurels.valkey.names import DISCARDED

if TYPE_CHECKING:
    from laurels.valkey.client import Valkey

REGISTRY: Final = DISCARDED
MANY_ENTRIES: Final = 10_000
ENTRIES_A_CALL: Final = 1_000
LIFE_SECONDS: Final = 2 * 3600


class ChunkedDelete:
    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def discard(self, *keys: str, guard: Guard | None = None) -> None:
        """Takes away keys of one slot; raises `DefinitionChanged` if the guard does not hold."""
        token = secrets.token_hex(4)
        named = {key: f"{key}|gone:{token}" for key in keys}
        guard = guard or Guard(keys[0])
        aside = await functions.set_aside(self._valkey, named, MANY_ENTRIES, LIFE_SECONDS, guard)
        if aside:
            await functions.list_aside(self._valkey, REGISTRY, aside)

    async def retire_generation(self, board: str, generations: tuple[str, ...], kind: str) -> None:
        """As `discard`, for the oldest of these generations if it is about to be dropped."""
        keys = (board, *generations, f"{generations[0]}|gone:{secrets.token_hex(4)}")
        aside = await functions.retire_generation(self._valkey, keys, kind, MANY_ENTRIES, LIFE_SECONDS)
        if aside:
            await functions.list_aside(self._valkey, REGISTRY, aside)

    async def empty(self) -> int:
        """Empties the keys that were set aside; returns how many."""
        names = await self._valkey.run(sets.members(REGISTRY))
        for name in names:
            cursor = "0"
            while cursor:
                cursor = await functions.empty(self._valkey, name, cursor, ENTRIES_A_CALL)
            await self._valkey.run(sets.remove(REGISTRY, [name]))
        return len(names)
