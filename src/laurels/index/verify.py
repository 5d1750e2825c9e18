"""Verifies that Valkey has every record of PostgreSQL in every window, and nothing else.

The first comparison runs while records change. What seems different is compared again while this process has
the turn, so that no changes are applied meanwhile.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import starmap
from typing import TYPE_CHECKING, Any, Final

from laurels.boards.board import WindowAddress
from laurels.index.outbox import LONG_SECONDS
from laurels.scores.shards import ShardedWindow
from laurels.valkey import hashes, sorted_sets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.boards.board import Board
    from laurels.index.apply import Applier
    from laurels.index.outbox import Record
    from laurels.index.positions import Window

# All differences are counted; this many are listed.
MOST_LISTED: Final = 1000
KEYS_AT_ONCE: Final = 500
WINDOWS_AT_ONCE: Final = 500


@dataclass(frozen=True)
class Difference:
    """An entry that differs from its record."""

    index: str
    key: Any
    window: int
    group: tuple[str, ...]
    expected: int | None
    """The score by PostgreSQL; None if there should be no entry."""
    found: int | None
    """The score in Valkey; None if the entry is missing."""

    def __str__(self) -> str:
        group = f" of {', '.join(self.group)}" if self.group else ""
        where = f"{self.index} {self.key!r}, window {self.window}{group}"
        if self.found is None:
            return f"{where}: {self.expected} is missing"
        if self.expected is None:
            return f"{where}: {self.found} should not be there"
        return f"{where}: {self.found} should be {self.expected}"


@dataclass
class Verification:
    """The result of a comparison."""

    records: int = 0
    """Rows that were compared."""
    entries: int = 0
    """Their entries in all windows and groups."""
    differences: list[Difference] = field(default_factory=list)
    different: int = 0
    """The number of differences; only the first are listed."""

    @property
    def is_equal(self) -> bool:
        return self.different == 0

    def add(self, differences: Iterable[Difference]) -> None:
        for difference in differences:
            self.different += 1
            if len(self.differences) < MOST_LISTED:
                self.differences.append(difference)


async def verify(applier: Applier, found: Verification) -> None:
    """Verifies one index and adds the result to `found`."""
    await _Comparison(applier, await applier.catalog.in_force(applier.ref)).run(found)


_Scores = dict["Window", dict[str, int]]
"""By window and member."""
_Doubt = tuple["Window", str]


class _Comparison:
    def __init__(self, applier: Applier, board: Board) -> None:
        self._applier = applier
        self._index = applier.index
        self._board = board
        self._parse = board.ordering.parse_place

    async def run(self, found: Verification) -> None:
        await self._applier.catch_up()
        doubts: dict[_Doubt, None] = {}
        async with self._applier.engine.connect() as connection:
            async for records in self._applier.outbox.records(connection, self._applier.clock()):
                found.records += len(records)
                expected = self._expected(records)
                found.entries += sum(map(len, expected.values()))
                doubts |= dict.fromkeys(await self._doubts_about(expected))
        async with self._applier.engine.connect() as connection:
            snapshot = await connection.execution_options(isolation_level="AUTOCOMMIT")
            async for listed in self._listed():
                members = {member for scores in listed.values() for member in scores}
                expected = await self._of_members(snapshot, list(members))
                doubts |= dict.fromkeys(_apart(listed, expected))
        await self._look_again(list(doubts), found)

    async def _look_again(self, doubts: list[_Doubt], found: Verification) -> None:
        """Compares the doubts again while it has the turn. Records with pending changes are skipped."""
        await self._applier.catch_up()
        repeatable = self._applier.engine.execution_options(isolation_level="REPEATABLE READ")
        async with self._applier.engine.begin() as turn:
            await self._applier.outbox.take_turn(turn, idle=LONG_SECONDS)
            async with repeatable.connect() as connection:
                pending = await self._applier.outbox.pending_keys(connection)
                waiting = set(map(self._index.members.of_text, pending))
                for first in range(0, len(doubts), KEYS_AT_ONCE):
                    chunk = [
                        doubt for doubt in doubts[first : first + KEYS_AT_ONCE] if doubt[1] not in waiting
                    ]
                    expected = await self._of_members(connection, list({member for _, member in chunk}))
                    found.add(await self._differences(chunk, expected))
            found.add(await self._uneven([address async for address in self._addresses()]))

    async def _differences(self, doubts: list[_Doubt], expected: _Scores) -> list[Difference]:
        wanted: dict[Window, list[str]] = {}
        for window, member in doubts:
            wanted.setdefault(window, []).append(member)
        differences: list[Difference] = []
        all_held = await self._held(wanted)
        for window, members in wanted.items():
            held, own = all_held[window], expected.get(window, {})
            differences += [
                Difference(self._index.name, self._key(member), *window, own.get(member), held.get(member))
                for member in members
                if own.get(member) != held.get(member)
            ]
        return differences

    async def _uneven(self, addresses: list[WindowAddress]) -> list[Difference]:
        """Windows whose numbers of entries and of prefixes differ."""
        uneven: list[Difference] = []
        for first in range(0, len(addresses), WINDOWS_AT_ONCE):
            chunk = addresses[first : first + WINDOWS_AT_ONCE]
            keys = [self._board.window_key(0, address) for address in chunk]
            counts = await self._applier.valkey.run_all(
                command
                for key in keys
                for command in (sorted_sets.cardinality(key), hashes.length(f"{key}|prefixes"))
            )
            uneven += [
                Difference(self._index.name, None, *_window(address), prefixes, entries)
                for address, entries, prefixes in zip(chunk, counts[::2], counts[1::2], strict=True)
                if entries != prefixes
            ]
        return uneven

    def _expected(self, records: Iterable[Record]) -> _Scores:
        """The scores that these records should have in each window."""
        now, rule = self._applier.clock(), self._index.rule
        expected: _Scores = {}
        for record in records:
            member = self._index.members.of_text(record.key)
            position = rule.settled(record.position, record.row, now)
            for window, score in rule.windows(position, now).items():
                expected.setdefault(window, {})[member] = score
        return expected

    async def _doubts_about(self, expected: _Scores) -> list[_Doubt]:
        """The expected entries that Valkey does not have."""
        return _apart(expected, await self._held({window: list(own) for window, own in expected.items()}))

    async def _held(self, wanted: dict[Window, list[str]]) -> _Scores:
        """The scores that Valkey has of these members."""
        label = self._board.definition.windows[0].label

        async def of_window(window: Window, members: list[str]) -> dict[str, int]:
            address = WindowAddress(label, str(window[0]), self._index.cut(window[1]))
            asked = ShardedWindow(self._applier.valkey, self._board, address)
            _, stood = await asked.standing([member.encode() for member in members], brief=True)
            return {
                member: int(self._parse(each.place)[0])
                for member, each in zip(members, stood, strict=True)
                if each
            }

        return dict(zip(wanted, await asyncio.gather(*starmap(of_window, wanted.items())), strict=True))

    async def _of_members(self, connection: AsyncConnection, members: list[str]) -> _Scores:
        """The scores that the records of these members should have; other members should have none."""
        keys = [key for member in members if (key := self._key(member)) is not None]
        records = await self._applier.outbox.of_keys(connection, keys, self._applier.clock())
        return self._expected(records)

    def _key(self, member: str) -> Any:  # noqa: ANN401  # a primary key of any type
        """The key of a member; None if no record can have this member."""
        try:
            return self._index.members.key(member)
        except ValueError:
            return None

    async def _listed(self) -> AsyncIterator[_Scores]:
        """Every entry in Valkey, in chunks."""
        chunk: _Scores = {}
        size = 0
        async for address in self._addresses():
            async for listed in ShardedWindow(self._applier.valkey, self._board, address).scan():
                scores = {each.member.decode(): int(self._parse(each.place)[0]) for each in listed}
                chunk.setdefault(_window(address), {}).update(scores)
                size += len(scores)
                if size >= KEYS_AT_ONCE:
                    yield chunk
                    chunk, size = {}, 0
        yield chunk

    async def _addresses(self) -> AsyncIterator[WindowAddress]:
        """The windows that can be asked for now or later. Valkey may still hold older ones."""
        oldest = self._index.rule.oldest(self._applier.clock())
        async for address in self._applier.retention.addresses(self._board, 0):
            if oldest is None or int(address.slot) >= oldest:
                yield address


def _window(address: WindowAddress) -> Window:
    return int(address.slot), address.cut.values


def _apart(left: _Scores, right: _Scores) -> list[_Doubt]:
    """The entries on the left that differ on the right."""
    return [
        (window, member)
        for window, scores in left.items()
        for member, score in scores.items()
        if right.get(window, {}).get(member) != score
    ]
