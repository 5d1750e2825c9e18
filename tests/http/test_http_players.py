from __future__ import annotations

import base64
import hmac
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from .player_tokens import NOW, bearer, token

if TYPE_CHECKING:
    from httpx import AsyncClient

    from laurels.clock import FixedClock
    from laurels.engine import Laurels

    from .conftest import ClientWith, MakeKey

FOR_PLAYERS = {"player_writes": True, "aggregate": "sum", "groups": [["country"], ["region"]]}


@pytest.fixture
async def secret(client: AsyncClient, project: str) -> str:
    answer = await client.post(f"/v1/projects/{project}/secrets", json={"use": "players"})
    assert answer.status_code == 201, answer.text
    return answer.json()["secret"]


@pytest.fixture
async def open_board(client: AsyncClient, boards: str) -> str:
    assert (await client.put(f"{boards}/open", json=FOR_PLAYERS)).status_code == 201
    return f"{boards}/open"


async def members(client: AsyncClient, board: str, **where: str) -> dict[str, Any]:
    page = (await client.get(f"{board}/entries", params=where)).json()
    return {entry["member"]: entry["score"] for entry in page["entries"]}


async def test_a_player_reads_its_project(client: AsyncClient, scored: str, project: str, secret: str):
    ada = bearer(token(secret, project, "ada"))
    assert (await client.get(f"{scored}/entries", headers=ada)).status_code == 200
    assert (await client.get(f"{scored}/entries/bob", headers=ada)).json()["score"] == 200
    assert (await client.get("/v1/projects", headers=ada)).json() == {"projects": [project]}


async def test_a_player_submits_for_itself(client: AsyncClient, open_board: str, project: str, secret: str):
    ada = bearer(token(secret, project, "ada"))
    answer = await client.post(f"{open_board}/scores", json={"score": 5}, headers=ada)
    assert (answer.status_code, answer.json()["member"]) == (200, "ada")
    named = await client.post(f"{open_board}/scores", json={"member": "ada", "score": 5}, headers=ada)
    assert named.status_code == 200
    assert await members(client, open_board) == {"ada": 10}


async def test_a_player_submits_for_nobody_else(
    client: AsyncClient, open_board: str, project: str, secret: str
):
    ada = bearer(token(secret, project, "ada"))
    answer = await client.post(f"{open_board}/scores", json={"member": "bob", "score": 5}, headers=ada)
    assert answer.status_code == 403
    assert answer.json()["detail"].startswith("member: ")
    batch = [{"score": 1}, {"member": "bob", "score": 5}, {"member": "ada", "score": 2}]
    many = await client.post(f"{open_board}/scores/batch", json=batch, headers=ada)
    assert many.json()["accepted"] == 2
    assert [rejected["index"] for rejected in many.json()["rejected"]] == [1]
    assert await members(client, open_board) == {"ada": 3}


async def test_a_player_submits_only_where_the_board_takes_it(
    client: AsyncClient, board: str, boards: str, project: str, secret: str
):
    ada = bearer(token(secret, project, "ada"))
    for path in ("scores", "scores/batch"):
        body = {"score": 5} if path == "scores" else [{"score": 5}]
        answer = await client.post(f"{board}/{path}", json=body, headers=ada)
        assert answer.status_code == 403
        assert "player_writes" in answer.json()["detail"]
        assert (await client.post(f"{boards}/none/{path}", json=body, headers=ada)).status_code == 404
    assert await members(client, board) == {}


async def test_a_board_closes_at_once_though_another_process_closed_it(
    client: AsyncClient, open_board: str, project: str, secret: str, client_with: ClientWith
):
    ada = bearer(token(secret, project, "ada"))
    assert (await client.post(f"{open_board}/scores", json={"score": 5}, headers=ada)).status_code == 200
    other = await client_with()
    closed = await other.put(open_board, json=FOR_PLAYERS | {"player_writes": False})
    assert closed.status_code == 200
    assert (await client.post(f"{open_board}/scores", json={"score": 5}, headers=ada)).status_code == 403


async def test_a_batch_is_refused_by_the_definition_of_another_process(
    client: AsyncClient, open_board: str, project: str, secret: str, client_with: ClientWith
):
    ada = bearer(token(secret, project, "ada"))
    assert (await client.post(f"{open_board}/scores", json={"score": 5}, headers=ada)).status_code == 200
    other = await client_with()
    await other.put(open_board, json=FOR_PLAYERS | {"player_writes": False})
    many = (await client.post(f"{open_board}/scores/batch", json=[{"score": 5}], headers=ada)).json()
    assert many["accepted"] == 0
    assert "player_writes" in many["rejected"][0]["detail"]


