"""The operations on people and places, as flows."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, TypeVar, Unpack

from laurels.client import lines
from laurels.client.decoding import decoded
from laurels.client.paths import JSON, as_json, project_path, segment, with_query
from laurels.client.steps import Request
from laurels.errors import NotFound
from laurels.people.records import PeopleList, Person, Place, PlaceList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from laurels.arguments import AboutPerson, AboutPlace, Listing
    from laurels.client.call import Caller
    from laurels.client.paths import Query
    from laurels.client.steps import Flow
    from laurels.errors import InvalidInput
    from laurels.scores.submission import BatchResult

Answer = TypeVar("Answer")


class PeopleFlows:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def put_person(self, project: str, person: str, **about: Unpack[AboutPerson]) -> Flow[Person]:
        """Creates the person with this id, or replaces everything that is known about it."""
        return self._put(f"{project_path(project)}/people/{segment(person)}", {**about}, Person)

    def put_people(
        self,
        project: str,
        people: Iterable[Person | InvalidInput] | AsyncIterable[Person | InvalidInput],
        progress: Callable[[int], None] | None = None,
    ) -> Flow[BatchResult]:
        """Creates or replaces many; a refused one does not affect the others. Calls `progress` with how many
        are done.
        """
        return self._put_many(f"{project_path(project)}/people/batch", people, progress)

    def person(self, project: str, person: str) -> Flow[Person]:
        """The person with this id. Raises `NotFound` if it is not known."""
        return self._read(f"{project_path(project)}/people/{segment(person)}", Person)

    def people(self, project: str, **listing: Unpack[Listing]) -> Flow[PeopleList]:
        """The people of a project, sorted by id; with a `prefix`, those whose id or name begins with it,
        sorted by what was found. Upper and lower case are the same.
        """
        return self._read(f"{project_path(project)}/people", PeopleList, {**listing})

    def remove_person(self, project: str, person: str) -> Flow[bool]:
        """Forgets what is known about a person; returns whether there was anything. Scores stay: `erase`
        takes them too.
        """
        return self._remove(f"{project_path(project)}/people/{segment(person)}")

    def put_place(self, project: str, place: str, **about: Unpack[AboutPlace]) -> Flow[Place]:
        """Creates the place with this id, or replaces everything that is known about it."""
        return self._put(f"{project_path(project)}/places/{segment(place)}", {**about}, Place)

    def put_places(
        self,
        project: str,
        places: Iterable[Place | InvalidInput] | AsyncIterable[Place | InvalidInput],
        progress: Callable[[int], None] | None = None,
    ) -> Flow[BatchResult]:
        """As `put_people`, for places."""
        return self._put_many(f"{project_path(project)}/places/batch", places, progress)

    def place(self, project: str, place: str) -> Flow[Place]:
        """The place with this id. Raises `NotFound` if it is not known."""
        return self._read(f"{project_path(project)}/places/{segment(place)}", Place)

    def places(self, project: str, **listing: Unpack[Listing]) -> Flow[PlaceList]:
        """As `people`, for places."""
        return self._read(f"{project_path(project)}/places", PlaceList, {**listing})

    def remove_place(self, project: str, place: str) -> Flow[bool]:
        """Forgets what is known about a place; returns whether there was anything. People keep its id."""
        return self._remove(f"{project_path(project)}/places/{segment(place)}")

    def _read(self, path: str, kind: type[Answer], query: Query | None = None) -> Flow[Answer]:
        return decoded((yield from self._caller.call(Request("GET", with_query(path, query or {})))), kind)

    def _put(self, path: str, about: Query, kind: type[Answer]) -> Flow[Answer]:
        request = Request("PUT", path, as_json("about", about), JSON)
        return decoded((yield from self._caller.call(request)), kind)

    def _put_many(
        self,
        path: str,
        given: Iterable[object] | AsyncIterable[object],
        progress: Callable[[int], None] | None,
    ) -> Flow[BatchResult]:
        items = aiter(given) if isinstance(given, AsyncIterable) else iter(given)
        return lines.send(self._caller, path, lines.Batch(items, None, progress=progress))

    def _remove(self, path: str) -> Flow[bool]:
        try:
            yield from self._caller.call(Request("DELETE", path), once_gone=True)
        except NotFound:
            return False
        return True
