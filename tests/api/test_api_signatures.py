from __future__ import annotations

import asyncio
import gzip
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from laurels.api.signatures import IN_MEMORY_BYTES

from .player_tokens import NOW, bearer, signed, token

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

    from laurels.laurels import Laurels

    from .conftest import MakeKey

BODY = b'{"member":"ada","score":5}'


@pytest.fixture
async def secret(client: httpx.AsyncClient, project: str) -> str:
    """One that is not required."""
    return await make_secret(client, project)


async def make_secret(client: httpx.AsyncClient, project: str, **wanted: object) -> str:
    answer = await client.post(f"/v1/projects/{project}/secrets", json={"use": "signatures", **wanted})
    assert answer.status_code == 201, answer.text
    return answer.json()["secret"]


async def submit(
    client: httpx.AsyncClient, board: str, body: bytes, headers: dict[str, str], path: str = "scores"
) -> httpx.Response:
    kind = {"Content-Type": "application/json"} if path == "scores" else {}
    return await client.post(f"{board}/{path}", content=body, headers={**kind, **headers})


async def total(client: httpx.AsyncClient, board: str) -> int:
    return (await client.get(f"{board}/entries")).json()["total"]


async def test_a_signed_submission_counts(client: httpx.AsyncClient, board: str, secret: str):
    answer = await submit(client, board, BODY, signed(secret, BODY))
    assert (answer.status_code, answer.json()["score"]) == (200, 5)


async def test_without_a_secret_that_is_required_a_signature_may_be_left_out(
    client: httpx.AsyncClient, board: str, secret: str
):
    assert (await submit(client, board, BODY, {})).status_code == 200


@pytest.mark.parametrize("by", ["key", "player"])
async def test_where_it_is_required_what_is_not_signed_is_refused(
    client: httpx.AsyncClient, boards: str, project: str, make_key: MakeKey, by: str
):
    board = f"{boards}/open"
    await client.put(board, json={"player_writes": True})
    players = (await client.post(f"/v1/projects/{project}/secrets", json={"use": "players"})).json()
    secret = await make_secret(client, project, required=True)
    key = await make_key(project, "submit") if by == "key" else token(players["secret"], project, "ada")
    for path, body in (("scores", BODY), ("scores/batch", b"[" + BODY + b"]")):
        refused = await submit(client, board, body, bearer(key), path)
        assert refused.status_code == 401
        assert refused.json()["type"] == "/problems/bad-signature"
        assert "X-Laurels-Signature" in refused.json()["detail"]
        assert await total(client, board) == 0
    leaders = await client.post(f"/leaders/{project}/highscore/d/ada", json={"value": 5})
    assert leaders.status_code == 401
    good = await submit(client, board, BODY, {**bearer(key), **signed(secret, BODY)})
    assert good.status_code == 200


def changed(headers: dict[str, str], **values: str | None) -> dict[str, str]:
    named = {f"X-Laurels-{name.capitalize()}": value for name, value in values.items()}
    return {name: value for name, value in {**headers, **named}.items() if value is not None}


@pytest.mark.parametrize(
    "change",
    [
        {"signature": "v1=" + "0" * 64},
        {"signature": "0" * 64},
        {"signature": "v2=" + "0" * 64},
        {"signature": ""},
        {"timestamp": None},
        {"timestamp": "yesterday"},
        {"timestamp": "-1"},
        {"timestamp": str(int(NOW.timestamp()) + 1)},
        {"nonce": None},
        {"nonce": "short"},
        {"nonce": "x" * 129},
        {"nonce": "another-nonce"},
    ],
)
async def test_a_signature_that_is_not_good_is_refused_and_nothing_is_written(
    client: httpx.AsyncClient, board: str, secret: str, change: dict[str, Any]
):
    answer = await submit(client, board, BODY, changed(signed(secret, BODY), **change))
    assert answer.status_code == 401
    assert answer.json()["type"] == "/problems/bad-signature"
    assert await total(client, board) == 0


async def test_another_body_is_refused(client: httpx.AsyncClient, board: str, secret: str):
    answer = await submit(client, board, BODY.replace(b"5", b"6"), signed(secret, BODY))
    assert answer.status_code == 401
    assert await total(client, board) == 0