async def test_a_dimension_that_another_process_removed_is_left_out(
    client: AsyncClient, open_board: str, project: str, secret: str, client_with: ClientWith
):
    ada = bearer(token(secret, project, "ada", groups={"country": "BR"}))
    assert (await client.post(f"{open_board}/scores", json={"score": 5}, headers=ada)).status_code == 200
    other = await client_with()
    narrowed = FOR_PLAYERS | {"groups": [["region"]]}
    changed = await other.put(open_board, json=narrowed, params={"allow_drop": "all_time"})
    assert changed.status_code == 200, changed.text
    assert (await client.post(f"{open_board}/scores", json={"score": 5}, headers=ada)).status_code == 200
    assert await members(client, open_board) == {"ada": 10}


async def test_the_tokens_groups_count(client: AsyncClient, open_board: str, project: str, secret: str):
    ada = bearer(token(secret, project, "ada", groups={"country": "BR", "guild": "unknown to the board"}))
    await client.post(f"{open_board}/scores", json={"score": 1}, headers=ada)
    given = {"score": 1, "groups": {"region": "south", "country": "BR"}}
    assert (await client.post(f"{open_board}/scores", json=given, headers=ada)).status_code == 200
    assert await members(client, open_board, group="country=BR") == {"ada": 2}
    assert await members(client, open_board, group="region=south") == {"ada": 1}
    contradicting = {"score": 1, "groups": {"country": "JP"}}
    answer = await client.post(f"{open_board}/scores", json=contradicting, headers=ada)
    assert answer.status_code == 403
    assert answer.json()["detail"].startswith("groups.country: ")
    assert await members(client, open_board) == {"ada": 2}


async def test_players_cannot_use_up_each_others_ids(
    client: AsyncClient, open_board: str, project: str, secret: str
):
    ada, bob = (bearer(token(secret, project, member)) for member in ("ada", "bob"))
    for player in (ada, bob, bob):
        answer = await client.post(f"{open_board}/scores", json={"score": 5, "id": "game-1"}, headers=player)
        assert answer.json()["id"] == "game-1"
        key = {**player, "Idempotency-Key": "game-2"}
        await client.post(f"{open_board}/scores", json={"score": 1}, headers=key)
        await client.post(f"{open_board}/scores/batch", json=[{"score": 2, "id": "game-3"}], headers=player)
    assert await members(client, open_board) == {"ada": 8, "bob": 8}


async def test_players_cannot_use_up_ids_that_laurels_made(
    client: AsyncClient, open_board: str, project: str, secret: str
):
    ada, bob = (bearer(token(secret, project, member)) for member in ("ada", "bob"))

    async def submit(player: dict[str, str], **given: str) -> dict[str, Any]:
        answer = await client.post(f"{open_board}/scores", json={"score": 5, **given}, headers=player)
        assert answer.status_code == 200
        return answer.json()

    # As if a call of both had gone unanswered, and had not run: each knows its name.
    unanswered = "~" + "A" * 22 + ".0"
    assert (await submit(bob, id=unanswered))["applied"] is True
    assert (await submit(ada, id=unanswered))["applied"] is True
    assert (await submit(ada, id=unanswered))["applied"] is False
    # A call that did run is recognized by its name, as whose id it comes back.
    ran = (await submit(ada))["id"]
    assert ran.startswith("~")
    assert (await submit(ada, id=ran))["applied"] is False
    many = await client.post(f"{open_board}/scores/batch", json=[{"score": 5, "id": ran}], headers=ada)
    assert many.json()["accepted"] == 1
    assert await members(client, open_board) == {"ada": 10, "bob": 5}


NOT_NUMBERS: list[Any] = [float("nan"), float("inf"), float("-inf"), "2000000000", [], {}]


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": NOW - timedelta(seconds=11)}, "its `exp` is in the past"),
        ({"exp": None}, "it needs the claim `exp`"),
        ({"exp": True}, "`exp` must be a number"),
        *(
            ({name: value}, f"`{name}` must be a number")
            for name in ("exp", "nbf", "iat")
            for value in NOT_NUMBERS
        ),
        *(
            ({name: value}, f"`{name}` must be a number: the time in unix seconds, before the year 10000")
            for name in ("exp", "nbf", "iat")
            for value in (10**400, -(10**400), 1e300, -1, 253_402_300_800, NOW.timestamp() * 1000)
        ),
        ({"nbf": NOW + timedelta(seconds=11)}, "its `nbf` is in the future"),
        ({"aud": "somebody"}, "its `aud` is not laurels"),
        ({"aud": None}, "it needs the claim `aud`"),
        ({"sub": ""}, "`sub` is not a member"),
        ({"sub": "x" * 257}, "`sub` is not a member"),
        ({"sub": 7}, "its `sub` must be a string"),
        ({"sub": ["ada"]}, "its `sub` must be a string"),
        ({"jti": 7}, "its `jti` must be a string"),
        ({"aud": ["somebody", 7]}, "its `aud` is not laurels"),
        ({"sub": None}, "it needs the claim `sub`"),
        ({"project": None}, "it needs the claim `project`"),
        ({"project": 7}, "it needs the claim `project`"),
        ({"groups": ["BR"]}, "`groups` must be an object of strings"),
        ({"groups": {"country": 55}}, "`groups` must be an object of strings"),
    ],
)
async def test_a_token_says_what_it_must(
    client: AsyncClient, board: str, project: str, secret: str, claims: dict[str, Any], why: str
):
    wrong = token(secret, **{"project": project, "member": "ada", **claims})  # pyright: ignore[reportArgumentType]
    answer = await client.get(f"{board}/entries", headers=bearer(wrong))
    assert answer.status_code == 401
    assert why in answer.json()["detail"]


