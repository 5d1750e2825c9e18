"""The operations of `Laurels` on people and places."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, Unpack

from laurels.errors import InvalidInput, NotFound
from laurels.list_cursor import read_list_cursor, write_list_cursor
from laurels.people.records import (
    LIST_LIMIT,
    PeopleList,
    Person,
    Place,
    PlaceList,
    Record,
    check_id,
    check_project,
    checked,
    record_of,
    search_key,
)
from laurels.people.store import ListPlace
from laurels.scores.submission import BatchResult, Rejected

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from laurels.arguments import AboutPerson, AboutPlace, Listing
    from laurels.people.store import RecordStore

RECORDS_AT_ONCE: Final = 2000


class Directory(Generic[Record]):
    """The people, or the places: changes and lists."""

    def __init__(
        self,
        kind: type[Record],
        store: RecordStore[Record],
        announce: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """`announce` is awaited with a project after its records have changed."""
        self._kind = kind
        self._store = store
        self._announce = announce

    async def put(self, project: str, record: Record) -> Record:
        check_project(project)
        await self._put(project, [checked(record)])
        return record

    async def put_many(
        self,
        project: str,
        given: Iterable[Record | InvalidInput],
        progress: Callable[[int], None] | None = None,
    ) -> BatchResult:
        check_project(project)
        coming, accepted, index, rejected = iter(given), 0, 0, list[Rejected]()
        while some := list(islice(coming, RECORDS_AT_ONCE)):
            good: list[Record] = []
            for each in some:
                try:
                    if isinstance(each, InvalidInput):
                        raise each
                    good.append(checked(each))
                except InvalidInput as error:
                    rejected.append(Rejected(index, error.detail))
                index += 1
            await self._put(project, good)
            accepted += len(good)
            if progress:
                progress(index)
        return BatchResult(accepted, rejected)

    async def get(self, project: str, id_: str) -> Record:
        check_id(id_)
        found = await self._store.get(project, id_)
        if found is None:
            raise NotFound(f"{project}: there is no {self._kind.__name__.lower()} {id_!r}")
        return found

    async def page(
        self, project: str, prefix: str | None, limit: int, cursor: str | None
    ) -> tuple[list[Record], str | None]:
        """Some records, and the cursor for those after them."""
        if not 1 <= limit <= LIST_LIMIT:
            raise InvalidInput.at("limit", f"must be from 1 to {LIST_LIMIT}, not {limit}")
        if prefix and "\0" in prefix:
            raise InvalidInput.at("prefix", "must not contain U+0000")
        wanted = search_key(prefix or "")
        question = (project, self._kind.__name__, wanted)
        after = None
        if cursor is not None:
            after = ListPlace(*map(str, read_list_cursor(question, cursor, (str, str))))
        found = await self._store.page(project, wanted, after, limit + 1)
        following = write_list_cursor(question, tuple(found[limit - 1][0])) if len(found) > limit else None
        return [record for _, record in found[:limit]], following

    async def remove(self, project: str, id_: str) -> bool:
        """Whether it existed."""
        check_id(id_)
        try:
            return await self._store.remove(project, id_)
        finally:
            await self._changed(project)

    async def _changed(self, project: str) -> None:
        if self._announce:
            await self._announce(project)

    async def _put(self, project: str, records: list[Record]) -> None:
        if records:
            try:
                await self._store.put(project, records)
            finally:  # the outcome of a commit may be unknown
                await self._changed(project)


class PeopleOperations:
    """The operations of `Laurels` on people and places."""

    people_directory: Directory[Person]
    places_directory: Directory[Place]

    async def put_person(self, project: str, person: str, **about: Unpack[AboutPerson]) -> Person:
        """Creates the person with this id, or replaces everything that is known about it."""
        return await self.people_directory.put(project, record_of(Person, {"id": person, **about}))

    async def put_people(
        self,
        project: str,
        people: Iterable[Person | InvalidInput],
        progress: Callable[[int], None] | None = None,
    ) -> BatchResult:
        """Creates or replaces many; a refused one does not affect the others. Calls `progress` with how many
        are done.
        """
        return await self.people_directory.put_many(project, people, progress)

    async def person(self, project: str, person: str) -> Person:
        """The person with this id. Raises `NotFound` if it is not known."""
        return await self.people_directory.get(project, person)

    async def people(self, project: str, **listing: Unpack[Listing]) -> PeopleList:
        """The people of a project, sorted by id; with a `prefix`, those whose id or name begins with it,
        sorted by what was found. Upper and lower case are the same.
        """
        return PeopleList(*await self.people_directory.page(project, *_listing(listing)))

    async def remove_person(self, project: str, person: str) -> bool:
        """Forgets what is known about a person; returns whether there was anything. Scores stay: `erase`
        takes them too.
        """
        return await self.people_directory.remove(project, person)

    async def put_place(self, project: str, place: str, **about: Unpack[AboutPlace]) -> Place:
        """Creates the place with this id, or replaces everything that is known about it."""
        return await self.places_directory.put(project, record_of(Place, {"id": place, **about}))

    async def put_places(
        self,
        project: str,
        places: Iterable[Place | InvalidInput],
        progress: Callable[[int], None] | None = None,
    ) -> BatchResult:
        """As `put_people`, for places."""
        return await self.places_directory.put_many(project, places, progress)

    async def place(self, project: str, place: str) -> Place:
        """The place with this id. Raises `NotFound` if it is not known."""
        return await self.places_directory.get(project, place)

    async def places(self, project: str, **listing: Unpack[Listing]) -> PlaceList:
        """As `people`, for places."""
        return PlaceList(*await self.places_directory.page(project, *_listing(listing)))

    async def remove_place(self, project: str, place: str) -> bool:
        """Forgets what is known about a place; returns whether there was anything. People keep its id."""
        return await self.places_directory.remove(project, place)


def _listing(listing: Listing) -> tuple[str | None, int, str | None]:
    return listing.get("prefix"), listing.get("limit", 100), listing.get("cursor")
