"""What a definition leaves in Valkey once it is no longer in force, and how that goes.

The transaction that drops a board, or changes its definition, records the old definition (`Retired`). The
record goes when nothing of it is left in Valkey. Until then any process may finish the work, at any time and
more than once: who dropped the board, who defines it again, or the job `drops`. A new definition waits for
that, so nothing of an old board is ever seen in a new one.

Before keys are taken away, the number of the record takes the place of the board's version in Valkey. It lies
above every version that the board had, so whoever still knows one of them is refused and cannot put it in
force again. Keys go only while the board has that number: a process that is late takes nothing from the next
board of the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from laurels.boards.keys import BoardRef
from laurels.errors import LaurelsError
from laurels.logs import get_logger
from laurels.valkey import functions
from laurels.valkey.functions import DefinitionChanged
from laurels.valkey.messages import Guard

if TYPE_CHECKING:
    from laurels.boards.board import Board
    from laurels.boards.catalog import Catalog
    from laurels.boards.definition import StoredBoard
    from laurels.boards.retention import Retention
    from laurels.boards.store import BoardStore, Retired
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import Durability

# For how long a dropped board's number stays in Valkey: longer than any call that began before is under way.
NUMBER_SECONDS: Final = 300

log = get_logger("laurels.boards")


class Archiving(Protocol):
    """What the archive does with a board's journal."""

    async def finish_board(self, stored: StoredBoard) -> None:
        """Returns when all of it is archived."""
        ...

    async def wait_for_drains(self, board_id: int) -> None:
        """Returns when nobody reads it; nobody begins to, once the board was dropped."""
        ...


@dataclass(frozen=True)
class Drops:
    valkey: Valkey
    catalog: Catalog
    store: BoardStore
    retention: Retention
    archiving: Archiving
    durability: Durability

    async def finish(self, ref: BoardRef) -> bool:
        """Takes away what is left of the board's retired definitions; whether all of it went: a board that
        was to be cleared for other shards and holds entries stays as it is.
        """
        retired = await self.store.retired(*ref)
        if not retired:
            return True
        stored = await self.store.get(*ref)
        try:
            is_gone = await (
                self._take_all(retired, stored) if retired[-1].whole else self._follow(retired, stored)
            )
        except DefinitionChanged:
            log.info("what a board left is taken away by another process", board=str(ref))
            return not await self.store.retired(*ref)
        await self.store.settle(retired)
        return is_gone

    async def finish_all(self, *, templated: bool = False) -> int:
        """Of every board, or of those that name their keys; how many. Raises what went wrong, in the end."""
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

    async def _take_all(self, retired: list[Retired], stored: StoredBoard | None) -> bool:
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
                await self._take(board, number, left)
        for key in left:
            await functions.retired(self.valkey, key, number, NUMBER_SECONDS)
            await functions.confirm(self.valkey, (key,), (), self.durability)
        return is_gone

    async def _take(self, board: Board, number: int, left: list[str]) -> None:
        for shard in range(board.keys.shards):
            key = board.keys.of_board(shard, "board")
            if key in left:
                await self.retention.take(board, shard, Guard(key, "dropping", number))

    async def _follow(self, retired: list[Retired], stored: StoredBoard | None) -> bool:
        """Takes away what the definition in force has no place for; windows live as long as it says."""
        if stored is None:  # dropped this moment: that record has all of it
            return True
        retired = [each for each in retired if each.number < stored.version]
        if not retired:  # the board was held for a change that was not made
            return True
        new = self.catalog.compile(stored)
        await self.catalog.adopt(new)
        for each in retired:
            if not stored.definition.archive.journal:
                await self.archiving.finish_board(each.board)
            await self.retention.drop_lost(self.catalog.compile(each.board), new)
        await self.retention.reset_expiry(new)
        await self.retention.forget(new)
        return True
