from __future__ import annotations

import asyncio
import gzip
import hmac
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from laurels.http.signed_body import IN_MEMORY_BYTES

from .player_tokens import NOW, bearer, signed, token

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx
    from fastapi import FastAPI

    from laurels.engine import Laurels

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
    client: httpx.AsyncClient, board: str, body: bytes, headers: dict[str, str], path: str = "/scores"
) -> httpx.Response:
    kind = {"Content-Type": "application/json"}
    return await client.post(f"{board}{path}", content=body, headers={**kind, **headers})


async def total(client: httpx.AsyncClient, board: str) -> int:
    return (await client.get(f"{board}/entries")).json()["total"]


async def test_a_signed_submission_counts(client: httpx.AsyncClient, board: str, secret: str):
    answer = await submit(client, board, BODY, signed(secret, f"{board}/scores", BODY))
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
    for path, body in (("/scores", BODY), ("/scores/batch", b"[" + BODY + b"]")):
        refused = await submit(client, board, body, bearer(key), path)
        assert refused.status_code == 401
        assert refused.json()["type"] == "/problems/bad-signature"
        assert "X-Laurels-Signature" in refused.json()["detail"]
        assert await total(client, board) == 0
    leaders = await client.post(f"/leaders/{project}/highscore/d/ada", json={"value": 5})
    assert leaders.status_code == 401
    good = await submit(client, board, BODY, {**bearer(key), **signed(secret, f"{board}/scores", BODY)})
    assert good.status_code == 200


def changed(headers: dict[str, str], **values: str | None) -> dict[str, str]:
    named = {f"X-Laurels-{name.capitalize()}": value for name, value in values.items()}
    return {name: value for name, value in {**headers, **named}.items() if value is not None}


@pytest.mark.parametrize(
    "change",
    [
        {"signature": "v2=" + "0" * 64},
        {"signature": "v2=" + "0" * 63},
        {"signature": "0" * 64},
        {"signature": "v3=" + "0" * 64},
        {"signature": ""},
        {"timestamp": None},
        {"timestamp": "yesterday"},
        {"timestamp": "-1"},
        {"timestamp": str(int(NOW.timestamp()) + 1)},
        {"nonce": None},
        {"nonce": "short"},
        {"nonce": "x" * 15},
        {"nonce": "x" * 65},
        {"nonce": "with.dots.in.the.nonce"},
        {"nonce": "with a space in it, and more"},
        {"nonce": "another-nonce-of-good-form"},
    ],
)
async def test_a_signature_that_is_not_good_is_refused_and_nothing_is_written(
    client: httpx.AsyncClient, board: str, secret: str, change: dict[str, Any]
):
    answer = await submit(client, board, BODY, changed(signed(secret, f"{board}/scores", BODY), **change))
    assert answer.status_code == 401
    assert answer.json()["type"] == "/problems/bad-signature"
    assert await total(client, board) == 0


async def test_v1_is_refused_with_how_to_sign(client: httpx.AsyncClient, board: str, secret: str):
    timestamp, nonce = str(int(NOW.timestamp())), "nonce-of-the-old-version"
    digest = hmac.new(secret.encode(), f"{timestamp}.{nonce}.".encode() + BODY, "sha256").hexdigest()
    headers = {
        "X-Laurels-Timestamp": timestamp, "X-Laurels-Nonce": nonce, "X-Laurels-Signature": f"v1={digest}"
    }  # fmt: skip
    answer = await submit(client, board, BODY, headers)
    assert answer.status_code == 401
    assert "v1 is no longer accepted" in answer.json()["detail"]
    assert "v2= and the hex of HMAC-SHA256 over seven lines" in answer.json()["detail"]
    assert await total(client, board) == 0


async def test_a_part_of_the_body_cannot_become_a_part_of_the_nonce(
    client: httpx.AsyncClient, board: str, secret: str
):
    """What replayed a signed batch without the secret: `TIMESTAMP.NONCE.BODY` could be cut elsewhere."""
    path = "/scores/batch"
    first = b'{"member":"ada","score":1.5}\n'
    sent = first + b'{"member":"bob","score":5}\n'
    kind = {"Content-Type": "application/x-ndjson"}
    headers = kind | signed(secret, f"{board}{path}", sent, nonce="a-nonce-that-is-good")
    assert (await submit(client, board, sent, headers, path)).json()["accepted"] == 2
    for end in range(1, len(sent)):
        nonce = f"a-nonce-that-is-good.{sent[:end].decode()}"
        if "\n" in nonce:
            break
        shifted = changed(headers, nonce=nonce)
        assert (await submit(client, board, sent[end:], shifted, path)).status_code == 401


