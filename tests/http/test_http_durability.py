from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laurels.valkey import client as valkey_client

if TYPE_CHECKING:
    from httpx import AsyncClient

    from laurels.engine import Laurels


async def waits(laurels: Laurels) -> int:
    told = (await laurels.valkey.info("commandstats")).get("cmdstat_waitaof", "{'calls': 0}")
    return int(told.split("'calls': ")[1].split(",")[0].rstrip("}"))


async def test_a_request_says_what_its_answer_waits_for(client: AsyncClient, laurels: Laurels, board: str):
    before = await waits(laurels)
    for durability, waited in (("fast", 0), ("fsync", 3)):
        headers = {"Laurels-Durability": durability}
        one = {"member": durability, "score": 1}
        assert (await client.post(f"{board}/scores", json=one, headers=headers)).status_code == 200
        assert (await client.post(f"{board}/scores/batch", json=[one], headers=headers)).status_code == 200
        assert (await client.delete(f"{board}/entries/{durability}", headers=headers)).status_code == 204
        assert await waits(laurels) == before + waited


async def test_a_repetition_waits_for_what_was_done_before(client: AsyncClient, laurels: Laurels, board: str):
    one = {"member": "ada", "score": 1}
    first = await client.post(f"{board}/scores", json=one, headers={"Idempotency-Key": "wait"})
    before = await waits(laurels)
    headers = {"Idempotency-Key": "wait", "Laurels-Durability": "fsync"}
    again = await client.post(f"{board}/scores", json=one, headers=headers)
    assert (again.status_code, again.json()) == (200, first.json())
    assert await waits(laurels) == before + 1


@pytest.mark.parametrize("given", ["", "FSYNC", "eventually"])
async def test_an_unknown_word_is_refused(client: AsyncClient, board: str, given: str):
    headers = {"Laurels-Durability": given}
    answer = await client.post(f"{board}/scores", json={"member": "ada", "score": 1}, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "Laurels-Durability"
    assert (await client.get(f"{board}/entries")).json()["total"] == 0


async def test_less_than_was_asked_for_is_an_unknown_outcome(
    client: AsyncClient, board: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(valkey_client, "WAIT_SECONDS", 1)
    headers = {"Laurels-Durability": "replicated"}
    answer = await client.post(f"{board}/scores", json={"member": "ada", "score": 1}, headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/outcome-unknown")
