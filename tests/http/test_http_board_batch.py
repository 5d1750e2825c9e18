"""Many boards in one request: each gets its own answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest
    from httpx import AsyncClient

DAILY = {"windows": [{"period": "daily"}]}
DAILY_AND_WEEKLY = {"windows": [{"period": "daily"}, {"period": "weekly"}]}


async def defined(client: AsyncClient, boards: str, *lines: dict[str, Any] | str) -> list[tuple[str, str]]:
    text = "\n\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines)
    headers = {"Content-Type": "application/x-ndjson"}
    answer = await client.post(f"{boards}/batch", content=text, headers=headers)
    assert answer.status_code == 200, answer.text
    return [
        (each["board"], each.get("problem", {}).get("type", each["outcome"]))
        for each in answer.json()["boards"]
    ]


def line(board: str, definition: object, **more: str) -> dict[str, Any]:
    return {"board": board, "definition": definition, **more}


async def test_each_board_gets_its_own_answer(client: AsyncClient, boards: str):
    await client.put(f"{boards}/same", json=DAILY)
    await client.put(f"{boards}/other", json=DAILY)
    invalid, conflict = "/problems/invalid-input", "/problems/malformed"
    assert await defined(
        client,
        boards,
        line("new", DAILY),
        line("no such name", DAILY),
        line("same", DAILY),
        line("wrong", {"order": "up"}),
        "not JSON",
        line("other", DAILY_AND_WEEKLY),
        {"board": "lacks a definition"},
        line("last", {}),
    ) == [
        ("new", "created"),
        ("no such name", invalid),
        ("same", "unchanged"),
        ("wrong", invalid),
        ("", conflict),
        ("other", "changed"),
        ("", invalid),
        ("last", "created"),
    ]
    assert (await client.get(f"{boards}/wrong")).status_code == 404
    for name in ("new", "other", "last"):
        sent = await client.post(f"{boards}/{name}/scores", json={"member": "ada", "score": 1})
        assert sent.json()["rank"] == 1


async def test_problems_name_the_wrong_fields(client: AsyncClient, boards: str):
    answer = await client.post(f"{boards}/batch", json=[line("wrong", {"order": "up", "colour": 1})])
    (only,) = answer.json()["boards"]
    assert [error["field"] for error in only["problem"]["errors"]] == ["order", "colour"]
    assert only["problem"]["status"] == 422


async def test_the_same_request_again_changes_nothing(client: AsyncClient, boards: str):
    lines = [line(f"b{number}", DAILY) for number in range(300)]
    first = await defined(client, boards, *lines)
    again = await defined(client, boards, *lines)
    assert [outcome for _, outcome in first] == ["created"] * 300
    assert [outcome for _, outcome in again] == ["unchanged"] * 300


async def test_a_board_named_twice_gets_both_definitions_in_their_order(client: AsyncClient, boards: str):
    done = await defined(client, boards, line("twice", DAILY_AND_WEEKLY), line("twice", DAILY))
    assert [outcome for _, outcome in done] == ["created", "changed"]
    windows = (await client.get(f"{boards}/twice")).json()["definition"]["windows"]
    assert [window["period"] for window in windows] == ["daily"]


async def test_what_a_board_would_lose_needs_consent_of_its_own(client: AsyncClient, boards: str):
    await defined(client, boards, line("a", DAILY_AND_WEEKLY), line("b", DAILY_AND_WEEKLY))
    for name in ("a", "b"):
        await client.post(f"{boards}/{name}/scores", json={"member": "ada", "score": 1})
    refused = [("a", "/problems/drop-not-allowed"), ("b", "changed")]
    assert await defined(client, boards, line("a", DAILY), line("b", DAILY, allow_drop="weekly")) == refused
    answer = await client.post(f"{boards}/batch", json=[line("a", DAILY)])
    assert answer.json()["boards"][0]["problem"]["drops"] == [
        {"window": "weekly", "entries": 1, "snapshots": 0}
    ]


async def test_fed_boards_are_defined_before_their_feeders(client: AsyncClient, boards: str, project: str):
    done = await defined(client, boards, line("feeder", {"feeds": [f"{project}/fed"]}), line("fed", {}))
    assert done == [("feeder", "created"), ("fed", "created")]


async def test_templates_are_checked_as_for_one_board(client: AsyncClient, boards: str, project: str):
    keys = {"all_time": f"batch:{project}"}
    done = await defined(client, boards, line("one", {"keys": keys}), line("two", {"keys": keys}))
    assert sorted(outcome for _, outcome in done) == ["/problems/invalid-input", "created"]


async def test_a_key_of_one_project_reaches_no_further(client: AsyncClient, boards: str, project: str):
    key = (await client.post(f"/v1/projects/{project}/keys", json={"scopes": ["admin"]})).json()["key"]
    client.headers["Authorization"] = f"Bearer {key}"
    forbidden = "/problems/forbidden"
    assert await defined(
        client,
        boards,
        line("keyed", {"keys": {"all_time": "theirs"}}),
        line("plain", {}),
        line("feeding", {"feeds": ["elsewhere/board"]}),
    ) == [("keyed", forbidden), ("plain", "created"), ("feeding", forbidden)]


async def test_too_many_boards_define_none(client: AsyncClient, boards: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("laurels.http.routes.board_batch.MOST_BOARDS", 2)
    answer = await client.post(f"{boards}/batch", json=[line(f"b{number}", {}) for number in range(3)])
    assert answer.status_code == 422
    assert (await client.get(boards)).json()["boards"] == []