def changes(board: str) -> dict[str, tuple[str, str, dict[str, str]]]:
    """Another request with the same signature: method, target and headers that are different."""
    return {
        "another board": ("POST", f"{board}2/scores", {}),
        "a batch": ("POST", f"{board}/scores/batch", {}),
        "a match": ("POST", f"{board}/matches", {}),
        "a query": ("POST", f"{board}/scores?x=1", {}),
        "another spelling of the path": ("POST", f"{board.replace('arcade', '%61rcade')}/scores", {}),
        "another id": ("POST", f"{board}/scores", {"Idempotency-Key": "another"}),
    }


@pytest.mark.parametrize("change", changes("").keys())
async def test_a_signature_is_good_for_its_request_alone(
    client: httpx.AsyncClient, board: str, secret: str, change: str
):
    await client.put(f"{board}2", json={"player_writes": True})
    body = b"[" + BODY + b"]" if change == "a batch" else BODY
    headers = signed(secret, f"{board}/scores", body) | {"Content-Type": "application/json"}
    method, target, more = changes(board)[change]
    answer = await client.request(method, target, content=body, headers=headers | more)
    assert (answer.status_code, answer.json()["type"]) == (401, "/problems/bad-signature")
    assert await total(client, board) == await total(client, f"{board}2") == 0


async def test_a_signature_of_one_project_is_worth_nothing_in_another(
    client: httpx.AsyncClient, board: str, project: str, secret: str
):
    other = board.replace(project, f"{project}-other")
    await client.put(other, json={})
    await make_secret(client, f"{project}-other")
    for target in (f"{board}/scores", f"{other}/scores"):
        assert (await submit(client, other, BODY, signed(secret, target, BODY))).status_code == 401
    assert await total(client, other) == 0


async def test_the_idempotency_key_is_signed(client: httpx.AsyncClient, board: str, secret: str):
    headers = signed(secret, f"{board}/scores", BODY, key="game 1 (of 2)")
    answer = await submit(client, board, BODY, headers)
    assert (answer.status_code, answer.json()["id"]) == (200, "game 1 (of 2)")
    again = signed(secret, f"{board}/scores", BODY, key="game 1 (of 2)")
    assert (await submit(client, board, BODY, again)).headers["Idempotency-Replayed"] == "true"
    without = changed(signed(secret, f"{board}/scores", BODY, key="game 2"))
    del without["Idempotency-Key"]
    assert (await submit(client, board, BODY, without)).status_code == 401


@pytest.mark.parametrize(
    "name", ["X-Laurels-Timestamp", "X-Laurels-Nonce", "X-Laurels-Signature", "Idempotency-Key"]
)
async def test_a_header_that_is_signed_is_sent_once(
    client: httpx.AsyncClient, board: str, secret: str, name: str
):
    headers = signed(secret, f"{board}/scores", BODY, key="game-1")
    twice = [*headers.items(), (name, headers[name]), ("Content-Type", "application/json")]
    answer = await client.post(f"{board}/scores", content=BODY, headers=twice)
    assert answer.status_code == 401
    assert f"{name} was sent 2 times" in answer.json()["detail"]


# Every operation that the scope `submit` allows.
SUBMITTING: dict[str, tuple[str, bytes]] = {
    "/v1/projects/{project}/boards/{board}/scores": ("/v1/projects/{}/boards/open/scores", BODY),
    "/v1/projects/{project}/boards/{board}/scores/batch": (
        "/v1/projects/{}/boards/open/scores/batch", b"[" + BODY + b"]"
    ),
    "/v1/projects/{project}/boards/{board}/matches": (
        "/v1/projects/{}/boards/duels/matches", b'{"players":["ada","bob"],"winner":"ada"}'
    ),
    "/leaders/{game}/{board}/{range}/{user}": ("/leaders/{}/highscore/d/ada%2Fx", b'{"value":5}'),
    "/v1/projects/{project}/boards/{board}/entries/{member}": (
        "/v1/projects/{}/boards/open/entries/ada", b'{"metadata":{"level":8}}'
    ),
}  # fmt: skip
PATCHED = "/v1/projects/{project}/boards/{board}/entries/{member}"


def test_every_operation_that_submits_is_tried(app: FastAPI):
    document = app.openapi()
    submitting = {
        path
        for path, methods in document["paths"].items()
        for operation in methods.values()
        if "Needs the scope `submit`" in operation.get("description", "")
    }
    assert submitting == SUBMITTING.keys()
    for path in submitting:
        method = "patch" if path == PATCHED else "post"
        named = {each["name"] for each in document["paths"][path][method]["parameters"]}
        assert {"X-Laurels-Timestamp", "X-Laurels-Nonce", "X-Laurels-Signature"} <= named


@pytest.mark.parametrize("operation", SUBMITTING)
async def test_every_operation_that_submits_verifies_signatures(
    client: httpx.AsyncClient, boards: str, project: str, operation: str
):
    await client.put(f"{boards}/open", json={"player_writes": True})
    await client.put(f"{boards}/duels", json={"rating": {"system": "elo"}})
    await client.post(f"{boards}/open/scores", json={"member": "ada", "score": 1})
    secret = await make_secret(client, project, required=True)
    target, body = SUBMITTING[operation]
    target = target.format(project)
    kind = {"Content-Type": "application/json"}
    method = "PATCH" if operation == PATCHED else "POST"
    good = signed(secret, target, body, method=method)
    forged = changed(good, signature="v2=" + "0" * 64)
    for headers, status in (({}, 401), (forged, 401), (good, 200), (good, 401)):
        answer = await client.request(method, target, content=body, headers=kind | headers)
        assert answer.status_code == status, answer.text


