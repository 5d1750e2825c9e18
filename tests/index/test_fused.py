"""Fuses sources of every kind, and compares the records with lists sorted by hand."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from index_models import drop, opened
from pgvector.sqlalchemy import Vector
from sqlalchemy import BigInteger, delete, event, insert, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from laurels.clock import FixedClock
from laurels.engine import Laurels
from laurels.errors import InvalidInput, LaurelsError, NotFound
from laurels.index import Fused, Indexes, Leaderboard, LeaderboardIndex, RankedList, Similar, fuse, hnsw_index
from laurels.index.triggers import follow_clock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.embedded import Endpoints
    from laurels.index.fused import Fusion

DAY = timedelta(days=1)
STREAMERS = 60


class Base(DeclarativeBase):
    pass


class Streamer(Base):
    __tablename__ = "fused_streamers"
    __leaderboards__ = (
        LeaderboardIndex(score="viewers", group_by=["country"], window="daily"),
        LeaderboardIndex(score="seconds", name="fastest", order="asc", window="daily"),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    country: Mapped[str]
    viewers: Mapped[int | None] = mapped_column(BigInteger)
    seconds: Mapped[int] = mapped_column(BigInteger)
    embedding: Mapped[list[float] | None] = mapped_column(Vector(3))


hnsw_index(Streamer.embedding)


class Take(Base):
    __tablename__ = "fused_takes"
    __leaderboards__ = (LeaderboardIndex(score="plays"),)
    song: Mapped[UUID] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    plays: Mapped[int] = mapped_column(BigInteger)


class Unindexed(Base):
    __tablename__ = "fused_unindexed"
    id: Mapped[int] = mapped_column(primary_key=True)


def streamers() -> dict[int, dict[str, Any]]:
    chance = random.Random(7)  # noqa: S311  # data
    return {
        key: {
            "id": key,
            "country": chance.choice(["br", "fi"]),
            "viewers": None if key % 10 == 0 else 100 * chance.randrange(20),
            "seconds": chance.randrange(1000),
            "embedding": None if key % 7 == 0 else [chance.gauss(0, 1) for _ in range(3)],
        }
        for key in range(1, STREAMERS + 1)
    }


def by(column: str, *, reverse: bool = True, country: str | None = None) -> list[int]:
    """The keys of the records that have it, best first."""
    rows = [
        row for row in streamers().values() if row[column] is not None and country in {None, row["country"]}
    ]
    return [
        row["id"] for row in sorted(rows, key=lambda row: (row[column] * (-1 if reverse else 1), row["id"]))
    ]


def nearest(vector: Sequence[float], among: Sequence[int] | None = None) -> list[int]:
    def cosine(row: dict[str, Any]) -> float:
        one = row["embedding"]
        product = sum(a * b for a, b in zip(one, vector, strict=True))
        return product / (sum(a * a for a in one) * sum(b * b for b in vector)) ** 0.5

    rows = [row for row in streamers().values() if row["embedding"] and (among is None or row["id"] in among)]
    return [row["id"] for row in sorted(rows, key=lambda row: (-cosine(row), row["id"]))]


def rrf(*lists: Sequence[int], k: float = 60) -> list[int]:
    scores: dict[int, float] = {}
    for keys in lists:
        for rank, key in enumerate(keys, start=1):
            scores[key] = scores.get(key, 0) + 1 / (k + rank)
    best = {key: min(keys.index(key) for keys in lists if key in keys) for key in scores}
    return sorted(scores, key=lambda key: (-round(scores[key], 12), best[key], key))


def keys(found: Sequence[Fused[Any]]) -> list[int]:
    return [each.item.id for each in found]


@pytest.fixture(scope="module")
def module_clock() -> FixedClock:
    return FixedClock(1_761_307_200_000_000)  # noon of 24 October 2025


@pytest.fixture(scope="module")
async def records(endpoints: Endpoints, module_clock: FixedClock) -> AsyncGenerator[AsyncEngine]:
    engine = create_async_engine(endpoints.postgres_url)
    follow_clock(engine, module_clock)
    yield engine
    await drop(engine)
    await engine.dispose()


@pytest.fixture(scope="module")
async def index(
    endpoints: Endpoints, module_clock: FixedClock, records: AsyncEngine
) -> AsyncGenerator[Indexes]:
    async with Laurels(
        valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=module_clock
    ) as laurels:
        # Not before: the first start may set the search_path of the role's next connections.
        async with records.begin() as connection:
            await connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        async with opened(laurels, records, Streamer, Take) as index:
            async with records.begin() as connection:
                await connection.execute(insert(Streamer), list(streamers().values()))
            await index.caught_up()
            yield index


@pytest.fixture
def statements(records: AsyncEngine) -> Iterator[list[str]]:
    sent: list[str] = []

    def hear(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith("SET LOCAL"):  # the clock's
            sent.append(statement)

    event.listen(records.sync_engine, "before_cursor_execute", hear)
    yield sent
    event.remove(records.sync_engine, "before_cursor_execute", hear)


VECTOR = [0.5, -0.2, 0.8]


@pytest.mark.usefixtures("index")
class TestParallel:
    async def test_the_line_of_the_contract(self):
        v = VECTOR
        found = await fuse(
            Leaderboard(Streamer.viewers).top(100), Similar(Streamer.embedding).nearest(v, k=50)
        ).rrf()
        assert keys(found) == rrf(by("viewers"), nearest(VECTOR)[:50])
        assert [each.rank for each in found] == list(range(1, len(found) + 1))

    async def test_it_is_parallel_by_rrf_unless_said(self):
        fusion = fuse(
            Leaderboard(Streamer.viewers).top(10), Similar(Streamer.embedding).nearest(VECTOR, k=10)
        )
        assert keys(await fusion.parallel().rrf(k=60).execute()) == keys(await fusion)
        assert keys(await fusion) == rrf(by("viewers")[:10], nearest(VECTOR)[:10])

    async def test_each_record_tells_its_place_in_every_source(self):
        found = await fuse(
            Leaderboard(Streamer.viewers).top(10), Leaderboard(Streamer, "fastest").top(10), of=Streamer
        ).rrf()
        for each in found:
            viewers, fastest = each.parts
            assert viewers == (
                (by("viewers").index(each.item.id) + 1, each.item.viewers)
                if each.item.id in by("viewers")[:10]
                else None
            )
            assert fastest is None or fastest.score == each.item.seconds

    async def test_the_order_of_the_sources_makes_no_difference(self):
        one, other = Leaderboard(Streamer.viewers).top(20), Similar(Streamer.embedding).nearest(VECTOR, k=20)
        own = RankedList([5, 9, 14])
        for first, second in (
            (fuse(one, other, own).rrf(weights=[3, 2, 1]), fuse(own, one, other).rrf(weights=[1, 3, 2])),
            (fuse(one, other).weighted([3, 2]), fuse(other, one).weighted([2, 3])),
            (fuse(one, other).max(), fuse(other, one).max()),
        ):
            assert [(each.item.id, each.score) for each in await first] == [
                (each.item.id, each.score) for each in await second
            ]

    async def test_groups_ends_and_orders_of_an_index(self):
        brazil = await fuse(Leaderboard(Streamer.viewers).group("br").top(5))
        assert keys(brazil) == by("viewers", country="br")[:5]
        assert keys(await fuse(Leaderboard(Streamer.viewers).bottom(5))) == by("viewers")[:-6:-1]
        assert keys(await fuse(Leaderboard(Streamer.seconds).top(5))) == by("seconds", reverse=False)[:5]

    async def test_another_window_has_others(self):
        yesterday = Leaderboard(Streamer.viewers).window(1_761_307_200 // 86_400 - 1).top(5)
        assert await fuse(yesterday) == []
        assert keys(await fuse(yesterday, RankedList([3]))) == [3]

    async def test_scores_are_fused_from_one_scale(self):
        found = await fuse(
            RankedList([(1, 10), (2, 5), (3, 0)]), RankedList([(3, 0.9), (4, 0.1)]), of=Streamer
        ).sum()
        assert [(each.item.id, each.score) for each in found] == [(1, 1.0), (3, 1.0), (2, 0.5), (4, 0.0)]

    async def test_records_come_in_one_query_and_as_few_as_are_shown(self, statements: list[str]):
        found = await fuse(Leaderboard(Streamer.viewers).top(50), RankedList([1, 2, 3])).rrf().limit(4)
        assert len(found) == 4
        assert len(statements) == 1

    async def test_records_may_stay_in_a_session(self, records: AsyncEngine):
        async with AsyncSession(records) as session:
            found = await fuse(RankedList([2]), of=Streamer).using(session)
            assert found[0].item in session

    async def test_sources_without_entries_make_an_empty_list(self, statements: list[str]):
        nobody = Leaderboard(Streamer.viewers).group("nowhere").top(10)
        assert await fuse(nobody, RankedList([])).rrf() == []
        assert await fuse(nobody).pipeline().sum() == []
        assert statements == []


@pytest.mark.usefixtures("index")
class TestPipeline:
    async def test_each_stage_narrows_the_list_of_the_previous_one(self):
        found = await fuse(
            Leaderboard(Streamer.viewers).top(20), Similar(Streamer.embedding).nearest(VECTOR, k=5)
        ).pipeline()
        popular = by("viewers")[:20]
        chosen = nearest(VECTOR, popular)[:5]
        assert sorted(keys(found)) == sorted(chosen)
        scores = {key: 1 / (61 + popular.index(key)) + 1 / (61 + chosen.index(key)) for key in chosen}
        assert {each.item.id: each.score for each in found} == pytest.approx(scores, rel=1e-12)
        assert [each.score for each in found] == sorted(scores.values(), reverse=True)

    async def test_the_order_of_the_stages_counts(self):
        popular, alike = (
            Leaderboard(Streamer.viewers).top(5),
            Similar(Streamer.embedding).nearest(VECTOR, k=20),
        )
        found = await fuse(alike, popular).pipeline()
        near = nearest(VECTOR)[:20]
        assert sorted(keys(found)) == sorted([key for key in by("viewers") if key in near][:5])

    async def test_an_index_ranks_only_the_candidates_from_either_end(self):
        candidates = [44, 3, 17, 10, 8, 999]
        there = [key for key in by("viewers") if key in candidates]
        for end, expected in (("top", there[:3]), ("bottom", there[::-1][:3])):
            stage = getattr(Leaderboard(Streamer.viewers), end)(3)
            found = await fuse(RankedList(candidates), stage).pipeline()
            places = {each.item.id: each.parts[1].rank for each in found if each.parts[1]}
            assert places == {key: rank for rank, key in enumerate(expected, start=1)}

    async def test_more_candidates_than_one_question_takes_are_ranked_all_the_same(self):
        candidates = list(range(1, 2501))
        found = await fuse(RankedList(candidates), Leaderboard(Streamer.viewers).top(1000)).pipeline()
        places = sorted((each.parts[1].rank, each.item.id) for each in found if each.parts[1])
        assert [key for _, key in places] == by("viewers")

    async def test_a_list_of_your_own_keeps_its_order(self):
        found = await fuse(Leaderboard(Streamer.viewers).top(60), RankedList([9, 8, 10, 7])).pipeline()
        assert [each.parts[1] for each in sorted(found, key=lambda each: [9, 8, 7].index(each.item.id))] == [
            (1, None),
            (2, None),
            (3, None),
        ]


async def test_records_that_are_gone_are_replaced(index: Indexes, records: AsyncEngine):
    async with records.begin() as connection:
        new = [{"id": key, "country": "is", "viewers": key, "seconds": 1} for key in range(101, 111)]
        await connection.execute(insert(Streamer), new)
    await index.caught_up()
    async with records.begin() as connection:
        await connection.execute(delete(Streamer).where(Streamer.id.in_([110, 108])))
    icelandic = fuse(Leaderboard(Streamer.viewers).group("is").top(10))
    found = await icelandic.limit(3)
    assert [(each.rank, each.item.id) for each in found] == [(1, 109), (2, 107), (3, 106)]
    assert keys(await icelandic) == [109, 107, 106, 105, 104, 103, 102, 101]
    async with records.begin() as connection:
        await connection.execute(delete(Streamer).where(Streamer.country == "is"))
    await index.caught_up()


async def test_keys_of_several_columns(index: Indexes, records: AsyncEngine):
    one, other = UUID(int=1), UUID(int=2)
    rows = [(one, 1, 50), (one, 2, 70), (other, 1, 60)]
    async with records.begin() as connection:
        made = [{"song": song, "number": number, "plays": plays} for song, number, plays in rows]
        await connection.execute(insert(Take), made)
    await index.caught_up()
    plays = Leaderboard(Take.plays).top(10)
    assert [(each.item.song, each.item.number) for each in await fuse(plays)] == [
        (one, 2),
        (other, 1),
        (one, 1),
    ]
    own = await fuse(plays, RankedList([(one, 1), (other, 1)])).pipeline()
    assert {(each.item.song, each.item.number) for each in own} == {(one, 1), (other, 1)}
    scored = await fuse(RankedList([((one, 2), 5), ((other, 1), 3.5)]), of=Take).sum(raw=True)
    assert [(each.item.number, each.score) for each in scored] == [(2, 5), (1, 3.5)]
    narrowed = await fuse(RankedList([(one, 1), (one, 2)], of=Take), plays).pipeline()
    assert [each.parts[1] for each in sorted(narrowed, key=lambda each: -each.item.plays)] == [
        (1, 70),
        (2, 50),
    ]


def of_streamers(*items: object) -> Fusion[Streamer]:
    return fuse(RankedList(items), of=Streamer)


@pytest.mark.usefixtures("index")
class TestRefusals:
    @pytest.mark.parametrize(
        ("fusion", "message"),
        [
            (of_streamers("5"), r"^items\[0\]: '5' is not a primary key of Streamer: id must be of int"),
            (of_streamers(1, True), r"^items\[1\]: True is not a primary key of Streamer"),
            (
                of_streamers((1, 2, 3)),
                r"^items\[0\]: \(1, 2, 3\) is not a primary key of Streamer: it needs \(id\)",
            ),
            (of_streamers((1, "many")), r"^items\[0\].score: must be a number, not 'many'"),
            (of_streamers((1, 10**400)), r"^items\[0\].score: must be a number"),
            (of_streamers((1, float("nan"))), r"^sources\[0\].score: of 1 must be a finite number"),
            (of_streamers((1, 5), 2), r"^sources\[0\].score: is missing for some"),
            (of_streamers(4, 4), r"^sources\[0\]: lists 4 at 1 and at 2"),
            (of_streamers(4).sum(), r"^sources\[0\].score: is missing"),
            (fuse(Leaderboard(Streamer.seconds).top(9)).sum(raw=True), r"^raw: sources\[0\] has its lowest"),
            (fuse(Leaderboard(Streamer.viewers).group("br", "rio").top(9)), r"^group: "),
            (fuse(RankedList([1], of=Unindexed)), r"^model: Unindexed declares no leaderboard"),
        ],
    )
    async def test_lists_that_cannot_be_fused(self, fusion: Fusion[Any], message: str):
        with pytest.raises(InvalidInput, match=message):
            await fusion

    async def test_a_window_that_cannot_be_asked_for(self):
        with pytest.raises(NotFound):
            await fuse(Leaderboard(Streamer.viewers).window(1).top(5))

    async def test_of_several_errors_the_first_source_has_the_word(self):
        with pytest.raises(LaurelsError, match=r"^sources\[0\]: lists 4"):
            await fuse(RankedList([4, 4]), Leaderboard(Streamer.viewers).window(1).top(5))


class TestDeclarations:
    def test_a_fusion_of_nothing(self):
        with pytest.raises(InvalidInput, match=r"^sources: are missing"):
            fuse()

    def test_sources_of_two_models(self):
        with pytest.raises(InvalidInput, match=r"^sources: must be of one model, not of Streamer and Take"):
            fuse(Leaderboard(Streamer.viewers).top(5), Leaderboard(Take.plays).top(5))
        with pytest.raises(InvalidInput, match=r"^sources: must be of one model"):
            fuse(Leaderboard(Streamer.viewers).top(5), of=Take)

    def test_sources_that_name_no_model(self):
        with pytest.raises(InvalidInput, match=r"^of: is missing"):
            fuse(RankedList([1]))

    def test_sources_without_a_list(self):
        leaderboard: Any = Leaderboard(Streamer.viewers)
        similar: Any = Similar(Streamer.embedding)
        keys: Any = [1, 2, 3]
        for source, fix in (
            (leaderboard, r"add \.top\(100\)"),
            (similar, r"add \.nearest"),
            (keys, "RankedList"),
        ):
            with pytest.raises(InvalidInput, match=rf"^sources\[1\]: .*{fix}"):
                fuse(RankedList([1], of=Streamer), source)

    def test_columns_and_names_without_an_index(self):
        wrong: Any = "viewers"
        with pytest.raises(
            InvalidInput, match=r"^index: Streamer has no index 'country'; it has: viewers, fastest"
        ):
            Leaderboard(Streamer.country)
        with pytest.raises(InvalidInput, match=r"^index: Streamer has no index 'likes'"):
            Leaderboard(Streamer, "likes")
        with pytest.raises(InvalidInput, match=r"^index: Streamer has several"):
            Leaderboard(Streamer)
        with pytest.raises(
            InvalidInput, match=r"^column: must be a column of a model, such as Streamer.viewers"
        ):
            Leaderboard(wrong)
        with pytest.raises(InvalidInput, match=r"^model: Unindexed declares no leaderboard"):
            Leaderboard(Unindexed.id)

    @pytest.mark.parametrize("k", [0, -1, 10_001, 2.5, True])
    def test_a_k_that_is_no_number_of_entries(self, k: int):
        for make in (Leaderboard(Streamer.viewers).top, Leaderboard(Streamer.viewers).bottom):
            with pytest.raises(InvalidInput, match=r"^k: must be a whole number from 1 to 10,000"):
                make(k)

    def test_limits_weights_and_ks_are_refused_where_they_are_given(self):
        fusion = fuse(Leaderboard(Streamer.viewers).top(5))
        for wrong, field in (
            (lambda: fusion.limit(0), "limit"),
            (lambda: fusion.rrf(k=-1), "k"),
            (lambda: fusion.rrf(weights=[1, 2]), "weights"),
            (lambda: fusion.weighted([]), "weights"),
            (lambda: fusion.weighted([-1]), r"weights\[0\]"),
        ):
            with pytest.raises(InvalidInput, match=f"^{field}: "):
                wrong()
