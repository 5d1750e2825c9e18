"""Campuses and their users: as the application's tables have them, and then as people and places do.

A campus that neither knows is remembered as a place without a name. It has the default timezone until it gets
one of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from laurels.activity.rankings import PROJECT
from laurels.activity.store.people import Campus, User
from laurels.people.records import Person, Place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from laurels.activity.store.people import CampusStore
    from laurels.people.store import RecordStore

LISTED_TOGETHER: Final = 1000


class CampusPeople:
    def __init__(
        self,
        store: CampusStore,
        people: RecordStore[Person],
        places: RecordStore[Place],
        default_timezone: str,
    ) -> None:
        self._store = store
        self._people = people
        self._places = places
        self._default_timezone = default_timezone

    async def campuses(self) -> list[Campus]:
        """Every campus, by name."""
        found = {campus.id: campus for campus in await self._store.campuses()}
        after = None
        while listed := await self._places.page(PROJECT, "", after, LISTED_TOGETHER):
            after = listed[-1][0]
            for _, place in listed:
                if place.id not in found and campus_id(place.id) == place.id:
                    found[place.id] = self._campus(place)
        return sorted(found.values(), key=lambda campus: (campus.name, campus.id))

    async def campus(self, id_: str) -> Campus | None:
        found = await self._store.campus(id_)
        if found is None:
            place = await self._places.get(PROJECT, id_)
            found = place and self._campus(place)
        return found

    async def known(self, ids: Collection[str]) -> dict[str, Campus]:
        """Every campus, these included: those that are new are remembered."""
        found = {campus.id: campus for campus in await self.campuses()}
        if new := [Place(id_) for id_ in ids if id_ not in found]:
            await self._places.put(PROJECT, new)
            found |= {place.id: self._campus(place) for place in new}
        return found

    async def campuses_of(self, user_ids: Collection[str]) -> dict[str, Campus]:
        """The campus of each of these users; users without one are left out."""
        users = await self.users(user_ids)
        wanted = {user.id: id_ for user in users.values() if (id_ := campus_id(user.campus_id or ""))}
        known = await self.known(set(wanted.values())) if wanted else {}
        return {user: known[campus] for user, campus in wanted.items()}

    async def users(self, user_ids: Iterable[str]) -> dict[str, User]:
        """The ones of these users about whom anything is known."""
        ids = [*user_ids]
        found = await self._store.users(ids)
        lacking = [id_ for id_ in ids if id_ not in found or _is_incomplete(found[id_])]
        people = await self._people.get_many(PROJECT, lacking) if lacking else {}
        for id_, person in people.items():
            user = found.get(id_, User(id_))
            found[id_] = User(
                id_,
                user.campus_id or campus_id(person.place or ""),
                user.handle or person.name or "",
                user.avatar_url or person.avatar_url,
            )
        return found

    async def get_many(self, project: str, ids: Collection[str]) -> dict[str, Person]:
        """People of boards: users with their handles and avatars, and others as they are known."""
        users = await self.users([id_ for id_ in ids if campus_id(id_) == id_])
        found = {id_: Person(id_, user.handle or None, user.avatar_url) for id_, user in users.items()}
        others = [id_ for id_ in ids if id_ not in found]
        return found | (await self._people.get_many(project, others) if others else {})

    def _campus(self, place: Place) -> Campus:
        return Campus(place.id, place.name or place.id, place.timezone or self._default_timezone)


def _is_incomplete(user: User) -> bool:
    return not (user.campus_id and user.handle and user.avatar_url)


def campus_id(text: str) -> str | None:
    """The UUID in lower case; None for another text."""
    try:
        return str(UUID(text))
    except ValueError:
        return None
