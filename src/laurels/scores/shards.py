"""Reads a window that is spread over shards.

With one shard, each read is one call. With several, all shards are read at the same time: a rank is the sum
of their counts, and a page the merge of their pages.
"""

from __future__ import annotations

import asyncio
import heapq
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from laurels.boards.ordering import Position
from laurels.together import Together
from laurels.valkey import functions
from laurels.valkey.messages import (
    By,
    CountReply,
    EntryReply,
    PageHeader,
    PageReply,
    ReadHeader,
    ScanHeader,
    StandingReply,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence

    from laurels.boards.board import Board, WindowAddress
    from laurels.boards.ordering import Score
    from laurels.valkey.client import Valkey, Value


Asked = TypeVar("Asked")

# A function takes 5 to 15 µs a count, so this many members or positions stay well under 10 ms; more are split
# over several calls.
MEMBERS_A_CALL: Final = 250
# How many entries one call of a scan returns: one or two milliseconds (bench/archive.py).
SCANNED_A_CALL: Final = 250


class ShardedWindow:
    """One window of a board. Indexes start at 0 with the best entry."""

    def __init__(self, valkey: Valkey, board: Board, address: WindowAddress) -> None:
        self._valkey = valkey
        self._board = board
        self._shape = board.shape(metadata=True)
        self._header = ReadHeader(self._shape, board.version)
        self._keys = [
            (
                board.keys.of_board(shard, "board"),
                *board.keys.parts(board.window_key(shard, address), metadata=True),
            )
            for shard in range(board.keys.shards)
        ]

        self._standings = Together(self._ask_standings)

    async def total(self) -> int:
        return sum(total for total, _ in await self._counts(()))

    async def standing(
        self, members: Sequence[bytes], *, brief: bool = False
    ) -> tuple[int, list[StandingReply | None]]:
        """The number of entries, and where each of these members stands.

        `brief`: only place and rank, for many members at once.
        """
        header = ReadHeader(self._shape, self._board.version, int(brief))
        if len(self._keys) == 1:
            return await self._standing(self._keys[0], header, members)
        by_shard: list[list[bytes]] = [[] for _ in self._keys]
        for member in members:
            by_shard[self._board.keys.shard_of(member)].append(member)
        answers = await asyncio.gather(
            *(self._standing(keys, header, own) for keys, own in zip(self._keys, by_shard, strict=True))
        )
        found: dict[bytes, StandingReply] = {}
        for own, (_, stood) in zip(by_shard, answers, strict=True):
            found.update((member, each) for member, each in zip(own, stood, strict=True) if each)
        counted = await self.count([Position(stood.place, member) for member, stood in found.items()])
        for member, (better, before) in zip(found, counted[1], strict=True):
            found[member] = found[member]._replace(better=better, before=before)
        return counted[0], [found.get(member) for member in members]

    def standing_of(self, member: bytes) -> Awaitable[tuple[int, StandingReply | None]]:
        """As `standing`, for one member; shares a call with others who ask at the same time."""
        return self._standings.ask(member) if len(self._keys) == 1 else self._standing_in_all(member)

    async def _standing_in_all(self, member: bytes) -> tuple[int, StandingReply | None]:
        total, (stood,) = await self.standing((member,))
        return total, stood

    async def _ask_standings(self, members: Sequence[bytes]) -> list[tuple[int, StandingReply | None]]:
        total, found = await self._standing(self._keys[0], self._header, members)
        return [(total, stood) for stood in found]

    async def count(self, positions: Sequence[Position]) -> tuple[int, list[CountReply]]:
        """The number of entries, and where entries at these positions would stand."""
        answers = await self._counts(positions)
        counts = zip(*(counted for _, counted in answers), strict=True)
        sums = [CountReply(*(sum(each) for each in zip(*of_shards, strict=True))) for of_shards in counts]
        return sum(total for total, _ in answers), sums

    async def better_elsewhere(self, positions: Sequence[Position]) -> list[int]:
        """For each position, how many entries of the other shards are better."""
        counts = await self._counts(positions)
        own = [self._board.keys.shard_of(position.member) for position in positions]
        return [
            sum(counted[index].better for shard, (_, counted) in enumerate(counts) if shard != own[index])
            for index in range(len(positions))
        ]

    def from_start(self, offset: int, limit: int) -> Awaitable[PageReply]:
        """Entries from an index on."""
        if len(self._keys) == 1:
            return self._ask(self._page("start", offset=offset, limit=limit))
        return self._from_start_of_all(offset, limit)

    async def _from_start_of_all(self, offset: int, limit: int) -> PageReply:
        return await self._forward(await self._offsets(offset), limit)

    async def from_end(self, offset: int, limit: int) -> PageReply:
        """The last entries, without the last `offset`."""
        if len(self._keys) == 1:
            return await self._ask(self._page("end", offset=offset, limit=limit))
        total = await self.total()
        first = max(0, total - offset - limit)
        return await self.from_start(first, max(0, total - offset - first))

    async def after(self, position: Position, limit: int) -> PageReply:
        """Entries after a position, whether or not it still has an entry."""
        if len(self._keys) == 1:
            return await self._ask(self._page("after", limit=limit), position.place, position.member)
        behind = [reply.first for reply in await self._ask_all("after", position)]
        return await self._forward(behind, limit)

    async def before(self, position: Position, limit: int) -> PageReply:
        """Entries before a position."""
        if len(self._keys) == 1:
            return await self._ask(self._page("before", limit=limit), position.place, position.member)
        _, (counted,) = await self.count((position,))
        first = max(0, counted.before - limit)
        return await self.from_start(first, counted.before - first)

    async def around(self, member: bytes, above: int, below: int) -> PageReply | None:
        """A member with the entries above and below; None if it has no entry."""
        if len(self._keys) == 1:
            header = self._page("member")
            header.above, header.below = above, below
            return await functions.page(self._valkey, self._keys[0], header, (member,))
        _, (stood,) = await self.standing((member,))
        if stood is None:
            return None
        first = max(0, stood.before - above)
        return await self.from_start(first, stood.before - first + 1 + below)

    async def at_share(self, numerator: int, denominator: int) -> PageReply:
        """The one entry at this share of the entries, where 1 is the best."""
        if len(self._keys) == 1:
            header = self._page("share")
            header.share = (numerator, denominator)
            return await self._ask(header)
        total = await self.total()
        no_better = max(1, -(-numerator * total // denominator))
        return await self.from_start(max(0, total - no_better), 1)

    async def scan(self) -> AsyncIterator[list[EntryReply]]:
        """All entries, in no order, a few hundred at a time.

        An entry that changes meanwhile may come twice, but is never missed.
        """
        for keys in self._keys:
            header = ScanHeader(self._shape, self._board.version, "0", SCANNED_A_CALL)
            while True:
                header.cursor, listed = await functions.scan(self._valkey, keys, header)
                yield listed
                if header.cursor == "0":
                    break

    def _page(self, by: By, *, limit: int = 0, offset: int = 0) -> PageHeader:
        return PageHeader(self._shape, self._board.version, by, limit, offset)

    async def _ask(self, header: PageHeader, *rest: Value, shard: int = 0) -> PageReply:
        reply = await functions.page(self._valkey, self._keys[shard], header, rest)
        if reply is None:
            raise AssertionError("only a read by member can find nothing")
        return reply

    async def _ask_all(self, by: By, position: Position) -> list[PageReply]:
        """Where each shard would continue from a position."""
        header = self._page(by)
        return await asyncio.gather(
            *(
                self._ask(header, position.place, position.member, shard=shard)
                for shard in range(len(self._keys))
            )
        )

    async def _forward(self, offsets: Sequence[int], limit: int) -> PageReply:
        """Merges the entries after each shard's offset."""
        replies = await asyncio.gather(
            *(
                self._ask(self._page("start", offset=offset, limit=limit), shard=shard)
                for shard, offset in enumerate(offsets)
            )
        )
        ordering = self._board.ordering

        def order(listed: EntryReply) -> tuple[Score, int, bytes]:
            return ordering.sort_key(*ordering.parse_place(listed.place), listed.member)

        merged = heapq.merge(*(reply.entries for reply in replies), key=order, reverse=ordering.reverse)
        entries = list(islice(merged, limit))
        total, first = sum(reply.total for reply in replies), sum(offsets)
        better = first
        if entries and not ordering.unique:
            _, (counted,) = await self.count((Position(entries[0].place, entries[0].member),))
            better = counted.better
        return PageReply(total, first, better, entries)

    async def _offsets(self, index: int) -> list[int]:
        """How many of the first `index` entries each shard holds, by a binary search over all shards."""
        totals = [total for total, _ in await self._counts(())]
        low, high = [0] * len(totals), totals
        if index >= sum(totals):
            return totals
        while index > 0:
            widest = max(range(len(totals)), key=lambda shard: high[shard] - low[shard])
            middle = (low[widest] + high[widest]) // 2
            pivot = (await self._ask(self._page("start", offset=middle, limit=1), shard=widest)).entries
            if not pivot:  # the shard shrank meanwhile
                high[widest] = middle
                continue
            counts = await self._counts((Position(pivot[0].place, pivot[0].member),))
            before = [counted[0].before for _, counted in counts]
            if sum(before) == index:
                return before
            if sum(before) > index:
                high = [min(bound, count) for bound, count in zip(high, before, strict=True)]
            else:
                before[widest] += 1
                if sum(before) == index:
                    return before
                low = [max(bound, count) for bound, count in zip(low, before, strict=True)]
        return low

    async def _standing(
        self, keys: Sequence[str], header: ReadHeader, members: Sequence[bytes]
    ) -> tuple[int, list[StandingReply | None]]:
        if len(members) <= MEMBERS_A_CALL:
            return await functions.standing(self._valkey, keys, header, members)
        answers = await asyncio.gather(
            *(functions.standing(self._valkey, keys, header, part) for part in _parts(members))
        )
        return answers[-1][0], [stood for _, part in answers for stood in part]

    async def _counts(self, positions: Sequence[Position]) -> list[tuple[int, list[CountReply]]]:
        places = [(position.place, position.member) for position in positions]

        async def of_shard(keys: Sequence[str]) -> tuple[int, list[CountReply]]:
            answers = await asyncio.gather(
                *(functions.count(self._valkey, keys, self._header, part) for part in _parts(places))
            )
            return answers[-1][0], [counted for _, part in answers for counted in part]

        return await asyncio.gather(*map(of_shard, self._keys))


def _parts(asked: Sequence[Asked]) -> list[Sequence[Asked]]:
    """Splits the positions into calls; one empty part if only the total is asked."""
    return [asked[first : first + MEMBERS_A_CALL] for first in range(0, max(1, len(asked)), MEMBERS_A_CALL)]
