"""Adds the names and avatars of members to what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import structs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from laurels.scores.results import Among, Entry, Friend, Page, ShownPerson, Standing

Ranked = TypeVar("Ranked", "Entry", "Friend", "Standing")


class People(Protocol):
    """Knows the people of projects."""

    async def shown(self, project: str, members: Collection[str]) -> Mapping[str, ShownPerson]:
        """What to show for those of these members who have a name or an avatar."""
        ...


async def with_people(people: People, project: str, entries: Sequence[Ranked]) -> list[Ranked]:
    """The entries, each with the person that its member is."""
    known = await people.shown(project, [entry.member for entry in entries])
    return [
        structs.replace(entry, person=known[entry.member]) if entry.member in known else entry
        for entry in entries
    ]


async def page_with_people(people: People, page: Page) -> Page:
    return structs.replace(page, entries=await with_people(people, page.project, page.entries))


async def among_with_people(people: People, project: str, among: Among) -> Among:
    return structs.replace(among, entries=await with_people(people, project, among.entries))


async def standing_with_person(people: People, project: str, standing: Standing) -> Standing:
    return (await with_people(people, project, [standing]))[0]
