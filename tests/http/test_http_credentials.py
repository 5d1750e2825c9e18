from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from .player_tokens import bearer

if TYPE_CHECKING:
    from httpx import AsyncClient

    from .conftest import MakeKey


def pem(key: Any) -> str:  # noqa: ANN401  # of any kind
    public = key.public_key() if hasattr(key, "public_key") else key
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return public.public_bytes(encoding, form).decode()


@pytest.fixture
def keys(project: str) -> str:
    return f"/v1/projects/{project}/keys"


@pytest.fixture
def secrets(project: str) -> str:
    return f"/v1/projects/{project}/secrets"


async def test_a_project_makes_lists_and_revokes_its_keys(
    client: AsyncClient, board: str, keys: str, project: str, make_key: MakeKey
):
    own = bearer(await make_key(project, "admin"))
    made = await client.post(keys, json={"scopes": ["read"], "label": "page"}, headers=own)
    assert made.status_code == 201
    key = made.json().pop("key")
    assert (await client.get(board, headers=bearer(key))).status_code == 200
    listed = (await client.get(keys, headers=own)).json()
    assert listed["project"] == project
    assert [each["scopes"] for each in listed["keys"]] == [["admin"], ["read"]]
    assert key not in str(listed)
    prefix = made.json()["prefix"]
    assert (await client.delete(f"{keys}/{prefix}", headers=own)).status_code == 204
    assert (await client.get(board, headers=bearer(key))).status_code == 401
    assert (await client.delete(f"{keys}/{prefix}", headers=own)).status_code == 404
    assert (await client.get(keys, headers=own)).json()["keys"][1]["revoked_at"]


async def test_a_key_of_another_project_is_not_there(
    client: AsyncClient, keys: str, secrets: str, project: str, make_key: MakeKey
):
    others = await client.post(f"/v1/projects/{project}-other/keys", json={"scopes": ["read"]})
    made = await client.post(f"/v1/projects/{project}-other/secrets", json={"use": "players"})
    own = bearer(await make_key(project, "admin"))
    assert (await client.delete(f"{keys}/{others.json()['prefix']}", headers=own)).status_code == 404
    assert (await client.delete(f"{secrets}/{made.json()['id']}", headers=own)).status_code == 404
    star = await client.post("/v1/projects/*/keys", json={"scopes": ["read"]}, headers=own)
    assert star.status_code == 403
    assert (await client.post("/v1/projects/*/keys", json={"scopes": ["read"]})).status_code == 422


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "scopes"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["write"]}, "scopes[0]"),
        ({"scopes": ["read"], "label": "x" * 201}, "label"),
        ({"scopes": ["read"], "project": "acme"}, "project"),
    ],
)
async def test_a_wrong_key_is_refused(client: AsyncClient, keys: str, body: dict[str, Any], field: str):
    answer = await client.post(keys, json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field
    assert (await client.get(keys)).json()["keys"] == []


async def test_a_secret_is_shown_once(client: AsyncClient, secrets: str):
    made = (await client.post(secrets, json={"use": "signatures", "required": True, "label": "new"})).json()
    secret = made.pop("secret")
    assert secret.startswith(f"{made['id']}_")
    assert len(secret) > 50
    listed = await client.get(secrets)
    assert listed.json()["secrets"] == [made]
    assert secret not in listed.text
    assert (made["algorithm"], made["required"], made["revoked_at"]) == ("HS256", True, None)


ED25519 = pem(ed25519.Ed25519PrivateKey.generate())


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "use"),
        ({"use": "fun"}, "use"),
        ({"use": "players", "algorithm": "none"}, "algorithm"),
        ({"use": "players", "algorithm": "HS512"}, "algorithm"),
        ({"use": "signatures", "algorithm": "EdDSA", "public_key": ED25519}, "algorithm"),
        ({"use": "players", "required": True}, "required"),
        ({"use": "players", "public_key": ED25519}, "public_key"),
        ({"use": "players", "algorithm": "EdDSA"}, "public_key"),
        ({"use": "players", "algorithm": "EdDSA", "public_key": "nonsense"}, "public_key"),
        ({"use": "players", "algorithm": "RS256", "public_key": ED25519}, "public_key"),
        (
            {
                "use": "players",
                "algorithm": "RS256",
                "public_key": pem(rsa.generate_private_key(65537, 1024)),  # noqa: S505  # too short, as it must be
            },
            "public_key",
        ),
        (
            {
                "use": "players",
                "algorithm": "ES256",
                "public_key": pem(ec.generate_private_key(ec.SECP384R1())),
            },
            "public_key",
        ),
        ({"use": "players", "label": "\x00"}, "label"),
    ],
)
async def test_a_wrong_secret_is_refused(client: AsyncClient, secrets: str, body: dict[str, Any], field: str):
    answer = await client.post(secrets, json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field
    assert (await client.get(secrets)).json()["secrets"] == []


async def test_a_private_key_is_refused_and_not_repeated(client: AsyncClient, secrets: str):
    private = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    body = {"use": "players", "algorithm": "EdDSA", "public_key": private.decode()}
    answer = await client.post(secrets, json=body)
    assert answer.status_code == 422
    assert "PRIVATE" not in answer.text


async def test_each_use_has_two_at_most(client: AsyncClient, secrets: str):
    for use in ("players", "signatures"):
        found = [(await client.post(secrets, json={"use": use})).status_code for _ in range(3)]
        assert found == [201, 201, 409]
