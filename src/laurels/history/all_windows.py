"""Reads a window wherever it is: in Valkey, or in the archive once Valkey no longer keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.errors import WindowGone

if TYPE_CHECKING:
    from laurels.boards.keys import BoardRef
    from laurels.history.archived_windows import ArchivedWindows
    from laurels.scores.page_query import PageQuery, WindowQuery
    from laurels.scores.queries import Reader
    from laurels.scores.results import Page, Standing


class AllWindows:
    def __init__(self, live: Reader, archived: ArchivedWindows) -> None:
        self._live = live
        self._archived = archived

    async def page(self, ref: BoardRef, query: PageQuery) -> Page:
        try:
            return await self._live.page(ref, query)
        except WindowGone:
            return await self._archived.page(ref, query)

    async def standing(self, ref: BoardRef, query: WindowQuery, member: str) -> Standing:
        try:
            return await self._live.standing(ref, query, member)
        except WindowGone:
            return await self._archived.standing(ref, query, member)

    async def around(
        self, ref: BoardRef, query: WindowQuery, member: str, above: int = 5, below: int = 5
    ) -> Page:
        try:
            return await self._live.around(ref, query, member, above, below)
        except WindowGone:
            return await self._archived.around(ref, query, member, above, below)
