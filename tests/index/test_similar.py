"""Neighbours by pgvector, compared with distances computed in Python."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from array import array
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pgvector.sqlalchemy import HALFVEC, SPARSEVEC, VECTOR
from sqlalchemy import event, exc, insert, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from laurels.errors import InvalidInput, NotFound
from laurels.index.fusion import SourceItem
from laurels.index.similar import METRICS, Similar, hnsw_index

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from sqlalchemy import Select
    from sqlalchemy.ext.asyncio import AsyncEngine
    from sqlalchemy.orm import InstrumentedAttribute

    from laurels.embedded import Endpoints
    from laurels.index.fusion import Key
    from laurels.index.similar import Metric

DIMENSIONS = 16
RECORDS = 500
POINTS = 1_300
ROOT = Path(__file__).parents[2]
Vectors = dict[int, list[float]]


class Base(DeclarativeBase):
    pass


class Song(Base):
    __tablename__ = "songs"
    id: Mapped[int] = mapped_column(primary_key=True)
    sound: Mapped[list[float] | None] = mapped_column(VECTOR(DIMENSIONS))


class Indexed(Base):
    __tablename__ = "indexed_songs"
    id: Mapped[int] = mapped_column(primary_key=True)
    sound: Mapped[list[float] | None] = mapped_column(VECTOR(DIMENSIONS))
    half: Mapped[list[float] | None] = mapped_column("half_sound", HALFVEC(DIMENSIONS))


class Point(Base):
    """More than the index searches by default."""

    __tablename__ = "points"
    id: Mapped[int] = mapped_column(primary_key=True)
    place: Mapped[list[float]] = mapped_column(VECTOR(2))


class Take(Base):
    __tablename__ = "takes"
    song: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    sound: Mapped[list[float] | None] = mapped_column(VECTOR())


class Odd(Base):
    """Declared to be refused; the table is never made."""

    __tablename__ = "odd"
    id: Mapped[int] = mapped_column(primary_key=True)
    parent_id: Mapped[int]
    sparse: Mapped[Any] = mapped_column(SPARSEVEC(DIMENSIONS))
    broad: Mapped[Any] = mapped_column(VECTOR(2001))
    broader: Mapped[Any] = mapped_column(HALFVEC(4001))
    parent: Mapped[Odd] = relationship(
        primaryjoin="foreign(Odd.parent_id) == Odd.id", remote_side="Odd.id", viewonly=True
    )


for _metric in METRICS:
    hnsw_index(Indexed.sound, _metric)
hnsw_index(Indexed.half)
hnsw_index(Point.place, "l2")


def vectors(seed: int = 1, number: int = RECORDS) -> Vectors:
    """In a few clusters, as embeddings are."""
    chance = random.Random(seed)  # noqa: S311  # data
    clouds = [[chance.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(12)]
    return {
        key: [middle + chance.gauss(0, 0.3) for middle in chance.choice(clouds)]
        for key in range(1, number + 1)
    }


def score(metric: Metric, one: Sequence[float], other: Sequence[float]) -> float:
    product = math.sumprod(one, other) if sys.version_info >= (3, 12) else sum(map(float.__mul__, one, other))
    match metric:
        case "cosine":
            return product / (math.hypot(*one) * math.hypot(*other))
        case "inner_product":
            return product
        case "l2":
            return 1 / (1 + math.dist(one, other))


def by_hand(metric: Metric, stored: Vectors, vector: Sequence[float]) -> list[tuple[int, float]]:
    scores = [(key, score(metric, each, vector)) for key, each in stored.items()]
    return sorted(scores, key=lambda item: (-item[1], item[0]))


def keys(found: Sequence[SourceItem]) -> list[int]:
    return [each.key[0] for each in found]


@asynccontextmanager
async def new_database(endpoints: Endpoints, name: str) -> AsyncGenerator[AsyncEngine]:
    server = create_async_engine(endpoints.postgres_url, isolation_level="AUTOCOMMIT")
    async with server.connect() as connection:
        await connection.execute(text(f"CREATE DATABASE {name}"))
    # So few records are read sooner without an index: where there is one, it is to be used.
    engine = create_async_engine(
        server.url.set(database=name), connect_args={"options": "-c enable_seqscan=off"}
    )
    yield engine
    await engine.dispose()
    async with server.connect() as connection:
        await connection.execute(text(f"DROP DATABASE {name}"))
    await server.dispose()


@pytest.fixture(scope="module")
async def engine(endpoints: Endpoints) -> AsyncGenerator[AsyncEngine]:
    async with new_database(endpoints, "laurels_test_similar") as engine:
        yield engine


@pytest.fixture
async def bare_engine(endpoints: Endpoints) -> AsyncGenerator[AsyncEngine]:
    """A database without the extension."""
    async with new_database(endpoints, "laurels_test_bare") as engine:
        yield engine


@pytest.fixture(scope="module")
async def stored(engine: AsyncEngine) -> Vectors:
    made = vectors()
    async with engine.begin() as connection:
        await connection.execute(text("CREATE EXTENSION vector"))
        tables: Any = [Song.__table__, Indexed.__table__, Point.__table__, Take.__table__]
        await connection.run_sync(Base.metadata.create_all, tables=tables)
        rows = [{"id": key, "sound": sound} for key, sound in made.items()]
        await connection.execute(insert(Song), rows)
        await connection.execute(insert(Indexed), [{**row, "half_sound": row["sound"]} for row in rows])
        await connection.execute(insert(Song), [{"id": RECORDS + 1, "sound": None}])
        points = [{"id": number, "place": [float(number), 0.0]} for number in range(POINTS)]
        await connection.execute(insert(Point), points)
    return made


@pytest.fixture
def statements(engine: AsyncEngine) -> Iterator[list[str]]:
    sent: list[str] = []

    def hear(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    event.listen(engine.sync_engine, "before_cursor_execute", hear)
    yield sent
    event.remove(engine.sync_engine, "before_cursor_execute", hear)


@pytest.mark.parametrize("metric", METRICS)
class TestNearest:
    async def test_without_an_index_the_nearest_of_all_are_found(
        self, engine: AsyncEngine, stored: Vectors, metric: Metric
    ):
        wanted = stored[77]
        found = await Similar(Song.sound, metric).nearest(wanted, k=50).among_all(engine)
        expected = by_hand(metric, stored, wanted)[:50]
        assert keys(found) == [key for key, _ in expected]
        assert [each.score for each in found] == pytest.approx([score for _, score in expected], rel=1e-4)

    async def test_among_candidates_the_answer_is_exact_though_there_is_an_index(
        self, engine: AsyncEngine, stored: Vectors, metric: Metric
    ):
        candidates = random.Random(5).sample(list(stored), 150)  # noqa: S311  # data
        wanted = stored[77]
        found = (
            await Similar(Indexed.sound, metric)
            .nearest(wanted, k=20)
            .among(engine, [(key,) for key in candidates])
        )
        expected = by_hand(metric, {key: stored[key] for key in candidates}, wanted)
        assert keys(found) == [key for key, _ in expected[:20]]

    async def test_by_an_index_most_of_the_nearest_are_found_and_as_many_as_asked_for(
        self, engine: AsyncEngine, stored: Vectors, statements: list[str], metric: Metric
    ):
        wanted = stored[77]
        for k in (10, 200, 450):
            found = await Similar(Indexed.sound, metric).nearest(wanted, k=k).among_all(engine)
            expected = {key for key, _ in by_hand(metric, stored, wanted)[:k]}
            assert len(found) == len(set(keys(found))) == k
            assert len(expected & set(keys(found))) >= 0.9 * k
            scores = [each.score for each in found if each.score is not None]
            assert scores == sorted(scores, reverse=True)
        assert [each for each in statements if "MATERIALIZED" in each] == []

    async def test_the_index_answers_except_where_the_answer_is_exact(
        self, engine: AsyncEngine, stored: Vectors, metric: Metric
    ):
        nearest = Similar(Indexed.sound, metric).nearest(stored[1], k=10)
        plans = [await plan(engine, nearest._by_index()), await plan(engine, nearest._exactly())]  # pyright: ignore[reportPrivateUsage]  # what is asked
        assert [f"ix_indexed_songs_sound_{metric}" in each for each in plans] == [True, False]


async def plan(engine: AsyncEngine, question: Select[*tuple[Any, ...]]) -> str:
    asked = question.compile(dialect=engine.dialect, compile_kwargs={"literal_binds": True})
    async with engine.connect() as connection:
        return "\n".join((await connection.execute(text(f"EXPLAIN {asked}"))).scalars())


async def test_the_index_searches_beyond_its_default(
    engine: AsyncEngine, stored: Vectors, statements: list[str]
):
    found = await Similar(Point.place, "l2").nearest([0, 0], k=1_200).among_all(engine)
    assert keys(found) == list(range(1_200))
    assert [each for each in statements if "MATERIALIZED" in each] == []


async def test_where_the_index_gives_up_the_rest_is_found_without_it(engine: AsyncEngine, stored: Vectors):
    """The index gives up when it has no memory left."""
    forgetful = create_async_engine(
        engine.url, connect_args={"options": "-c enable_seqscan=off -c work_mem=64kB"}
    )
    nearest = Similar(Point.place, "l2").nearest([0, 0], k=1_200)
    async with forgetful.begin() as connection:
        await connection.execute(nearest._settings())  # pyright: ignore[reportPrivateUsage]  # what is asked
        assert len((await connection.execute(nearest._by_index())).all()) < 1_200  # pyright: ignore[reportPrivateUsage]  # as above
    assert keys(await nearest.among_all(forgetful)) == list(range(1_200))
    await forgetful.dispose()


async def test_records_without_a_vector_are_left_out(engine: AsyncEngine, stored: Vectors):
    found = await Similar(Song.sound).nearest(stored[1], k=RECORDS + 10).among_all(engine)
    assert sorted(keys(found)) == sorted(stored)
    assert await Similar(Song.sound).nearest(stored[1]).among(engine, [(RECORDS + 1,)]) == []


async def test_no_candidates_give_an_empty_list(engine: AsyncEngine, stored: Vectors, statements: list[str]):
    assert await Similar(Song.sound).nearest(stored[1]).among(engine, []) == []
    assert statements == []


async def test_vectors_of_half_precision_are_searched_too(engine: AsyncEngine, stored: Vectors):
    found = await Similar(Indexed.half).nearest(stored[77], k=10).among_all(engine)
    assert keys(found)[0] == 77


async def test_equal_distances_go_by_the_whole_primary_key_and_zero_has_no_direction(
    engine: AsyncEngine, stored: Vectors
):
    takes = [("b", 1, [1.0, 0.0]), ("a", 10, [2.0, 0.0]), ("a", 9, [3.0, 0.0]), ("c", 1, [0.0, 0.0])]
    async with engine.begin() as connection:
        await connection.execute(
            insert(Take), [{"song": song, "number": number, "sound": sound} for song, number, sound in takes]
        )
    nearest = Similar(Take.sound).nearest([1, 0], k=3)
    expected = [SourceItem(("a", 9), 1.0), SourceItem(("a", 10), 1.0), SourceItem(("b", 1), 1.0)]
    assert await nearest.among_all(engine) == expected
    assert await nearest.among(engine, [("b", 1), ("a", 9), ("c", 1)]) == [expected[0], expected[2]]


async def test_dimensions_that_only_the_database_knows_are_refused_by_name(
    engine: AsyncEngine, stored: Vectors
):
    async with engine.begin() as connection:
        await connection.execute(insert(Take), [{"song": "d", "number": 1, "sound": [1.0, 2.0]}])
    with pytest.raises(InvalidInput, match=r"^vector: does not fit Take.sound: different vector dimensions"):
        await Similar(Take.sound).nearest([1, 2, 3]).among_all(engine)


async def test_the_settings_last_no_longer_than_the_question(engine: AsyncEngine, stored: Vectors):
    await Similar(Song.sound).nearest(stored[1], k=50).among_all(engine)
    async with engine.connect() as connection:
        assert await connection.scalar(text("SHOW hnsw.iterative_scan")) == "off"
        assert await connection.scalar(text("SHOW hnsw.ef_search")) == "40"


@pytest.mark.parametrize("candidates", [None, [(1,)]])
async def test_a_database_without_pgvector_says_so(bare_engine: AsyncEngine, candidates: list[Key] | None):
    async with bare_engine.begin() as connection:
        await connection.execute(text("CREATE TABLE songs (id bigint PRIMARY KEY, sound text)"))
    nearest = Similar(Song.sound).nearest([1.0] * DIMENSIONS)
    with pytest.raises(NotFound, match=r"^Song.sound: this database has no pgvector; .*CREATE EXTENSION"):
        await (nearest.among(bare_engine, candidates) if candidates else nearest.among_all(bare_engine))


async def test_a_column_that_is_no_vector_in_the_database_says_so(bare_engine: AsyncEngine):
    async with bare_engine.begin() as connection:
        await connection.execute(text("CREATE EXTENSION vector"))
        await connection.execute(text("CREATE TABLE songs (id bigint PRIMARY KEY, sound text)"))
    with pytest.raises(NotFound, match=r"^Song.sound: pgvector 0.* the column a vector in the database too"):
        await Similar(Song.sound).nearest([1.0] * DIMENSIONS).among_all(bare_engine)


async def test_other_errors_of_the_database_stay_what_they_are(bare_engine: AsyncEngine):
    with pytest.raises(exc.ProgrammingError, match='relation "songs" does not exist'):
        await Similar(Song.sound).nearest([1.0] * DIMENSIONS).among_all(bare_engine)


class TestRefusals:
    @pytest.mark.parametrize(
        ("vector", "message"),
        [
            ([1.0] * 15, r"^vector: has 15 dimensions, but Song.sound has 16"),
            ([], r"^vector: has no dimensions"),
            ([1.0] * 15 + [math.nan], r"^vector\[15\]: must be a finite number, not nan"),
            ([math.inf] * 16, r"^vector\[0\]: must be a finite number, not inf"),
            (["a"] * 16, r"^vector: must be a list of numbers"),
            (7, r"^vector: must be a list of numbers"),
            ([0] * 16, r"^vector: is zero and has no direction"),
        ],
    )
    def test_a_vector_that_cannot_be_in_the_column(self, vector: list[float], message: str):
        with pytest.raises(InvalidInput, match=message):
            Similar(Song.sound).nearest(vector)

    @pytest.mark.parametrize("k", [0, -1, 10_001, 1.5, True, "10"])
    def test_a_k_that_is_no_number_of_neighbours(self, k: int):
        with pytest.raises(InvalidInput, match=r"^k: must be a whole number from 1 to 10,000"):
            Similar(Song.sound).nearest([1.0] * 16, k=k)

    def test_a_metric_that_there_is_not(self):
        wrong: Any = "manhattan"
        for make in (Similar, hnsw_index):
            with pytest.raises(InvalidInput, match=r"^metric: must be cosine, l2 or inner_product"):
                make(Song.sound, wrong)

    def test_a_column_without_vectors(self):
        for column, name in ((Song.id, "Song.id"), (Odd.sparse, "Odd.sparse")):
            with pytest.raises(InvalidInput, match=rf"^{name}: must be a Vector or HALFVEC"):
                Similar(column)

    @pytest.mark.parametrize("other", [Song, Odd.parent, "sound", Song.__table__])
    def test_anything_but_a_column_of_a_model(self, other: InstrumentedAttribute[Any]):
        with pytest.raises(InvalidInput, match=r"^column: must be a column of a model"):
            Similar(other)

    def test_an_index_of_more_dimensions_than_it_holds(self):
        with pytest.raises(InvalidInput, match=r"^Odd.broad: has 2001 dimensions.* 2000: make it a HALFVEC"):
            hnsw_index(Odd.broad)
        with pytest.raises(
            InvalidInput, match=r"^Odd.broader: has 4001 dimensions, and an index holds 4000$"
        ):
            hnsw_index(Odd.broader)
        with pytest.raises(InvalidInput, match=r"^Take.sound: must say how many dimensions"):
            hnsw_index(Take.sound)


def test_distances_from_zero_are_allowed():
    assert Similar(Song.sound, "l2").nearest([0] * 16).vector == (0.0,) * 16


def test_arrays_are_vectors_too():
    assert Similar(Song.sound).nearest(array("f", [0.5] * 16)).vector == (0.5,) * 16


def test_only_vectors_need_the_extra():
    code = """
import sys
sys.modules["pgvector"] = None
import laurels, laurels.index
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
class Base(DeclarativeBase): pass
class Song(Base):
    __tablename__ = "songs"
    id: Mapped[int] = mapped_column(primary_key=True)
try:
    laurels.index.Similar(Song.id)
except laurels.errors.InvalidInput as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "Song.id: needs the package pgvector: pip install 'laurels[index]'\n"
