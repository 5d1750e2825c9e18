from __future__ import annotations

import asyncio
from datetime import UTC
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import insert, select

from laurels.boards.definition import BoardDefinition, StoredBoard
from laurels.boards.store import BoardStore
from laurels.errors import Conflict, InvalidInput, LaurelsError
from laurels.postgres import tables

if TYPE_CHECKING:
    from laurels.postgres.engine import Postgres


def define(**fields: object) -> BoardDefinition:
    return BoardDefinition.model_validate(fields)


PLAIN = define()
ASCENDING = define(order="asc")
RICH = define(
    aggregate="sum",
    allow_op=True,
    ties="earliest",
    windows=[
        {"period": "daily", "keep": "P30DT5H"},
        {"period": "weekly", "sum_of": "daily", "keep": 4},
        {"period": "rolling", "days": 7},
        {"period": "every", "seconds": 3600, "name": "round"},
    ],
    timezone="America/Sao_Paulo",
    timezone_by="campus",
    timezones={"são-paulo": "America/Sao_Paulo"},
    groups=[["country"], ["campus", "city"]],
    feeds=["global/score"],
    lateness="PT36H",
    archive={"snapshot": [{"period": "weekly", "top": 100}], "journal": False},
    limits={"min": -0.5, "max": 2**63 - 1, "max_change": 1e21},
    keys={"daily": "lb:{slot}"},
)
RATED = define(rating={"system": "elo", "k": 24, "rank_provisional": False})


@pytest.fixture
def boards(postgres: Postgres) -> BoardStore:
    return BoardStore(postgres)


async def test_a_board_that_was_never_put_is_none(boards: BoardStore):
    assert await boards.get("acme", "score") is None


@pytest.mark.parametrize("definition", [PLAIN, RICH, RATED])
async def test_a_stored_definition_is_read_back(boards: BoardStore, definition: BoardDefinition):
    put = await boards.put("acme", "score", definition)
    stored = await boards.get("acme", "score")
    assert stored is not None
    assert stored.definition == definition
    assert (stored.project, stored.board, stored.version) == ("acme", "score", put.version)
    assert stored.created_at == stored.updated_at == put.created_at
    assert stored.created_at.tzinfo is not None
    assert stored.created_at.utcoffset() == UTC.utcoffset(None)


async def test_only_the_put_that_makes_the_board_says_created(boards: BoardStore):
    assert (await boards.put("acme", "score", PLAIN)).created
    assert not (await boards.put("acme", "score", ASCENDING)).created
    stored = await boards.get("acme", "score")
    assert stored is not None
    assert not stored.created


async def test_a_change_has_a_new_version_and_keeps_when_it_was_created(boards: BoardStore):
    first = await boards.put("acme", "score", PLAIN)
    second = await boards.put("acme", "score", ASCENDING)
    assert second.version > first.version
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at


async def test_the_same_definition_again_changes_nothing(boards: BoardStore):
    first = await boards.put("acme", "score", RICH)
    again = await boards.put("acme", "score", RICH.model_copy())
    assert (again.version, again.updated_at) == (first.version, first.updated_at)


async def test_a_board_dropped_and_made_again_has_a_version_that_it_never_had(boards: BoardStore):
    first = await boards.put("acme", "score", PLAIN)
    assert await boards.drop("acme", "score")
    with pytest.raises(Conflict, match="is being dropped"):
        await boards.put("acme", "score", PLAIN)
    await boards.settle(await boards.retired("acme", "score"))
    again = await boards.put("acme", "score", PLAIN)
    assert again.created
    assert again.version > first.version


async def test_drop_returns_whether_the_board_existed(boards: BoardStore):
    await boards.put("acme", "score", PLAIN)
    assert await boards.drop("acme", "score")
    assert not await boards.drop("acme", "score")
    assert await boards.get("acme", "score") is None


async def test_an_expected_version_that_passed_is_a_conflict(boards: BoardStore):
    first = await boards.put("acme", "score", PLAIN, expected_version=0)
    second = await boards.put("acme", "score", ASCENDING, expected_version=first.version)
    with pytest.raises(Conflict, match="acme/score was changed by another request"):
        await boards.put("acme", "score", PLAIN, expected_version=first.version)
    with pytest.raises(Conflict):
        await boards.put("acme", "score", PLAIN, expected_version=0)
    with pytest.raises(Conflict):
        await boards.put("acme", "other", PLAIN, expected_version=second.version)
    assert await boards.get("acme", "other") is None


