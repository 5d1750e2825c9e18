"""Signing in to the console, and out. A session then counts for every other route as its key does."""

from typing import TYPE_CHECKING, Any, Final

import msgspec
from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel

from laurels.access import sessions
from laurels.access.principal import Principal
from laurels.access.store.keys import SCOPES, Scope, digest_of
from laurels.errors import Forbidden, Unauthorized
from laurels.http import body
from laurels.http.authentication import identify, principal_with
from laurels.http.openapi import own_name, problem_answers
from laurels.http.parameters import NoParameters, query

if TYPE_CHECKING:
    from laurels.access.limits import Limiter

# Nobody is known before the body is read, so little of it is.
SIGN_IN_BYTES: Final = 4096

router = APIRouter(tags=["console"], generate_unique_id_function=own_name)


class Session(BaseModel):
    """Whose key the session stands for: its project (`*` for every one), its scopes, its id."""

    project: str
    scopes: list[Scope]
    key: str


class SignIn(msgspec.Struct, forbid_unknown_fields=True):
    key: str


_sign_in = msgspec.json.Decoder(SignIn)

_SESSION = {"project": "acme", "scopes": ["read", "admin"], "key": "6f1c9f0e-3d8f-4a57-9a8e-0d3c6f6f7b11"}
_SHOWN: dict[str, Any] = {"content": {"application/json": {"example": _SESSION}}}
_COOKIE = {"Set-Cookie": {"description": "The session.", "schema": {"type": "string"}}}
_TAKEN: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            body.JSON: {
                "schema": {
                    "type": "object",
                    "properties": {"key": {"type": "string", "description": "An API key."}},
                    "required": ["key"],
                    "additionalProperties": False,
                },
                "example": {"key": "lk_4k2mzq8w_Kq3…"},
            }
        },
    }
}


async def _from_our_page(request: Request) -> None:
    sessions.check_origin(request)
    query(request, NoParameters)


@router.post(
    "/console/session",
    summary="Sign in to the console",
    status_code=201,
    dependencies=[Depends(_from_our_page)],
    responses={
        201: {**_SHOWN, "headers": _COOKIE},
        **problem_answers(400, 401, 403, 408, 413, 415, 422, 429, 503),
    },
    openapi_extra=_TAKEN,
)
async def sign_in(request: Request, response: Response) -> Session:
    """With a key that has the scope `admin`. The cookie then stands for the key, for 12 hours at most.

    Only for pages of this origin, which send `X-Laurels-Console: 1` with this and with whatever changes
    something.
    """
    limiter: Limiter = request.app.state.limiter
    limiter.check_failures(request)
    given = await body.read_json(request, _sign_in, SIGN_IN_BYTES)
    key = given.key.strip()
    principal = await principal_with(request, key)
    if "admin" not in principal.scopes:
        raise Forbidden("the console takes a key with the scope admin")
    if before := sessions.named_in(request):
        await sessions.end(request.app.state.laurels.valkey, before)
    session = await sessions.begin(request.app.state.laurels.valkey, digest_of(key))
    sessions.hand_over(request, response, session)
    return _session(principal)


@router.get(
    "/console/session",
    summary="Who is signed in",
    response_model=Session,
    responses={
        200: _SHOWN,
        204: {"description": "Nobody."},
        **problem_answers(403, 422, 429, 503),
    },
)
async def read_session(request: Request) -> Session | Response:
    """By the cookie alone. Nobody, too, once the session is over or its key was revoked: 204."""
    query(request, NoParameters)
    if request.headers.get("authorization") or not sessions.named_in(request):
        return Response(status_code=204)
    try:
        call = await identify(request)
    except Unauthorized:
        return Response(status_code=204)
    return _session(call.principal)


@router.delete(
    "/console/session",
    summary="Sign out of the console",
    status_code=204,
    dependencies=[Depends(_from_our_page)],
    responses={204: {"headers": _COOKIE}, **problem_answers(403, 422, 503)},
)
async def sign_out(request: Request, response: Response) -> None:
    """Ends the session, if there is one, and takes the cookie back."""
    if session := sessions.named_in(request):
        await sessions.end(request.app.state.laurels.valkey, session)
    sessions.take_back(response)


def _session(principal: Principal) -> Session:
    scopes: list[Scope] = [each for each in SCOPES if each in principal.scopes]
    return Session(project=principal.project, scopes=scopes, key=principal.name)
