"""Large keys go in pieces.

Valkey frees a key that is unlinked or expires in a thread of its own. With the allocator of glibc, whoever
asks for memory next first tidies what that thread gave back: after a million entries calls took up to 300 ms.
So a large key is set aside under another name, which takes no time, and emptied a thousand entries at a time;
a stream ten at a time, since each of its entries tells of a whole call.

Whoever empties may be late or never come: what was set aside expires by itself.
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


class Discards:
    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def discard(self, *keys: str, guard: Guard | None = None) -> None:
        """Nobody finds these keys any more; all of them lie in one slot. Raises `DefinitionChanged`, and
        nothing is done, when the guard does not hold.
        """
        token = secrets.token_hex(4)
        named = {key: f"{key}|gone:{token}" for key in keys}
        guard = guard or Guard(keys[0])
        aside = await functions.set_aside(self._valkey, named, MANY_ENTRIES, LIFE_SECONDS, guard)
        if aside:
            await functions.list_aside(self._valkey, REGISTRY, aside)

    async def retire_generation(self, board: str, generations: tuple[str, ...], kind: str) -> None:
        """The same for the oldest of these generations, once it is about to be dropped anyway."""
        keys = (board, *generations, f"{generations[0]}|gone:{secrets.token_hex(4)}")
        aside = await functions.retire_generation(self._valkey, keys, kind, MANY_ENTRIES, LIFE_SECONDS)
        if aside:
            await functions.list_aside(self._valkey, REGISTRY, aside)

    async def empty(self) -> int:
        """Empties what was set aside; how many keys that were."""
        names = await self._valkey.run(sets.members(REGISTRY))
        for name in names:
            cursor = "0"
            while cursor:
                cursor = await functions.empty(self._valkey, name, cursor, ENTRIES_A_CALL)
            await self._valkey.run(sets.remove(REGISTRY, [name]))
        return len(names)
