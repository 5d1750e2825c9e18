"""What a project is reached with: its API keys, and the secrets of its players' tokens and of signatures."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel

from laurels.access.store.keys import ApiKey, Scope
from laurels.access.store.secrets import Algorithm, NewSecret, ProjectSecret, Use
from laurels.errors import NotFound
from laurels.http import body
from laurels.http.authentication import Call, admit
from laurels.http.openapi import own_name, problem_answers
from laurels.http.parameters import NoParameters, query

router = APIRouter(tags=["keys"], generate_unique_id_function=own_name)


class KeyAnswer(BaseModel):
    """An API key, without its secret."""

    id: UUID
    prefix: str
    project: str
    scopes: list[Scope]
    label: str
    created_at: datetime
    revoked_at: datetime | None


class CreatedKey(KeyAnswer):
    """A new API key. `key` is shown this once."""

    key: str


class Keys(BaseModel):
    """The API keys of a project, oldest first, revoked ones too."""

    project: str
    keys: list[KeyAnswer]


class SecretAnswer(BaseModel):
    """What players' tokens or signatures are verified with, without the secret itself."""

    id: str
    project: str
    use: Use
    algorithm: Algorithm
    required: bool
    label: str
    created_at: datetime
    revoked_at: datetime | None


class CreatedSecret(SecretAnswer):
    """A new one. `secret` is shown this once; null where the project gave a public key."""

    secret: str | None


class Secrets(BaseModel):
    """The secrets of a project, oldest first, revoked ones too."""

    project: str
    secrets: list[SecretAnswer]


class NewKey(msgspec.Struct, forbid_unknown_fields=True):
    scopes: list[Scope]
    label: str = ""


class Wanted(msgspec.Struct, forbid_unknown_fields=True):
    use: Use
    algorithm: Algorithm | None = None
    public_key: str | None = None
    required: bool = False
    label: str = ""


_new_key = msgspec.json.Decoder(NewKey)
_wanted = msgspec.json.Decoder(Wanted)

_KEY: dict[str, Any] = {
    "id": "6f1c9f0e-3d8f-4a57-9a8e-0d3c6f6f7b11",
    "prefix": "lk_4k2mzq8w",
    "project": "acme",
    "scopes": ["read", "submit"],
    "label": "game server",
    "created_at": "2025-10-24T12:00:00Z",
    "revoked_at": None,
}
_SECRET: dict[str, Any] = {
    "id": "ls_9d3kq0xv",
    "project": "acme",
    "use": "players",
    "algorithm": "HS256",
    "required": False,
    "label": "",
    "created_at": "2025-10-24T12:00:00Z",
    "revoked_at": None,
}

ProjectName = Annotated[str, Path(description="A tenant.", examples=["acme"])]
KeyPrefix = Annotated[
    str, Path(description="`lk_` and eight characters, or the key's id.", examples=["lk_4k2mzq8w"])
]
SecretId = Annotated[str, Path(description="`ls_` and eight characters.", examples=["ls_9d3kq0xv"])]


async def _administrator(request: Request, project: ProjectName) -> Call:  # noqa: ARG001  # for the document
    call = await admit(request, "admin")
    query(request, NoParameters)
    return call


def _shown(example: object) -> dict[str, Any]:
    return {"content": {"application/json": {"example": example}}}


def _taken(kind: type[msgspec.Struct], example: object) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([kind])
    content = {"schema": components[kind.__name__], "example": example}
    return {"requestBody": {"required": True, "content": {body.JSON: content}}}


@router.get(
    "/v1/projects/{project:segment}/keys",
    summary="List the API keys of a project",
    responses={200: _shown({"project": "acme", "keys": [_KEY]}), **problem_answers(401, 403, 422, 429, 503)},
)
async def list_keys(call: Annotated[Call, Depends(_administrator)]) -> Keys:
    """Oldest first, revoked ones too; never the secrets.

    Needs the scope `admin`.
    """
    keys = await call.laurels.keys.keys(call.project)
    return Keys(project=call.project, keys=[KeyAnswer(**_key(key)) for key in keys])


