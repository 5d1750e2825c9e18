"""What would drop entries is told with numbers, and done once it is allowed by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from httpx import AsyncClient, Response

DAILY_AND_WEEKLY: dict[str, Any] = {"windows": [{"period": "daily"}, {"period": "weekly"}]}
DAILY: dict[str, Any] = {"windows": [{"period": "daily"}]}
GONE = {"window": "weekly", "entries": 2, "snapshots": 0}


@pytest.fixture
async def weekly(client: AsyncClient, boards: str) -> str:
    board = f"{boards}/weekly"
    assert (await client.put(board, json=DAILY_AND_WEEKLY)).status_code == 201
    for member in ("ada", "bob"):
        assert (await client.post(f"{board}/scores", json={"member": member, "score": 5})).is_success
    return board


def refused(answer: Response) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (409, "/problems/drop-not-allowed")
    return problem


async def test_an_edit_that_drops_a_window_waits_for_its_name(client: AsyncClient, weekly: str):
    assert (await client.post(f"{weekly}/preview", json=DAILY)).json()["drops"] == [GONE]
    problem = refused(await client.put(weekly, json=DAILY))
    assert problem["title"] == "The change would drop what the board holds"
    assert problem["drops"] == [GONE]
    assert problem["detail"].endswith("would drop weekly (2 entries); to allow it, pass allow_drop=weekly")
    assert (await client.get(f"{weekly}/entries?period=weekly")).json()["total"] == 2
    for _ in range(2):
        assert (await client.put(f"{weekly}?allow_drop=weekly", json=DAILY)).status_code == 200
    assert (await client.get(f"{weekly}/entries?period=weekly")).status_code == 422


async def test_a_preview_of_what_drops_nothing_says_so(client: AsyncClient, weekly: str):
    assert (await client.post(f"{weekly}/preview", json=DAILY_AND_WEEKLY)).json()["drops"] == []
    assert (await client.post(f"{weekly}-new/preview", json=DAILY)).json()["drops"] == []


async def test_a_conflict_is_no_matter_of_consent(client: AsyncClient, weekly: str):
    changed = {**DAILY, "score": "int64"}
    answer = await client.put(f"{weekly}?allow_drop=weekly", json=changed)
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/conflict")
    assert "drops" not in answer.json()
    told = (await client.post(f"{weekly}/preview", json=changed)).json()
    assert told["conflict"] == answer.json()["detail"]
    assert told["drops"] == [GONE]


async def test_a_board_that_holds_entries_is_dropped_when_that_is_allowed(client: AsyncClient, weekly: str):
    problem = refused(await client.delete(weekly))
    assert problem["drops"] == [{**GONE, "window": "daily"}, GONE]
    assert problem["detail"].endswith("pass allow_drop=all")
    assert (await client.get(f"{weekly}/entries")).json()["total"] == 2
    assert (await client.delete(weekly, params={"allow_drop": "all"})).status_code == 204
    assert (await client.get(weekly)).status_code == 404


async def test_an_empty_board_is_dropped_without_a_word(client: AsyncClient, boards: str):
    assert (await client.put(f"{boards}/empty", json={})).status_code == 201
    assert (await client.delete(f"{boards}/empty")).status_code == 204


@pytest.mark.parametrize("given", ["monthly", "all", "", "weekly,", "*"])
async def test_a_name_that_is_no_windows_is_refused_at_its_parameter(
    client: AsyncClient, weekly: str, given: str
):
    answer = await client.put(weekly, json=DAILY, params={"allow_drop": given})
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == ["allow_drop"]


async def test_the_document_has_the_drops(client: AsyncClient):
    document = (await client.get("/openapi.json")).json()
    schemas = document["components"]["schemas"]
    assert schemas["Drop"]["properties"].keys() == {"window", "entries", "snapshots"}
    for name in ("Preview", "Problem"):
        assert "#/components/schemas/Drop" in str(schemas[name]["properties"]["drops"])
    for method in ("put", "delete"):
        operation = document["paths"]["/v1/projects/{project}/boards/{board}"][method]
        assert "409" in operation["responses"]
