from __future__ import annotations

import math
import sys
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from laurels.boards.definition import BoardDefinition
from laurels.boards.ordering import (
    INT64_MAX,
    INT64_MIN,
    Ordering,
    invert,
    number_in,
    pack_int64,
    pack_number,
    parse_int64,
    parse_number,
    unpack_int64,
    unpack_number,
)
from laurels.errors import InvalidInput

int64s = st.integers(INT64_MIN, INT64_MAX)
doubles = st.floats(allow_nan=False, allow_infinity=False)

SMALLEST = 5e-324  # the smallest subnormal double
GREATEST = sys.float_info.max
RISING = [
    *(-GREATEST, -1e300, -1.5, -1.0, -sys.float_info.min, -SMALLEST),
    *(0.0, SMALLEST, sys.float_info.min, 0.1, 1.0, 1.5, 2.0**53, GREATEST),
]


def inverted(score: int) -> int:
    """The index document's invertedScore."""
    return unpack_int64(invert(pack_int64(score)))


def refusal(value: object, *, int64: bool = False) -> str:
    with pytest.raises(InvalidInput) as refused:
        (parse_int64 if int64 else parse_number)(value)
    (field,) = refused.value.fields
    assert field.field == "score"
    return field.detail


class TestBytes:
    @given(int64s)
    @example(INT64_MIN)
    @example(INT64_MAX)
    def test_an_int64_comes_back_from_its_bytes(self, value: int):
        assert unpack_int64(pack_int64(value)) == value

    @given(int64s, int64s)
    @example(INT64_MIN, INT64_MAX)
    @example(-1, 0)
    @example(2**53, 2**53 + 1)
    def test_the_bytes_of_int64s_are_in_the_order_of_the_integers(self, left: int, right: int):
        assert (pack_int64(left) < pack_int64(right)) == (left < right)

    @given(doubles)
    @example(SMALLEST)
    @example(-SMALLEST)
    @example(-GREATEST)
    def test_a_double_comes_back_from_its_bytes(self, value: float):
        assert unpack_number(pack_number(value)) == value

    @given(doubles, doubles)
    @example(-SMALLEST, SMALLEST)
    @example(-0.0, SMALLEST)
    def test_the_bytes_of_doubles_are_in_the_order_of_the_numbers(self, left: float, right: float):
        assert (pack_number(left) < pack_number(right)) == (left < right)

    def test_extremes_and_subnormals_keep_their_places(self):
        packed = [pack_number(value) for value in RISING]
        assert all(left < right for left, right in pairwise(packed))

    def test_minus_zero_is_zero(self):
        assert pack_number(-0.0) == pack_number(0.0)
        assert math.copysign(1, unpack_number(pack_number(-0.0))) == 1

    @given(int64s, int64s)
    def test_inverted_bytes_are_in_the_opposite_order(self, left: int, right: int):
        assert (invert(pack_int64(left)) < invert(pack_int64(right))) == (left > right)


class TestTheIndexDocumentsInversion:
    @pytest.mark.parametrize(("score", "expected"), [(100, -101), (50, -51), (0, -1), (1000, -1001)])
    def test_a_score_is_stored_as_its_formula_says(self, score: int, expected: int):
        assert inverted(score) == expected

    @given(int64s)
    def test_the_formula_holds_over_the_whole_range(self, score: int):
        unsigned = (2**64 - 1 - score % 2**64) % 2**64
        assert inverted(score) == unsigned - (2**64 if unsigned >= 2**63 else 0)

    def test_ascending_keys_are_descending_scores(self):
        assert sorted([100, 50, 0], key=inverted) == [100, 50, 0]
        assert sorted(map(inverted, [0, 100, 50])) == [-101, -51, -1]

    def test_the_storage_example_of_the_document_is_its_score_with_the_sign_bit_flipped(self):
        """Its layout shows -9223372036854774808 for score 1000, which its own formula makes -1001."""
        assert 1000 + INT64_MIN == -9223372036854774808
        assert inverted(1000) == -1001


