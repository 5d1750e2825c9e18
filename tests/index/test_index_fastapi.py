"""Rankings as answers of a FastAPI app, and Laurels' errors as its problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from index_models import new_table, opened, score_model
from pydantic import BaseModel, TypeAdapter
from sqlalchemy import BigInteger
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import Field, SQLModel

from laurels.http.problems import add_problems
from laurels.index import LeaderboardIndex, Placing, Ranked, RankedPage, Window, leaderboard

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.engine import Laurels


class Shown(BaseModel, from_attributes=True):
    id: int


class GameScore(SQLModel, table=True):
    __tablename__ = new_table()  # pyright: ignore[reportAssignmentType]  # SQLModel's own annotation
    __leaderboards__ = [LeaderboardIndex(score="score")]  # as users write it
    id: int = Field(primary_key=True)
    score: int = Field(sa_type=BigInteger)


@pytest.fixture
async def app(laurels: Laurels, engine: AsyncEngine) -> Any:  # noqa: ANN401  # a generator of clients
    alchemy = score_model()
    app = FastAPI()
    add_problems(app)

    async def top(k: int = 10) -> list[Ranked[GameScore]]:
        return await leaderboard(GameScore).top(k)

    async def page() -> RankedPage[GameScore]:
        return await leaderboard(GameScore).page(1)

    async def shown() -> object:
        return await leaderboard(alchemy).top(3)

    async def entries() -> list[Placing]:
        return await leaderboard(GameScore).entries(2)

    async def windows() -> list[Window]:
        return await leaderboard(GameScore).windows()

    app.get("/top", response_model=list[Ranked[GameScore]])(top)
    app.get("/page", response_model=RankedPage[GameScore])(page)
    app.get("/shown", response_model=list[Ranked[Shown]])(shown)
    app.get("/entries", response_model=list[Placing])(entries)
    app.get("/windows", response_model=list[Window])(windows)
    async with opened(laurels, engine, GameScore, alchemy) as index:
        async with AsyncSession(engine) as session:
            session.add_all([GameScore(id=1, score=5), GameScore(id=2, score=7), alchemy(id=3, score=1)])
            await session.commit()
        await index.caught_up(GameScore)
        async with AsyncClient(transport=ASGITransport(app), base_url="http://app") as client:
            yield client, index, alchemy


async def test_results_are_answers_as_their_response_models_say(app: Any):  # noqa: ANN401  # as above
    client, index, alchemy = app
    await index.caught_up(alchemy)
    best = {"item": {"id": 2, "score": 7}, "score": 7, "rank": 1}
    assert (await client.get("/top?k=1")).json() == [best]
    page = (await client.get("/page")).json()
    assert (page["entries"], page["total"], page["previous"]) == ([best], 2, None)
    assert (await client.get("/shown")).json() == [{"item": {"id": 3}, "score": 1, "rank": 1}]
    assert (await client.get("/entries")).json()[1] == {"key": 1, "score": 5, "rank": 2}
    (window,) = (await client.get("/windows")).json()
    assert (window["id"], window["starts_at"], window["period"]) == (20385, "2025-10-24T00:00:00Z", "daily")
    schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]
    assert schemas["GameScore"]["properties"].keys() == {"id", "score"}


async def test_errors_are_problems_with_one_line(app: Any):  # noqa: ANN401  # as above
    client, _, alchemy = app
    wrong = await client.get("/top?k=-1")
    assert (wrong.status_code, wrong.headers["content-type"]) == (422, "application/problem+json")
    problem = wrong.json()
    assert problem["type"] == "urn:laurels:problem:invalid-input"
    assert problem["errors"] == [{"field": "k", "detail": "must be a whole number from 0 on, not -1"}]
    unready = await client.get("/shown")
    assert (unready.status_code, unready.headers["retry-after"]) == (503, "1")
    assert unready.json()["type"] == "urn:laurels:problem:index-not-ready"
    assert f"the leaderboard {alchemy.__tablename__}.score is not built yet" in unready.json()["detail"]


def test_results_go_through_pydantic_and_msgspec_and_come_back():
    ranked = Ranked(Shown(id=4), 10, 1)
    adapter = TypeAdapter(Ranked[Shown])
    assert adapter.validate_json(adapter.dump_json(ranked)) == ranked
    assert adapter.dump_python(ranked) == {"item": {"id": 4}, "score": 10, "rank": 1}
    assert msgspec.json.encode(Placing(("a", 1), 5, 2)) == b'{"key":["a",1],"score":5,"rank":2}'
