"""Fuses several ranked lists into one. Pure.

A list has its best item first, so an item's rank is its place in the list, from 1 on. Each list that has an
item adds to the item's fused score:

- `ReciprocalRank`: the sum of weight / (k + rank). Scores do not count.
- `Sum`, `Greatest`: the sum or the greatest of the scores, which a normalizer scales in each list:
  `min_max`: linearly to 0..1, so that the first is 1 and the last 0; each is 1 where all are equal
  `position`: 1 - i / (n - 1) for the i-th of n items, counted from 0; scores do not count
  `none`: the scores as they are

Items with the same score are ordered by their best rank in any list, and then by primary key. Sums are exact
and rounded once, so the order of the lists makes no difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, get_args

from laurels.errors import InvalidInput
from laurels.wording import one_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Key: TypeAlias = tuple[Any, ...]
"""A primary key, column by column."""
Score: TypeAlias = int | float

Normalizer: TypeAlias = Literal["min_max", "position", "none"]

NORMALIZERS: Final[tuple[Normalizer, ...]] = get_args(Normalizer)
RRF_K: Final = 60
"""The value of the original paper: Cormack, Clarke and Büttcher, 2009."""


class SourceItem(NamedTuple):
    """An item of a source's list; a list of the user's own may have no scores."""

    key: Key
    score: Score | None


class Place(NamedTuple):
    """The place of an item in one list."""

    rank: int
    score: Score | None


class Scored(NamedTuple):
    """An item of the fused list; `parts` has its place in each list, or None."""

    key: Key
    score: float
    parts: tuple[Place | None, ...]


@dataclass(frozen=True)
class CheckedList:
    """One list, checked: each key once, and scores that follow the order."""

    field: str
    """Its name in errors: `sources[0]`."""
    places: Mapping[Key, Place]

    @classmethod
    def of(cls, field: str, listed: Iterable[SourceItem]) -> CheckedList:
        """Raises `InvalidInput` for duplicate keys and for scores that are not finite or not in order."""
        places: dict[Key, Place] = {}
        for rank, (key, score) in enumerate(listed, start=1):
            if earlier := places.get(key):
                raise InvalidInput.at(
                    field, f"lists {shown(key)} at {earlier.rank} and at {rank}: keep the better of the two"
                )
            if score is not None and not math.isfinite(score):
                raise InvalidInput.at(
                    f"{field}.score", f"of {shown(key)} must be a finite number, not {score}"
                )
            places[key] = Place(rank, score)
        _check_order(field, [place.score for place in places.values()])
        return cls(field, places)

    @property
    def descends(self) -> bool:
        """Whether greater scores are better in this list; True if all are equal."""
        scores = self._scores()
        return not scores or scores[0] >= scores[-1]

    def normalized(self, normalizer: Normalizer) -> dict[Key, Score]:
        match normalizer:
            case "min_max":
                return self._min_max()
            case "position":
                return self._positions()
            case "none":
                return self._as_they_are()

    def _as_they_are(self) -> dict[Key, Score]:
        if not self.descends:
            raise InvalidInput.at(
                "normalize",
                f"{self.field} has its lowest score first, which would count least: "
                f"use 'min_max' or 'position', or negate its scores",
            )
        return dict(zip(self.places, self._scores(), strict=True))

    def _positions(self) -> dict[Key, Score]:
        last = max(len(self.places) - 1, 1)
        return {key: 1 - (place.rank - 1) / last for key, place in self.places.items()}

    def _min_max(self) -> dict[Key, Score]:
        scores = self._scores()
        if not scores:
            return {}
        first, last = scores[0], scores[-1]
        if first == last:
            return dict.fromkeys(self.places, 1.0)
        if math.isinf(first - last):
            scores = [score / 2 for score in scores]
            first, last = scores[0], scores[-1]
        return {key: (score - last) / (first - last) for key, score in zip(self.places, scores, strict=True)}

    def _scores(self) -> list[Score]:
        scores = [place.score for place in self.places.values() if place.score is not None]
        if len(scores) < len(self.places):
            raise InvalidInput.at(
                f"{self.field}.score",
                "is missing, and scores are to be fused: give (key, score), or use rrf() or "
                "normalize='position'",
            )
        return scores


class Algorithm(Protocol):
    def check(self, sources: int) -> None:
        """Raises `InvalidInput` when the parameters do not fit this number of sources."""
        ...

    def scores(self, lists: Sequence[CheckedList]) -> Mapping[Key, float]:
        """The fused score of each item in any of the lists."""
        ...


@dataclass(frozen=True)
class ReciprocalRank:
    k: float = RRF_K
    weights: tuple[float, ...] | None = None

    def check(self, sources: int) -> None:
        if not _is_number(self.k) or self.k < 0:
            raise InvalidInput.at("k", f"must be a finite number from 0 on, such as {RRF_K}; not {self.k!r}")
        _check_weights(self.weights, sources)

    def scores(self, lists: Sequence[CheckedList]) -> Mapping[Key, float]:
        weights = self.weights or (1.0,) * len(lists)
        return _summed(
            {key: weight / (self.k + place.rank) for key, place in checked.places.items()}
            for checked, weight in zip(lists, weights, strict=True)
        )


@dataclass(frozen=True)
class Sum:
    weights: tuple[float, ...] | None = None
    normalize: Normalizer = "min_max"

    def check(self, sources: int) -> None:
        _check_normalizer(self.normalize)
        _check_weights(self.weights, sources)

    def scores(self, lists: Sequence[CheckedList]) -> Mapping[Key, float]:
        weights = self.weights or (1,) * len(lists)
        return _summed(
            {key: weight * score for key, score in checked.normalized(self.normalize).items()}
            for checked, weight in zip(lists, weights, strict=True)
        )


@dataclass(frozen=True)
class Greatest:
    normalize: Normalizer = "min_max"

    def check(self, sources: int) -> None:  # noqa: ARG002  # it fits any number of sources
        _check_normalizer(self.normalize)

    def scores(self, lists: Sequence[CheckedList]) -> Mapping[Key, float]:
        found: dict[Key, float] = {}
        for checked in lists:
            for key, score in checked.normalized(self.normalize).items():
                found[key] = max(found.get(key, -math.inf), float(score))
        return found


def fused(lists: Sequence[CheckedList], algorithm: Algorithm) -> list[Scored]:
    """Every item of the lists, best first."""
    scores = algorithm.scores(lists)
    items = [
        Scored(key, score, tuple(checked.places.get(key) for checked in lists))
        for key, score in scores.items()
    ]
    try:
        return sorted(items, key=lambda item: (*_before_key(item), item.key))
    except TypeError:  # the type of the keys has no order
        return sorted(items, key=lambda item: (*_before_key(item), repr(item.key)))


def passed(stages: Sequence[Sequence[CheckedList]], algorithm: Algorithm) -> list[Scored]:
    """The fused items that passed every stage of a pipeline: those in at least one list of each."""
    lists = [checked for stage in stages for checked in stage]
    return [
        item
        for item in fused(lists, algorithm)
        if all(any(item.key in checked.places for checked in stage) for stage in stages)
    ]


def shown(key: Key) -> str:
    """A key as users write it: a value, or a tuple for several columns."""
    return repr(key[0] if len(key) == 1 else key)


def _before_key(item: Scored) -> tuple[float, int]:
    return -item.score, min(place.rank for place in item.parts if place)


def _summed(contributions: Iterable[Mapping[Key, float]]) -> dict[Key, float]:
    found: dict[Key, list[float]] = {}
    for contribution in contributions:
        for key, share in contribution.items():
            found.setdefault(key, []).append(share)
    return {key: _sum(key, shares) for key, shares in found.items()}


def _sum(key: Key, shares: list[float]) -> float:
    try:
        total = math.fsum(shares)
    except (OverflowError, ValueError):  # ValueError: inf and -inf among the shares
        total = math.nan
    if not math.isfinite(total):
        raise InvalidInput.at(
            "score",
            f"of {shown(key)} adds up to more than a number holds: give smaller weights, or a normalizer",
        )
    return total


def _check_order(field: str, scores: list[Score | None]) -> None:
    there = [score for score in scores if score is not None]
    if there and len(there) < len(scores):
        raise InvalidInput.at(
            f"{field}.score", "is missing for some keys: give a score for each, or for none"
        )
    steps = list(pairwise(there))
    if any(one < next_ for one, next_ in steps) and any(one > next_ for one, next_ in steps):
        raise InvalidInput.at(
            f"{field}.score", "must follow the order of the list, best first: sort it by its scores"
        )


def _check_normalizer(normalizer: str) -> None:
    if normalizer not in NORMALIZERS:
        raise InvalidInput.at("normalize", one_of([*NORMALIZERS], normalizer))


def _check_weights(weights: tuple[float, ...] | None, sources: int) -> None:
    if weights is None:
        return
    if len(weights) != sources:
        raise InvalidInput.at(
            "weights", f"has {len(weights)} for {sources} sources: give one for each source, in order"
        )
    for number, weight in enumerate(weights):
        if not _is_number(weight) or weight < 0:
            raise InvalidInput.at(f"weights[{number}]", f"must be a finite number from 0 on, not {weight!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
