"""The operations of `Laurels` on the archive: a member's history, and snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from msgspec.structs import replace

from laurels.boards.keys import BoardRef, group_text
from laurels.history.member_history import HistoryQuery
from laurels.scores.people import with_people

if TYPE_CHECKING:
    from laurels.arguments import ArchiveArguments
    from laurels.history.archived_windows import ArchivedWindows
    from laurels.history.member_history import MemberHistory
    from laurels.history.records import History, SnapshotList, SnapshotPage
    from laurels.scores.people import People


class ArchiveOperations:
    """The operations of `Laurels` on the archive."""

    member_history: MemberHistory
    archived_windows: ArchivedWindows
    known_people: People

    async def history(
        self, board: str, member: str, *, limit: int = 30, **paging: Unpack[ArchiveArguments]
    ) -> History:
        """A member's standings in windows that ended, newest first: live, from snapshots or the journal."""
        period, group, cursor = _archive_part(paging)
        asked = HistoryQuery(period, group, limit, cursor)
        return await self.member_history.history(BoardRef.parse(board), member, asked)

    async def snapshots(
        self, board: str, *, limit: int = 100, **paging: Unpack[ArchiveArguments]
    ) -> SnapshotList:
        """The board's snapshots, newest first."""
        period, group, cursor = _archive_part(paging)
        return await self.archived_windows.listed(BoardRef.parse(board), period, group, limit, cursor)

    async def snapshot(
        self,
        board: str,
        snapshot: str,
        *,
        limit: int = 100,
        cursor: str | None = None,
        people: bool = False,
    ) -> SnapshotPage:
        """A page of one snapshot, by its id."""
        ref = BoardRef.parse(board)
        page = await self.archived_windows.snapshot(ref, snapshot, limit, cursor)
        if people:
            page = replace(page, entries=await with_people(self.known_people, ref.project, page.entries))
        return page


def _archive_part(paging: ArchiveArguments) -> tuple[str | None, str | None, str | None]:
    return paging.get("period"), group_text(paging.get("group")), paging.get("cursor")
