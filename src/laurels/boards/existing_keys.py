"""Finds keys of other programs under the names that a board's templates make.

They cause a definition to be refused; with `adopt`, sorted sets among them become windows of the board. Keys
that appear later are found at the first write to that window (`laurels_register`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from laurels.boards.board import WindowAddress
from laurels.boards.keys import WHOLE
from laurels.boards.retention import PARTS, target_at
from laurels.boards.window_names import WindowNames
from laurels.errors import Conflict
from laurels.valkey import keyspace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from laurels.boards.board import Board, Target
    from laurels.boards.catalog import Catalog
    from laurels.boards.retention import Retention
    from laurels.clock import Clock
    from laurels.valkey.client import Valkey

# Keys that an error names.
NAMED: Final = 3
SORTED_SET: Final = "zset"


@dataclass
class ForeignKeys:
    """Keys of other programs under the names of a board."""

    adoptable: dict[str, WindowAddress] = field(default_factory=dict)
    """Sorted sets that can be windows of the board, by key."""
    others: dict[str, str] = field(default_factory=dict)
    """Keys of another type, or with the suffix of a window's further keys: type by key."""

    def check(self, *, adopts: bool) -> None:
        """Raises `Conflict` if these keys forbid the definition."""
        taken = self.others if adopts else {**self.others, **dict.fromkeys(self.adoptable, SORTED_SET)}
        if not taken:
            return
        listed = ", ".join(f"{key!r} ({kind})" for key, kind in sorted(taken.items())[:NAMED])
        more = f" and {len(taken) - NAMED} more" if len(taken) > NAMED else ""
        advice = "" if self.others else '; or take these sorted sets over with "adopt": true'
        raise Conflict(f"keys: other programs have {listed}{more} in Valkey; choose other names{advice}")


@dataclass(frozen=True)
class ExistingKeys:
    valkey: Valkey
    catalog: Catalog
    retention: Retention
    clock: Clock

    async def find(self, board: Board, before: Board | None) -> ForeignKeys:
        """Finds keys of other programs that the board's templates can make. `before`: the present board.

        Scans the keys of the server that begin as the templates do.
        """
        own = await self._own(before) if before else set[str]()
        names, found = WindowNames(board), ForeignKeys()
        patterns = board.keys.patterns(board.definition).values()
        for prefix in _shortest({pattern.prefix for of_target in patterns for pattern in of_target}):
            async for keys in self.valkey.keys_like(f"{_escaped(prefix)}*"):
                await self._classify([key for key in keys if key.partition("|")[0] not in own], names, found)
        return found

    async def take_over(self, board: Board, found: ForeignKeys) -> None:
        """Makes these sorted sets windows of the board."""
        now = self.clock()
        for address in sorted(found.adoptable.values(), key=lambda each: (each.token, bool(each.cut))):
            whole = WindowAddress(address.label, address.slot, WHOLE)
            for each in (whole, address):  # a window is listed before its groups
                target = target_at(board, each)
                if target and _is_kept(target, now):
                    await self.catalog.register(board, 0, [target], now)

    async def _own(self, board: Board) -> set[str]:
        return {
            board.window_key(shard, address)
            for shard in range(board.keys.shards)
            async for address in self.retention.addresses(board, shard)
        }

    async def _classify(self, keys: Sequence[str], names: WindowNames, found: ForeignKeys) -> None:
        windows = {key: names.address(key.partition("|")[0]) for key in keys}
        theirs = {key: window for key, window in windows.items() if window and _part(key) in PARTS}
        kinds = await self.valkey.run_all(map(keyspace.kind, theirs))
        for (key, window), name in zip(theirs.items(), kinds, strict=True):
            if name == SORTED_SET and not _part(key):
                found.adoptable[key] = window
            elif name != "none":
                found.others[key] = name


def _part(key: str) -> str:
    window, bar, part = key.partition("|")
    del window
    return bar + part


def _is_kept(target: Target, now: int) -> bool:
    until = target.zoned.held_until(target.slot)
    return until is None or now < until


def _shortest(prefixes: Collection[str]) -> Iterable[str]:
    """The prefixes that do not begin with another one."""
    kept: list[str] = []
    for prefix in sorted(prefixes):
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return kept


def _escaped(prefix: str) -> str:
    """The glob that matches this text literally."""
    return re.sub(r"([\\*?\[\]])", r"\\\1", prefix)
