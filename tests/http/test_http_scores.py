from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from httpx import AsyncClient


async def test_a_score_is_answered_with_where_it_leaves_the_member(client: AsyncClient, board: str):
    first = await client.post(f"{board}/scores", json={"member": "ada", "score": 100, "id": "one"})
    assert first.status_code == 200
    assert first.json() == {
        "member": "ada",
        "score": 100,
        "previous_score": None,
        "rank": 1,
        "previous_rank": None,
        "applied": True,
        "id": "one",
    }
    await client.post(f"{board}/scores", json={"member": "bob", "score": 150})
    second = await client.post(f"{board}/scores", json={"member": "ada", "score": 200.5, "id": "two"})
    assert second.json() == {
        "member": "ada",
        "score": 200.5,
        "previous_score": 100,
        "rank": 1,
        "previous_rank": 2,
        "applied": True,
        "id": "two",
    }


async def test_a_score_that_changes_nothing_is_not_applied(client: AsyncClient, scored: str):
    answer = await client.post(f"{scored}/scores", json={"member": "ada", "score": 5})
    assert answer.status_code == 200
    assert answer.json() | {"id": ""} == {
        "member": "ada",
        "score": 300,
        "previous_score": 300,
        "rank": 1,
        "previous_rank": 1,
        "applied": False,
        "id": "",
    }


async def test_an_id_counts_once(client: AsyncClient, boards: str):
    await client.put(f"{boards}/sum", json={"aggregate": "sum"})
    submission = {"member": "ada", "score": 5, "id": "once"}
    assert (await client.post(f"{boards}/sum/scores", json=submission)).json()["applied"] is True
    again = (await client.post(f"{boards}/sum/scores", json=submission)).json()
    assert (again["applied"], again["score"], again["id"]) == (False, 5, "once")


async def test_the_idempotency_key_is_the_id(client: AsyncClient, boards: str):
    await client.put(f"{boards}/sum", json={"aggregate": "sum"})
    submission = {"member": "ada", "score": 5}
    for _ in range(2):
        answer = await client.post(
            f"{boards}/sum/scores", json=submission, headers={"Idempotency-Key": "k-1"}
        )
        assert (answer.json()["id"], answer.json()["applied"]) == ("k-1", True)
    same = await client.post(f"{boards}/sum/scores", json={**submission, "id": "k-1"})
    assert (same.json()["score"], same.json()["applied"]) == (5, False)


async def test_an_idempotency_key_that_is_not_the_id_is_refused(client: AsyncClient, board: str):
    answer = await client.post(
        f"{board}/scores",
        json={"member": "ada", "score": 5, "id": "a"},
        headers={"Idempotency-Key": "b"},
    )
    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {"field": "id", "detail": "differs from the header Idempotency-Key: send one of them"}
    ]


@pytest.mark.parametrize("key", [b"", b"\xe9"])
async def test_an_idempotency_key_is_ascii(client: AsyncClient, board: str, key: bytes):
    answer = await client.post(
        f"{board}/scores", json={"member": "a", "score": 1}, headers={b"Idempotency-Key": key}
    )
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "Idempotency-Key"


@pytest.mark.parametrize("score", [9007199254740993, "9007199254740993"])
async def test_int64_scores_travel_as_strings_and_come_as_either(
    client: AsyncClient, int64_board: str, score: int | str
):
    await client.post(f"{int64_board}/scores", json={"member": "ada", "score": "-9223372036854775808"})
    answer = await client.post(f"{int64_board}/scores", json={"member": "ada", "score": score})
    assert answer.json()["score"] == "9007199254740993"
    assert answer.json()["previous_score"] == "-9223372036854775808"


@pytest.mark.parametrize(
    ("submission", "field", "detail"),
    [
        ({"score": 1}, "member", "is required"),
        ({"member": "ada"}, "score", "is required"),
        ({"member": 7, "score": 1}, "member", "must be a string, not a whole number"),
        ({"member": "", "score": 1}, "member", "must have 1 to 256 bytes of UTF-8, not 0"),
        ({"member": "é" * 129, "score": 1}, "member", "must have 1 to 256 bytes of UTF-8, not 258"),
        (
            {"member": "ada", "score": True},
            "score",
            "must be a number or a string, not a boolean",
        ),
        ({"member": "ada", "score": "12"}, "score", "must be a number, not a string"),
        (
            {"member": "ada", "score": 1, "points": 1},
            "points",
            "there is no such field; it has: member, score, at, groups, id, op, metadata",
        ),
        (
            {"member": "ada", "score": 1, "at": "yesterday"},
            "at",
            "must be a time such as 2025-10-24T12:00:00Z",
        ),
        (
            {"member": "ada", "score": 1, "at": "2025-10-24T12:00:00"},
            "at",
            "needs a timezone: write it like 2025-10-24T12:00:00Z",
        ),
        ({"member": "ada", "score": 1, "at": "2025-10-25T12:00:00Z"}, "at", "lies in the future"),
        (
            {"member": "ada", "score": 1, "groups": {"country": 7}},
            "groups",
            "must be a string, not a whole number",
        ),
        (
            {"member": "ada", "score": 1, "groups": {"city": "Rio"}},
            "groups.city",
            "there is no such dimension; it has: country",
        ),
        (
            {"member": "ada", "score": 1, "op": "sum"},
            "op",
            "is not allowed: the board is defined without allow_op",
        ),
        (
            {"member": "ada", "score": 1, "metadata": {"x": "y" * 5000}},
            "metadata",
            "must have at most 4096 bytes of JSON, not 5008",
        ),
    ],
)
async def test_a_wrong_field_is_named(
    client: AsyncClient, board: str, submission: dict[str, Any], field: str, detail: str
):
    answer = await client.post(f"{board}/scores", json=submission)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["errors"] == [{"field": field, "detail": detail}]
    assert problem["detail"] == f"{field}: {detail}"


async def test_the_moment_decides_the_window(client: AsyncClient, board: str):
    submission = {"member": "ada", "score": 1, "at": "2025-10-23T23:59:59.999999Z"}
    assert (await client.post(f"{board}/scores", json=submission)).status_code == 200
    yesterday = await client.get(f"{board}/entries/ada?slot=2025-10-23")
    assert yesterday.json()["score"] == 1
    assert (await client.get(f"{board}/entries/ada")).status_code == 404


async def test_a_score_for_a_board_that_is_not_there_is_not_found(client: AsyncClient, boards: str):
    answer = await client.post(f"{boards}/nothing/scores", json={"member": "ada", "score": 1})
    assert answer.status_code == 404
    assert answer.json()["detail"].startswith("there is no board ")


async def test_metadata_comes_back_with_the_entry(client: AsyncClient, board: str):
    metadata = {"replay": "a/b", "tags": [1, 2.5, None, {"score": 7}]}
    await client.post(f"{board}/scores", json={"member": "ada", "score": 1, "metadata": metadata})
    assert (await client.get(f"{board}/entries/ada")).json()["metadata"] == metadata
    assert (await client.get(f"{board}/entries")).json()["entries"][0]["metadata"] == metadata