async def test_of_many_that_create_a_board_at_once_one_does(boards: BoardStore):
    puts = [boards.put("acme", "score", PLAIN) for _ in range(8)]
    stored = await asyncio.gather(*puts)
    assert sum(board.created for board in stored) == 1
    assert len({board.version for board in stored}) == 1


async def test_a_drop_is_recorded_with_its_definition_until_it_is_settled(boards: BoardStore):
    first = await boards.put("acme", "score", RICH)
    assert await boards.drop("acme", "score")
    (retired,) = await boards.retired("acme", "score")
    assert (retired.board.definition, retired.board.id, retired.whole) == (RICH, first.id, True)
    assert retired.number > first.version
    assert await boards.all_retired() == await boards.all_retired(templated=True) == [("acme", "score")]
    await boards.settle([retired])
    assert await boards.all_retired() == []


async def test_a_board_that_was_cleared_goes_on_with_a_version_above(boards: BoardStore):
    first = await boards.put("acme", "score", PLAIN)
    await boards.clear("acme", "score", first.version)
    (retired,) = await boards.retired("acme", "score")
    await boards.settle([retired])
    stored = await boards.get("acme", "score")
    assert stored is not None
    assert stored.version > retired.number > first.version
    with pytest.raises(Conflict):
        await boards.clear("acme", "score", first.version)


async def test_of_many_that_expect_the_same_version_one_succeeds(boards: BoardStore):
    first = await boards.put("acme", "score", PLAIN)
    puts = [
        boards.put("acme", "score", define(shards=shards), expected_version=first.version)
        for shards in range(2, 10)
    ]
    outcomes = await asyncio.gather(*puts, return_exceptions=True)
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 7


async def test_projects_and_boards_are_listed_in_order(boards: BoardStore):
    for project, board in [("zoo", "a"), ("acme", "b"), ("acme", "a")]:
        await boards.put(project, board, PLAIN)
    assert await boards.projects() == ["acme", "zoo"]
    assert [stored.board for stored in await boards.boards("acme")] == ["a", "b"]
    assert await boards.boards("nobody") == []


async def test_only_fields_that_differ_from_the_defaults_are_stored(boards: BoardStore, postgres: Postgres):
    await boards.put("acme", "score", ASCENDING)
    async with postgres.reading() as connection:
        assert (await connection.execute(select(tables.boards.c.definition))).scalar_one() == {"order": "asc"}


async def test_a_row_of_a_newer_version_is_refused_in_words(boards: BoardStore, postgres: Postgres):
    row = {"id": 1, "project": "acme", "board": "score", "definition": {"gravity": 9.8}}
    async with postgres.writing() as connection:
        await connection.execute(insert(tables.boards).values(row))
    with pytest.raises(LaurelsError, match=r"acme/score cannot be read; .* newer Laurels\? gravity"):
        await boards.get("acme", "score")


async def test_text_that_postgresql_cannot_hold_is_invalid_input(boards: BoardStore):
    with pytest.raises(InvalidInput, match="NUL"):
        await boards.get("ac\x00me", "score")
    with pytest.raises(InvalidInput, match="Unicode"):
        await boards.get("ac\ud800me", "score")
    with pytest.raises(InvalidInput):
        await boards.put("acme", "score", define(keys={"all_time": "lb:\x00"}))
    assert await boards.get("acme", "score") is None


async def test_a_definition_that_names_keys_is_checked_against_all_that_do(boards: BoardStore):
    """Checked are the boards in force and retired ones, except itself and boards without templates."""
    named = define(keys={"all_time": "lb:{board}"})
    await boards.put("acme", "plain", PLAIN)
    for board in ("kept", "dropped", "own"):
        await boards.put("acme", board, named)
    await boards.drop("acme", "dropped")
    seen: list[set[str]] = []

    def check(in_force: list[StoredBoard], leaving: list[StoredBoard]) -> None:
        ours = [{each.board for each in some if each.project == "acme"} for some in (in_force, leaving)]
        seen.extend(ours)
        raise InvalidInput("they clash")

    with pytest.raises(InvalidInput, match="they clash"):
        await boards.put("acme", "own", define(keys={"all_time": "lb:{board}:2"}), check_others=check)
    assert seen[0] >= {"kept"}
    assert "own" not in seen[0]
    assert "plain" not in seen[0]
    assert seen[1] == {"dropped"}
    stored = await boards.get("acme", "own")
    assert stored is not None
    assert stored.definition == named
