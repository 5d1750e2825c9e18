"""Finds the records whose vectors are nearest to a given vector, with pgvector.

Among all records, an HNSW index (`hnsw_index`) answers if there is one. Its answer is approximate: it may
miss near neighbours, but it has as many records as asked for if there are enough. Among candidates the answer
is exact.

Nearer records have greater scores: the cosine similarity, the inner product, or 1 / (1 + distance).
"""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from sqlalchemy import Float, Index, exc, func, literal, select, text, tuple_

from laurels.errors import InvalidInput, NotFound
from laurels.index.fusion import SourceItem
from laurels.index.sources import attribute_of, checked_count
from laurels.wording import one_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Iterable, Sequence

    from sqlalchemy import Column, ColumnElement, Select
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
    from sqlalchemy.orm import InstrumentedAttribute, Mapper

    from laurels.index.fusion import Key
    from laurels.index.indexes import Indexes
    from laurels.index.sources import Attribute

Metric: TypeAlias = Literal["cosine", "l2", "inner_product"]
Kind: TypeAlias = Literal["vector", "halfvec"]

METRICS: Final = get_args(Metric)
MOST_INDEXED: Final[dict[Kind, int]] = {"vector": 2000, "halfvec": 4000}
"""The most dimensions of an indexed column."""
LEAST_PGVECTOR: Final = "0.8"

_OPERATORS: Final[dict[Metric, str]] = {"cosine": "<=>", "l2": "<->", "inner_product": "<#>"}
_CLASSES: Final[dict[Metric, str]] = {"cosine": "cosine_ops", "l2": "l2_ops", "inner_product": "ip_ops"}
# hnsw.ef_search is twice the number of records asked for, within these bounds; 1000 is pgvector's maximum.
_LEAST_SEARCHED: Final = 100
_MOST_SEARCHED: Final = 1000
# hnsw.max_scan_tuples, at least.
_SCANNED: Final = 20_000
# SQLSTATE: no such type, setting or operator; and the class of errors about vectors that do not fit.
_UNDEFINED: Final = {"42704", "42883"}
_DATA: Final = "22"


@dataclass(frozen=True)
class VectorColumn:
    """A column of vectors."""

    name: str
    """Its name in errors: `Streamer.embedding`."""
    mapper: Mapper[Any]
    column: Column[Any]
    kind: Kind
    dimensions: int | None

    @classmethod
    def of(cls, given: InstrumentedAttribute[Any]) -> VectorColumn:
        """Raises `InvalidInput` for any other column."""
        attribute = attribute_of(given, "column", "Streamer.embedding")
        kind: Any = attribute.column.type
        return cls(*attribute, _kind(attribute), kind.dim)

    def checked(self, vector: Iterable[float]) -> tuple[float, ...]:
        """The vector as a tuple; raises `InvalidInput` unless it fits the column."""
        try:
            numbers = tuple(float(number) for number in vector)
        except (TypeError, ValueError) as error:
            raise InvalidInput.at("vector", f"must be a list of numbers: {error}") from error
        if not numbers:
            raise InvalidInput.at("vector", "has no dimensions")
        if self.dimensions is not None and len(numbers) != self.dimensions:
            raise InvalidInput.at(
                "vector",
                f"has {len(numbers)} dimensions, but {self.name} has {self.dimensions}",
            )
        for number, value in enumerate(numbers):
            if not math.isfinite(value):
                raise InvalidInput.at(f"vector[{number}]", f"must be a finite number, not {value}")
        return numbers