@pytest.mark.parametrize("claims", [{"exp": NOW - timedelta(seconds=9)}, {"nbf": NOW + timedelta(seconds=9)}])
async def test_clocks_may_differ_a_little(
    client: AsyncClient, board: str, project: str, secret: str, claims: dict[str, Any]
):
    good = token(secret, project, "ada", **claims)
    assert (await client.get(f"{board}/entries", headers=bearer(good))).status_code == 200


async def test_a_token_of_another_secret_is_refused(
    client: AsyncClient, board: str, project: str, secret: str
):
    for wrong in (
        token("x" * 50, project, "ada"),
        token(secret, f"{project}-other", "ada"),
        token(secret, project, "ada", kid="ls_unknown0"),
        token(secret, project, "ada").rpartition(".")[0] + ".",
        jwt.encode({"project": project, "sub": "ada", "aud": "laurels", "exp": NOW}, "", "none"),
    ):
        answer = await client.get(f"{board}/entries", headers=bearer(wrong))
        assert answer.status_code == 401, wrong
        assert answer.json()["type"] == "/problems/unauthorized"


@pytest.mark.parametrize("garbage", ["eyJ.eyJ.x", "eyJhbGciOiJub25lIn0.e30.", f"eyJ{'x' * 9000}.e30.x"])
async def test_garbage_in_the_shape_of_a_token_is_unauthorized(client: AsyncClient, board: str, garbage: str):
    assert (await client.get(board, headers=bearer(garbage))).status_code == 401


def assembled(secret: str, header: str, claims: str, digest: str = "sha256") -> str:
    """A token of any header and claims, signed with HMAC."""
    signed = ".".join(
        base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in (header, claims)
    )
    signature = hmac.new(secret.encode(), signed.encode(), digest).digest()
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


HEADER = '{"alg":"HS256"}'
FORGED_HEADERS = {
    "none": '{"alg":"none"}',
    "another algorithm": '{"alg":"HS512"}',
    "small letters": '{"alg":"hs256"}',
    "a list": '{"alg":["HS256"]}',
    "an extension that is not known": '{"alg":"HS256","crit":["x"],"x":1}',
    "an extension that changes what is signed": '{"alg":"HS256","crit":["b64"],"b64":false}',
    "nothing critical": '{"alg":"HS256","crit":[]}',
    "two algorithms": '{"alg":"none","alg":"HS256"}',
    "no text for a secret": '{"alg":"HS256","kid":7}',
    "a file for a secret": '{"alg":"HS256","kid":"../../dev/null"}',
}


@pytest.mark.parametrize("header", FORGED_HEADERS.values(), ids=FORGED_HEADERS)
async def test_a_header_that_asks_for_something_else_is_refused(
    client: AsyncClient, board: str, project: str, secret: str, header: str
):
    exp = int(NOW.timestamp()) + 60
    claims = f'{{"project":"{project}","sub":"ada","aud":"laurels","exp":{exp}}}'
    good = await client.get(board, headers=bearer(assembled(secret, HEADER, claims)))
    assert good.status_code == 200
    digest = "sha512" if "HS512" in header else "sha256"
    forged = assembled(secret, header, claims, digest)
    assert (await client.get(board, headers=bearer(forged))).status_code == 401


@pytest.mark.parametrize(
    "twice", ['"sub":"ada"', '"exp":1', '"project":"another"', '"groups":{"a":"","a":""}']
)
async def test_a_token_that_says_something_twice_is_refused(
    client: AsyncClient, board: str, project: str, secret: str, twice: str
):
    exp = int(NOW.timestamp()) + 60
    claims = f'{{{twice},"project":"{project}","sub":"bob","aud":"laurels","exp":{exp}}}'
    answer = await client.get(board, headers=bearer(assembled(secret, HEADER, claims)))
    assert answer.status_code == 401
    assert "repeats a claim" in answer.json()["detail"]


