"""What the engine offers over whole boards: made anew, as files, and without a member."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.boards.keys import BoardRef
from laurels.history.export_file import read
from laurels.valkey import sorted_sets
from laurels.valkey.client import Valkey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from laurels.history.erase import Erased, Eraser
    from laurels.history.export import BoardFiles, ImportCounts
    from laurels.journal.rebuild import Rebuilder, Rebuilding


class WholeBoardOperations:
    """Operations of `Laurels`, which has the means."""

    rebuilder: Rebuilder
    board_files: BoardFiles
    eraser: Eraser

    async def rebuild(
        self, board: str, progress: Callable[[int, int], None] | None = None, *, force: bool = False
    ) -> Rebuilding:
        """Makes the board anew from its journal and puts that in force, while submissions go on. `progress`
        hears how many rows are done, of how many.
        """
        return await self.rebuilder.rebuild(BoardRef.parse(board), progress, force=force)

    async def verify(self, board: str, progress: Callable[[int, int], None] | None = None) -> Rebuilding:
        """Where the board differs from what its journal tells; changes nothing."""
        return await self.rebuilder.verify(BoardRef.parse(board), progress)

    def export(
        self,
        boards: Iterable[str],
        window: tuple[str, str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> AsyncIterator[bytes]:
        """The lines of a file with these boards, or with one window (period, slot) of each."""
        return self.board_files.export([BoardRef.parse(board) for board in boards], window, progress)

    async def import_lines(
        self,
        lines: Callable[[], Iterable[bytes]],
        into: str | None = None,
        progress: Callable[[int, int], None] | None = None,
        *,
        dry_run: bool = False,
    ) -> ImportCounts:
        """Places the entries of a file that `export` made. `lines` is called twice: nothing is placed before
        the whole file is found good. `into`: another board than the file says.
        """
        ref = None if into is None else BoardRef.parse(into)
        found = await self.board_files.check(read(lines()), ref)
        return found if dry_run else await self.board_files.place(read(lines()), ref, progress)

    async def import_zset(self, board: str, url: str, key: str, *, period: str | None = None) -> ImportCounts:
        """Places members and scores of a plain sorted set of any Redis into the current window of a board."""
        source = Valkey(url)
        try:
            return await self.board_files.place_pairs(
                BoardRef.parse(board), period, sorted_sets.scan(source, key, 1000)
            )
        finally:
            await source.close()

    async def erase(self, project: str, member: str, *, board: str | None = None) -> Erased:
        """Takes a member out of everything that the project keeps, or one board of it."""
        return await self.eraser.erase(project, member, board)
