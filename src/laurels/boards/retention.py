"""What goes, and when: windows past their keep, members who leave, windows and boards that are dropped.

A window cannot be asked for from the instant its keep is over: that is a comparison with the clock, made by
whoever asks. Its memory goes by the expiry that every write sets. So nothing here has to run for either;
this module lists windows, and takes things out on request, a few keys at a time.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final

import msgspec

from laurels.boards.board import Address, Target
from laurels.boards.keys import WHOLE, parse_cut
from laurels.boards.ranks import WindowInfo
from laurels.boards.submission import check_member
from laurels.errors import InvalidInput
from laurels.valkey import functions
from laurels.valkey.functions import DefinitionChanged, RemoveHeader, shape_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from laurels.boards.board import Board, Pane
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.boards.windows import Moment, Slot
    from laurels.clock import Clock
    from laurels.valkey.client import Valkey

WINDOWS_A_CALL: Final = 100
# Everything a window may have beside its entries, whatever the board's definition is or was.
PARTS: Final = ("", "|positions", "|metadata", "|scores", "|counts")
EARLIEST_SECONDS: Final = "-inf"


class Retention:
    """Lists the windows of boards, and takes members, windows and boards out."""

    def __init__(self, valkey: Valkey, catalog: Catalog, clock: Clock) -> None:
        self._valkey = valkey
        self._catalog = catalog
        self._clock = clock

    async def windows(
        self, ref: BoardRef, period: str | None = None, group: str | None = None, limit: int = 100
    ) -> list[WindowInfo]:
        """The windows that can be asked for, newest first; of one period, or of all."""
        if not 1 <= limit <= 1000:
            raise InvalidInput.at("limit", f"must lie within 1 and 1000, not {limit}")
        board = await self._catalog.board(ref)
        now = self._clock()
        cut = parse_cut(group, board.definition)
        panes = [pane for pane in board.panes(board.zone_of(cut)) if not pane.is_hidden]
        if period is not None:
            panes = [board.pane(period, cut)]
        slots = {(pane, pane.calendar.at(now)) for pane in panes}
        async for pane, slot in self._listed(board, panes, now):
            slots.add((pane, slot))
        newest = sorted(slots, key=lambda each: _newest_first(*each))[:limit]
        counts = await asyncio.gather(
            *(self._entries(board, Address(pane.label, slot.text, cut)) for pane, slot in newest)
        )
        return [
            WindowInfo(pane.label, slot.text, slot.starts_at, slot.ends_at, count)
            for (pane, slot), count in zip(newest, counts, strict=True)
        ]

    async def remove(self, ref: BoardRef, member: str) -> bool:
        """Takes a member out of every live window and group; whether it was in any."""
        encoded = check_member(member)
        while True:
            board = await self._catalog.board(ref)
            try:
                return await self._remove(board, encoded)
            except DefinitionChanged as changed:
                await self._catalog.refresh(ref, changed.known)

    async def holds_entries(self, board: Board) -> bool:
        """Whether any window of the board has an entry."""
        for shard in range(board.keys.shards):
            async for address in self._addresses(board, shard):
                if await self._valkey.command("EXISTS", board.window_key(shard, address)):
                    return True
        return False

    async def drop(self, board: Board, labels: Iterable[str] | None = None) -> None:
        """Drops the windows of these labels; without labels, everything that the board has."""
        wanted = None if labels is None else set(labels)
        for shard in range(board.keys.shards):
            windows = board.keys.of_board(shard, "windows")
            if wanted is None:
                await self._valkey.command("UNLINK", board.keys.of_board(shard, "board"))
            async for address in self._addresses(board, shard):
                if wanted is None or address.label in wanted:
                    key = board.window_key(shard, address)
                    await self._valkey.command("UNLINK", *(f"{key}{part}" for part in PARTS))
            for token in await self._tokens(board, shard):
                if wanted is None or token.split("|")[0] in wanted:
                    await self._valkey.command("ZREM", windows, token)
                    names = (f"cuts:{token}", f"built:{token}")
                    await self._valkey.command(
                        "UNLINK", *(board.keys.of_board(shard, name) for name in names)
                    )
            if wanted is None:
                await self._unlink_board(board, shard)

    async def reset_expiry(self, board: Board) -> None:
        """Gives every window the life that the definition now says."""
        now = self._clock()
        for shard in range(board.keys.shards):
            async for address in self._addresses(board, shard):
                zone = board.zone_of(address.cut)
                pane = next(pane for pane in board.panes(zone) if pane.label == address.label)
                target = Target(address, pane.calendar.parse(address.slot), pane)
                seconds = target.seconds_to_live(now)
                key = board.window_key(shard, address)
                keys = [f"{key}{part}" for part in PARTS]
                keys += [board.keys.of_board(shard, f"{name}:{address.token}") for name in ("cuts", "built")]
                for each in keys:
                    await self._valkey.command(*(("EXPIRE", each, seconds) if seconds else ("PERSIST", each)))

    async def sweep(self, board: Board) -> None:
        """Takes windows that are over and gone off the list of windows."""
        now = self._clock()
        for shard in range(board.keys.shards):
            for token in await self._tokens(board, shard):
                target = _target(board, token)
                until = target.pane.held_until(target.slot) if target else now
                if until is not None and now >= until:
                    await self._valkey.command("ZREM", board.keys.of_board(shard, "windows"), token)

    async def _remove(self, board: Board, member: bytes) -> bool:
        shard = board.keys.shard_of(member)
        header = RemoveHeader(
            shape_of(board.ordering, dense=board.definition.dense, metadata=True), board.version, 1
        )
        header.journal = int(board.definition.archive.journal)
        entry = msgspec.msgpack.encode(("remove", secrets.token_urlsafe(16), self._clock(), member))
        addresses = [address async for address in self._addresses(board, shard)]
        found = 0
        for first in range(0, len(addresses), WINDOWS_A_CALL):
            keys = [board.keys.of_board(shard, "board"), board.keys.of_board(shard, "journal")]
            for address in addresses[first : first + WINDOWS_A_CALL]:
                keys += board.keys.parts(board.window_key(shard, address), metadata=True)
            found += await functions.remove(self._valkey, keys, header, entry, member)
            header.journal = 0
        return found > 0

    async def _unlink_board(self, board: Board, shard: int) -> None:
        day, bucket = self._clock() // 86_400_000_000, self._clock() // 600_000_000
        names = [
            "windows",
            "journal",
            f"ids:{day}",
            f"ids:{day - 1}",
            f"calls:{bucket}",
            f"calls:{bucket - 1}",
        ]
        await self._valkey.command("UNLINK", *(board.keys.of_board(shard, name) for name in names))

    async def _entries(self, board: Board, address: Address) -> int:
        counts = await asyncio.gather(
            *(
                self._valkey.command("ZCARD", board.window_key(shard, address))
                for shard in range(board.keys.shards)
            )
        )
        return sum(counts)

    async def _listed(self, board: Board, panes: list[Pane], now: Moment) -> AsyncIterator[tuple[Pane, Slot]]:
        by_label = {pane.label: pane for pane in panes}
        for shard in range(board.keys.shards):
            for token in await self._tokens(board, shard):
                label, _, text = token.partition("|")
                pane = by_label.get(label)
                if pane is None:
                    continue
                slot = pane.calendar.parse(text)
                until = pane.calendar.kept_until(slot)
                current = pane.calendar.at(now)
                has_begun = slot.ends is None or current.ends is None or slot.ends <= current.ends
                if has_begun and (until is None or now < until):
                    yield pane, slot

    async def _addresses(self, board: Board, shard: int) -> AsyncIterator[Address]:
        """Every window that was written and may still be there: whole, then its groups."""
        for token in await self._tokens(board, shard):
            if _target(board, token) is None:
                continue
            label, _, slot = token.partition("|")
            yield Address(label, slot, WHOLE)
            cuts = await self._valkey.command("SMEMBERS", board.keys.of_board(shard, f"cuts:{token}"))
            for cut in cuts:
                try:
                    yield Address(label, slot, parse_cut(cut.decode(), board.definition))
                except InvalidInput:  # a group that the board had under an earlier definition
                    continue

    async def _tokens(self, board: Board, shard: int) -> list[str]:
        key = board.keys.of_board(shard, "windows")
        return [token.decode() for token in await self._valkey.command("ZREVRANGE", key, 0, -1)]


def _target(board: Board, token: str) -> Target | None:
    """The window that a token names; None when the definition has no such window any more."""
    label, _, text = token.partition("|")
    for pane in board.panes(board.definition.timezone):
        if pane.label == label:
            try:
                slot = pane.calendar.parse(text)
            except InvalidInput:  # an hour that the board's zone does not have, but a group's does
                return None
            return Target(Address(label, text, WHOLE), slot, pane)
    return None


def _newest_first(pane: Pane, slot: Slot) -> tuple[float, str]:
    return (float("inf") if slot.starts is None else -slot.starts), pane.label