@dataclass(frozen=True)
class Nearest:
    """The `k` records nearest to a vector: a source of `fuse`."""

    of: VectorColumn
    metric: Metric
    vector: tuple[float, ...]
    k: int

    @property
    def model(self) -> type[Any]:
        return self.of.mapper.class_

    async def listed(
        self,
        index: Indexes,
        mapper: Mapper[Any],  # noqa: ARG002  # the column knows its own
        among: Collection[Key] | None,
    ) -> list[SourceItem]:
        if among is None:
            return await self.among_all(index.engine)
        return await self.among(index.engine, among)

    async def among_all(self, engine: AsyncEngine) -> list[SourceItem]:
        """The nearest of all records, nearest first; by an index if there is one."""
        async with self._transaction(engine) as connection:
            await connection.execute(self._settings())
            found = await self._run(connection, self._by_index())
            return found if len(found) == self.k else await self._run(connection, self._exactly())

    async def among(self, engine: AsyncEngine, candidates: Collection[Key]) -> list[SourceItem]:
        """The exact nearest of the candidates, nearest first."""
        if not candidates:
            return []
        async with self._transaction(engine) as connection:
            return await self._run(connection, self._exactly(candidates))

    @asynccontextmanager
    async def _transaction(self, engine: AsyncEngine) -> AsyncGenerator[AsyncConnection]:
        """A transaction, because settings apply to one; explains pgvector's errors."""
        async with engine.connect() as connection:
            await connection.execution_options(isolation_level="READ COMMITTED")
            try:
                yield connection
            except exc.DBAPIError as error:
                await connection.rollback()
                raise await self._explained(connection, error) from error

    async def _run(
        self, connection: AsyncConnection, statement: Select[*tuple[Any, ...]]
    ) -> list[SourceItem]:
        rows = await connection.execute(statement)
        # The cosine of the zero vector is NaN, because it has no angle to any other.
        near = sorted((distance, tuple(key)) for *key, distance in rows if not math.isnan(distance))
        return [SourceItem(key, self._score(distance)) for distance, key in near]

    def _score(self, distance: float) -> float:
        """The score of a distance of pgvector."""
        match self.metric:
            case "cosine":
                return 1 - distance
            case "inner_product":
                return -distance
            case "l2":
                return 1 / (1 + distance)

    def _settings(self) -> Select[*tuple[Any, ...]]:
        """Settings for the transaction, so that the index searches until it has found `k`."""
        settings = {
            "hnsw.iterative_scan": "strict_order",
            "hnsw.ef_search": min(_MOST_SEARCHED, max(_LEAST_SEARCHED, 2 * self.k)),
            "hnsw.max_scan_tuples": max(_SCANNED, 4 * self.k),
        }
        return select(*(func.set_config(name, str(value), True) for name, value in settings.items()))

    def _distance(self) -> ColumnElement[float]:
        vector = literal(list(self.vector), self.of.column.type)
        return self.of.column.op(_OPERATORS[self.metric], return_type=Float())(vector).label("distance")

    def _by_index(self) -> Select[*tuple[Any, ...]]:
        """Ordered by distance only, because an index provides no other order."""
        distance = self._distance()
        rows = select(*self.of.mapper.primary_key, distance).where(self.of.column.is_not(None))
        return rows.order_by(distance).limit(self.k)

    def _exactly(self, candidates: Collection[Key] | None = None) -> Select[*tuple[Any, ...]]:
        """Computes every distance before sorting, so that PostgreSQL uses no index."""
        key = self.of.mapper.primary_key
        named = [column.label(f"key_{number}") for number, column in enumerate(key)]
        rows = select(*named, self._distance()).where(self.of.column.is_not(None))
        if candidates is not None:
            rows = rows.where(_is_one_of(key, candidates))
        distances = rows.cte("distances").prefix_with("MATERIALIZED", dialect="postgresql")
        columns = [distances.c[column.name] for column in named]
        asked = select(*columns, distances.c.distance)
        return asked.order_by(distances.c.distance, *columns).limit(self.k)

    async def _explained(self, connection: AsyncConnection, error: exc.DBAPIError) -> Exception:
        """A readable error if this one is about pgvector; else the same."""
        state = str(getattr(error.orig, "sqlstate", None) or "")
        if state.startswith(_DATA):
            return InvalidInput.at("vector", f"does not fit {self.of.name}: {error.orig}")
        if state not in _UNDEFINED:
            return error
        version = await connection.scalar(
            text("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        )
        if version is None:
            return NotFound(
                f"{self.of.name}: this database has no pgvector; add it with CREATE EXTENSION vector"
            )
        return NotFound(
            f"{self.of.name}: pgvector {version} refused this query. It must be {LEAST_PGVECTOR} or newer, "
            f"and the column a {self.of.kind} in the database too: {error.orig}"
        )


class Similar:
    """Nearness by a column of vectors: `Similar(Streamer.embedding).nearest(vector, k=50)`."""

    def __init__(self, column: InstrumentedAttribute[Any], metric: Metric = "cosine") -> None:
        _check_metric(metric)
        self._of = VectorColumn.of(column)
        self._metric: Metric = metric

    def nearest(self, vector: Iterable[float], k: int = 10) -> Nearest:
        """The `k` records nearest to this vector: a list, a tuple or an array of NumPy."""
        checked = self._of.checked(vector)
        if self._metric == "cosine" and not any(checked):
            raise InvalidInput.at("vector", "is zero and has no direction: leave this source out")
        return Nearest(self._of, self._metric, checked, checked_count(k))


def hnsw_index(
    column: InstrumentedAttribute[Any], metric: Metric = "cosine", *, m: int = 16, ef_construction: int = 64
) -> Index:
    """An index for `Similar(column, metric)`, added to the model's table.

    Greater values of pgvector's `m` and `ef_construction` find better neighbours and take longer to build.
    """
    _check_metric(metric)
    of = VectorColumn.of(column)
    most = MOST_INDEXED[of.kind]
    if of.dimensions is None:
        raise InvalidInput.at(of.name, "must say how many dimensions it has, like Vector(256), to be indexed")
    if of.dimensions > most:
        other = (
            f": make it a HALFVEC, which may have {MOST_INDEXED['halfvec']}" if of.kind == "vector" else ""
        )
        raise InvalidInput.at(of.name, f"has {of.dimensions} dimensions, and an index holds {most}{other}")
    return Index(
        f"ix_{of.mapper.local_table.name}_{of.column.name}_{metric}",  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]  # a model's table has a name
        of.column,
        postgresql_using="hnsw",
        postgresql_with={"m": m, "ef_construction": ef_construction},
        postgresql_ops={of.column.key: f"{of.kind}_{_CLASSES[metric]}"},
    )


def _is_one_of(columns: Sequence[ColumnElement[Any]], keys: Iterable[Key]) -> ColumnElement[bool]:
    if len(columns) == 1:
        return columns[0].in_([key[0] for key in keys])
    return tuple_(*columns).in_(list(keys))


def _check_metric(metric: str) -> None:
    if metric not in METRICS:
        raise InvalidInput.at("metric", one_of([*METRICS], metric))


def _kind(attribute: Attribute) -> Kind:
    try:
        from pgvector.sqlalchemy import HALFVEC, VECTOR  # noqa: PLC0415  # an optional extra
    except ImportError as error:
        raise InvalidInput.at(
            attribute.name, "needs the package pgvector: pip install 'laurels[index]'"
        ) from error
    if isinstance(attribute.column.type, VECTOR):
        return "vector"
    if isinstance(attribute.column.type, HALFVEC):
        return "halfvec"
    raise InvalidInput.at(
        attribute.name,
        f"must be a Vector or HALFVEC of pgvector.sqlalchemy to have neighbours, not {attribute.column.type}",
    )
