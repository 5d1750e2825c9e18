"""`PATCH …/entries/{member}`: metadata without a score, who may set it, and who hears of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .player_tokens import bearer, token

if TYPE_CHECKING:
    from httpx import AsyncClient

    from .conftest import ClientWith, MakeKey

NEW = {"metadata": {"level": 8}}


async def stored(client: AsyncClient, board: str, member: str = "ada", **where: str) -> object:
    answer = await client.get(f"{board}/entries/{member}", params=where)
    return answer.json().get("metadata")


async def test_the_answer_says_how_many_entries_have_it(client: AsyncClient, scored: str):
    answer = await client.patch(f"{scored}/entries/ada", json=NEW)
    assert answer.status_code == 200, answer.text
    made = answer.json().pop("id")
    assert answer.json() == {"member": "ada", "entries": 4, "applied": True, "id": made}
    page = (await client.get(f"{scored}/entries?period=all_time&group=country%3DBR")).json()
    assert page["entries"][0] == {"rank": 1, "member": "ada", "score": 300, "metadata": {"level": 8}}
    again = await client.patch(f"{scored}/entries/ada", json={"metadata": {}, "id": made})
    assert again.json() == {"member": "ada", "entries": 0, "applied": False, "id": made}
    assert (await client.patch(f"{scored}/entries/ada", json={"metadata": None})).json()["entries"] == 4
    assert await stored(client, scored) is None


async def test_parameters_name_the_window_and_the_group(client: AsyncClient, scored: str):
    where = {"period": "daily", "slot": "2025-10-24", "group": "country=BR"}
    answer = await client.patch(f"{scored}/entries/ada", params=where, json=NEW)
    assert answer.json()["entries"] == 1
    assert await stored(client, scored, **where) == {"level": 8}
    assert await stored(client, scored) is None


async def test_any_member_can_be_named(client: AsyncClient, board: str):
    await client.post(f"{board}/scores", json={"member": "x/around", "score": 5})
    assert (await client.patch(f"{board}/entries/x%2Faround", json=NEW)).json()["member"] == "x/around"
    assert await stored(client, board, "x%2Faround") == {"level": 8}


async def test_who_has_no_entry_is_not_found(client: AsyncClient, scored: str, boards: str):
    for path in (
        f"{scored}/entries/nobody",
        f"{scored}/entries/ada?group=country%3DJP",
        f"{scored}/entries/ada?slot=2025-10-01",
        f"{boards}/none/entries/ada",
    ):
        answer = await client.patch(path, json=NEW)
        assert (answer.status_code, answer.json()["type"]) == (404, "/problems/not-found")


@pytest.mark.parametrize(
    ("body", "field", "detail"),
    [
        ({}, "metadata", "is required"),
        ({"metadata": 5}, "metadata", "must be an object or null, not a whole number"),
        ({"metadata": {"x": "y" * 4096}}, "metadata", "must have at most 4096 bytes of JSON, not 4104"),
        ({"metadata": {}, "id": ""}, "id", "must have 1 to 256 bytes of UTF-8, not 0"),
        ({"metadata": {}, "score": 5}, "score", None),
    ],
)
async def test_a_wrong_body_is_refused(
    client: AsyncClient, scored: str, body: dict[str, Any], field: str, detail: str | None
):
    answer = await client.patch(f"{scored}/entries/ada", json=body)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == field
    assert detail in (None, error["detail"])


async def test_the_etag_of_what_shows_it_changes_and_of_nothing_else(client: AsyncClient, scored: str):
    shows = [f"{scored}/entries", f"{scored}/entries/ada", f"{scored}/entries/bob/around"]
    others = [f"{scored}/entries?group=country%3DJP", f"{scored}/entries/eve", f"{scored}/windows"]
    tags = {path: (await client.get(path)).headers["etag"] for path in shows + others}
    await client.patch(f"{scored}/entries/ada", json=NEW)
    answers = {path: await client.get(path, headers={"If-None-Match": tag}) for path, tag in tags.items()}
    assert [answers[path].status_code for path in shows] == [200] * 3
    assert [answers[path].status_code for path in others] == [304] * 3


async def test_the_key_of_a_request_is_its_id(client: AsyncClient, scored: str):
    key = {"Idempotency-Key": "change-1"}
    first = await client.patch(f"{scored}/entries/ada", json=NEW, headers=key)
    assert first.json() == {"member": "ada", "entries": 4, "applied": True, "id": "change-1"}
    again = await client.patch(f"{scored}/entries/ada", json=NEW, headers=key)
    assert (again.json(), again.headers["idempotency-replayed"]) == (first.json(), "true")
    named = {**NEW, "id": "change-1"}
    assert (await client.patch(f"{scored}/entries/ada", json=named)).json()["applied"] is False
    others = [(f"{scored}/entries/bob", NEW), (f"{scored}/entries/ada", {"metadata": None})]
    # What is asked for stands in the query too.
    others.append((f"{scored}/entries/ada?period=daily", NEW))
    for path, body in others:
        reused = await client.patch(path, json=body, headers=key)
        assert (reused.status_code, reused.json()["type"]) == (422, "/problems/idempotency-key-reused")


async def test_an_id_stands_for_one_change_of_a_board(client: AsyncClient, board: str):
    """A submission's too."""
    await client.post(f"{board}/scores", json={"member": "ada", "score": 5, "id": "one"})
    told = (await client.patch(f"{board}/entries/ada", json={**NEW, "id": "one"})).json()
    assert told["applied"] is False


