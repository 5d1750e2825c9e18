"""The API keys of a project, and the secrets of its players' tokens and signatures."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from msgspec import Struct

from laurels.access.store.api_keys import ApiKey, Scope
from laurels.access.store.secrets import Algorithm, NewSecret, Use
from laurels.errors import NotFound
from laurels.http.authentication import Call
from laurels.http.operation import PROJECT, Body, Routes
from laurels.moments import Timestamp

routes = Routes("keys")


class KeyAnswer(Struct, frozen=True):
    """An API key, without its secret."""

    id: UUID
    prefix: str
    project: str
    scopes: list[Scope]
    label: str
    created_at: Timestamp
    revoked_at: Timestamp | None


class CreatedKey(KeyAnswer, frozen=True):
    """A new API key. `key` is shown this once."""

    key: str


class Keys(Struct, frozen=True):
    """The API keys of a project, oldest first, including revoked ones."""

    project: str
    keys: list[KeyAnswer]


class SecretAnswer(Struct, frozen=True):
    """A secret for players' tokens or signatures, without the secret itself."""

    id: str
    project: str
    use: Use
    algorithm: Algorithm
    required: bool
    label: str
    created_at: Timestamp
    revoked_at: Timestamp | None


class CreatedSecret(SecretAnswer, frozen=True):
    """A new secret. `secret` is shown this once; null if the project gave a public key."""

    secret: str | None


class Secrets(Struct, frozen=True):
    """The secrets of a project, oldest first, including revoked ones."""

    project: str
    secrets: list[SecretAnswer]


class NewKey(Struct, forbid_unknown_fields=True):
    """What a new API key may do."""

    scopes: list[Scope]
    label: str = ""


class WantedSecret(Struct, forbid_unknown_fields=True):
    """What a new secret is for."""

    use: Use
    algorithm: Algorithm | None = None
    public_key: str | None = None
    required: bool = False
    label: str = ""


_KEY = {
    "id": "6f1c9f0e-3d8f-4a57-9a8e-0d3c6f6f7b11",
    "prefix": "lk_4k2mzq8w",
    "project": "acme",
    "scopes": ["read", "submit"],
    "label": "game server",
    "created_at": "2025-10-24T12:00:00Z",
    "revoked_at": None,
}
_SECRET = {
    "id": "ls_9d3kq0xv",
    "project": "acme",
    "use": "players",
    "algorithm": "HS256",
    "required": False,
    "label": "",
    "created_at": "2025-10-24T12:00:00Z",
    "revoked_at": None,
}


@routes.get(f"{PROJECT}/keys", scope="admin", example={"project": "acme", "keys": [_KEY]})
async def list_keys(call: Call) -> Keys:
    """List the API keys of a project.

    Oldest first, including revoked ones, without the keys themselves.
    """
    keys = await call.laurels.keys.keys(call.project)
    return Keys(call.project, [KeyAnswer(**_key(key)) for key in keys])


@routes.post(
    f"{PROJECT}/keys",
    scope="admin",
    status=201,
    body=Body({"scopes": ["read", "submit"], "label": "game server"}),
    example={**_KEY, "key": "lk_4k2mzq8w_Kq3…"},
)
async def create_key(call: Call, given: NewKey) -> CreatedKey:
    """Make an API key.

    For this project. The key is shown once: only its digest is stored.
    """
    key, secret = await call.laurels.keys.create(call.project, given.scopes, given.label)
    return CreatedKey(**_key(key), key=secret)


@routes.delete(f"{PROJECT}/keys/{{prefix:segment}}", scope="admin", problems=(404,))
async def revoke_key(call: Call, prefix: str) -> None:
    """Revoke an API key.

    Permanently, and at once in every process.
    """
    if not await call.laurels.keys.revoke(prefix, project=call.project):
        raise NotFound(f"no key {prefix} of {call.project} is in force")


@routes.get(f"{PROJECT}/secrets", scope="admin", example={"project": "acme", "secrets": [_SECRET]})
async def list_secrets(call: Call) -> Secrets:
    """List the secrets of a project.

    Oldest first, including revoked ones, without the secrets themselves.
    """
    secrets = await call.laurels.secrets.secrets(call.project)
    return Secrets(call.project, [SecretAnswer(**asdict(secret)) for secret in secrets])


@routes.post(
    f"{PROJECT}/secrets",
    scope="admin",
    status=201,
    body=Body({"use": "players"}),
    example={**_SECRET, "secret": "ls_9d3kq0xv_Zt0…"},
    problems=(409,),
)
async def create_secret(call: Call, given: WantedSecret) -> CreatedSecret:
    """Make a secret, or give a public key.

    To sign players' tokens (`players`) or submissions (`signatures`).

    For tokens, `algorithm` is `HS256` with a secret that Laurels makes and shows once, or `EdDSA`, `ES256` or
    `RS256` with your `public_key` as PEM. If a secret for signatures is `required`, unsigned submissions are
    refused. At most two of each use are in force: revoke the old one when the new one is in use.
    """
    wanted = NewSecret(given.use, given.algorithm, given.public_key, given.required, given.label)
    secret, made = await call.laurels.secrets.create(call.project, wanted)
    return CreatedSecret(**asdict(secret), secret=made)


@routes.delete(f"{PROJECT}/secrets/{{id:segment}}", scope="admin", problems=(404,))
async def revoke_secret(call: Call, id: str) -> None:  # noqa: A002  # its name in the path
    """Revoke a secret.

    Permanently, and at once in every process.
    """
    if not await call.laurels.secrets.revoke(id, project=call.project):
        raise NotFound(f"no secret {id} of {call.project} is in force")


def _key(key: ApiKey) -> dict[str, Any]:
    return {**asdict(key), "scopes": sorted(key.scopes)}
