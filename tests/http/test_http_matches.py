"""Matches over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from httpx import AsyncClient

MATCH: dict[str, Any] = {"players": ["ada", "bob"], "winner": "ada"}


@pytest.fixture
async def duels(client: AsyncClient, boards: str) -> str:
    definition = {
        "rating": {"system": "elo", "provisional": 2},
        "windows": [{"period": "all_time"}, {"period": "daily"}],
        "groups": [["country"]],
    }
    answer = await client.put(f"{boards}/duels", json=definition)
    assert answer.status_code == 201, answer.text
    assert answer.json()["definition"]["aggregate"] == "last"
    return f"{boards}/duels"


async def test_a_match_tells_where_it_leaves_both(client: AsyncClient, duels: str):
    answer = await client.post(f"{duels}/matches", json={**MATCH, "id": "game-1"})
    assert answer.status_code == 200, answer.text
    ada = {
        "member": "ada",
        "rating": 1016,
        "previous_rating": 1000,
        "change": 16,
        "rank": 1,
        "previous_rank": None,
        "games": 1,
        "provisional": True,
    }
    bob = {**ada, "member": "bob", "rating": 984, "change": -16, "rank": 2}
    assert answer.json() == {"id": "game-1", "applied": True, "players": [ada, bob]}
    page = (await client.get(f"{duels}/entries")).json()
    assert [(each["member"], each["score"]) for each in page["entries"]] == [("ada", 1016), ("bob", 984)]


async def test_the_same_id_counts_once(client: AsyncClient, duels: str):
    for applied in (True, False):
        answer = await client.post(f"{duels}/matches", json={**MATCH, "id": "game-1"})
        assert answer.json()["applied"] == applied
        assert [each["rating"] for each in answer.json()["players"]] == [1016, 984]


async def test_an_idempotency_key_gets_the_first_answer_again(client: AsyncClient, duels: str):
    headers = {"Idempotency-Key": "game-1"}
    sent = [client.post(f"{duels}/matches", json=MATCH, headers=headers) for _ in range(10)]
    answers = await asyncio.gather(*sent)
    assert {answer.status_code for answer in answers} <= {200, 409}
    again = await client.post(f"{duels}/matches", json=MATCH, headers=headers)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (again.json()["id"], again.json()["applied"]) == ("game-1", True)
    other = await client.post(f"{duels}/matches", json={**MATCH, "winner": None}, headers=headers)
    assert (other.status_code, other.json()["type"]) == (422, "/problems/idempotency-key-reused")
    assert (await client.get(f"{duels}/entries/ada")).json()["score"] == 1016


async def test_groups_are_by_player(client: AsyncClient, duels: str):
    groups = {"ada": {"country": "GB"}, "bob": {"country": "BR"}}
    answer = await client.post(f"{duels}/matches", json={**MATCH, "groups": groups, "metadata": {"map": "x"}})
    assert answer.status_code == 200, answer.text
    page = (await client.get(f"{duels}/entries", params={"group": "country=BR"})).json()
    assert [(each["member"], each["metadata"]) for each in page["entries"]] == [("bob", {"map": "x"})]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"winner": "eve"}, "winner"),
        ({"winner": 5}, "winner"),
        ({"players": ["ada", "bob", "eve"]}, "players"),
        ({"players": ["ada", 5]}, "players[1]"),
        ({"ranks": [1, 2]}, "winner"),
        ({"score": 5}, "score"),
        ({"groups": {"ada": {"city": "x"}}}, "groups.ada.city"),
        ({"at": "2025-10-24T13:00:00Z"}, "at"),
    ],
)
async def test_what_is_wrong_is_named(client: AsyncClient, duels: str, changed: dict[str, Any], field: str):
    answer = await client.post(f"{duels}/matches", json={**MATCH, **changed})
    assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (422, [field])
    assert (await client.get(f"{duels}/entries")).json()["total"] == 0


async def test_a_match_without_a_winner_is_no_draw(client: AsyncClient, duels: str):
    answer = await client.post(f"{duels}/matches", json={"players": ["ada", "bob"]})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "winner")
    drawn = await client.post(f"{duels}/matches", json={**MATCH, "winner": None})
    assert [each["rating"] for each in drawn.json()["players"]] == [1000, 1000]


async def test_scores_and_matches_are_not_for_the_same_boards(client: AsyncClient, duels: str, board: str):
    scored = await client.post(f"{duels}/scores", json={"member": "ada", "score": 5})
    assert (scored.status_code, scored.json()["errors"][0]["field"]) == (422, "score")
    played = await client.post(f"{board}/matches", json=MATCH)
    assert (played.status_code, played.json()["errors"][0]["field"]) == (422, "players")


@pytest.mark.parametrize(
    ("besides", "field"),
    [
        ({"aggregate": "best"}, "aggregate"),
        ({"shards": 2}, "shards"),
        ({"windows": [{"period": "daily"}, {"period": "weekly", "sum_of": "daily"}]}, "windows"),
        ({"limits": {"max": 3000}}, "limits"),
        ({"player_writes": True}, "player_writes"),
        ({"allow_op": True}, "allow_op"),
    ],
)
async def test_what_a_board_of_ratings_cannot_be(
    client: AsyncClient, boards: str, besides: dict[str, Any], field: str
):
    answer = await client.put(f"{boards}/duels", json={"rating": {"system": "elo"}, **besides})
    assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (422, [field])
