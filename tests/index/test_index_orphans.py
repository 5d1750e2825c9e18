"""What is left of indexes whose tables or triggers are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from index_models import opened, score_model
from sqlalchemy import insert, text

from laurels.boards.keys import BoardRef
from laurels.doctor.checks import judge_indexes
from laurels.errors import Conflict, NotFound
from laurels.index import drop_orphan, leaderboard
from laurels.index.orphans import known_indexes

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from laurels.engine import Laurels


async def test_an_index_without_a_table_is_found_and_can_be_dropped(laurels: Laurels, engine: AsyncEngine):
    kept, lost = score_model(), score_model()
    async with opened(laurels, engine, kept, lost) as index:
        await index.caught_up()
        board = index.board(leaderboard(lost).declared)
        name = leaderboard(lost).declared.name
        fed = leaderboard(kept).declared.name
    async with engine.begin() as connection:
        await connection.execute(insert(lost), [{"id": 1, "score": 5}])
        await connection.execute(text(f"DROP TABLE {lost.__tablename__}"))
    known = {each.name: each for each in await known_indexes(engine)}
    assert (known[name].is_fed, known[name].waiting, known[fed].is_fed) == (False, 1, True)
    (found,) = judge_indexes([known[name], known[fed]])
    assert found.status == "warning"
    assert f"{name} has no table that feeds it, and 1 changes in its outbox" in found.found
    with pytest.raises(Conflict, match="a table feeds the index"):
        await drop_orphan(laurels, engine, fed)
    await drop_orphan(laurels, engine, name)
    assert name not in {each.name for each in await known_indexes(engine)}
    assert await laurels.store.get(*BoardRef.parse(board)) is None
    with pytest.raises(NotFound, match="there is no index"):
        await drop_orphan(laurels, engine, name)
    (found,) = judge_indexes([known[fed]])
    assert (found.status, found.found) == ("ok", "1 of models, 0 changes to apply")
