"""CSV of people and places: columns by their names, and no bad row that costs another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laurels.errors import InvalidInput
from laurels.people.csv_rows import MOST_LINES, CsvRows
from laurels.people.records import Person, Place

if TYPE_CHECKING:
    from collections.abc import Mapping


def rows_of(text: str | bytes, columns: Mapping[str, str] | None = None) -> list[tuple[int, Person | str]]:
    """What the lines give; a refusal as its text."""
    rows = CsvRows(Person, columns)
    lines = (text if isinstance(text, bytes) else text.encode()).split(b"\n")
    found = [each for line in lines for each in rows.feed(line)]
    found += rows.end()
    return [(index, each.detail if isinstance(each, InvalidInput) else each) for index, each in found]


def test_columns_are_found_by_their_names_in_any_order():
    assert rows_of("place,id,name\noslo,ada,Ada\n,bob,\n") == [
        (0, Person("ada", "Ada", place="oslo")),
        (1, Person("bob")),
    ]


def test_columns_may_have_the_names_of_other_programs():
    text = "User_ID,Handle,Avatar,Campus_ID,TZ,email\nada,Ada,https://x.org/a.png,oslo,Europe/Oslo,a@x.org\n"
    assert rows_of(text) == [(0, Person("ada", "Ada", "https://x.org/a.png", "oslo", "Europe/Oslo"))]


def test_a_field_s_own_name_comes_before_another_s():
    assert rows_of("id,handle,name\nada,@ada,Ada\n") == [(0, Person("ada", "Ada"))]


def test_columns_can_be_given():
    assert rows_of("id,name,nick\nada,Ada Lovelace,Ada\n", columns={"name": "nick"}) == [
        (0, Person("ada", "Ada"))
    ]


def test_columns_that_no_field_takes_are_told():
    rows = CsvRows(Place)
    assert list(rows.feed(b"id,name,country")) == []
    assert rows.ignored == ["country"]


@pytest.mark.parametrize(
    ("header", "columns", "why"),
    [
        ("", None, "the first line must name the columns, id among them"),
        ("name,place", None, "the first line must name the columns, id among them; it has: name, place"),
        ("id,name", {"nam": "name"}, "column: there is no field nam; there are: id, name, avatar_url"),
        ("id,name", {"name": "nick"}, "column: there is no column 'nick'; there are: id, name"),
        (b"\xff", None, "the first line is not UTF-8"),
    ],
)
def test_a_bad_header_is_refused(header: str | bytes, columns: Mapping[str, str] | None, why: str):
    with pytest.raises(InvalidInput, match=f"^{why}"):
        rows_of(header, columns=columns)


def test_a_byte_order_mark_and_line_ends_of_windows_are_understood():
    assert rows_of("\ufeffid,name\r\nada,Ada\r\n\r\nbob,Bob\r\n") == [
        (0, Person("ada", "Ada")),
        (2, Person("bob", "Bob")),
    ]


def test_a_quoted_value_may_have_commas_and_lines_of_ignored_columns():
    assert rows_of('id,name,bio\nada,"Lovelace, Ada","one\ntwo"\nbob,Bob,\n') == [
        (0, Person("ada", "Lovelace, Ada")),
        (2, Person("bob", "Bob")),
    ]


def test_a_bad_row_costs_no_other():
    many = b"x" * 300
    text = (
        b"id,name,timezone\nada,Ada,Europe/Osloo\nbob,Bob\n,Eve,\n\xff,Joe,\n"
        + many
        + b",Max,\nzoe,Zoe,Asia/Tokyo\n"
    )
    assert rows_of(text) == [
        (0, "timezone: 'Europe/Osloo' is not an IANA timezone; did you mean Europe/Oslo?"),
        (1, "has 2 values, but there are 3 columns"),
        (2, "id: must have 1 to 256 bytes of UTF-8, not 0"),
        (3, "not UTF-8"),
        (4, "id: must have 1 to 256 bytes of UTF-8, not 300"),
        (5, Person("zoe", "Zoe", timezone="Asia/Tokyo")),
    ]


@pytest.mark.parametrize("after", [3, 3 * MOST_LINES])
def test_a_quote_that_is_never_closed_costs_its_own_row(after: int):
    good = [f"m{number},Name" for number in range(after)]
    found = rows_of("\n".join(["id,name", 'ada,"Ada', *good, ""]))
    assert found == [
        (0, "a quote is not closed"),
        *((number + 1, Person(f"m{number}", "Name")) for number in range(after)),
    ]


def test_a_line_that_is_too_long_is_refused():
    rows = CsvRows(Person)
    assert [*rows.feed(b"id"), *rows.feed(None), *rows.feed(b"ada")][1] == (1, Person("ada"))
