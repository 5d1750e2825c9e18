"""Sessions of the console: a cookie that stands for an active API key.

The cookie holds a random id that no script can read. Valkey holds the digest of the key, encrypted with the
id, under the digest of the id, so a reader of Valkey learns neither the session nor the key. Every request
looks the key up as if it had sent it, so revoking a key ends its sessions at once.

Browsers send cookies with requests of any page, so a session is valid only for requests of the console's own
pages: `check_origin`.
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
# Over HTTPS. A browser accepts a name with this prefix from this host only, not from its subdomains.
SECURE_COOKIE: Final = f"__Host-{COOKIE}"
HEADER: Final = "X-Laurels-Console"
SESSION_SECONDS: Final = 12 * 3600
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


async def begin(valkey: Valkey, key_digest: bytes) -> str:
    """Stores a new session and returns its id."""
    session = secrets.token_urlsafe(32)
    sealed = _seal(session, key_digest)
    await functions.begin_session(valkey, _key(session), sealed, SESSION_SECONDS)
    return session


async def find(valkey: Valkey, session: str) -> bytes | None:
    """The digest of the session's key; None when the session is over."""
    sealed = await valkey.run(strings.get(_key(session)))
    return None if sealed is None else _seal(session, sealed)


async def end(valkey: Valkey, session: str) -> None:
    await valkey.run(keyspace.delete(_key(session)))


def session_of(request: Request) -> str | None:
    """The session that the request's cookie names."""
    if "cookie" not in request.headers:
        return None
    return request.cookies.get(SECURE_COOKIE) or request.cookies.get(COOKIE)


def set_cookie(request: Request, response: Response, session: str) -> None:
    """Sets the cookie. `Origin` shows whether the browser uses HTTPS, which a proxy may hide from us."""
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


def delete_cookie(response: Response) -> None:
    for name, is_secure in ((COOKIE, False), (SECURE_COOKIE, True)):
        response.delete_cookie(name, path="/", secure=is_secure, httponly=True, samesite="strict")


def check_origin(request: Request) -> None:
    """Raises `Forbidden` unless a page of the console sent the request.

    A request that changes something needs our header, which forms cannot send and pages of other origins may
    not. It must also come from this origin: by `Sec-Fetch-Site`, or by `Origin` where the browser sends no
    `Sec-Fetch-Site`, as over plain HTTP.
    """
    site = request.headers.get("sec-fetch-site")
    if request.method in SAFE:
        is_ours = site in (None, "same-origin", "none")
    elif request.headers.get(HEADER) != "1":
        raise Forbidden(f"a session's request that changes something needs the header {HEADER}: 1")
    elif site is not None:
        is_ours = site == "same-origin"
    else:
        host, origin = request.headers.get("host"), request.headers.get("origin")
        is_ours = bool(host) and origin in (f"http://{host}", f"https://{host}")
    if not is_ours:
        raise Forbidden("a session is valid only for requests of the console's own pages")


def _key(session: str) -> str:
    return f"{SESSION}{_digest('name', session).hex()}"


def _seal(session: str, digest: bytes) -> bytes:
    """Encrypts or decrypts: XOR with a one-time pad made from the session's id."""
    pad = _digest("seal", session)
    return bytes(one ^ other for one, other in zip(digest, pad, strict=True))


def _digest(use: str, session: str) -> bytes:
    return sha256(f"{use}:{session}".encode("utf-8", "surrogatepass")).digest()