async def test_it_takes_a_key_that_submits(client: AsyncClient, scored: str, project: str, make_key: MakeKey):
    for scopes, status in ((("read",), 403), (("submit",), 200), (("admin",), 200)):
        key = bearer(await make_key(project, *scopes))  # pyright: ignore[reportArgumentType]  # scopes
        assert (await client.patch(f"{scored}/entries/ada", json=NEW, headers=key)).status_code == status
    foreign = bearer(await make_key("another", "submit"))
    assert (await client.patch(f"{scored}/entries/ada", json=NEW, headers=foreign)).status_code == 403


async def test_a_player_changes_its_own_where_the_board_takes_it(
    client: AsyncClient, scored: str, boards: str, project: str
):
    secret = (await client.post(f"/v1/projects/{project}/secrets", json={"use": "players"})).json()["secret"]
    ada, bob = (bearer(token(secret, project, member)) for member in ("ada", "bob"))
    closed = await client.patch(f"{scored}/entries/ada", json=NEW, headers=ada)
    assert closed.status_code == 403
    assert "player_writes" in closed.json()["detail"]
    board = f"{boards}/open"
    await client.put(board, json={"player_writes": True})
    for player in (ada, bob):
        await client.post(f"{board}/scores", json={"score": 5}, headers=player)
        given = {**NEW, "id": "one"}
        member = "ada" if player is ada else "bob"
        told = await client.patch(f"{board}/entries/{member}", json=given, headers=player)
        assert told.json() == {"member": member, "entries": 1, "applied": True, "id": "one"}
    foreign = await client.patch(f"{board}/entries/bob", json={"metadata": None}, headers=ada)
    assert foreign.status_code == 403
    assert foreign.json()["detail"].startswith("member: is not the player of this token")
    assert await stored(client, board, "bob") == {"level": 8}


async def test_where_signatures_are_required_it_must_be_signed(
    client: AsyncClient, scored: str, project: str
):
    await client.post(f"/v1/projects/{project}/secrets", json={"use": "signatures", "required": True})
    answer = await client.patch(f"{scored}/entries/ada", json=NEW)
    assert (answer.status_code, answer.json()["type"]) == (401, "/problems/bad-signature")
    assert await stored(client, scored) is None


async def test_pages_of_other_origins_may_send_it(client_with: ClientWith, scored: str):
    client = await client_with(cors_origins="https://game.example.com")
    asked = {"Origin": "https://game.example.com", "Access-Control-Request-Method": "PATCH"}
    answer = await client.options(f"{scored}/entries/ada", headers=asked)
    assert answer.status_code == 200, answer.text
    assert "PATCH" in answer.headers["access-control-allow-methods"]
