"""Lists a board's windows; deletes windows past their `keep`, and everything of a dropped board.

Queries refuse a window as soon as its `keep` is over, by the clock. Its memory is freed by the expiry that
every write sets. So neither needs a job; where one runs, memory is freed earlier, and large windows in
chunks.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from laurels.boards.board import CLOCK_SKEW, Target, WindowAddress
from laurels.boards.keys import WHOLE, parse_cut
from laurels.boards.windows import WindowInfo
from laurels.errors import InvalidInput
from laurels.moments import DAY, SECOND
from laurels.valkey import hashes, keyspace, sets, sorted_sets
from laurels.valkey.chunked_delete import ChunkedDelete
from laurels.valkey.messages import Guard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence

    from laurels.boards.board import Board, ZonedWindow
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.boards.windows import Slot
    from laurels.clock import Clock
    from laurels.moments import Moment
    from laurels.valkey.client import Valkey

# Windows whose keys fit one call.
WINDOWS_A_CALL: Final = 100
# The suffixes of all keys that a window may have, by any definition.
PARTS: Final = ("", "|prefixes", "|metadata", "|scores", "|counts")
# Those of a window that an earlier version wrote (see convert.py).
FORMER_PARTS: Final = ("|positions", "|converting")
# How long a board with windows is not looked at, at most.
LONGEST_UNSEEN: Final = DAY
# The kinds of generations that may be large; and from when on the oldest is set aside, in seconds after the
# present one began: `PERIODS` of lua/generations.lua less `EARLY` of lua/discard.lua.
RETIRED: Final = ("ids", "once")
RETIRE_SECONDS: Final = 45_000 - 1800
# Prefix of fields in the board's hash that name the keys taken over (see lua/layout.lua).
ADOPTED: Final = b"adopted:"


class Retention:
    """Lists and deletes the windows of boards."""

    def __init__(self, valkey: Valkey, catalog: Catalog, clock: Clock) -> None:
        self._valkey = valkey
        self._catalog = catalog
        self._clock = clock
        self._large_keys = ChunkedDelete(valkey)

    async def windows(
        self, ref: BoardRef, period: str | None = None, group: str | None = None, limit: int = 100
    ) -> list[WindowInfo]:
        """The windows that can be read, newest first; of one period, or of all."""
        if not 1 <= limit <= 1000:
            raise InvalidInput.at("limit", f"must be from 1 to 1000, not {limit}")
        board = await self._catalog.in_force(ref)
        now = self._clock()
        cut = parse_cut(group, board.definition)
        zoned_windows = [zoned for zoned in board.zoned_windows(board.zone_of(cut)) if not zoned.is_hidden]
        if period is not None:
            zoned_windows = [board.zoned_window(period, cut)]
        await self.forget(board)
        slots = {(zoned, zoned.calendar.at(now)) for zoned in zoned_windows}
        async for zoned, slot in self._listed(board, zoned_windows, now):
            slots.add((zoned, slot))
        newest = sorted(slots, key=lambda each: _newest_first(*each))[:limit]
        counts = await asyncio.gather(
            *(self._entries(board, WindowAddress(zoned.label, slot.text, cut)) for zoned, slot in newest)
        )
        return [
            WindowInfo(zoned.label, slot.text, slot.starts_at, slot.ends_at, count)
            for (zoned, slot), count in zip(newest, counts, strict=True)
        ]

    async def written(self, board: Board, shard: int) -> list[tuple[str, str]]:
        """Label and slot of each window that was written and may still exist."""
        tokens = await self._tokens(board, shard)
        return [(label, slot) for label, _, slot in (token.partition("|") for token in tokens)]

    async def cuts(self, board: Board, shard: int, label: str, slot: str) -> list[str]:
        """The groups that a window has, as text."""
        return await _cuts(self._valkey, board, shard, f"{label}|{slot}")

    async def holds_entries(self, board: Board) -> bool:
        """Whether any window of the board has an entry, or any player a rating."""
        for shard in range(board.keys.shards):
            if await self._valkey.run(keyspace.exists(board.keys.of_board(shard, "ratings"))):
                return True
            async for address in self.addresses(board, shard):
                if await self._valkey.run(keyspace.exists(board.window_key(shard, address))):
                    return True
        return False

    async def adopted(self, board: Board) -> set[str]:
        """The keys of windows that were taken over from other programs."""
        if not board.definition.keys:
            return set()
        fields = await self._valkey.run(hashes.get_all(board.keys.of_board(0, "board")))
        return {name[len(ADOPTED) :].decode() for name in fields if name.startswith(ADOPTED)}

    async def size(self, board: Board, shard: int, address: WindowAddress) -> int:
        """The number of entries of a window in a shard."""
        return await self._valkey.run(sorted_sets.cardinality(board.window_key(shard, address)))

    async def ratings(self, board: Board) -> int:
        """The number of players with a rating."""
        shards = range(board.keys.shards)
        return sum(
            await self._valkey.run_all(hashes.length(board.keys.of_board(n, "ratings")) for n in shards)
        )

    async def delete_shard(self, board: Board, shard: int, guard: Guard) -> None:
        """Deletes everything in a shard of the board, except the board's own hash. It may stop anywhere and
        run again, because it deletes the lists of windows and groups last.
        """
        now = self._clock()
        current = [
            WindowAddress(zoned.label, zoned.calendar.at(now).text, WHOLE)
            for zoned in board.zoned_windows(board.definition.timezone)
        ]
        # A key that a template names but no list has belongs to another program.
        current = [address for address in current if not board.names_keys(address)]
        for address in current:  # even if Valkey lost the list
            await self._discard(board, shard, address, guard)
        async for address in self.addresses(board, shard):
            await self._discard(board, shard, address, guard)
        for token in await self._tokens(board, shard):
            await self._unlist(board, shard, token, guard)
        await self._discard_board(board, shard, guard)

    async def drop_lost(self, old: Board, new: Board) -> None:
        """Deletes what the new definition, in force already, has no place for: windows, groups, hours that
        its clock does not show, dense ranks. Deletes windows that are over by either definition too, so that
        a longer `keep` does not bring any back.
        """
        now = self._clock()
        labels = {zoned.label for zoned in new.zoned_windows(new.definition.timezone)}
        gone = {window.label for window in old.definition.windows if window.label not in labels}
        if old.keys.shards != new.keys.shards:  # the board was cleared before
            return
        for shard in range(old.keys.shards):
            guard = _in_force(new, shard)
            async for address in self.addresses(old, shard):
                key, cuts = old.window_key(shard, address), old.keys.of_board(shard, f"cuts:{address.token}")
                if any(_is_over(target_at(board, address), now) for board in (old, new)):
                    await self._discard(old, shard, address, guard)
                    await self._valkey.run(sets.remove(cuts, [str(address.cut)]))
                elif not new.definition.dense:
                    await self._large_keys.discard(f"{key}|scores", f"{key}|counts", guard=guard)
            for token in await self._tokens(old, shard):
                if token.partition("|")[0] in gone:
                    await self._unlist(old, shard, token, guard)

    async def reset_expiry(self, board: Board) -> None:
        """Sets the expiry of every window by the definition in force."""
        now, adopted = self._clock(), await self.adopted(board)
        for shard in range(board.keys.shards):
            longest: dict[str, int] = {}
            async for address in self.addresses(board, shard):
                zone, target = board.zone_of(address.cut), target_at(board, address)
                if target is None:
                    continue
                seconds = target.seconds_to_live(now)
                key = board.window_key(shard, address)
                for each in {f"{key}{part}" for part in PARTS} - adopted:
                    await self._expire(each, seconds)
                for name in (f"cuts:{address.token}", f"built:{address.token}:{zone}"):
                    longest[name] = max(seconds, longest.get(name, 0))
            for name, seconds in longest.items():
                await self._expire(board.keys.of_board(shard, name), seconds)

    async def _expire(self, key: str, seconds: int) -> None:
        await self._valkey.run(keyspace.expire(key, seconds) if seconds else keyspace.persist(key))

    async def forget(self, board: Board) -> None:
        """Removes expired windows from the list of windows."""
        now = self._clock()
        for shard in range(board.keys.shards):
            for token in await self._tokens(board, shard):
                if all(_is_past(zoned.expires_at(slot), now) for zoned, slot in _named(board, token)):
                    await self._valkey.run(sorted_sets.remove(board.keys.of_board(shard, "windows"), [token]))

    async def sweep(self, board: Board) -> Moment:
        """Deletes windows past their `keep`, and generations of ids that are about to expire. Returns when to
        look again.
        """
        now = self._clock() - CLOCK_SKEW  # a process whose clock is behind may still read them
        again = [now + LONGEST_UNSEEN]
        for shard in range(board.keys.shards):
            guard = _in_force(board, shard)
            for token in await self._tokens(board, shard):
                untils = [zoned.held_until(slot) for zoned, slot in _named(board, token)]
                over = [_is_past(until, now) for until in untils]
                again += [until for until in untils if until is not None and until > now]
                if any(over):
                    await self._discard_over(board, shard, token, now)
                if all(over):
                    await self._unlist(board, shard, token, guard)
            key = board.keys.of_board(shard, "board")
            states = await self._valkey.run(hashes.get_many(key, RETIRED))
            for kind, state in zip(RETIRED, states, strict=True):
                if state is None:
                    continue
                rest = int(state.split()[1]) + RETIRE_SECONDS - time.time()
                if rest <= 0:
                    generations = board.keys.generations(shard, kind)
                    await self._large_keys.retire_generation(key, generations, kind)
                again.append(now + int(SECOND * (rest if rest > 0 else RETIRE_SECONDS)))
        return min(again) + CLOCK_SKEW

    async def empty_discarded(self) -> int:
        """Empties the large keys that were set aside; returns how many."""
        return await self._large_keys.empty()

    async def _discard_over(self, board: Board, shard: int, token: str, now: Moment) -> None:
        """Deletes the ranked lists of a window that are over; those that do not linger have expired. Groups
        in other timezones end at other times.
        """
        async for address in _addresses_of(self._valkey, board, shard, token):
            target = target_at(board, address)
            if target and target.zoned.linger and _is_past(target.zoned.held_until(target.slot), now):
                await self._discard(board, shard, address, _in_force(board, shard))

    async def _discard(self, board: Board, shard: int, address: WindowAddress, guard: Guard) -> None:
        key = board.window_key(shard, address)
        await self._large_keys.discard(*(f"{key}{part}" for part in PARTS + FORMER_PARTS), guard=guard)

    async def _unlist(self, board: Board, shard: int, token: str, guard: Guard) -> None:
        """Removes a window from the list of windows, with its list of groups and its markers."""
        names = (f"cuts:{token}", *(f"built:{token}:{zone}" for zone in board.zones))
        await self._large_keys.discard(*(board.keys.of_board(shard, name) for name in names), guard=guard)
        await self._valkey.run(sorted_sets.remove(board.keys.of_board(shard, "windows"), [token]))

    async def _discard_board(self, board: Board, shard: int, guard: Guard) -> None:
        names = ("windows", "journal", "dead", "ratings", "index", "fed")
        keys = [board.keys.of_board(shard, name) for name in names]
        for name in ("ids", "calls", "once"):
            keys += board.keys.generations(shard, name)
        await self._large_keys.discard(*keys, guard=guard)

    async def _entries(self, board: Board, address: WindowAddress) -> int:
        return sum(
            await asyncio.gather(*(self.size(board, shard, address) for shard in range(board.keys.shards)))
        )

    async def _listed(
        self, board: Board, zoned_windows: list[ZonedWindow], now: Moment
    ) -> AsyncIterator[tuple[ZonedWindow, Slot]]:
        by_label = {zoned.label: zoned for zoned in zoned_windows}
        for shard in range(board.keys.shards):
            for token in await self._tokens(board, shard):
                label, _, text = token.partition("|")
                zoned = by_label.get(label)
                if zoned is None:
                    continue
                try:
                    slot = zoned.calendar.parse(text)
                except InvalidInput:  # an hour that exists only in a group's timezone
                    continue
                until = zoned.calendar.kept_until(slot)
                current = zoned.calendar.at(now)
                has_begun = slot.ends is None or current.ends is None or slot.ends <= current.ends
                if has_begun and (until is None or now < until):
                    yield zoned, slot

    async def addresses(
        self, board: Board, shard: int, labels: Collection[str] | None = None
    ) -> AsyncIterator[WindowAddress]:
        """As the function `addresses`."""
        async for address in addresses(self._valkey, board, shard, labels):
            yield address

    async def groups_of(
        self, board: Board, shard: int, windows: Sequence[tuple[str, str]]
    ) -> list[WindowAddress]:
        """Every group that these windows (label and slot) have."""
        keys = [board.keys.of_board(shard, f"cuts:{label}|{slot}") for label, slot in windows]
        found: list[WindowAddress] = []
        answers = await self._valkey.run_all(map(sets.members, keys))
        for (label, slot), named in zip(windows, answers, strict=True):
            for cut in named:
                with suppress(InvalidInput):  # a group of an earlier definition
                    found.append(WindowAddress(label, slot, parse_cut(cut, board.definition)))
        return found

    async def days_first(self, board: Board, shard: int) -> list[WindowAddress]:
        """As `addresses`, with rolling windows last, because they are computed from the others."""
        rolling = {
            zoned.label for zoned in board.zoned_windows(board.definition.timezone) if zoned.how == "fold"
        }
        found = [address async for address in self.addresses(board, shard)]
        return sorted(found, key=lambda address: address.label in rolling)

    async def _tokens(self, board: Board, shard: int) -> list[str]:
        return await _tokens(self._valkey, board, shard)


async def addresses(
    valkey: Valkey, board: Board, shard: int, labels: Collection[str] | None = None
) -> AsyncIterator[WindowAddress]:
    """The windows that were written and may still exist: whole, then groups. `labels`: only these."""
    for token in await _tokens(valkey, board, shard):
        if labels is not None and token.partition("|")[0] not in labels:
            continue
        async for address in _addresses_of(valkey, board, shard, token):
            yield address


async def _addresses_of(valkey: Valkey, board: Board, shard: int, token: str) -> AsyncIterator[WindowAddress]:
    label, _, slot = token.partition("|")
    for cut in ("", *await _cuts(valkey, board, shard, token)):
        try:
            address = WindowAddress(label, slot, parse_cut(cut, board.definition))
        except InvalidInput:  # a group of an earlier definition
            continue
        if target_at(board, address):
            yield address


async def _tokens(valkey: Valkey, board: Board, shard: int) -> list[str]:
    return await valkey.run(sorted_sets.members_by_descending_score(board.keys.of_board(shard, "windows")))


async def _cuts(valkey: Valkey, board: Board, shard: int, token: str) -> list[str]:
    return list(await valkey.run(sets.members(board.keys.of_board(shard, f"cuts:{token}"))))


def target_at(board: Board, address: WindowAddress) -> Target | None:
    """The ranked list at this address; None if the definition or its timezone has none."""
    if address.cut and address.cut.dimensions not in board.definition.groups:
        return None
    for zoned in board.zoned_windows(board.zone_of(address.cut)):
        if zoned.label == address.label:
            try:
                return Target(address, zoned.calendar.parse(address.slot), zoned)
            except InvalidInput:
                return None
    return None


def _in_force(board: Board, shard: int) -> Guard:
    """A guard that holds while this definition is in force."""
    return Guard(board.keys.of_board(shard, "board"), "version", board.version)


def _is_over(target: Target | None, now: Moment) -> bool:
    return target is None or _is_past(target.zoned.held_until(target.slot), now)


def _is_past(until: Moment | None, now: Moment) -> bool:
    return until is not None and now >= until


def _named(board: Board, token: str) -> list[tuple[ZonedWindow, Slot]]:
    """The slots of a token, in each of the board's timezones that has it."""
    label, _, text = token.partition("|")
    found: list[tuple[ZonedWindow, Slot]] = []
    for zone in board.zones:
        for zoned in board.zoned_windows(zone):
            if zoned.label == label:
                with suppress(InvalidInput):
                    found.append((zoned, zoned.calendar.parse(text)))
    return found


def _newest_first(zoned: ZonedWindow, slot: Slot) -> tuple[float, str]:
    return (float("inf") if slot.starts is None else -slot.starts), zoned.label
