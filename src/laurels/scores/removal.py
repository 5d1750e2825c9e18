"""Removes a member from all live windows and groups of a board."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laurels.boards.board import WindowAddress
from laurels.boards.retention import WINDOWS_A_CALL
from laurels.journal.entry import remove_entry
from laurels.scores.submission import check_member
from laurels.valkey import functions
from laurels.valkey.functions import DefinitionChanged
from laurels.valkey.messages import RemoveHeader

if TYPE_CHECKING:
    from laurels.boards.board import Board
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.boards.retention import Retention
    from laurels.clock import Clock
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import Durability


@dataclass(frozen=True, slots=True)
class Remover:
    valkey: Valkey
    catalog: Catalog
    retention: Retention
    clock: Clock

    async def remove(self, ref: BoardRef, member: str, durability: Durability = "fast") -> bool:
        """Returns whether the member had an entry or a rating."""
        encoded = check_member(member)
        while True:
            board = await self.catalog.in_force(ref)
            board.require_writer(None)
            try:
                return await self._remove(board, encoded, durability)
            except DefinitionChanged as changed:
                await self.catalog.refresh(ref, changed.known)

    async def _remove(self, board: Board, member: bytes, durability: Durability) -> bool:
        shard = board.keys.shard_of(member)
        header = RemoveHeader(board.shape(metadata=True), board.version, 1)
        header.journal = 1 if board.definition.archive.journal else 2
        header.durable = int(durability != "fast")
        entry = remove_entry(secrets.token_urlsafe(16), self.clock(), board.version, member)
        header.rated = int(board.is_rated)
        found, done, addresses = 0, set[WindowAddress](), await self.retention.days_first(board, shard)
        while addresses or header.rated:
            keys = [board.keys.of_board(shard, "board"), board.keys.of_board(shard, "journal")]
            if header.rated:
                keys.append(board.keys.of_board(shard, "ratings"))
            for address in addresses[:WINDOWS_A_CALL]:
                keys += board.keys.parts(board.window_key(shard, address), metadata=True)
            found += await functions.remove(self.valkey, keys, header, (entry, member), durability)
            header.journal = header.rated = 0
            done |= {*addresses[:WINDOWS_A_CALL]}
            addresses = addresses[WINDOWS_A_CALL:] or [
                # A rolling window that was completed meanwhile may have taken the member from its days.
                address
                for address in await self.retention.days_first(board, shard)
                if address not in done
            ]
        return found > 0
