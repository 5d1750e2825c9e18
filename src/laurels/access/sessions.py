"""Sessions of the console: a cookie that stands for a key, for as long as that key is in force.

The browser has a random id that no script can read. Valkey has what it stands for, the digest of the key,
under the id's own digest, and sealed with it: whoever reads Valkey learns neither the session nor the key.
Every request looks the key up as if it had been sent, so that a revoked one ends its sessions at once.

A browser sends cookies along whoever makes it ask. So a session counts only for what our own pages ask:
`check_origin`.
"""

from __future__ import annotations

import secrets
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from laurels.errors import Forbidden
from laurels.valkey import functions, keyspace, strings
from laurels.valkey.names import SESSION

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from laurels.valkey.client import Valkey

COOKIE: Final = "laurels_session"
# Over HTTPS. By this prefix a browser takes it from this very host alone, not from its neighbours.
SECURE_COOKIE: Final = f"__Host-{COOKIE}"
HEADER: Final = "X-Laurels-Console"
SESSION_SECONDS: Final = 12 * 3600
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


async def begin(valkey: Valkey, key_digest: bytes) -> str:
    """The id of a new session."""
    session = secrets.token_urlsafe(32)
    sealed = _seal(session, key_digest)
    await functions.begin_session(valkey, _key(session), sealed, SESSION_SECONDS)
    return session


async def find(valkey: Valkey, session: str) -> bytes | None:
    """The digest of the key that the session stands for; None once it is over."""
    sealed = await valkey.run(strings.get(_key(session)))
    return None if sealed is None else _seal(session, sealed)


async def end(valkey: Valkey, session: str) -> None:
    await valkey.run(keyspace.delete(_key(session)))


def named_in(request: Request) -> str | None:
    """The session that the request's cookie names."""
    if "cookie" not in request.headers:
        return None
    return request.cookies.get(SECURE_COOKIE) or request.cookies.get(COOKIE)


def hand_over(request: Request, response: Response, session: str) -> None:
    """To the browser, which tells by `Origin` whether it came over HTTPS: a proxy may hide that from us."""
    is_secure = request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")
    response.set_cookie(
        SECURE_COOKIE if is_secure else COOKIE,
        session,
        max_age=SESSION_SECONDS,
        path="/",
        secure=is_secure,
        httponly=True,
        samesite="strict",
    )


def take_back(response: Response) -> None:
    for name, is_secure in ((COOKIE, False), (SECURE_COOKIE, True)):
        response.delete_cookie(name, path="/", secure=is_secure, httponly=True, samesite="strict")


def check_origin(request: Request) -> None:
    """Raises `Forbidden` unless a page of ours asks.

    Whatever changes something has our header, which no form sends and no page of another origin may; and says
    that it comes from this origin: by `Sec-Fetch-Site`, or by `Origin` where the browser leaves that out,
    which it does over plain HTTP.
    """
    site = request.headers.get("sec-fetch-site")
    if request.method in SAFE:
        is_ours = site in (None, "same-origin", "none")
    elif request.headers.get(HEADER) != "1":
        raise Forbidden(f"a session's requests that change something have the header {HEADER}: 1")
    elif site is not None:
        is_ours = site == "same-origin"
    else:
        host, origin = request.headers.get("host"), request.headers.get("origin")
        is_ours = bool(host) and origin in (f"http://{host}", f"https://{host}")
    if not is_ours:
        raise Forbidden("a session counts only for requests of the console's own pages")


def _key(session: str) -> str:
    return f"{SESSION}{_digest('name', session).hex()}"


def _seal(session: str, digest: bytes) -> bytes:
    """Sealed, or opened: the id is as random as what it hides is long, and seals this alone."""
    pad = _digest("seal", session)
    return bytes(one ^ other for one, other in zip(digest, pad, strict=True))


def _digest(use: str, session: str) -> bytes:
    return sha256(f"{use}:{session}".encode("utf-8", "surrogatepass")).digest()