class TestNumbers:
    @pytest.mark.parametrize("given", [0, -1, 2**53, -(2**53), 0.5, 1e300, 2**60, SMALLEST])
    def test_a_number_that_a_double_holds_is_accepted_exactly(self, given: float):
        assert parse_number(given) == given

    @pytest.mark.parametrize("given", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
    def test_an_integer_that_a_double_cannot_hold_is_refused_and_named(self, given: int):
        detail = refusal(given)
        assert str(given) in detail
        assert "int64" in detail

    @pytest.mark.parametrize("given", [10**400, -(10**400), 10**30])
    def test_an_integer_beyond_all_of_that_is_out_of_range(self, given: int):
        assert refusal(given) == "is out of range"

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            (math.nan, "nan"),
            (math.inf, "inf"),
            (-math.inf, "-inf"),
            (True, "a boolean"),
            (None, "null"),
            ("12", "a string"),
            ("nan", "a string"),
            ([1], "a list"),
            ({}, "a dict"),
        ],
    )
    def test_scores_that_are_not_finite_numbers_are_refused_with_their_type(self, given: object, told: str):
        assert refusal(given).endswith(f"not {told}")

    def test_minus_zero_is_read_as_zero(self):
        assert math.copysign(1, parse_number(-0.0)) == 1


class TestInt64:
    @pytest.mark.parametrize("given", [INT64_MIN, -1, 0, 2**53 - 1, 2**53, 2**53 + 1, INT64_MAX])
    def test_every_int64_is_accepted_as_a_number_and_in_digits(self, given: int):
        assert parse_int64(given) == given
        assert parse_int64(str(given)) == given

    @pytest.mark.parametrize("given", [2**63, -(2**63) - 1, 2**64, str(2**63), str(-(2**63) - 1)])
    def test_an_integer_beyond_64_bits_is_refused(self, given: object):
        assert refusal(given, int64=True) == "must lie within -2^63 and 2^63-1"

    @pytest.mark.parametrize(
        "given",
        ["", "-", "+5", "1e3", "1.0", " 1", "1 ", "1_0", "--1", "0x10", "１２", "٣", "²", "nan", str(2**64)],  # noqa: RUF001
    )
    def test_a_string_is_decimal_digits_or_refused(self, given: str):
        assert refusal(given, int64=True) == "must be a 64-bit integer in decimal digits"

    @pytest.mark.parametrize(
        ("given", "told"),
        [(1.0, "a fraction"), (math.nan, "a fraction"), (True, "a boolean"), (None, "null"), ([], "a list")],
    )
    def test_scores_that_are_not_whole_numbers_are_refused_with_their_type(self, given: object, told: str):
        assert refusal(given, int64=True).endswith(f"not {told}")


class TestPlaces:
    @given(doubles)
    def test_the_place_of_a_plain_score_comes_back(self, score: float):
        ordering = Ordering.of(BoardDefinition())
        assert ordering.parse_place(ordering.place(score, None)) == (score, None)

    @given(int64s, int64s)
    def test_the_place_of_an_exact_score_comes_back_with_its_moment(self, score: int, moment: int):
        ordering = Ordering.of(BoardDefinition(score="int64", ties="earliest"))
        assert ordering.parse_place(ordering.place(score, moment)) == (score, moment)

    @given(st.integers(-(2**53), 2**53))
    def test_a_whole_number_comes_back_as_an_integer(self, score: int):
        ordering = Ordering.of(BoardDefinition(ties="member"))
        found, _ = ordering.parse_place(ordering.place(float(score), None))
        assert isinstance(found, int)
        assert found == score

    @pytest.mark.parametrize(
        ("definition", "packed", "prefixed", "unique"),
        [
            ({}, False, False, False),
            ({"score": "int64"}, True, True, False),
            ({"ties": "earliest"}, True, True, True),
            ({"ties": "member"}, True, False, True),
            ({"score": "int64", "ties": "member"}, True, True, True),
        ],
    )
    def test_only_shared_doubles_have_places_of_text_and_only_doubles_may_lack_a_prefix(
        self,
        definition: dict[str, str],
        packed: bool,  # noqa: FBT001
        prefixed: bool,  # noqa: FBT001
        unique: bool,  # noqa: FBT001
    ):
        ordering = Ordering.of(BoardDefinition.model_validate(definition))
        assert (ordering.packed, ordering.prefixed, ordering.unique) == (packed, prefixed, unique)


@pytest.mark.parametrize(
    ("text", "number"),
    [(".5", 0.5), ("5.", 5.0), ("+5", 5), ("-.5e1", -5.0), ("9007199254740993", 2**53 + 1)],
)
def test_a_text_that_is_plainly_a_number_is_read(text: str, number: float) -> None:
    assert number_in(text) == number


@pytest.mark.parametrize(
    "text", ["", ".", "inf", "-Infinity", "nan", "0x10", "1_000", "٣", "1,5", "--5", "5e", " 5", "9" * 5000]
)
def test_a_text_that_is_no_plain_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="score: must be a number"):
        number_in(text)