def pem(key: Any) -> tuple[str, str]:  # noqa: ANN401  # of any kind
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private.decode(), public.decode()


KEYS = {
    "EdDSA": pem(ed25519.Ed25519PrivateKey.generate()),
    "ES256": pem(ec.generate_private_key(ec.SECP256R1())),
    "RS256": pem(rsa.generate_private_key(65537, 2048)),
}


@pytest.mark.parametrize("algorithm", KEYS)
async def test_a_project_may_keep_its_own_private_key(
    client: AsyncClient, board: str, project: str, algorithm: str
):
    private, public = KEYS[algorithm]
    made = await client.post(
        f"/v1/projects/{project}/secrets",
        json={"use": "players", "algorithm": algorithm, "public_key": public},
    )
    assert (made.status_code, made.json()["secret"]) == (201, None)
    good = token(private, project, "ada", algorithm=algorithm)
    assert (await client.get(f"{board}/entries", headers=bearer(good))).status_code == 200


async def test_the_algorithm_is_the_stored_one_whatever_the_token_says(
    client: AsyncClient, board: str, project: str, monkeypatch: pytest.MonkeyPatch
):
    _, public = KEYS["RS256"]
    await client.post(
        f"/v1/projects/{project}/secrets", json={"use": "players", "algorithm": "RS256", "public_key": public}
    )

    # Everybody knows the public key: as an HMAC secret it must open nothing.
    # PyJWT would not make such a token.
    def is_no_pem(_: bytes) -> bool:
        return False

    monkeypatch.setattr("jwt.algorithms.is_pem_format", is_no_pem)
    confused = token(public, project, "ada", algorithm="HS256")
    monkeypatch.undo()
    assert (await client.get(f"{board}/entries", headers=bearer(confused))).status_code == 401


async def test_two_secrets_are_in_force_while_a_project_goes_over(
    client: AsyncClient, board: str, project: str, secret: str
):
    route = f"/v1/projects/{project}/secrets"
    second = (await client.post(route, json={"use": "players"})).json()
    third = await client.post(route, json={"use": "players"})
    assert third.status_code == 409
    old, new = token(secret, project, "ada"), token(second["secret"], project, "ada", kid=second["id"])
    for good in (old, new):
        assert (await client.get(f"{board}/entries", headers=bearer(good))).status_code == 200
    first = (await client.get(route)).json()["secrets"][0]
    assert (await client.delete(f"{route}/{first['id']}")).status_code == 204
    assert (await client.get(f"{board}/entries", headers=bearer(old))).status_code == 401
    assert (await client.get(f"{board}/entries", headers=bearer(new))).status_code == 200


async def test_the_audience_is_a_setting(board: str, project: str, secret: str, client_with: ClientWith):
    other = await client_with(token_audience="games.example.com")
    # By that process's clock, which is the real one.
    ours = token(secret, project, "ada", aud="games.example.com", exp=2**33)
    assert (await other.get(f"{board}/entries", headers=bearer(ours))).status_code == 200
    laurels = token(secret, project, "ada", exp=2**33)
    assert (await other.get(f"{board}/entries", headers=bearer(laurels))).status_code == 401


async def test_a_key_that_looks_like_a_token_is_still_a_key(
    client: AsyncClient, board: str, project: str, make_key: MakeKey, laurels: Laurels
):
    dotted = f"dotted.{project}.key"
    await laurels.keys.ensure(dotted, project, ["read"], f"dotted-{project}")
    assert (await client.get(board, headers=bearer(dotted))).status_code == 200


async def test_a_token_that_was_used_expires_and_is_revoked_all_the_same(
    client: AsyncClient, scored: str, project: str, secret: str, clock: FixedClock
):
    """A process remembers the tokens that it verified."""
    ada = bearer(token(secret, project, "ada", exp=NOW + timedelta(minutes=5)))
    bob = bearer(token(secret, project, "bob"))
    for headers in (ada, bob, ada, bob):
        assert (await client.get(f"{scored}/entries", headers=headers)).status_code == 200
    clock.advance(timedelta(minutes=6))
    answer = await client.get(f"{scored}/entries", headers=ada)
    assert (answer.status_code, "expired" in answer.json()["detail"]) == (401, True)
    assert (await client.get(f"{scored}/entries", headers=bob)).status_code == 200
    clock.now -= 6 * 60 * 1_000_000
    assert (await client.get(f"{scored}/entries", headers=ada)).status_code == 200
    (made,) = (await client.get(f"/v1/projects/{project}/secrets")).json()["secrets"]
    assert (await client.delete(f"/v1/projects/{project}/secrets/{made['id']}")).status_code == 204
    for headers in (ada, bob):
        assert (await client.get(f"{scored}/entries", headers=headers)).status_code == 401