async def test_another_body_is_refused(client: httpx.AsyncClient, board: str, secret: str):
    answer = await submit(client, board, BODY.replace(b"5", b"6"), signed(secret, f"{board}/scores", BODY))
    assert answer.status_code == 401
    assert await total(client, board) == 0


@pytest.mark.parametrize(("seconds", "status"), [(-301, 401), (-300, 200), (300, 200), (301, 401)])
async def test_the_clocks_may_be_five_minutes_apart(
    client: httpx.AsyncClient, board: str, secret: str, seconds: int, status: int
):
    headers = signed(secret, f"{board}/scores", BODY, at=NOW + timedelta(seconds=seconds))
    assert (await submit(client, board, BODY, headers)).status_code == status


async def test_what_was_sent_before_is_refused(client: httpx.AsyncClient, board: str, secret: str):
    headers = signed(secret, f"{board}/scores", BODY)
    statuses = [(await submit(client, board, BODY, headers)).status_code for _ in range(2)]
    assert statuses == [200, 401]
    at_once = signed(secret, f"{board}/scores", BODY)
    answers = await asyncio.gather(*(submit(client, board, BODY, at_once) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200, *[401] * 9]


async def test_a_nonce_is_the_projects_own_and_is_remembered_longer_than_it_is_good(
    client: httpx.AsyncClient, board: str, project: str, secret: str, laurels: Laurels
):
    other = f"/v1/projects/{project}-other"
    others_board = f"{other}/boards/arcade"
    await client.put(others_board, json={})
    others = await make_secret(client, f"{project}-other")
    nonce = "the-same-nonce-for-both"
    assert (
        await submit(client, board, BODY, signed(secret, f"{board}/scores", BODY, nonce=nonce))
    ).status_code == 200
    answer = await submit(
        client, others_board, BODY, signed(others, f"{others_board}/scores", BODY, nonce=nonce)
    )
    assert answer.status_code == 200
    assert await laurels.valkey.command("TTL", f"laurels:nonce:{project}:{nonce}") > 600


async def test_who_cannot_sign_cannot_use_up_a_nonce(client: httpx.AsyncClient, board: str, secret: str):
    headers = signed(secret, f"{board}/scores", BODY)
    forged = changed(headers, signature="v2=" + "0" * 64)
    assert (await submit(client, board, BODY, forged)).status_code == 401
    assert (await submit(client, board, BODY, headers)).status_code == 200


async def test_two_secrets_are_in_force_while_a_project_goes_over(
    client: httpx.AsyncClient, board: str, project: str, secret: str
):
    second = await make_secret(client, project)
    for each in (secret, second):
        assert (await submit(client, board, BODY, signed(each, f"{board}/scores", BODY))).status_code == 200
    identity = "_".join(secret.split("_")[:2])
    assert (await client.delete(f"/v1/projects/{project}/secrets/{identity}")).status_code == 204
    assert (await submit(client, board, BODY, signed(secret, f"{board}/scores", BODY))).status_code == 401
    assert (await submit(client, board, BODY, signed(second, f"{board}/scores", BODY))).status_code == 200


async def test_a_signature_that_nobody_asked_for_and_nobody_can_check_is_refused(
    client: httpx.AsyncClient, board: str
):
    assert (await submit(client, board, BODY, signed("x", f"{board}/scores", BODY))).status_code == 401


async def test_the_body_is_signed_as_it_is_sent(client: httpx.AsyncClient, board: str, secret: str):
    packed = gzip.compress(BODY)
    headers = {**signed(secret, f"{board}/scores", packed), "Content-Encoding": "gzip"}
    assert (await submit(client, board, packed, headers)).status_code == 200
    plain = {**signed(secret, f"{board}/scores", BODY), "Content-Encoding": "gzip"}
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
        f"{board}/scores/batch",
        content=pieces(body + b"\n"),
        headers={**kind, **signed(secret, f"{board}/scores/batch", body)},
    )
    assert forged.status_code == 401
    assert await total(client, board) == 0
    good = await client.post(
        f"{board}/scores/batch",
        content=pieces(body),
        headers={**kind, **signed(secret, f"{board}/scores/batch", body)},
    )
    assert good.json() == {"accepted": 60_000, "rejected": []}


async def test_a_signed_body_has_the_limits_of_any_other(client: httpx.AsyncClient, board: str, secret: str):
    body = b" " * (2**20 + 1)
    assert (await submit(client, board, body, signed(secret, f"{board}/scores", body))).status_code == 413
