"""The order of ranks, and how scores travel: every rule of it, once.

Best first, a board lists its entries
- `shared`: by score; equal scores share a rank, and are listed in Valkey's own order: member bytes
  ascending on an `asc` board, descending on a `desc` one;
- `earliest`: by score, then by the moment the score was reached, which `arrivals.py` keeps apart, then by
  member bytes ascending;
- `member`: by score, then by member bytes ascending.

Two layouts hold that order (`lua/layouts.lua` is the other half of this module). *Plain*, for `shared`
doubles: a sorted set of member -> score. *Exact*, for everything else: a sorted set whose members begin
with eight order-preserving bytes of the score. For a `desc` board that breaks ties the bytes are inverted,
so that ascending bytes are descending scores: the same as storing `-score - 1`.

A *place* is how an entry's standing crosses to Valkey and back: for plain the text of the score, for exact
the score's bytes and, for `earliest`, those of the moment.
"""

from __future__ import annotations

import math
import re
import struct
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from laurels.boards.definition import INT64_MAX, INT64_MIN
from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from laurels.boards.definition import BoardDefinition
    from laurels.moments import Moment

Score = int | float

EXACT_INTEGERS: Final = 2**53
MOST: Final = sys.float_info.max
_BIAS: Final = 2**63
_ALL_BITS: Final = 2**64 - 1
_UNSIGNED: Final = struct.Struct(">Q")
_DOUBLE: Final = struct.Struct(">d")
_NUMERAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# Longer than any number that a score can be, and short enough to be read at once.
_NUMERAL_CHARACTERS: Final = 400


@dataclass(frozen=True, slots=True)
class Position:
    """Where an entry stands in its board's order: enough to find it, or what follows it."""

    place: bytes
    member: bytes


def pack_int64(value: int) -> bytes:
    """Eight bytes whose order is the order of the integers from -2^63 to 2^63-1."""
    return _UNSIGNED.pack(value + _BIAS)


def unpack_int64(packed: bytes) -> int:
    return _UNSIGNED.unpack(packed)[0] - _BIAS


def pack_number(value: float) -> bytes:
    """Eight bytes whose order is the order of the doubles; -0.0 is 0.0."""
    (bits,) = _UNSIGNED.unpack(_DOUBLE.pack(value + 0.0))
    return _UNSIGNED.pack(_ALL_BITS - bits if bits >= _BIAS else bits + _BIAS)


def unpack_number(packed: bytes) -> float:
    (bits,) = _UNSIGNED.unpack(packed)
    return _DOUBLE.unpack(_UNSIGNED.pack(bits - _BIAS if bits >= _BIAS else _ALL_BITS - bits))[0]


def invert(packed: bytes) -> bytes:
    """The same bytes in the opposite order."""
    return _UNSIGNED.pack(_ALL_BITS - _UNSIGNED.unpack(packed)[0])


def number_in(text: str, field: str = "score") -> Score:
    """The number that a text plainly is: `5`, `+5`, `-.5`, `5.`, `1e3`. No infinity, hex or underscores."""
    if len(text) > _NUMERAL_CHARACTERS or not _NUMERAL.fullmatch(text):
        raise InvalidInput.at(field, f"must be a number, not {text[:40]!r}")
    number = float(text) if any(mark in text for mark in ".eE") else int(text)
    if number in {math.inf, -math.inf}:
        raise InvalidInput.at(field, "is out of range")
    return number


def parse_number(value: object, field: str = "score") -> float:
    """A finite double; an integer that a double cannot hold exactly is refused, not rounded."""
    if type(value) is int and -EXACT_INTEGERS <= value <= EXACT_INTEGERS:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput.at(field, f"must be a number, not {_kind(value)}")
    if isinstance(value, int):
        if not -EXACT_INTEGERS <= value <= EXACT_INTEGERS:
            try:
                exact = int(float(value)) == value
            except OverflowError:
                exact = False
            if not exact:
                raise InvalidInput.at(
                    field,
                    f"{value} does not fit a double exactly; define the board with score 'int64'"
                    if abs(value) <= INT64_MAX
                    else "is out of range",
                )
        return float(value)
    if not math.isfinite(value):
        raise InvalidInput.at(field, f"must be a finite number, not {value}")
    return value + 0.0


