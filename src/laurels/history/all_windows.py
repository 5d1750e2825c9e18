"""Reads a window wherever it is: in Valkey, or in the archive once Valkey no longer keeps it.

On request, with the names and avatars of the members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.errors import WindowGone
from laurels.scores.people import among_with_people, page_with_people, standing_with_person

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.boards.keys import BoardRef
    from laurels.history.archived_windows import ArchivedWindows
    from laurels.scores.page_query import EntriesQuery, PageQuery
    from laurels.scores.people import People
    from laurels.scores.queries import Reader
    from laurels.scores.results import Among, Page, Standing


class AllWindows:
    def __init__(self, live: Reader, archived: ArchivedWindows, people: People) -> None:
        self._live = live
        self._archived = archived
        self._people = people

    async def page(self, ref: BoardRef, query: PageQuery) -> Page:
        try:
            page = await self._live.page(ref, query)
        except WindowGone:
            page = await self._archived.page(ref, query)
        return await page_with_people(self._people, page) if query.people else page

    async def standing(self, ref: BoardRef, query: EntriesQuery, member: str) -> Standing:
        try:
            standing = await self._live.standing(ref, query, member)
        except WindowGone:
            standing = await self._archived.standing(ref, query, member)
        return await standing_with_person(self._people, ref.project, standing) if query.people else standing

    async def around(
        self, ref: BoardRef, query: EntriesQuery, member: str, above: int = 5, below: int = 5
    ) -> Page:
        try:
            page = await self._live.around(ref, query, member, above, below)
        except WindowGone:
            page = await self._archived.around(ref, query, member, above, below)
        return await page_with_people(self._people, page) if query.people else page

    async def among(self, ref: BoardRef, query: EntriesQuery, members: Sequence[str]) -> Among:
        among = await self._live.among(ref, query, members)
        return await among_with_people(self._people, ref.project, among) if query.people else among
