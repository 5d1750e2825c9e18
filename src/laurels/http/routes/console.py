"""Signs in to the console and out. On every other route, a session counts like its key."""

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from laurels.access import sessions
from laurels.access.principal import Principal
from laurels.access.store.api_keys import SCOPES, Scope, digest_of
from laurels.errors import Forbidden, Unauthorized
from laurels.http.authentication import Call, admit_without_key, identify, principal_with
from laurels.http.encoding import JsonResponse, encode
from laurels.http.operation import Body, Operation, Routes

if TYPE_CHECKING:
    from laurels.access.limits import Limiter

# The body is read before the caller is known, so it must be small.
SIGN_IN_BYTES: Final = 4096


class ConsoleSession(Struct, frozen=True):
    """The key of the session: its project (`*` for every one), its scopes and its id."""

    project: str
    scopes: list[Scope]
    key: str


class SignIn(Struct, forbid_unknown_fields=True):
    key: Annotated[str, Meta(description="An API key.")]


_SESSION = {"project": "acme", "scopes": ["read", "admin"], "key": "6f1c9f0e-3d8f-4a57-9a8e-0d3c6f6f7b11"}
_COOKIE = {"Set-Cookie": {"description": "The session.", "schema": {"type": "string"}}}


async def _admit_own_page(request: Request, operation: Operation) -> Call:
    sessions.check_origin(request)
    return await admit_without_key(request, operation)


async def _admit_to_sign_in(request: Request, operation: Operation) -> Call:
    call = await _admit_own_page(request, operation)
    limiter: Limiter = request.app.state.limiter
    limiter.check_failures(request)
    return call


routes = Routes("console", admit_without_key)
own_page = Routes("console", _admit_own_page)
entrance = Routes("console", _admit_to_sign_in)


@entrance.post(
    "/console/session",
    answer=ConsoleSession,
    example=_SESSION,
    status=201,
    responses={201: {"headers": _COOKIE}},
    body=Body({"key": "lk_4k2mzq8w_Kq3…"}),
    most_bytes=SIGN_IN_BYTES,
    problems=(401, 403, 422, 429, 503),
)
async def sign_in(call: Call, given: SignIn) -> Response:
    """Sign in to the console.

    With a key that has the scope `admin`. The cookie then replaces the key for at most 12 hours.

    Only for pages of this origin, which send `X-Laurels-Console: 1` with this and with every other request
    that changes something.
    """
    request, key = call.request, given.key.strip()
    principal = await principal_with(request, key)
    if "admin" not in principal.scopes:
        raise Forbidden("the console needs a key with the scope admin")
    if before := sessions.session_of(request):
        await sessions.end(call.laurels.valkey, before)
    session = await sessions.begin(call.laurels.valkey, digest_of(key))
    response = JsonResponse(encode(_session(principal)), status=201)
    sessions.set_cookie(request, response, session)
    return response


@routes.get(
    "/console/session",
    example=_SESSION,
    responses={204: {"description": "No one is signed in."}},
    problems=(403, 422, 429, 503),
)
async def read_session(call: Call) -> ConsoleSession | None:
    """Read who is signed in.

    By the cookie only. If the session is over or its key was revoked, no one is: 204.
    """
    request = call.request
    if request.headers.get("authorization") or not sessions.session_of(request):
        return None
    try:
        return _session((await identify(request)).principal)
    except Unauthorized:
        return None


@own_page.delete("/console/session", responses={204: {"headers": _COOKIE}}, problems=(403, 422, 503))
async def sign_out(call: Call) -> Response:
    """Sign out of the console.

    Ends the session, if there is one, and deletes the cookie.
    """
    if session := sessions.session_of(call.request):
        await sessions.end(call.laurels.valkey, session)
    response = Response(status_code=204)
    sessions.delete_cookie(response)
    return response


def _session(principal: Principal) -> ConsoleSession:
    scopes: list[Scope] = [each for each in SCOPES if each in principal.scopes]
    return ConsoleSession(principal.project, scopes, principal.name)
