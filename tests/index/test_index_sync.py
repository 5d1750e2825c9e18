"""Indexes without async: `Engine`, `Session` and `laurels.sync`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from index_models import score_model
from sqlalchemy import create_engine, insert, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

import laurels.index
import laurels.sync
from laurels.errors import IndexNotReady, InvalidInput, StartupError
from laurels.index import query
from laurels.index.sync import Indexes, Ranking, install, leaderboard, uninstall

if TYPE_CHECKING:
    from collections.abc import Generator

    from sqlalchemy import Engine

    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints


pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture(scope="module")
def sync_laurels(endpoints: Endpoints, only_clock: FixedClock) -> Generator[laurels.sync.Laurels]:
    with laurels.sync.Laurels(
        valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=only_clock
    ) as opened:
        yield opened


@pytest.fixture
def sync_engine(endpoints: Endpoints) -> Generator[Engine]:
    engine = create_engine(endpoints.postgres_url)
    yield engine
    engine.dispose()


@pytest.fixture
def model(sync_engine: Engine) -> Generator[type[Any]]:
    made = score_model(group_by=["region"], windows=["all_time", "daily"])
    made.metadata.create_all(sync_engine)
    install(sync_engine, made)
    yield made
    uninstall(sync_engine, made)
    made.metadata.drop_all(sync_engine)


def put(engine: Engine, model: type[Any], *scores: int) -> None:
    with Session(engine) as session:
        session.execute(text("SET LOCAL laurels.now = '2025-10-24T12:00:00Z'"))
        session.add_all(model(id=key, region="eu", score=score) for key, score in enumerate(scores, 1))
        session.commit()


def test_every_question_answers_without_async(
    sync_laurels: laurels.sync.Laurels, sync_engine: Engine, model: type[Any]
):
    with Indexes(sync_laurels, sync_engine, [model]) as index:
        put(sync_engine, model, 5, 7, 6)
        assert index.build() == 3
        ranking = leaderboard(model)
        assert [(each.item.id, each.score, each.rank) for each in ranking.top(2)] == [(2, 7, 1), (3, 6, 2)]
        assert [each.key for each in ranking.period("daily").group("eu").entries(2, "bottom")] == [1, 3]
        assert (ranking.rank(1), ranking.dense_rank(1), ranking.score(1), ranking.count()) == (3, 3, 5, 3)
        assert [each.item.id for each in ranking.around(3, 1)] == [2, 3, 1]
        assert [each.item.id for each in ranking.between(6, 9)] == [2, 3]
        assert (ranking.rank_of_score(100), ranking.percentile(1)) == (1, 7)
        assert [each.key for each in ranking.among([1, 3])] == [3, 1]
        assert ranking.page(1).next is not None
        (window,) = ranking.windows()
        assert ranking.window(window).bottom(1)[0].item.id == 1
        with Session(sync_engine) as session:
            best = ranking.index("score").using(session).top(1)[0]
            assert best.item in session
            assert ranking.rank(best.item) == 1
            standing = ranking.standing(best.item)
            assert standing is not None
            assert standing.percentile == 1
        assert index.verify().is_equal
        assert index.rebuild() == 3


def test_maintaining_applies_commits_in_the_background(
    sync_laurels: laurels.sync.Laurels, sync_engine: Engine, model: type[Any]
):
    with Indexes(sync_laurels, sync_engine, [model]) as index:
        with pytest.raises(IndexNotReady, match="is not built yet"):
            leaderboard(model).top(3)
        index.caught_up()
        put(sync_engine, model, 5)
        with pytest.raises(IndexNotReady, match=r"1 committed changes .* no process applies them"):
            leaderboard(model).top(3)
        with index.maintaining():
            give_up = time.monotonic() + 10
            while index.waiting():
                assert time.monotonic() < give_up
            (status,) = index.status()
            assert (status.is_built, status.waiting) == (True, 0)
            assert leaderboard(model).rank(1) == 1
        index.drop(model)
        with sync_engine.connect() as connection:
            left = text("SELECT count(*) FROM laurels_index.indexes WHERE index = :index")
            assert connection.execute(left, {"index": status.index}).scalar_one() == 0
    with pytest.raises(StartupError, match="is not installed"):
        Indexes(sync_laurels, sync_engine, [model]).open()


def test_both_twins_have_the_same_methods():
    for ours, theirs in ((Ranking, query.Ranking), (Indexes, laurels.index.Indexes)):
        known = {name for name, value in vars(theirs).items() if callable(value) and name[0] != "_"}
        without = {"where", "board", "fetch", "records", "before", "require_built", "require_ready"}
        assert known - without <= vars(ours).keys()


def test_engines_of_other_drivers_are_refused_at_once(
    sync_laurels: laurels.sync.Laurels, sync_engine: Engine, model: type[Any]
):
    other = create_engine("sqlite://")
    with pytest.raises(InvalidInput, match=r"is of sqlite\+pysqlite; an index needs PostgreSQL with psycopg"):
        Indexes(sync_laurels, other, [model])
    with pytest.raises(InvalidInput, match=r"is async: use laurels\.index\.Indexes"):
        Indexes(sync_laurels, create_async_engine(sync_engine.url), [model])  # pyright: ignore[reportArgumentType]  # the mistake
    with pytest.raises(InvalidInput, match="no Indexes are open for GameScore"):
        leaderboard(model)
    with sync_engine.begin() as connection:
        install(connection, model)
        connection.execute(insert(model), [{"id": 1, "region": "eu", "score": 1}])
