from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from httpx import AsyncClient

DEFAULTS: dict[str, Any] = {
    "aggregate": "best",
    "allow_op": False,
    "order": "desc",
    "score": "number",
    "ties": "shared",
    "windows": [
        {"period": "all_time", "keep": None, "name": None, "sum_of": None, "days": None, "seconds": None}
    ],
    "timezone": "UTC",
    "timezone_by": None,
    "timezones": {},
    "groups": [],
    "dense": False,
    "feeds": [],
    "lateness": "P1D",
    "archive": {"snapshot": [], "journal": True},
    "limits": {"min": None, "max": None, "max_change": None},
    "player_writes": False,
    "shards": 1,
    "keys": None,
    "adopt": False,
    "rating": None,
}
MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"


async def test_a_new_board_is_created_with_its_defaults(client: AsyncClient, boards: str, project: str):
    answer = await client.put(f"{boards}/arcade", json={})
    assert answer.status_code == 201
    board = answer.json()
    assert re.fullmatch(MOMENT, board.pop("created_at"))
    assert re.fullmatch(MOMENT, board.pop("updated_at"))
    assert board.pop("version") > 0
    assert board == {"project": project, "board": "arcade", "definition": DEFAULTS, "owner": None}


async def test_a_board_that_was_there_is_changed(client: AsyncClient, boards: str):
    created = (await client.put(f"{boards}/arcade", json={"lateness": "PT2H"})).json()
    windows = [{"period": "daily", "keep": "P30D"}, {"period": "every", "seconds": 3600, "keep": 7}]
    answer = await client.put(f"{boards}/arcade", json={"windows": windows})
    assert answer.status_code == 200
    changed = answer.json()
    assert changed["version"] > created["version"]
    assert changed["created_at"] == created["created_at"]
    assert [window["keep"] for window in changed["definition"]["windows"]] == ["P30D", 7]
    assert changed["definition"]["lateness"] == "P1D"
    assert (await client.get(f"{boards}/arcade")).json() == changed


async def test_what_a_board_is_read_as_can_be_put_back(client: AsyncClient, board: str):
    read = (await client.get(board)).json()
    answer = await client.put(board, json=read["definition"])
    assert answer.status_code == 200
    assert answer.json() == read


async def test_a_dropped_board_is_gone(client: AsyncClient, scored: str):
    dropped = await client.delete(scored, params={"allow_drop": "all"})
    assert (dropped.status_code, dropped.content) == (204, b"")
    for answer in (
        await client.get(scored),
        await client.delete(scored),
        await client.get(f"{scored}/entries"),
    ):
        assert answer.status_code == 404
        assert answer.json()["detail"].startswith("there is no board ")
    assert (await client.put(scored, json={"score": "int64"})).status_code == 201
    assert (await client.get(f"{scored}/entries")).json()["total"] == 0


async def test_boards_and_projects_are_listed(client: AsyncClient, boards: str, project: str):
    assert (await client.get(boards)).json() == {"project": project, "boards": []}
    for name in ("zebra", "arcade"):
        await client.put(f"{boards}/{name}", json={})
    listed = (await client.get(boards)).json()
    assert [board["board"] for board in listed["boards"]] == ["arcade", "zebra"]
    assert listed["boards"][0] == (await client.get(f"{boards}/arcade")).json()
    assert project in (await client.get("/v1/projects")).json()["projects"]


async def test_every_wrong_field_of_a_definition_is_named(client: AsyncClient, boards: str):
    definition = {"order": "up", "windows": [{"period": "daily", "keep": 0}], "colour": "red"}
    answer = await client.put(f"{boards}/arcade", json=definition)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["type"] == "/problems/invalid-input"
    assert [error["field"] for error in problem["errors"]] == ["order", "windows[0].keep", "colour"]
    assert (
        problem["errors"][1]["detail"] == "is a number of windows from 1, or an ISO duration such as 'P30D'"
    )


async def test_what_entries_forbid_is_a_conflict(client: AsyncClient, scored: str, project: str):
    answer = await client.put(scored, json={"score": "int64"})
    assert answer.status_code == 409
    problem = answer.json()
    assert problem["type"] == "/problems/conflict"
    assert problem["detail"].startswith(f"{project}/arcade holds entries, so ")


@pytest.mark.parametrize("name", ["a b", "a%2Fb", "x" * 65, "%C3%A9", "a%0A", "a:b"])
async def test_names_are_of_few_characters(client: AsyncClient, boards: str, name: str):
    for path, field in ((f"{boards}/{name}", "board"), (f"/v1/projects/{name}/boards/arcade", "project")):
        answer = await client.put(path, json={})
        assert answer.status_code == 422
        expected = {"field": field, "detail": "must be 1 to 64 of A-Z a-z 0-9 - _ ."}
        assert answer.json()["errors"] == [expected]


@pytest.mark.parametrize("name", ["A-z_0.9", "x" * 64, "%61rcade"])
async def test_names_may_be_any_of_these(client: AsyncClient, boards: str, name: str):
    answer = await client.put(f"{boards}/{name}", json={})
    assert answer.status_code == 201
    assert answer.json()["board"] == name.replace("%61", "a")


@pytest.mark.parametrize("sent", ["[]", '"arcade"', "null", "7"])
async def test_a_definition_is_an_object(client: AsyncClient, boards: str, sent: str):
    answer = await client.put(f"{boards}/arcade", content=sent)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "definition"


async def test_lists_go_on_after_a_cursor(client: AsyncClient, boards: str, project: str):
    names = [f"b{number}" for number in range(5)]
    await client.post(f"{boards}/batch", json=[{"board": name, "definition": {}} for name in names])
    listed: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await client.get(boards, params={"limit": 2, "cursor": cursor})).json()
        listed += [board["board"] for board in page["boards"]]
        cursor = page["next"]
    assert listed == names
    assert (await client.get(boards, params={"limit": 5})).json()["next"] is None
    assert (await client.get(boards, params={"limit": 0})).status_code == 422
    first = (await client.get("/v1/projects", params={"limit": 1})).json()
    assert len(first["projects"]) == 1
    everything = (await client.get("/v1/projects")).json()["projects"]
    assert everything == sorted(everything)
    rest = (await client.get("/v1/projects", params={"limit": 1000, "cursor": everything[-2]})).json()
    assert rest == {"projects": everything[-1:], "next": None}
    assert project in everything
