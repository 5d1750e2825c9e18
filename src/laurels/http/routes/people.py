"""People and places: one, many, and lists."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Annotated, Final, Generic

from msgspec import Meta, Struct, structs
from msgspec.json import Decoder
from starlette.requests import Request

from laurels.errors import InvalidInput, NotFound
from laurels.http import body
from laurels.http.authentication import Call
from laurels.http.operation import PROJECT, Body, Routes
from laurels.http.problems import Malformed
from laurels.http.routes.scores import LONGEST_DETAIL, MOST_LISTED, BatchAnswer
from laurels.people.csv_rows import CsvRows
from laurels.people.operations import Directory
from laurels.people.records import (
    LIST_LIMIT,
    PeopleList,
    Person,
    PersonDetails,
    Place,
    PlaceDetails,
    PlaceList,
    Record,
    checked,
)
from laurels.scores.submission import Rejected

CSV: Final = "text/csv"
RECORDS_AT_ONCE: Final = 2000

routes = Routes("people")

_PERSON: Final = {
    "name": "Ada",
    "avatar_url": "https://images.example.com/ada.png",
    "place": "oslo",
    "timezone": None,
}
_PLACE: Final = {"name": "Oslo", "timezone": "Europe/Oslo"}
_REJECTED: Final = {"accepted": 1, "rejected": [{"index": 1, "detail": "id: must be a string, not null"}]}


class ListingParameters(Struct, forbid_unknown_fields=True):
    prefix: Annotated[
        str | None,
        Meta(description="What the id or the name begins with, in upper or lower case.", examples=["ad"]),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=LIST_LIMIT, description="How many to list.")] = 100
    cursor: Annotated[str | None, Meta(description="`next` of the list before.")] = None


@routes.get(f"{PROJECT}/people", scope="read", example={"people": [{"id": "ada", **_PERSON}], "next": None})
async def list_people(call: Call, query: ListingParameters) -> PeopleList:
    """List people.

    Sorted by id. With a `prefix`, those whose id or name begins with it, sorted by what was found.
    """
    return await call.laurels.people(call.project, **structs.asdict(query))


@routes.post(
    f"{PROJECT}/people/batch",
    scope="admin",
    body=Body(
        [{"id": "ada", **_PERSON}, {"id": "bob", "name": "Bob"}],
        {
            body.LINES: '{"id":"ada","name":"Ada"}\n{"id":"bob","name":"Bob","place":"oslo"}\n',
            CSV: "id,name,place\nada,Ada,oslo\nbob,Bob,oslo\n",
        },
        list[Person],
    ),
    most_bytes=body.BATCH_BYTES,
    example=_REJECTED,
)
async def put_people(call: Call) -> BatchAnswer:
    """Create or replace many people.

    Send a JSON array, lines of JSON, or CSV, whose first line names the columns; it is read and applied as it
    arrives. A rejected person does not affect the others. The index counts lines, without the first line of
    CSV. Columns that no field has are ignored.
    """
    return await _PeopleBatch(call, Person, call.laurels.people_directory).put()


@routes.put(
    f"{PROJECT}/people/{{person:segment}}",
    scope="admin",
    body=Body(_PERSON),
    example={"id": "ada", **_PERSON},
)
async def put_person(call: Call, person: str, given: PersonDetails) -> Person:
    """Create or replace a person.

    The id is that of the member. What is left out is no longer known.
    """
    return await call.laurels.put_person(call.project, person, **structs.asdict(given))


@routes.get(
    f"{PROJECT}/people/{{person:segment}}", scope="read", example={"id": "ada", **_PERSON}, problems=(404,)
)
async def read_person(call: Call, person: str) -> Person:
    """Read a person."""
    return await call.laurels.person(call.project, person)


@routes.delete(f"{PROJECT}/people/{{person:segment}}", scope="admin", problems=(404,))
async def remove_person(call: Call, person: str) -> None:
    """Forget a person.

    Scores stay. `DELETE …/members/{member}` erases everything about a member.
    """
    if not await call.laurels.remove_person(call.project, person):
        raise NotFound(f"{call.project}: there is no person {person!r}")


@routes.get(f"{PROJECT}/places", scope="read", example={"places": [{"id": "oslo", **_PLACE}], "next": None})
async def list_places(call: Call, query: ListingParameters) -> PlaceList:
    """List places.

    Sorted by id. With a `prefix`, those whose id or name begins with it, sorted by what was found.
    """
    return await call.laurels.places(call.project, **structs.asdict(query))


@routes.post(
    f"{PROJECT}/places/batch",
    scope="admin",
    body=Body(
        [{"id": "oslo", **_PLACE}, {"id": "lima", "timezone": "America/Lima"}],
        {
            body.LINES: '{"id":"oslo","name":"Oslo","timezone":"Europe/Oslo"}\n{"id":"lima"}\n',
            CSV: "id,name,timezone\noslo,Oslo,Europe/Oslo\n",
        },
        list[Place],
    ),
    most_bytes=body.BATCH_BYTES,
    example=_REJECTED,
)
async def put_places(call: Call) -> BatchAnswer:
    """Create or replace many places.

    As `POST …/people/batch`.
    """
    return await _PeopleBatch(call, Place, call.laurels.places_directory).put()


@routes.put(
    f"{PROJECT}/places/{{place:segment}}", scope="admin", body=Body(_PLACE), example={"id": "oslo", **_PLACE}
)
async def put_place(call: Call, place: str, given: PlaceDetails) -> Place:
    """Create or replace a place.

    People name a place by its id. Without a timezone it has the deployment's `campus_timezone`.
    """
    return await call.laurels.put_place(call.project, place, **structs.asdict(given))


@routes.get(
    f"{PROJECT}/places/{{place:segment}}", scope="read", example={"id": "oslo", **_PLACE}, problems=(404,)
)
async def read_place(call: Call, place: str) -> Place:
    """Read a place."""
    return await call.laurels.place(call.project, place)


@routes.delete(f"{PROJECT}/places/{{place:segment}}", scope="admin", problems=(404,))
async def remove_place(call: Call, place: str) -> None:
    """Forget a place.

    People and boards keep its id.
    """
    if not await call.laurels.remove_place(call.project, place):
        raise NotFound(f"{call.project}: there is no place {place!r}")


class _PeopleBatch(Generic[Record]):
    """Puts the records of a body as they arrive."""

    def __init__(self, call: Call, kind: type[Record], directory: Directory[Record]) -> None:
        self._call = call
        self._kind = kind
        self._directory = directory
        self._accepted = 0
        self._rejected: list[Rejected] = []
        self._rejected_total = 0
        self._waiting: list[Record] = []

    async def put(self) -> BatchAnswer:
        try:
            async with aclosing(_given(self._call.request, self._kind)) as given:
                async for index, each in given:
                    if isinstance(each, InvalidInput | Malformed):
                        self._rejected_total += 1
                        if len(self._rejected) < MOST_LISTED:
                            self._rejected.append(Rejected(index, each.detail[:LONGEST_DETAIL]))
                        continue
                    self._waiting.append(each)
                    if len(self._waiting) >= RECORDS_AT_ONCE:
                        await self._put()
            await self._put()
        finally:
            self._call.request.scope["state"]["accepted"] = self._accepted
        total = self._rejected_total if self._rejected_total > len(self._rejected) else 0
        return BatchAnswer(self._accepted, self._rejected, total)

    async def _put(self) -> None:
        await self._directory.put_many(self._call.project, self._waiting)
        self._accepted += len(self._waiting)
        self._waiting.clear()


async def _given(
    request: Request, kind: type[Record]
) -> AsyncGenerator[tuple[int, Record | InvalidInput | Malformed]]:
    """What was sent, with its index, as it arrives."""
    media_type = body.media_type(request, body.JSON, body.LINES, CSV)
    raw = body.raw_pieces(request, body.BATCH_BYTES)
    pieces = body.decoded_pieces(body.decoder_of(request), raw, body.BATCH_BYTES)
    if media_type == body.JSON:
        decoder = Decoder(kind)
        async with aclosing(pieces):
            whole = b"".join([piece async for piece in pieces])
        for index, encoded in enumerate(body.elements(whole)):
            if index % RECORDS_AT_ONCE == 0:
                await asyncio.sleep(0)
            yield index, _decoded(encoded, decoder)
        return
    rows = CsvRows(kind) if media_type == CSV else _JsonLines(kind)
    async with aclosing(body.read_lines(pieces)) as some:
        async for lines in some:
            for line in lines:
                for found in rows.feed(line):
                    yield found
    for found in rows.end():
        yield found


class _JsonLines(Generic[Record]):
    """As `CsvRows`, for lines of JSON."""

    def __init__(self, kind: type[Record]) -> None:
        self._decoder = Decoder(kind)
        self._index = -1

    def feed(self, line: bytes | None) -> Iterator[tuple[int, Record | InvalidInput | Malformed]]:
        self._index += 1
        if line is None or line.strip():
            yield self._index, _decoded(line, self._decoder)

    def end(self) -> Iterator[tuple[int, Record | InvalidInput | Malformed]]:
        return iter(())


def _decoded(encoded: bytes | None, decoder: Decoder[Record]) -> Record | InvalidInput | Malformed:
    if encoded is None:
        return Malformed(f"a line has at most {body.LINE_BYTES} bytes")
    try:
        return checked(body.decode(encoded, decoder))
    except (InvalidInput, Malformed) as error:
        return error
