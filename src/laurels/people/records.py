"""A person, a place, and what they must look like. Pure.

A person has the id of the member that it describes. A place is named by people and need not be defined: a
place that is not known has the deployment's default timezone.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Annotated, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from laurels.boards.names import NAME_PATTERN
from laurels.boards.timezones import zone_names
from laurels.errors import InvalidInput
from laurels.wording import near, of_msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

ID_BYTES: Final = 256
NAME_LENGTH: Final = 200
URL_LENGTH: Final = 2048
LIST_LIMIT: Final = 1000

Name = Annotated[
    str | None, Meta(description=f"What to show: at most {NAME_LENGTH} characters.", examples=["Ada"])
]
Timezone = Annotated[str | None, Meta(description="An IANA timezone.", examples=["Europe/Oslo"])]


class PersonDetails(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known about a person. What is left out or null is not known."""

    name: Name = None
    avatar_url: Annotated[
        str | None,
        Meta(description="The http(s) URL of a picture.", examples=["https://images.example.com/ada.png"]),
    ] = None
    place: Annotated[str | None, Meta(description="The id of a place.", examples=["oslo"])] = None
    timezone: Timezone = None


class PlaceDetails(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known about a place. Without a timezone it has the default one."""

    name: Name = None
    timezone: Timezone = None


class Person(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person, by the id of the member."""

    id: str
    name: str | None = None
    avatar_url: str | None = None
    place: str | None = None
    timezone: str | None = None


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place that people belong to: a campus, a city, a team's home."""

    id: str
    name: str | None = None
    timezone: str | None = None


Record = TypeVar("Record", Person, Place)


class PeopleList(msgspec.Struct, frozen=True):
    """People of a project. `next` is the cursor for those after them, or null."""

    people: list[Person]
    next: str | None


class PlaceList(msgspec.Struct, frozen=True):
    """Places of a project. `next` is the cursor for those after them, or null."""

    places: list[Place]
    next: str | None


def record_of(kind: type[Record], given: Mapping[str, object]) -> Record:
    """The person or place with these fields."""
    try:
        return checked(msgspec.convert(dict(given), kind))
    except msgspec.ValidationError as error:
        wrong = of_msgspec(error, kind)
        raise InvalidInput.at(wrong.field, wrong.detail) from error


def checked(record: Record) -> Record:
    """The record itself. Raises `InvalidInput` with the field that is wrong."""
    check_id(record.id)
    _check_name(record.name)
    _check_timezone(record.timezone)
    if isinstance(record, Person):
        if record.place is not None:
            check_id(record.place, "place")
        if record.avatar_url is not None:
            _check_url(record.avatar_url)
    return record


def check_project(name: str) -> None:
    if not re.fullmatch(NAME_PATTERN, name):
        raise InvalidInput.at("project", f"{name!r} is not an id of 1 to 64 of A-Z a-z 0-9 - _ .")


def check_id(given: str, field: str = "id") -> None:
    try:
        size = len(given.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput.at(field, "must be valid Unicode, without lone surrogates") from error
    if not 1 <= size <= ID_BYTES:
        raise InvalidInput.at(field, f"must have 1 to {ID_BYTES} bytes of UTF-8, not {size}")
    if "\0" in given:
        raise InvalidInput.at(field, "must not contain U+0000")


def _check_name(name: str | None) -> None:
    if name is None:
        return
    if not name.strip():
        raise InvalidInput.at("name", "must not be empty: leave it out")
    if len(name) > NAME_LENGTH:
        raise InvalidInput.at("name", f"must have at most {NAME_LENGTH} characters, not {len(name)}")
    if any(unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"} for letter in name):
        raise InvalidInput.at("name", "must be one line, without control characters")


def _check_url(url: str) -> None:
    if len(url) > URL_LENGTH:
        raise InvalidInput.at("avatar_url", f"must have at most {URL_LENGTH} characters, not {len(url)}")
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or not url.isascii() or not url.isprintable() or any(each in url for each in ' "<>\\^`{|}'):
        raise InvalidInput.at("avatar_url", "must be an http:// or https:// URL, percent-encoded")


def _check_timezone(name: str | None) -> None:
    if name is not None and name not in zone_names():
        like = near(name, zone_names())
        fix = f"did you mean {like}?" if like else "write it like 'Europe/Oslo'"
        raise InvalidInput.at("timezone", f"{name[:64]!r} is not an IANA timezone; {fix}")


def search_key(text: str) -> str:
    """The form in which texts are compared, whatever their case: `Ångström` is `ångström`.

    >>> search_key("STRASSE") == search_key("Straße")
    True
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
