"""Deletes what a definition leaves in Valkey once it is no longer in force.

The transaction that drops a board, or changes its definition, records the old definition
(`RetiredDefinition`). The record is deleted when nothing is left in Valkey. Until then any process may finish
the work, at any time and more than once: the one that dropped the board, one that defines it again, or the
job `drops`. A new definition waits for that, so a new board never shows anything of an old one.

First the number of the record replaces the board's version in Valkey. It is above every version that the
board had, so calls with one of these are refused, and none can be put in force again. Keys are deleted only
while the board has that number, so a late process deletes nothing of the next board of the name.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from laurels.boards.keys import BoardRef
from laurels.errors import LaurelsError
from laurels.logs import get_logger
from laurels.valkey import functions, sorted_sets
from laurels.valkey.functions import DefinitionChanged
from laurels.valkey.messages import Guard
from laurels.valkey.names import WINDOWS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laurels.boards.board import Board
    from laurels.boards.catalog import Catalog
    from laurels.boards.definition import BoardDefinition, StoredBoard
    from laurels.boards.retention import Retention
    from laurels.boards.store import BoardStore, RetiredDefinition
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import Durability

# What a definition says of submissions, and not of windows.
OF_WRITES: Final = ("allow_op", "limits", "player_writes")
# Boards whose windows are fitted to their new definitions at the same time.
FINISHED_AT_ONCE: Final = 32
# How long the number of a dropped board stays in Valkey: longer than any call that began before it takes.
NUMBER_SECONDS: Final = 300

log = get_logger("laurels.boards")


class JournalArchive(Protocol):
    """The drain, as far as drops need it."""

    async def finish_board(self, stored: StoredBoard) -> None:
        """Archives all of the board's journal."""
        ...

    async def wait_for_drains(self, board_id: int) -> None:
        """Returns when no drain reads the board's journal. Once the board is dropped, no drain starts to."""
        ...


@dataclass(frozen=True)
class Drops:
    valkey: Valkey
    catalog: Catalog
    store: BoardStore
    retention: Retention
    archiving: JournalArchive
    durability: Durability

    async def finish(self, ref: BoardRef) -> bool:
        """Deletes what is left of the board's retired definitions. Returns False for a board that was to be
        cleared for other shards but holds entries, and so stays.
        """
        retired = await self.store.retired(*ref)
        if not retired:
            return True
        stored = await self.store.get(*ref)
        try:
            is_gone = await (
                self._delete_all(retired, stored)
                if retired[-1].whole
                else self._delete_leftovers(retired, stored)
            )
        except DefinitionChanged:
            log.info("another process deletes the board's old keys", board=str(ref))
            return not await self.store.retired(*ref)
        await self.store.settle(retired)
        return is_gone

    async def finish_together(self, changed: Iterable[tuple[RetiredDefinition, StoredBoard]]) -> None:
        """As `finish`, for changes that drop nothing, once the boards are in force."""
        turns = asyncio.Semaphore(FINISHED_AT_ONCE)
        settled: list[RetiredDefinition] = []

        async def finish(retired: RetiredDefinition, stored: StoredBoard) -> None:
            async with turns:
                new = self.catalog.compile(stored)
                with suppress(DefinitionChanged):  # the process that changed the board again does it
                    if not _keeps_keys(retired.board.definition, stored.definition):
                        await self._fit_windows(self.catalog.compile(retired.board), new)
                    settled.append(retired)

        await asyncio.gather(*(finish(*each) for each in changed))
        if settled:
            await self.store.settle(settled)

    async def finish_all(self, *, templated: bool = False) -> int:
        """Finishes every board, or those with key templates; returns how many. Raises the last error."""
        failure: LaurelsError | None = None
        names = await self.store.all_retired(templated=templated)
        for name in names:
            try:
                await self.finish(BoardRef(*name))
            except LaurelsError as error:
                failure = error
        if failure:
            raise failure
        return len(names)

    async def _delete_all(self, retired: list[RetiredDefinition], stored: StoredBoard | None) -> bool:
        number = retired[-1].number
        boards = {each.board.version: self.catalog.compile(each.board) for each in retired}
        board_keys = {
            board.keys.of_board(shard, "board"): (board, shard)
            for board in boards.values()
            for shard in range(board.keys.shards)
        }
        left = [key for key in board_keys if await functions.retire(self.valkey, key, number)]
        if stored:  # it is cleared for other shards
            await self.archiving.finish_board(stored)
        is_gone = stored is None or not await self.retention.holds_entries(self.catalog.compile(stored))
        if is_gone:
            await self.archiving.wait_for_drains(retired[-1].board.id)
            for board in boards.values():
                await self._delete_board(board, number, left)
        for key in left:
            await functions.retired(self.valkey, key, number, NUMBER_SECONDS)
            await functions.confirm(self.valkey, (key,), (), self.durability)
        if stored is None:
            await self.valkey.run(sorted_sets.remove(WINDOWS, [str(next(iter(boards.values())).ref)]))
        return is_gone

    async def _delete_board(self, board: Board, number: int, left: list[str]) -> None:
        for shard in range(board.keys.shards):
            key = board.keys.of_board(shard, "board")
            if key in left:
                await self.retention.delete_shard(board, shard, Guard(key, "dropping", number))

    async def _delete_leftovers(self, retired: list[RetiredDefinition], stored: StoredBoard | None) -> bool:
        """Deletes what the definition in force has no place for, and sets the expiry of windows by it."""
        if stored is None:  # dropped in between: the new record covers all keys
            return True
        retired = [each for each in retired if each.number < stored.version]
        if not retired:  # held for a change that was not made
            return True
        new = self.catalog.compile(stored)
        await self.catalog.adopt(new)
        for each in retired:
            if not stored.definition.archive.journal:
                await self.archiving.finish_board(each.board)
            await self._fit_windows(self.catalog.compile(each.board), new)
        return True

    async def _fit_windows(self, old: Board, new: Board) -> None:
        await self.retention.drop_lost(old, new)
        await self.retention.reset_expiry(new)
        await self.retention.forget(new)


def _keeps_keys(was: BoardDefinition, will_be: BoardDefinition) -> bool:
    """Whether windows have the same keys, and the same expiry, by both definitions."""
    return was.model_copy(update={name: getattr(will_be, name) for name in OF_WRITES}) == will_be