@router.post(
    "/v1/projects/{project:segment}/keys",
    summary="Make an API key",
    status_code=201,
    responses={
        201: _shown({**_KEY, "key": "lk_4k2mzq8w_Kq3…"}),
        **problem_answers(400, 401, 403, 408, 413, 415, 422, 429, 503),
    },
    openapi_extra=_taken(NewKey, {"scopes": ["read", "submit"], "label": "game server"}),
)
async def create_key(call: Annotated[Call, Depends(_administrator)]) -> CreatedKey:
    """For this project. It is shown once: only its digest is kept.

    Needs the scope `admin`.
    """
    given = await body.read_json(call.request, _new_key)
    key, secret = await call.laurels.keys.create(call.project, given.scopes, given.label)
    return CreatedKey(**_key(key), key=secret)


@router.delete(
    "/v1/projects/{project:segment}/keys/{prefix:segment}",
    summary="Revoke an API key",
    status_code=204,
    responses=problem_answers(401, 403, 404, 422, 429, 503),
)
async def revoke_key(call: Annotated[Call, Depends(_administrator)], prefix: KeyPrefix) -> None:
    """For good, and at once in every process.

    Needs the scope `admin`.
    """
    if not await call.laurels.keys.revoke(prefix, project=call.project):
        raise NotFound(f"no key {prefix} of {call.project} is in force")


@router.get(
    "/v1/projects/{project:segment}/secrets",
    summary="List the secrets of a project",
    responses={
        200: _shown({"project": "acme", "secrets": [_SECRET]}),
        **problem_answers(401, 403, 422, 429, 503),
    },
)
async def list_secrets(call: Annotated[Call, Depends(_administrator)]) -> Secrets:
    """Oldest first, revoked ones too; never the secrets themselves.

    Needs the scope `admin`.
    """
    secrets = await call.laurels.secrets.secrets(call.project)
    return Secrets(project=call.project, secrets=[SecretAnswer(**_secret(secret)) for secret in secrets])


@router.post(
    "/v1/projects/{project:segment}/secrets",
    summary="Make a secret, or give a public key",
    status_code=201,
    responses={
        201: _shown({**_SECRET, "secret": "ls_9d3kq0xv_Zt0…"}),
        **problem_answers(400, 401, 403, 408, 409, 413, 415, 422, 429, 503),
    },
    openapi_extra=_taken(Wanted, {"use": "players"}),
)
async def create_secret(call: Annotated[Call, Depends(_administrator)]) -> CreatedSecret:
    """What players' tokens (`players`) or submissions (`signatures`) are signed with.

    For tokens, `algorithm` is `HS256` with a secret that is made here and shown once; or `EdDSA`, `ES256` or
    `RS256` with the `public_key` that is given, as PEM. Where a secret for signatures is `required`, what is
    not signed is refused. At most two of a kind are in force: revoke the old one once the new one is in use.

    Needs the scope `admin`.
    """
    given = await body.read_json(call.request, _wanted)
    wanted = NewSecret(given.use, given.algorithm, given.public_key, given.required, given.label)
    secret, made = await call.laurels.secrets.create(call.project, wanted)
    return CreatedSecret(**_secret(secret), secret=made)


@router.delete(
    "/v1/projects/{project:segment}/secrets/{id:segment}",
    summary="Revoke a secret",
    status_code=204,
    responses=problem_answers(401, 403, 404, 422, 429, 503),
)
async def revoke_secret(call: Annotated[Call, Depends(_administrator)], id: SecretId) -> None:  # noqa: A002  # its name in the path
    """For good, and at once in every process.

    Needs the scope `admin`.
    """
    if not await call.laurels.secrets.revoke(id, project=call.project):
        raise NotFound(f"no secret {id} of {call.project} is in force")


def _key(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "prefix": key.prefix,
        "project": key.project,
        "scopes": sorted(key.scopes),
        "label": key.label,
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    }


def _secret(secret: ProjectSecret) -> dict[str, Any]:
    return {
        "id": secret.id,
        "project": secret.project,
        "use": secret.use,
        "algorithm": secret.algorithm,
        "required": secret.required,
        "label": secret.label,
        "created_at": secret.created_at,
        "revoked_at": secret.revoked_at,
    }
