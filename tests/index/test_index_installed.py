"""What a database has of an index, and the rights that the maintaining role needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from index_models import make, new_base, new_table, score_model
from sqlalchemy import BigInteger, event, insert, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Mapped, mapped_column

from laurels.errors import StartupError
from laurels.index import Indexes, LeaderboardIndex, leaderboard, uninstall
from laurels.index.declare import declared
from laurels.index.installed import check_grants, installed, missing_grants

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.embedded import Endpoints
    from laurels.engine import Laurels

ROLE = "plain maintainer"


@pytest.fixture
async def as_maintainer(endpoints: Endpoints, engine: AsyncEngine) -> AsyncGenerator[AsyncEngine]:
    """An engine whose role owns nothing."""
    async with engine.begin() as connection:
        await connection.execute(text(f'CREATE ROLE "{ROLE}"'))
    opened = create_async_engine(endpoints.postgres_url)

    def take_role(connection: Any, _: object) -> None:  # noqa: ANN401  # of psycopg
        connection.execute(f'SET ROLE "{ROLE}"')
        connection.commit()

    event.listen(opened.sync_engine, "connect", take_role)
    yield opened
    await opened.dispose()
    async with engine.begin() as connection:
        await connection.execute(text(f'DROP OWNED BY "{ROLE}"'))
        await connection.execute(text(f'DROP ROLE "{ROLE}"'))


async def test_an_installed_index_is_known_by_its_name(engine: AsyncEngine):
    model = score_model(group_by=["region"])
    await make(engine, model)
    (index,) = declared(model)
    async with engine.connect() as connection:
        found = (await connection.run_sync(installed))[index.name]
    assert (found.name, found.triggers) == (index.name, 4)
    assert found.is_of(index)
    assert not found.is_of(declared(score_model())[0])
    await uninstall(engine, model)
    async with engine.connect() as connection:
        assert index.name not in await connection.run_sync(installed)


async def test_a_role_without_rights_is_told_the_statements_that_grant_them(
    laurels: Laurels, engine: AsyncEngine, as_maintainer: AsyncEngine
):
    model = score_model()
    await make(engine, model)
    indexes = declared(model)
    with pytest.raises(StartupError) as refused:
        await Indexes(laurels, as_maintainer, [model]).open()
    granted = re.findall(r"GRANT .*?;", str(refused.value))
    assert f'GRANT SELECT ON {model.__tablename__} TO "{ROLE}";' in granted
    assert f'GRANT SELECT, INSERT, UPDATE, DELETE ON laurels_index.outbox TO "{ROLE}";' in granted
    assert granted[0] == f'GRANT USAGE ON SCHEMA laurels_index TO "{ROLE}";'
    async with as_maintainer.connect() as connection:
        assert await missing_grants(connection, indexes) == granted
    async with engine.begin() as connection:
        for statement in granted:
            await connection.execute(text(statement))
    async with Indexes(laurels, as_maintainer, [model]) as index:
        async with engine.begin() as connection:
            await connection.execute(insert(model), [{"id": 1, "score": 5}])
        await index.caught_up()
        assert await leaderboard(model).rank(1) == 1
        assert (await index.verify()).is_equal
        assert await index.rebuild() == 1


async def test_a_table_in_a_schema_without_rights_is_named(engine: AsyncEngine, as_maintainer: AsyncEngine):
    class Hidden(new_base()):
        __tablename__ = new_table()
        __table_args__ = {"schema": "hidden_games"}  # noqa: RUF012  # SQLAlchemy's own way
        __leaderboards__ = (LeaderboardIndex(score="score"),)
        id: Mapped[int] = mapped_column(primary_key=True)
        score: Mapped[int] = mapped_column(BigInteger)

    async with engine.begin() as connection:
        await connection.execute(text("CREATE SCHEMA hidden_games"))
    await make(engine, Hidden)
    async with as_maintainer.connect() as connection:
        missing = await missing_grants(connection, declared(Hidden))
        assert f'GRANT USAGE ON SCHEMA hidden_games TO "{ROLE}";' in missing
        assert f'GRANT SELECT ON hidden_games.{Hidden.__tablename__} TO "{ROLE}";' in missing
    async with engine.begin() as connection:
        await check_grants(connection, declared(Hidden))
        await connection.execute(text("DROP SCHEMA hidden_games CASCADE"))
