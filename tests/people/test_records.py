"""What a person and a place must look like."""

from __future__ import annotations

import pytest

from laurels.errors import InvalidInput
from laurels.people.records import Person, Place, record_of, search_key


@pytest.mark.parametrize(
    "given",
    [
        {"id": "ada"},
        {"id": "x" * 256, "name": "n" * 200, "place": "p" * 256},
        {"id": "a/b c", "name": "İpek 東京 🏆", "timezone": "America/Argentina/Buenos_Aires"},
        {"id": "ada", "avatar_url": "http://localhost:9000/a.png?size=64#x"},
        {"id": "ada", "avatar_url": "https://images.example.com/%C3%A5.png"},
    ],
)
def test_a_good_person_is_taken(given: dict[str, object]):
    assert record_of(Person, given).id == given["id"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"id": ""}, "id"),
        ({"id": "x" * 257}, "id"),
        ({"id": "a\0"}, "id"),
        ({"id": "\ud800"}, "id"),
        ({"id": 7}, "id"),
        ({"id": "ada", "name": ""}, "name"),
        ({"id": "ada", "name": "  "}, "name"),
        ({"id": "ada", "name": "x" * 201}, "name"),
        ({"id": "ada", "name": "two\nlines"}, "name"),
        ({"id": "ada", "name": "\0"}, "name"),
        ({"id": "ada", "name": "\ud800"}, "name"),
        ({"id": "ada", "avatar_url": "javascript:alert(1)"}, "avatar_url"),
        ({"id": "ada", "avatar_url": "data:image/png;base64,AA=="}, "avatar_url"),
        ({"id": "ada", "avatar_url": "//example.com/a.png"}, "avatar_url"),
        ({"id": "ada", "avatar_url": "https:///a.png"}, "avatar_url"),
        ({"id": "ada", "avatar_url": "https://[::1/a.png"}, "avatar_url"),
        ({"id": "ada", "avatar_url": "https://x.org/a b.png"}, "avatar_url"),
        ({"id": "ada", "avatar_url": 'https://x.org/"'}, "avatar_url"),
        ({"id": "ada", "avatar_url": "https://x.org:99999/a"}, "avatar_url"),
        ({"id": "ada", "avatar_url": f"https://x.org/{'a' * 2048}"}, "avatar_url"),
        ({"id": "ada", "place": ""}, "place"),
        ({"id": "ada", "timezone": "Mars/Olympus"}, "timezone"),
        ({"id": "ada", "timezone": ""}, "timezone"),
        ({"id": "ada", "nmae": "Ada"}, "nmae"),
    ],
)
def test_a_bad_person_is_refused_with_the_field(given: dict[str, object], field: str):
    with pytest.raises(InvalidInput) as refused:
        record_of(Person, given)
    assert [each.field for each in refused.value.fields] == [field]


def test_a_place_has_no_avatar():
    with pytest.raises(InvalidInput, match="avatar_url: there is no such field"):
        record_of(Place, {"id": "oslo", "avatar_url": "https://x.org/a.png"})


def test_a_search_ignores_case_and_how_letters_are_composed():
    assert search_key("A\u030angstrom") == search_key("Ångstrom".upper()) == "ångstrom"
