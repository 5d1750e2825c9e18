"""Who asks, and what their key allows.

A key belongs to one project, or to every one (`*`). Its scopes: `read` asks; `submit` submits scores;
`admin` defines and drops boards, removes members, and does what the other two do. A key that is used beyond
its project is told so whether that project exists or not, so nobody learns of other tenants.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Final

from laurels.api.parameters import check_name
from laurels.archive.keys import EVERY_PROJECT, SCOPES
from laurels.errors import Forbidden, Unauthorized, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from laurels.archive.keys import Scope
    from laurels.laurels import Laurels

# How long until a key is looked up again: as long as a revocation by another process may take.
FRESH_SECONDS: Final = 5.0
MOST_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Holder:
    """Whoever has a key."""

    project: str
    scopes: frozenset[Scope]

    def may_see(self, project: str) -> bool:
        return self.project in (project, EVERY_PROJECT)

    def check(self, project: str, scope: Scope) -> None:
        if not self.may_see(project):
            raise Forbidden(f"this key is for the project {self.project}, not for {project}")
        self.check_scope(scope)

    def check_scope(self, scope: Scope) -> None:
        if not {scope, "admin"} & self.scopes:
            has = ", ".join(each for each in SCOPES if each in self.scopes)
            raise Forbidden(f"this needs a key with the scope {scope}; this one has {has}")


@dataclass(slots=True)
class _Remembered:
    holder: Holder
    withdrawals: int
    fresh_until: float


class Keyring:
    """The keys in force, remembered for a few seconds; and as long as PostgreSQL does not answer."""

    def __init__(self, laurels: Laurels, now: Callable[[], float] = time.monotonic) -> None:
        self._laurels = laurels
        self._now = now
        self._remembered: dict[bytes, _Remembered] = {}
        bootstrap = laurels.settings.bootstrap_key
        self._bootstrap = _digest(bootstrap.get_secret_value()) if bootstrap else b""

    async def find(self, secret: str) -> Holder | None:
        digest = _digest(secret)
        if compare_digest(digest, self._bootstrap):
            return Holder(EVERY_PROJECT, frozenset(SCOPES))
        withdrawals = self._laurels.keys.withdrawals
        remembered = self._remembered.get(digest)
        if remembered and remembered.withdrawals != withdrawals:
            remembered = None
        if remembered:
            if self._now() < remembered.fresh_until:
                return remembered.holder
            # Nobody else waits for this lookup, nor for a PostgreSQL that does not answer it.
            remembered.fresh_until = self._now() + FRESH_SECONDS
        try:
            key = await self._laurels.keys.find(secret)
        except Unavailable:
            if remembered and remembered.withdrawals == self._laurels.keys.withdrawals:
                return remembered.holder
            raise
        if key is None:
            self._remembered.pop(digest, None)
            return None
        if len(self._remembered) >= MOST_REMEMBERED:
            self._remembered.clear()
        holder = Holder(key.project, key.scopes)
        self._remembered[digest] = _Remembered(holder, withdrawals, self._now() + FRESH_SECONDS)
        return holder


@dataclass(frozen=True, slots=True)
class Call:
    """A request that its key allows: by whom, to which engine, about which project and board."""

    request: Request
    laurels: Laurels
    holder: Holder
    project: str = ""
    name: str = ""

    @property
    def board(self) -> str:
        return f"{self.project}/{self.name}"


async def identify(request: Request) -> Call:
    """A request by a key that is in force."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Unauthorized("send `Authorization: Bearer KEY`")
    keyring: Keyring = request.app.state.keyring
    holder = await keyring.find(secret.strip())
    if holder is None:
        raise Unauthorized("there is no such key, or it was revoked")
    return Call(request, request.app.state.laurels, holder)


async def admit(request: Request, scope: Scope) -> Call:
    """A request about the project, and the board, in its path, by a key that allows it."""
    call = await identify(request)
    project: str = request.path_params["project"]
    call.holder.check(project, scope)
    check_name("project", project)
    board: str = request.path_params.get("board", "")
    if "board" in request.path_params:
        check_name("board", board)
    return Call(request, call.laurels, call.holder, project, board)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