@pytest.mark.parametrize(("seconds", "status"), [(-301, 401), (-300, 200), (300, 200), (301, 401)])
async def test_the_clocks_may_be_five_minutes_apart(
    client: httpx.AsyncClient, board: str, secret: str, seconds: int, status: int
):
    headers = signed(secret, BODY, at=NOW + timedelta(seconds=seconds))
    assert (await submit(client, board, BODY, headers)).status_code == status


async def test_what_was_sent_before_is_refused(client: httpx.AsyncClient, board: str, secret: str):
    headers = signed(secret, BODY)
    statuses = [(await submit(client, board, BODY, headers)).status_code for _ in range(2)]
    assert statuses == [200, 401]
    at_once = signed(secret, BODY)
    answers = await asyncio.gather(*(submit(client, board, BODY, at_once) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200, *[401] * 9]


async def test_a_nonce_is_the_projects_own_and_is_remembered_longer_than_it_is_good(
    client: httpx.AsyncClient, board: str, project: str, secret: str, laurels: Laurels
):
    other = f"/v1/projects/{project}-other"
    await client.put(f"{other}/boards/arcade", json={})
    others = await make_secret(client, f"{project}-other")
    nonce = "the-same-nonce"
    assert (await submit(client, board, BODY, signed(secret, BODY, nonce=nonce))).status_code == 200
    answer = await submit(client, f"{other}/boards/arcade", BODY, signed(others, BODY, nonce=nonce))
    assert answer.status_code == 200
    assert await laurels.valkey.command("TTL", f"laurels:nonce:{project}:{nonce}") > 600


async def test_who_cannot_sign_cannot_use_up_a_nonce(client: httpx.AsyncClient, board: str, secret: str):
    headers = signed(secret, BODY)
    forged = changed(headers, signature="v1=" + "0" * 64)
    assert (await submit(client, board, BODY, forged)).status_code == 401
    assert (await submit(client, board, BODY, headers)).status_code == 200


async def test_two_secrets_are_in_force_while_a_project_goes_over(
    client: httpx.AsyncClient, board: str, project: str, secret: str
):
    second = await make_secret(client, project)
    for each in (secret, second):
        assert (await submit(client, board, BODY, signed(each, BODY))).status_code == 200
    identity = "_".join(secret.split("_")[:2])
    assert (await client.delete(f"/v1/projects/{project}/secrets/{identity}")).status_code == 204
    assert (await submit(client, board, BODY, signed(secret, BODY))).status_code == 401
    assert (await submit(client, board, BODY, signed(second, BODY))).status_code == 200


async def test_a_signature_that_nobody_asked_for_and_nobody_can_check_is_refused(
    client: httpx.AsyncClient, board: str
):
    assert (await submit(client, board, BODY, signed("x", BODY))).status_code == 401


async def test_the_body_is_signed_as_it_is_sent(client: httpx.AsyncClient, board: str, secret: str):
    packed = gzip.compress(BODY)
    headers = {**signed(secret, packed), "Content-Encoding": "gzip"}
    assert (await submit(client, board, packed, headers)).status_code == 200
    plain = {**signed(secret, BODY), "Content-Encoding": "gzip"}
    assert (await submit(client, board, packed, plain)).status_code == 401


def lines(count: int) -> bytes:
    return b"".join(json.dumps({"member": f"m{n}", "score": n}).encode() + b"\n" for n in range(count))


async def pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 10_000):
        yield body[start : start + 10_000]


async def test_a_signed_batch_is_verified_before_its_first_line_counts(
    client: httpx.AsyncClient, board: str, secret: str
):
    body = lines(60_000)
    assert len(body) > IN_MEMORY_BYTES
    kind = {"Content-Type": "application/x-ndjson"}
    forged = await client.post(
        f"{board}/scores/batch", content=pieces(body + b"\n"), headers={**kind, **signed(secret, body)}
    )
    assert forged.status_code == 401
    assert await total(client, board) == 0
    good = await client.post(
        f"{board}/scores/batch", content=pieces(body), headers={**kind, **signed(secret, body)}
    )
    assert good.json() == {"accepted": 60_000, "rejected": []}


async def test_a_signed_body_has_the_limits_of_any_other(client: httpx.AsyncClient, board: str, secret: str):
    body = b" " * (2**20 + 1)
    assert (await submit(client, board, body, signed(secret, body))).status_code == 413
