"""One wording for wrong input, and nothing of a library's own."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta
from pydantic import ValidationError
from wrong_words import of_libraries

from laurels import BoardDefinition
from laurels.boards.definition import parse_definition
from laurels.errors import InvalidInput
from laurels.wording import near, no_such, of_msgspec, one_of, suggestion


def test_the_nearest_name_is_suggested_whatever_its_letters():
    names = ["windows", "timezone", "timezones", "groups"]
    assert near("window", names) == "windows"
    assert near("TimeZone", names) == "timezone"
    assert near("x", names) is None
    assert near("groups" * 1000, names) is None
    assert near(5, names) is None


def test_without_a_similar_name_all_are_listed():
    assert no_such("limitt", ["limit", "rank"], "parameter") == (
        "there is no such parameter; did you mean limit?"
    )
    assert no_such("x", ["limit", "rank"]) == "there is no such field; it has: limit, rank"
    assert suggestion("x", []) == "it has none"


def test_value_outside_the_choices_lists_them():
    assert one_of(["desc", "asc"], "dsc") == "must be desc or asc, not 'dsc'; did you mean desc?"
    assert one_of(["a", "b", "c"], 5) == "must be a, b or c, not 5"
    assert len(one_of(["a"], "x" * 10_000)) < 100


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    level: Annotated[int, Meta(ge=1, le=5)] = 1
    kind: Literal["cup", "league"] | None = None


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    members: Annotated[list[str], Meta(max_length=2)] = []
    name: Annotated[str, Meta(min_length=2)] = "xx"
    share: Annotated[float, Meta(gt=0, lt=2)] = 1
    many: list[Inner] = []
    named: dict[str, Inner] | None = None
    renamed: int = msgspec.field(name="from", default=0)


@pytest.mark.parametrize(
    ("given", "field", "detail"),
    [
        ({"membrs": []}, "membrs", "there is no such field; did you mean members?"),
        ({"form": 1}, "form", "there is no such field; did you mean from?"),
        ({"many": [{}, {"levl": 1}]}, "many[1].levl", "there is no such field; did you mean level?"),
        ({"named": {"a": {"levl": 1}}}, "named.levl", "there is no such field; did you mean level?"),
        ({"many": [{"level": 9}]}, "many[0].level", "must be at most 5"),
        (
            {"many": [{"kind": "legue"}]},
            "many[0].kind",
            "must be cup or league, not 'legue'; did you mean league?",
        ),
        ({"members": ["a", "b", "c"]}, "members", "must have a length of at most 2"),
        ({"name": "x"}, "name", "must have a length of at least 2"),
        ({"share": 0}, "share", "must be more than 0"),
        ({"many": 5}, "many", "must be an array, not a whole number"),
        ([], "body", "must be an object, not an array"),
    ],
)
def test_msgspec_errors_are_reworded(given: object, field: str, detail: str):
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(json.dumps(given), type=Outer)
    told = of_msgspec(raised.value, Outer)
    assert (told.field, told.detail) == (field, detail)


WRONG: list[Any] = [
    ({"window": []}, "window", "there is no such field; did you mean windows?"),
    ({"windows": [{"perid": "daily"}]}, "windows[0].perid", "there is no such field; did you mean period?"),
    ({"archive": {"snapshots": []}}, "archive.snapshots", "there is no such field; did you mean snapshot?"),
    ({"limits": {"mni": 1}}, "limits.mni", "there is no such field; did you mean min?"),
    (
        {"rating": {"system": "elo", "initail": 5}},
        "rating.initail",
        "there is no such field; did you mean initial?",
    ),
    (
        {"rating": {"system": "eol"}},
        "rating.system",
        "must be elo, glicko2 or openskill, not 'eol'; did you mean elo?",
    ),
    ({"rating": {}}, "rating.system", "is required"),
    ({"rating": {"system": "elo", "k": 0}}, "rating.k", "must be more than 0"),
    ({"order": "dsc"}, "order", "must be desc or asc, not 'dsc'; did you mean desc?"),
    ({"shards": "1"}, "shards", "must be a whole number, not a string"),
    ({"windows": {}}, "windows", "must be an array, not an object"),
    ({"groups": [[]]}, "groups[0]", "must have a length of at least 1, not 0"),
    ({"groups": [["a b"]]}, "groups[0][0]", "'a b' is not 1 to 64 of A-Z a-z 0-9 - _ ."),
    ({"feeds": ["x"]}, "feeds[0]", "'x' is not a board, PROJECT/BOARD"),
    ({"lateness": "PX"}, "lateness", "is an ISO duration such as 'P1D'"),
    (
        {"timezone": "Europe/Berln"},
        "timezone",
        "'Europe/Berln' is not an IANA timezone; did you mean Europe/Berlin?",
    ),
    ({"{x}": 1}, "{x}", None),
    ([], "definition", "must be an object, not an array"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "field", "detail"), WRONG)
def test_definition_errors_are_reworded(given: object, field: str, detail: str | None):
    with pytest.raises(InvalidInput) as raised:
        parse_definition(given)
    found = {each.field: each.detail for each in raised.value.fields}
    assert field in found
    assert detail in (None, found[field])
    assert of_libraries(raised.value.detail) == []


def test_so_is_what_python_makes_of_one_itself():
    with pytest.raises(ValidationError, match=r"there is no such field; did you mean windows\?") as raised:
        BoardDefinition(window=[])  # pyright: ignore[reportCallIssue]  # that is what is wrong
    assert of_libraries(str(raised.value)) == []