def parse_int64(value: object, field: str = "score") -> int:
    """An integer from -2^63 to 2^63-1, given as such or in decimal digits."""
    if isinstance(value, str):
        digits = value[1:] if value[:1] == "-" else value
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
            raise InvalidInput.at(field, "must be a 64-bit integer in decimal digits")
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput.at(field, f"must be a whole number on an int64 board, not {_kind(value)}")
    if not INT64_MIN <= value <= INT64_MAX:
        raise InvalidInput.at(field, "must lie within -2^63 and 2^63-1")
    return value


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case float():
            return "a fraction"
        case _:
            return f"a {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class Ordering:
    """How one board's entries are ordered and stored; made from its definition."""

    exact: bool
    int64: bool
    descending: bool
    ties: str

    @classmethod
    def of(cls, definition: BoardDefinition) -> Ordering:
        return cls(
            exact=definition.score == "int64" or definition.ties != "shared",
            int64=definition.score == "int64",
            descending=definition.order == "desc",
            ties=definition.ties,
        )

    @property
    def unique(self) -> bool:
        """Whether no two entries share a rank."""
        return self.ties != "shared"

    @property
    def timed(self) -> bool:
        return self.ties == "earliest"

    @property
    def reverse(self) -> bool:
        """Whether the best entries come last in `sort_key`'s order."""
        return self.descending and not self.unique

    def parse_score(self, value: object, field: str = "score") -> Score:
        """The score that a caller gave, or `InvalidInput`."""
        return parse_int64(value, field) if self.int64 else parse_number(value, field)

    def score_place(self, score: Score) -> bytes:
        """The score alone, as Valkey takes it."""
        if not self.exact:
            return repr(score).encode()
        return pack_int64(int(score)) if self.int64 else pack_number(score)

    def place(self, score: Score, moment: Moment | None) -> bytes:
        if self.timed and moment is not None:
            return self.score_place(score) + pack_int64(moment)
        return self.score_place(score)

    def parse_place(self, place: bytes) -> tuple[Score, Moment | None]:
        """The score, and the moment it was reached where ties go to the earliest."""
        if not self.exact:
            return whole(float(place)), None
        packed = place[:8]
        score = unpack_int64(packed) if self.int64 else whole(unpack_number(packed))
        return score, unpack_int64(place[8:16]) if self.timed else None

    def parse_placed_score(self, place: bytes) -> Score:
        """The score alone: of a page's thousand places, in half the time."""
        if self.int64:
            return _UNSIGNED.unpack_from(place)[0] - _BIAS
        return whole(unpack_number(place[:8]) if self.exact else float(place))

    def edge(self, score: Score) -> tuple[bytes, bytes]:
        """A place and member before which lie exactly the entries of a higher or equal score (desc), or of a
        lower one (asc).
        """
        behind_equals = self.descending
        moment = INT64_MAX if behind_equals else INT64_MIN
        is_last = behind_equals and self.unique
        return self.place(score, moment), b"\xff" if is_last else b""

    def sort_key(self, score: Score, moment: Moment | None, member: bytes) -> tuple[Score, int, bytes]:
        """Ascending keys are best first; with `reverse`, descending ones are."""
        rising = -score if self.descending and self.unique else score
        return rising, (moment or 0) if self.timed else 0, member


def whole(score: float) -> Score:
    """1200.0 as 1200: what was given as an integer comes back as one. An infinite score, which only another
    program can have set, is the greatest number, or the least.
    """
    if score.is_integer() and abs(score) <= EXACT_INTEGERS:
        return int(score)
    if math.isinf(score):
        return math.copysign(MOST, score)
    return score
