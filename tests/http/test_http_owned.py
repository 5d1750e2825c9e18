"""Boards that a flow owns, and templates, from outside: read by everybody, written by their owners alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from laurels.boards.definition import BoardDefinition
from laurels.boards.keys import BoardRef
from laurels.errors import Conflict
from laurels.scores.submission import Submission

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from httpx import AsyncClient

    from laurels.engine import Laurels

    from .conftest import ClientWith, MakeKey


@pytest.fixture
async def owned(laurels: Laurels, project: str, boards: str) -> str:
    """A board of the index flow, with one entry."""
    ref = BoardRef(project, "owned")
    await laurels.index_definer.define(ref, BoardDefinition())
    flow = laurels._submitter.acting_for("index")  # pyright: ignore[reportPrivateUsage]  # as the flow writes
    await flow.submit(ref, Submission("ada", 1))
    return f"{boards}/owned"


WRITES: list[tuple[str, str, Any]] = [
    ("POST", "/scores", {"member": "bob", "score": 1}),
    ("POST", "/scores/batch", [{"member": "bob", "score": 1}]),
    ("PATCH", "/entries/ada", {"metadata": {}}),
    ("POST", "/scores/batch", b'{"member":"bob","score":1}\n'),
    ("POST", "/matches", {"players": ["ada", "bob"], "winner": "bob"}),
    ("DELETE", "/entries/ada", None),
    ("PUT", "", {"lateness": "P2D"}),
    ("DELETE", "", None),
    ("DELETE", "/../../members/ada", None),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
async def test_a_write_from_outside_is_refused_with_the_reason(
    client: AsyncClient, owned: str, method: str, path: str, body: object
):
    sent: dict[str, Any] = {"json": body}
    if isinstance(body, bytes):
        sent = {"content": body, "headers": {"Content-Type": "application/x-ndjson"}}
    for key in ({}, {"Idempotency-Key": "once"}):
        sent["headers"] = {**sent.get("headers", {}), **key}
        answer = await client.request(method, f"{owned}{path}", **sent)
        assert answer.status_code == 409, answer.text
    assert "an index declared on a model" in answer.json()["detail"]
    entries = (await client.get(f"{owned}/entries")).json()["entries"]
    assert [each["member"] for each in entries] == ["ada"]


async def entries_of(laurels: Laurels, board: str) -> list[str]:
    return [each.member for each in (await laurels.page(board)).entries]


async def import_lines(laurels: Laurels, board: str) -> object:
    lines = [line async for line in laurels.export([board])]
    return await laurels.import_lines(lambda: lines)


CALLS: dict[str, Callable[[Laurels, str], Awaitable[object]]] = {
    "submit": lambda laurels, board: laurels.submit(board, "bob", 1),
    "submit_many": lambda laurels, board: laurels.submit_many(board, [Submission("bob", 1)]),
    "match": lambda laurels, board: laurels.match(board, ["ada", "bob"], "bob"),
    "remove": lambda laurels, board: laurels.remove(board, "ada"),
    "define": lambda laurels, board: laurels.define(board, {"lateness": "P2D"}),
    "drop": lambda laurels, board: laurels.drop(board),
    "import_lines": import_lines,
    "import_zset": lambda laurels, board: laurels.import_zset(
        board, laurels.settings.valkey_url or "", f"lb:{{{board}}}:all_time"
    ),
    "erase": lambda laurels, board: laurels.erase(
        board.partition("/")[0], "bob", board=board.partition("/")[2]
    ),
    "erase everywhere": lambda laurels, board: laurels.erase(board.partition("/")[0], "ada"),
    "feed": lambda laurels, board: laurels.define(f"{board}-feeder", {"feeds": [board]}),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_in_process_is_refused_too(laurels: Laurels, project: str, owned: str, call: str):
    del owned
    with pytest.raises(Conflict, match="an index declared on a model"):
        await CALLS[call](laurels, f"{project}/owned")
    assert await entries_of(laurels, f"{project}/owned") == ["ada"]


async def test_a_process_that_knew_the_board_as_nobodys_is_refused(
    client: AsyncClient, client_with: ClientWith, laurels: Laurels, boards: str, project: str
):
    """Single scores, whichever way they take, batches and matches."""
    other = await client_with()
    for name in ("plain", "rated"):
        rating = {"rating": {"system": "elo"}} if name == "rated" else {}
        assert (await client.put(f"{boards}/{name}", json=rating)).status_code == 201
    requests: list[tuple[str, object]] = [
        ("plain/scores", {"member": "bob", "score": 1}),
        ("plain/scores/batch", [{"member": "bob", "score": 1}]),
        ("rated/matches", {"players": ["ada", "bob"], "winner": "bob"}),
    ]
    for path, body in requests:
        assert (await other.post(f"{boards}/{path}", json=body)).status_code == 200
    for name in ("plain", "rated"):
        definition = (await laurels.definition(f"{project}/{name}")).model_copy()
        await laurels.index_definer.define(BoardRef(project, name), definition)
    for path, body in requests:
        answer = await other.post(f"{boards}/{path}", json=body)
        assert answer.status_code == 409, answer.text


async def test_a_flow_takes_no_board_that_another_feeds(laurels: Laurels, project: str):
    await laurels.define(f"{project}/fed", {})
    await laurels.define(f"{project}/feeder", {"feeds": [f"{project}/fed"]})
    with pytest.raises(Conflict, match=f"{project}/feeder feeds"):
        await laurels.index_definer.define(BoardRef(project, "fed"), BoardDefinition())


async def test_who_has_left_an_owned_board_can_be_erased(laurels: Laurels, project: str, owned: str):
    del owned
    await laurels.define(f"{project}/plain", {})
    await laurels.submit(f"{project}/plain", "bob", 1)
    assert (await laurels.erase(project, "bob")).boards == 1


async def test_a_board_tells_who_owns_it_and_its_preview_what_forbids_a_change(
    client: AsyncClient, owned: str
):
    assert (await client.get(owned)).json()["owner"] == "index"
    told = (await client.post(f"{owned}/preview", json={"lateness": "P2D"})).json()
    assert "an index declared on a model" in told["conflict"]


async def test_nothing_is_fed_into_an_owned_board(client: AsyncClient, boards: str, owned: str, project: str):
    del owned
    answer = await client.put(f"{boards}/feeder", json={"feeds": [f"{project}/owned"]})
    assert answer.status_code == 409


async def test_an_owner_cannot_be_given(client: AsyncClient, boards: str):
    assert (await client.put(f"{boards}/mine", json={"owner": "campus"})).status_code == 422


TEMPLATED = {"keys": {"all_time": "ranks:{project}:{board}"}}


@pytest.mark.parametrize("path", ["", "/preview"])
async def test_templates_take_a_key_for_every_project(
    anybody: AsyncClient, boards: str, project: str, make_key: MakeKey, path: str
):
    headers = {"Authorization": f"Bearer {await make_key(project, 'admin')}"}
    method = "POST" if path else "PUT"
    answer = await anybody.request(method, f"{boards}/mine{path}", json=TEMPLATED, headers=headers)
    assert answer.status_code == 403
    assert "a key for *" in answer.json()["detail"]


async def test_templates_that_a_board_has_stay_when_its_project_edits_it(
    client: AsyncClient, boards: str, project: str, make_key: MakeKey
):
    assert (await client.put(f"{boards}/mine", json=TEMPLATED)).status_code == 201
    client.headers["Authorization"] = f"Bearer {await make_key(project, 'admin')}"
    edited = {**TEMPLATED, "lateness": "P2D"}
    assert (await client.put(f"{boards}/mine", json=edited)).status_code == 200
    grouped = {**TEMPLATED, "groups": [["country"]]}
    assert (await client.put(f"{boards}/mine", json=grouped)).status_code == 403


async def test_errors_name_no_board_of_another_project(client: AsyncClient, boards: str, project: str):
    elsewhere = f"/v1/projects/{project}-secret/boards/hidden"
    taken = {"keys": {"all_time": f"shared:{project}"}}
    assert (await client.put(elsewhere, json=taken)).status_code == 201
    answer = await client.put(f"{boards}/mine", json=taken)
    assert answer.status_code == 422
    assert "hidden" not in answer.text


async def test_what_one_project_names_by_id_another_cannot_reach(
    client: AsyncClient, laurels: Laurels, project: str, make_key: MakeKey
):
    """Keys, secrets, snapshots, cursors and live streams, under the path of its own project."""
    other = f"{project}-other"
    for name in (project, other):
        await laurels.define(
            f"{name}/same", {"archive": {"snapshot": [{"period": "all_time", "every": "day"}]}}
        )
        await laurels.submit_many(f"{name}/same", [Submission(f"{name}-{n}", n) for n in range(5)])
    await laurels.snapshot_taker.take_due(None)
    board = f"/v1/projects/{other}/boards/same"
    key = (await client.post(f"/v1/projects/{other}/keys", json={"scopes": ["read"]})).json()["prefix"]
    secret = (await client.post(f"/v1/projects/{other}/secrets", json={"use": "players"})).json()["id"]
    cursor = (await client.get(f"{board}/entries", params={"limit": 2})).json()["next"]
    client.headers["Authorization"] = f"Bearer {await make_key(project, 'admin', 'read', 'submit')}"
    mine = f"/v1/projects/{project}/boards/same"
    assert (await client.delete(f"/v1/projects/{project}/keys/{key}")).status_code == 404
    assert (await client.delete(f"/v1/projects/{project}/secrets/{secret}")).status_code == 404
    for theirs in (await laurels.snapshots(f"{other}/same")).snapshots:
        assert (await client.get(f"{mine}/snapshots/{theirs.id}")).status_code == 404
    answer = await client.get(f"{mine}/entries", params={"cursor": cursor})
    assert answer.status_code == 422
    assert other not in answer.text
    kept = await laurels.keys.keys(other)
    assert [each.revoked_at for each in kept if each.prefix == key] == [None]


async def test_the_same_idempotency_key_is_each_boards_own(
    client: AsyncClient, laurels: Laurels, project: str, make_key: MakeKey
):
    for name in (project, f"{project}-other"):
        await laurels.define(f"{name}/same", {})
        headers = {
            "Authorization": f"Bearer {await make_key(name, 'submit')}",
            "Idempotency-Key": "shared",
        }
        answer = await client.post(
            f"/v1/projects/{name}/boards/same/scores", json={"member": name, "score": 5}, headers=headers
        )
        assert (answer.status_code, answer.json()["member"]) == (200, name)
        assert "Idempotency-Replayed" not in answer.headers


@pytest.mark.parametrize("path", ["", "/preview"])
async def test_taking_sorted_sets_over_takes_a_key_for_every_project(
    client: AsyncClient, boards: str, project: str, make_key: MakeKey, path: str
):
    assert (await client.put(f"{boards}/mine", json=TEMPLATED)).status_code == 201
    client.headers["Authorization"] = f"Bearer {await make_key(project, 'admin')}"
    method = "POST" if path else "PUT"
    answer = await client.request(method, f"{boards}/mine{path}", json={**TEMPLATED, "adopt": True})
    assert answer.status_code == 403


async def test_keys_of_another_program_are_told_at_definition_and_taken_over(
    client: AsyncClient, laurels: Laurels, boards: str, project: str
):
    key = f"ranks:{project}:mine"
    await laurels.valkey.command("ZADD", key, 5, "ada")
    refused = await client.put(f"{boards}/mine", json=TEMPLATED)
    assert refused.status_code == 409
    assert key in refused.json()["detail"]
    previewed = await client.post(f"{boards}/mine/preview", json=TEMPLATED)
    assert key in previewed.json()["conflict"]
    assert (await client.put(f"{boards}/mine", json={**TEMPLATED, "adopt": True})).status_code == 201
    entries = (await client.get(f"{boards}/mine/entries")).json()["entries"]
    assert [(each["member"], each["score"]) for each in entries] == [("ada", 5)]
    assert (await client.delete(f"{boards}/mine?allow_drop=all")).status_code == 204
    assert await laurels.valkey.command("ZCARD", key) == 1
    await laurels.valkey.command("DEL", key)


async def test_a_key_that_another_program_makes_later_is_a_conflict_for_players_and_no_more(
    client: AsyncClient, laurels: Laurels, boards: str, project: str
):
    grouped = {"groups": [["country"]], "keys": {"all_time": "later:{project}"}}
    assert (await client.put(f"{boards}/mine", json=grouped)).status_code == 201
    key = f"later:{project}:country=BR"
    await laurels.valkey.command("SET", key, "text")
    scores = [{"member": f"m{n}", "score": n, "groups": {"country": c}} for n, c in enumerate(("BR", "JP"))]
    answer = await client.post(f"{boards}/mine/scores", json=scores[0])
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/key-taken")
    assert key not in answer.text
    batch = (await client.post(f"{boards}/mine/scores/batch", json=scores)).json()
    assert (batch["accepted"], [each["index"] for each in batch["rejected"]]) == (1, [0])
    read = await client.get(f"{boards}/mine/entries", params={"group": "country=BR"})
    assert read.json()["type"] == "/problems/key-taken"
    assert (await client.get(f"{boards}/mine/entries")).json()["total"] == 1
    assert (await client.delete(f"{boards}/mine?allow_drop=all")).status_code == 204
    assert await laurels.valkey.command("GET", key) == b"text"
    await laurels.valkey.command("DEL", key)
    leaders = f"/leaders/{project}/high/a"
    await laurels.valkey.command("SET", f"{leaders}/a", "text")
    answer = await client.post(f"{leaders}/ada", json={"value": 5})
    assert answer.status_code == 409
    await laurels.valkey.command("DEL", f"{leaders}/a")
