"""Operations on whole boards: rebuild, export, import; and the export and erasure of a member."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.boards.keys import BoardRef
from laurels.history.export_file import read
from laurels.valkey import sorted_sets
from laurels.valkey.client import Valkey

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from laurels.history.erase import Eraser
    from laurels.history.export import BoardFiles, ImportCounts
    from laurels.history.member_export import MemberExporter
    from laurels.history.records import Erased, MemberExport
    from laurels.journal.rebuild import Rebuilder, RebuildReport


class WholeBoardOperations:
    """The operations of `Laurels` on whole boards."""

    rebuilder: Rebuilder
    board_files: BoardFiles
    eraser: Eraser
    member_exporter: MemberExporter

    async def rebuild(
        self, board: str, progress: Callable[[int, int], None] | None = None, *, force: bool = False
    ) -> RebuildReport:
        """Rebuilds the board from its journal, while submissions go on. `progress` receives how many rows are
        done, and the total.
        """
        return await self.rebuilder.rebuild(BoardRef.parse(board), progress, force=force)

    async def verify(self, board: str, progress: Callable[[int, int], None] | None = None) -> RebuildReport:
        """Compares the board with its journal, and changes nothing."""
        return await self.rebuilder.verify(BoardRef.parse(board), progress)

    def export(
        self,
        boards: Iterable[str],
        window: tuple[str, str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> AsyncGenerator[bytes]:
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
        """Imports the entries of a file that `export` made. `lines` is called twice: first to check the whole
        file, then to place its entries. `into`: the board to use instead of the file's.
        """
        ref = None if into is None else BoardRef.parse(into)
        found = await self.board_files.check(read(lines()), ref)
        return found if dry_run else await self.board_files.place(read(lines()), ref, progress)

    async def import_zset(self, board: str, url: str, key: str, *, period: str | None = None) -> ImportCounts:
        """Imports a plain sorted set of any Redis into the current window of a board."""
        source = Valkey(url)
        try:
            return await self.board_files.place_pairs(
                BoardRef.parse(board), period, sorted_sets.scan(source, key, 1000)
            )
        finally:
            await source.close()

    async def export_member(
        self, project: str, member: str, *, limit: int = 10_000, cursor: str | None = None
    ) -> MemberExport:
        """Everything that the project keeps about a member, with the first `limit` rows of the journal; after
        a `cursor`, only further rows.
        """
        return await self.member_exporter.export(project, member, limit, cursor)

    async def erase(self, project: str, member: str, *, board: str | None = None) -> Erased:
        """Erases a member from everything that the project keeps, or from one board."""
        return await self.eraser.erase(project, member, board)
