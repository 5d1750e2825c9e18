"""A member erased over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from httpx import AsyncClient

    from laurels.engine import Laurels

    from .conftest import MakeKey


async def test_a_member_goes_from_every_board_of_the_project(client: AsyncClient):
    for board in ("one", "two"):
        path = f"/v1/projects/erasing/boards/{board}"
        assert (await client.put(path, json={})).status_code == 201
        for member in ("a/da", "bob"):
            assert (
                await client.post(f"{path}/scores", json={"member": member, "score": 5})
            ).status_code == 200
    answer = await client.delete(f"/v1/projects/erasing/members/{quote('a/da', safe='')}")
    assert (answer.status_code, answer.json()["boards"], answer.json()["windows"]) == (200, 2, 2)
    for board in ("one", "two"):
        page = (await client.get(f"/v1/projects/erasing/boards/{board}/entries")).json()
        assert [entry["member"] for entry in page["entries"]] == ["bob"]
    again = await client.delete(f"/v1/projects/erasing/members/{quote('a/da', safe='')}")
    assert again.json() == {"boards": 0, "windows": 0, "rows": 0}
    assert (await client.delete("/v1/projects/nowhere/members/ada")).status_code == 404


async def test_only_an_admin_key_of_the_project_may(anybody: AsyncClient, make_key: MakeKey):
    for key in (await make_key("erasing-2", "read", "submit"), await make_key("other", "admin")):
        anybody.headers["Authorization"] = f"Bearer {key}"
        assert (await anybody.delete("/v1/projects/erasing-2/members/ada")).status_code == 403


async def test_an_answer_that_is_kept_for_whoever_repeats_a_key_goes_too(
    client: AsyncClient, laurels: Laurels
):
    path, name = "/v1/projects/erasing-3/boards/sum", 'ada-9c1e "é'
    assert (await client.put(path, json={"aggregate": "sum"})).status_code == 201
    sent = {"member": name, "score": 5}
    key = {"Idempotency-Key": "k-1"}
    assert (await client.post(f"{path}/scores", json=sent, headers=key)).status_code == 200
    again = await client.post(f"{path}/scores", json=sent, headers=key)
    assert again.headers["Idempotency-Replayed"] == "true"

    async def kept() -> str:
        keys = await laurels.valkey.command("KEYS", "*erasing-3*once:*")
        return repr([await laurels.valkey.command("HGETALL", known) for known in keys])

    assert "ada-9c1e" in await kept()
    erased = await client.delete(f"/v1/projects/erasing-3/members/{quote(name, safe='')}")
    assert erased.status_code == 200
    assert "ada-9c1e" not in await kept()
    again = await client.post(f"{path}/scores", json=sent, headers=key)
    assert (again.status_code, "Idempotency-Replayed" in again.headers) == (200, False)
