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
from laurels.boards.retention import target_at
from laurels.index.outbox import LONG_SECONDS
from laurels.index.positions import RecordMove
from laurels.index.writes import wants_of
from laurels.scores.shards import ShardedWindow
from laurels.valkey import hashes, sorted_sets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.boards.board import Board, Target
    from laurels.index.apply import Applier
    from laurels.index.rows import Record, Want

# All differences are counted; this many are listed.
MOST_LISTED: Final = 1000
KEYS_AT_ONCE: Final = 500
WINDOWS_AT_ONCE: Final = 500


@dataclass(frozen=True)
class Difference:
    """An entry that differs from its record."""

    index: str
    key: Any
    window: str
    """Its period and slot."""
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


_Scores = dict[WindowAddress, dict[str, int]]
"""By window and member."""
_Doubt = tuple[WindowAddress, str]


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
            async for records in self._applier.rows.all(connection, self._applier.clock()):
                found.records += len(records)
                expected = await self._expected(connection, records)
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
                waiting = await self._waiting(connection)
                for first in range(0, len(doubts), KEYS_AT_ONCE):
                    chunk = [
                        doubt for doubt in doubts[first : first + KEYS_AT_ONCE] if doubt[1] not in waiting
                    ]
                    expected = await self._of_members(connection, list({member for _, member in chunk}))
                    found.add(await self._differences(chunk, expected))
            found.add(await self._uneven([address async for address in self._addresses()]))

    async def _waiting(self, connection: AsyncConnection) -> set[str]:
        """The members with changes that are not applied yet."""
        of_key, of_member = self._index.keys.of_text, self._index.members.of_text
        pending = await self._applier.outbox.pending_records(connection)
        if self._index.member is None:
            return {of_key(key) for key, *_ in pending}
        return {of_member(member) for _, *members in pending for member in members if member}

    async def _differences(self, doubts: list[_Doubt], expected: _Scores) -> list[Difference]:
        wanted: dict[WindowAddress, list[str]] = {}
        for window, member in doubts:
            wanted.setdefault(window, []).append(member)
        differences: list[Difference] = []
        all_held = await self._held(wanted)
        for window, members in wanted.items():
            held, own = all_held[window], expected.get(window, {})
            differences += [
                self._difference(window, self._key(member), own.get(member), held.get(member))
                for member in members
                if own.get(member) != held.get(member)
            ]
        return differences

    def _difference(
        self,
        address: WindowAddress,
        key: Any,  # noqa: ANN401  # of any type
        expected: int | None,
        found: int | None,
    ) -> Difference:
        where = f"{address.label} {address.slot}".rstrip()
        return Difference(self._index.name, key, where, address.cut.values, expected, found)

    async def _uneven(self, addresses: list[WindowAddress]) -> list[Difference]:
        """Windows whose numbers of entries and of prefixes differ."""
        uneven: list[Difference] = []
        if not self._board.ordering.prefixed:
            return uneven
        for first in range(0, len(addresses), WINDOWS_AT_ONCE):
            chunk = addresses[first : first + WINDOWS_AT_ONCE]
            keys = [self._board.window_key(0, address) for address in chunk]
            counts = await self._applier.valkey.run_all(
                command
                for key in keys
                for command in (sorted_sets.cardinality(key), hashes.length(f"{key}|prefixes"))
            )
            uneven += [
                self._difference(address, None, prefixes, entries)
                for address, entries, prefixes in zip(chunk, counts[::2], counts[1::2], strict=True)
                if entries != prefixes
            ]
        return uneven

    async def _expected(self, connection: AsyncConnection, records: Iterable[Record]) -> _Scores:
        """The scores that these records' members should have in each window."""
        now, rule = self._applier.clock(), self._index.rule
        expected: _Scores = {}
        wants: dict[Want, Target] = {}
        for record in records:
            position = rule.settled(record.position, record.row, now)
            if self._index.member is not None:
                wants |= wants_of(self._index, RecordMove((), position), now)
                continue
            member = self._index.keys.of_text(record.key)
            for address, placed in rule.windows(position, now).items():
                if placed.placement.score is not None and not self._is_filled_later(placed.target):
                    expected.setdefault(address, {})[member] = placed.placement.score
        if wants:
            wants = {want: target for want, target in wants.items() if not self._is_filled_later(target)}
            for want, entry in (await self._applier.rows.entries(connection, wants)).items():
                member = self._index.members.of_text(want.member)
                expected.setdefault(want.address, {})[member] = entry.score
        return expected

    async def _doubts_about(self, expected: _Scores) -> list[_Doubt]:
        """The expected entries that Valkey does not have."""
        return _apart(expected, await self._held({window: list(own) for window, own in expected.items()}))

    async def _held(self, wanted: dict[WindowAddress, list[str]]) -> _Scores:
        """The scores that Valkey has of these members."""

        async def of_window(address: WindowAddress, members: list[str]) -> dict[str, int]:
            asked = ShardedWindow(self._applier.valkey, self._board, address)
            _, stood = await asked.standing([member.encode() for member in members], brief=True)
            return {
                member: int(self._parse(each.place)[0])
                for member, each in zip(members, stood, strict=True)
                if each
            }

        return dict(zip(wanted, await asyncio.gather(*starmap(of_window, wanted.items())), strict=True))

    async def _of_members(self, connection: AsyncConnection, members: list[str]) -> _Scores:
        """The scores that these members should have; other members should have none."""
        keys = [key for member in members if (key := self._key(member)) is not None]
        records = await self._applier.rows.of_members(connection, keys, self._applier.clock())
        return await self._expected(connection, records)

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
                chunk.setdefault(address, {}).update(scores)
                size += len(scores)
                if size >= KEYS_AT_ONCE:
                    yield chunk
                    chunk, size = {}, 0
        yield chunk

    async def _addresses(self) -> AsyncIterator[WindowAddress]:
        """The windows that can be asked for now or later. Valkey may still hold older ones."""
        now = self._applier.clock()
        async for address in self._applier.retention.addresses(self._board, 0):
            target = target_at(self._board, address)
            if target is None or self._is_filled_later(target):
                continue
            until = target.zoned.held_until(target.slot)
            if until is None or now < until:
                yield address

    def _is_filled_later(self, target: Target) -> bool:
        """Rolling windows are filled from their days, in the background or by the first read."""
        return target.zoned.how == "fold"


def _apart(left: _Scores, right: _Scores) -> list[_Doubt]:
    """The entries on the left that differ on the right."""
    return [
        (window, member)
        for window, scores in left.items()
        for member, score in scores.items()
        if right.get(window, {}).get(member) != score
    ]
