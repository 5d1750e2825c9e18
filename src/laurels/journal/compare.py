"""Compares two boards entry by entry: the live one, and the one that was rebuilt from its journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from laurels.scores.submission import member_text
from laurels.valkey import functions, hashes
from laurels.valkey.messages import ReadHeader, ScanHeader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from laurels.boards.board import Board, WindowAddress
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import Shape

MEMBERS_A_CALL: Final = 250
# Differences that are described; the others are only counted.
MOST_DESCRIBED: Final = 20


class Doubt(NamedTuple):
    """A member whose entry differed when the boards were read one after the other."""

    address: WindowAddress
    member: bytes


@dataclass
class Comparison:
    different: int = 0
    described: list[str] = field(default_factory=list[str])

    def add(self, address: WindowAddress, member: bytes, why: str) -> None:
        self.different += 1
        if len(self.described) < MOST_DESCRIBED:
            name = f"{address.token} {address.cut}".strip(" |")
            self.described.append(f"{name}: {member_text(member)}: {why}")

    def add_rating(self, member: bytes, live: bytes | None, rebuilt: bytes | None) -> None:
        self.different += 1
        if len(self.described) < MOST_DESCRIBED:
            states = [state.decode() if state else "none" for state in (live, rebuilt)]
            self.described.append(
                f"rating: {member_text(member)}: has {states[0]}, by the journal {states[1]}"
            )


# A member's place and metadata in a window; None without an entry.
_Held = tuple[bytes, bytes] | None


class Comparer:
    """One shard of two boards: the live one first."""

    def __init__(self, valkey: Valkey, boards: tuple[Board, Board], shard: int) -> None:
        self._valkey = valkey
        self._boards = boards
        self._shard = shard

    async def doubts(self, address: WindowAddress) -> AsyncIterator[Doubt]:
        """Members whose entries differ, members included who submitted between the two reads."""
        for one, other in (self._boards, self._boards[::-1]):
            header = ScanHeader(_shape(one), one.version, "0", MEMBERS_A_CALL)
            while True:
                keys = _keys(one, self._shard, address)
                header.cursor, listed = await functions.scan(self._valkey, keys, header)
                for first in range(0, len(listed), MEMBERS_A_CALL):
                    some = listed[first : first + MEMBERS_A_CALL]
                    held = await self._held(other, address, [each.member for each in some])
                    for each in some:
                        if held[each.member] != (each.place, each.metadata):
                            yield Doubt(address, each.member)
                if header.cursor == "0":
                    break

    async def settle(self, doubtful: Sequence[Doubt], comparison: Comparison) -> None:
        """Reads the doubtful members again behind a fence, and records those that still differ."""
        by_address: dict[WindowAddress, list[bytes]] = {}
        for doubt in dict.fromkeys(doubtful):
            by_address.setdefault(doubt.address, []).append(doubt.member)
        for address, members in by_address.items():
            for first in range(0, len(members), MEMBERS_A_CALL):
                some = members[first : first + MEMBERS_A_CALL]
                live, rebuilt = [await self._held(board, address, some) for board in self._boards]
                for member in some:
                    if live[member] != rebuilt[member]:
                        why = _why(self._boards[0], live[member], rebuilt[member])
                        comparison.add(address, member, why)

    async def compare_ratings(self, comparison: Comparison) -> None:
        """Compares the state of every player, behind a fence."""
        live, rebuilt = [await self._states(board) for board in self._boards]
        for member in sorted(live.keys() | rebuilt.keys()):
            if live.get(member) != rebuilt.get(member):
                comparison.add_rating(member, live.get(member), rebuilt.get(member))

    async def _states(self, board: Board) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        async for listed in hashes.scan(
            self._valkey, board.keys.of_board(self._shard, "ratings"), MEMBERS_A_CALL
        ):
            found.update(listed)
        return found

    async def _held(
        self, board: Board, address: WindowAddress, members: Sequence[bytes]
    ) -> dict[bytes, _Held]:
        header = ReadHeader(_shape(board), board.version)
        keys = _keys(board, self._shard, address)
        _, found = await functions.standing(self._valkey, keys, header, members)
        return {
            member: None if stood is None else (stood.place, stood.metadata)
            for member, stood in zip(members, found, strict=True)
        }


def _why(board: Board, live: _Held, rebuilt: _Held) -> str:
    if live is None:
        return "is in the journal alone"
    if rebuilt is None:
        return "is not in the journal"
    if live[0] == rebuilt[0]:
        return "has other metadata"
    parse = board.ordering.parse_place
    (score, at), (journaled, then) = parse(live[0]), parse(rebuilt[0])
    if score == journaled:
        return f"reached {score} at {at}, by the journal at {then}"
    return f"has {score}, by the journal {journaled}"


def _keys(board: Board, shard: int, address: WindowAddress) -> tuple[str, ...]:
    window = board.keys.parts(board.window_key(shard, address), metadata=True)
    return board.keys.of_board(shard, "board"), *window


def _shape(board: Board) -> Shape:
    return board.shape(metadata=True)
