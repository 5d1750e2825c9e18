"""`fuse`: reads several sources and fuses their lists into one list of records."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, overload

from laurels.errors import InvalidInput
from laurels.index.declare import mapper_of
from laurels.index.fusion import RRF_K, CheckedList, Greatest, ReciprocalRank, Sum, fused, passed
from laurels.index.query import bound_to
from laurels.index.similar import Similar
from laurels.index.sources import Leaderboard

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable

    from sqlalchemy.ext.asyncio import AsyncSession
    from sqlalchemy.orm import Mapper

    from laurels.index.fusion import Algorithm, Key, Normalizer, Place, Scored
    from laurels.index.indexes import Indexes
    from laurels.index.sources import Source

Model = TypeVar("Model")

RECORDS_AT_ONCE: Final = 10_000
BY_RANK: Final = ReciprocalRank()


@dataclass(frozen=True)
class Fused(Generic[Model]):
    """One record of a fused list."""

    item: Model
    score: float
    rank: int
    """From 1 on, unique."""
    parts: tuple[Place | None, ...]
    """Its rank and score in each source, those of a `Parallel` one by one; None if it is not listed there."""


@dataclass(frozen=True)
class Parallel:
    """Sources that are one stage of a pipeline: each ranks the candidates, and their union passes."""

    sources: tuple[Source, ...]

    def __init__(self, *sources: Source) -> None:
        if not sources:
            raise InvalidInput.at(
                "Parallel", "has no sources: give one or more, such as Leaderboard(…).top(100)"
            )
        for number, source in enumerate(sources):
            _check_source(f"Parallel[{number}]", source)
        object.__setattr__(self, "sources", sources)


@dataclass(frozen=True)
class Fusion(Generic[Model]):
    """What to fuse, and how; `await` it for the records. Each step returns a new fusion."""

    stages: tuple[tuple[Source, ...], ...]
    """The sources of each stage of a pipeline; in parallel mode the stages make no difference."""
    mapper: Mapper[Model]
    algorithm: Algorithm = BY_RANK
    mode: Literal["parallel", "pipeline"] = "parallel"
    most: int | None = None
    session: AsyncSession | None = None

    def parallel(self) -> Fusion[Model]:
        """Every source ranks all records; the result is the union of their lists."""
        return replace(self, mode="parallel")

    def pipeline(self) -> Fusion[Model]:
        """Each stage, a source or a `Parallel`, ranks the records that passed the previous one.

        The result has those that passed the last. Scores are fused from a record's place in every list, as in
        parallel mode.
        """
        return replace(self, mode="pipeline")

    def rrf(self, k: float = RRF_K, weights: Iterable[float] | None = None) -> Fusion[Model]:
        """Fuses ranks: the sum of weight / (k + rank). Give one weight for each source."""
        return self._by(ReciprocalRank(k, None if weights is None else tuple(weights)))

    def sum(self, *, normalize: Normalizer = "min_max") -> Fusion[Model]:
        """Fuses scores: their sum. A normalizer scales those of each source."""
        return self._by(Sum(normalize=normalize))

    def max(self, *, normalize: Normalizer = "min_max") -> Fusion[Model]:
        """Fuses scores: the greatest. A normalizer scales those of each source."""
        return self._by(Greatest(normalize))

    def weighted(self, weights: Iterable[float], *, normalize: Normalizer = "min_max") -> Fusion[Model]:
        """Like `sum`, with each score multiplied by the weight of its source."""
        return self._by(Sum(tuple(weights), normalize))

    def limit(self, n: int) -> Fusion[Model]:
        """Only the best n records."""
        if type(n) is not int or n < 1:
            raise InvalidInput.at("limit", f"must be a whole number from 1 on, not {n!r}")
        return replace(self, most=n)

    def using(self, session: AsyncSession) -> Fusion[Model]:
        """Loads the records in this session; without one they are detached."""
        return replace(self, session=session)

    def __await__(self) -> Generator[Any, Any, list[Fused[Model]]]:
        return self.execute().__await__()

    async def execute(self) -> list[Fused[Model]]:
        """The records, best first. A record that is gone meanwhile is left out; the next takes its rank."""
        index = bound_to(self.mapper.class_)
        if self.mode == "pipeline":
            return await self._with_records(index, passed(await self._in_turn(index), self.algorithm))
        lists = await self._at_once(index, self.sources, None)
        return await self._with_records(index, fused(lists, self.algorithm))

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(source for stage in self.stages for source in stage)

    async def _in_turn(self, index: Indexes) -> list[list[CheckedList]]:
        """The lists of each stage."""
        passing: list[list[CheckedList]] = []
        for stage in self.stages:
            among = {key for checked in passing[-1] for key in checked.places} if passing else None
            first = sum(map(len, passing))
            passing.append(await self._at_once(index, stage, among, first))
        return passing

    async def _at_once(
        self, index: Indexes, sources: tuple[Source, ...], among: Collection[Key] | None, first: int = 0
    ) -> list[CheckedList]:
        """The lists of these sources, of which the first has the number `first` among all."""

        async def read(number: int, source: Source) -> CheckedList:
            return CheckedList.of(f"sources[{number}]", await source.listed(index, self.mapper, among))

        reads = (read(number, source) for number, source in enumerate(sources, first))
        lists: list[CheckedList] = []
        for answer in await asyncio.gather(*reads, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            lists.append(answer)
        return lists

    async def _with_records(self, index: Indexes, items: list[Scored]) -> list[Fused[Model]]:
        wanted = len(items) if self.most is None else min(self.most, len(items))
        found: list[Fused[Model]] = []
        first = 0
        while len(found) < wanted and first < len(items):
            chunk = items[first : first + min(wanted - len(found), RECORDS_AT_ONCE)]
            first += len(chunk)
            keys: list[Any] = [item.key[0] if len(item.key) == 1 else item.key for item in chunk]
            records = await index.fetch(self.mapper.class_, keys, self.session)
            for key, item in zip(keys, chunk, strict=True):
                if key in records:
                    found.append(Fused(records[key], item.score, len(found) + 1, item.parts))
        return found

    def _by(self, algorithm: Algorithm) -> Fusion[Model]:
        algorithm.check(len(self.sources))
        return replace(self, algorithm=algorithm)


@overload
def fuse(*sources: Source | Parallel, of: type[Model]) -> Fusion[Model]: ...
@overload
def fuse(*sources: Source | Parallel, of: None = None) -> Fusion[Any]: ...
def fuse(*sources: Source | Parallel, of: type[Any] | None = None) -> Fusion[Any]:
    """Fuses ranked lists of one model's records into one; by default in parallel and by RRF.

    `of` names the model for sources that name none, and types the result. Weights and errors count the
    sources of a `Parallel` one by one.
    """
    if not sources:
        raise InvalidInput.at("sources", "are missing: give one or more, such as Leaderboard(…).top(100)")
    stages: list[tuple[Source, ...]] = []
    for number, source in enumerate(sources):
        if isinstance(source, Parallel):
            stages.append(source.sources)
        else:
            _check_source(f"sources[{number}]", source)
            stages.append((source,))
    models = {model for model in (of, *(each.model for stage in stages for each in stage)) if model}
    if not models:
        raise InvalidInput.at("of", "is missing, and no source names a model: write fuse(…, of=Streamer)")
    if len(models) > 1:
        names = " and ".join(sorted(model.__name__ for model in models))
        raise InvalidInput.at("sources", f"must be of one model, not of {names}: fuse each model separately")
    return Fusion(tuple(stages), mapper_of(models.pop()))


def _check_source(field: str, given: object) -> None:
    if isinstance(given, Leaderboard | Similar):
        more = "top(100)" if isinstance(given, Leaderboard) else "nearest(vector, k=50)"
        raise InvalidInput.at(field, f"does not say what it lists: add .{more}")
    if not hasattr(given, "listed"):
        raise InvalidInput.at(field, f"must be a source, not {given!r}: wrap a list of keys in RankedList(…)")
