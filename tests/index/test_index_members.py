"""Primary keys as members: the conversion loses nothing and keeps the order."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laurels.errors import InvalidInput
from laurels.index.members import Kind, MemberCodec

INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


def codec(*kinds: Kind) -> MemberCodec:
    return MemberCodec(kinds, tuple(f"key{number}" for number in range(len(kinds))), (False,) * len(kinds))


VALUES: list[tuple[Kind, st.SearchStrategy[Any]]] = [
    ("integer", INT64),
    ("text", TEXT),
    ("uuid", st.uuids()),
    ("date", st.dates()),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[kind for kind, _ in VALUES])
def test_a_key_comes_back_as_it_was(kind: Kind, values: st.SearchStrategy[Any]):
    @settings(deadline=None)
    @given(values)
    def check(key: Any) -> None:  # noqa: ANN401  # of any kind
        assert codec(kind).key(codec(kind).of_key(key)) == key
        assert codec(kind).of_key(key)

    check()


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[kind for kind, _ in VALUES])
def test_members_sort_by_their_bytes_as_keys_do(kind: Kind, values: st.SearchStrategy[Any]):
    @settings(deadline=None)
    @given(values, values)
    def check(left: Any, right: Any) -> None:  # noqa: ANN401  # as above
        members = codec(kind).of_key(left).encode(), codec(kind).of_key(right).encode()
        keys = (left.encode(), right.encode()) if kind == "text" else (left, right)
        assert (members[0] < members[1]) == (keys[0] < keys[1])

    check()


@settings(deadline=None)
@given(st.tuples(TEXT, INT64), st.tuples(TEXT, INT64))
def test_keys_of_several_columns_sort_column_by_column(left: tuple[str, int], right: tuple[str, int]):
    both = codec("text", "integer")
    assert both.key(both.of_key(left)) == left
    members = both.of_key(left).encode(), both.of_key(right).encode()
    assert (members[0] < members[1]) == ((left[0].encode(), left[1]) < (right[0].encode(), right[1]))


def test_a_key_as_the_outbox_has_it_is_the_same_member():
    assert codec("integer").of_text("-7") == codec("integer").of_key(-7)
    assert codec("text").of_text("") == codec("text").of_key("")
    assert codec("text", "integer").of_text('["a\\"b", "12"]') == codec("text", "integer").of_key(('a"b', 12))


def test_an_integer_reads_as_a_number():
    assert codec("integer").of_key(42) == "0000000000000000042"


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("integer", "7"),
        ("integer", True),
        ("integer", 2**63),
        ("text", 7),
        ("text", "a\0b"),
        ("uuid", "x"),
        ("date", "2025-10-24"),
        ("integer", (1, 2)),
    ],
)
def test_a_key_that_no_record_can_have_is_refused(kind: Kind, key: object):
    with pytest.raises(InvalidInput, match="key0") as raised:
        codec(kind).of_key(key)
    assert raised.value.fields[0].field == "key"


def test_uuids_may_be_given_as_text_and_dates_as_datetimes():
    assert codec("uuid").of_key("00000000-0000-0000-0000-00000000000A") == str(UUID(int=10))
    assert codec("date").of_key(date(2025, 10, 24)) == "2025-10-24"
