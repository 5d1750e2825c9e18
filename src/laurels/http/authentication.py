"""Authenticates requests and checks what their key allows.

A key is for one project, or for every one (`*`). Its scopes: `read` reads; `submit` submits scores; `admin`
defines and drops boards, removes members, makes and revokes keys, and includes the other two. A player has a
token of its project: it may read, and submit for itself on boards with `player_writes`. A request for another
project gets the same 403 whether or not that project exists, so keys cannot discover other tenants.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from hmac import compare_digest
from typing import TYPE_CHECKING, Final, NamedTuple

from laurels.access import players, sessions
from laurels.access.credential_cache import CredentialCache
from laurels.access.limits import headers_of
from laurels.access.principal import BOOTSTRAPPER, Principal
from laurels.access.signing import SIGNATURE
from laurels.access.store.api_keys import EVERY_PROJECT, digest_of, name_of_key
from laurels.access.store.secrets import name_of_secrets
from laurels.boards.keys import BoardRef
from laurels.errors import BadSignature, Forbidden, Unauthorized
from laurels.http import signed_body
from laurels.http.body import BODY_BYTES
from laurels.http.parameters import check_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from laurels.access.limits import Limiter
    from laurels.access.players import VerifiedToken
    from laurels.access.store.api_keys import Scope
    from laurels.access.store.secrets import ActiveSecret
    from laurels.engine import Laurels
    from laurels.http.operation import Operation

FOR_EVERY_PROJECT: Final = "The key must be for every project."
# Players' tokens that a process remembers.
MOST_TOKENS: Final = 10_000
NO_PRINCIPAL: Final = Principal("", frozenset(), "")


class Keyring:
    """Finds active keys and secrets, and caches them."""

    def __init__(self, laurels: Laurels, now: Callable[[], float] = time.monotonic) -> None:
        self._laurels = laurels
        self._now = now
        bootstrap = laurels.settings.bootstrap_key
        self._bootstrap = digest_of(bootstrap.get_secret_value()) if bootstrap else b""
        self._audience = laurels.settings.token_audience
        self._tokens: dict[bytes, _KnownToken] = {}

    @cached_property
    def _keys(self) -> CredentialCache[bytes, Principal]:
        # Created at the first request, when the engine is open.
        return CredentialCache(self._laurels.revocations, self._now)

    @cached_property
    def _secrets(self) -> CredentialCache[str, tuple[ActiveSecret, ...]]:
        return CredentialCache(self._laurels.revocations, self._now)

    @property
    def generation(self) -> int:
        """While it stays the same, everything recalled is still valid."""
        return self._laurels.revocations.generation

    async def get(self, secret: str, check: Callable[[], None] = lambda: None) -> Principal:
        """Like `find`, but raises `Unauthorized` for an unknown secret."""
        principal = await self.find(secret, check)
        if principal is None:
            raise Unauthorized("there is no such key, or it was revoked")
        return principal

    async def find(self, secret: str, check: Callable[[], None] = lambda: None) -> Principal | None:
        """The principal with this key or token. `check` is called before a lookup in PostgreSQL.

        Raises `Unauthorized` with the reason for an invalid token.
        """
        digest = digest_of(secret)
        if players.is_token(secret) and not compare_digest(digest, self._bootstrap):
            return await self._find_player(secret, digest, check)
        return await self.find_by_digest(digest, check)

    async def find_by_digest(
        self, digest: bytes, check: Callable[[], None] = lambda: None
    ) -> Principal | None:
        """The principal whose key has this digest."""
        if compare_digest(digest, self._bootstrap):
            return BOOTSTRAPPER

        async def look_up() -> tuple[str, Principal] | None:
            key = await self._laurels.keys.find_by_digest(digest)
            return key and (name_of_key(key.id), Principal(key.project, key.scopes, str(key.id)))

        if not self._keys.knows(digest):
            check()
        return await self._keys.find(digest, look_up)

    def recall(self, digest: bytes) -> Principal | None:
        """The principal whose key or token has this digest, but only from the cache, without waiting."""
        token = self._tokens.get(digest)
        if token is None:
            return BOOTSTRAPPER if compare_digest(digest, self._bootstrap) else self._keys.recall(digest)
        is_current = self._secrets.recall(token.project) is token.secrets
        return token.principal if is_current and token.verified.is_valid_at(self._laurels.clock()) else None

    async def secrets(self, project: str) -> tuple[ActiveSecret, ...]:
        """The active secrets of a project."""

        async def look_up() -> tuple[str, tuple[ActiveSecret, ...]]:
            return name_of_secrets(project), await self._laurels.secrets.active(project)

        return await self._secrets.find(project, look_up) or ()

    def recall_secrets(self, project: str) -> tuple[ActiveSecret, ...] | None:
        """Like `secrets`, but only from the cache, without waiting."""
        return self._secrets.recall(project)

    async def _find_player(self, token: str, digest: bytes, check: Callable[[], None]) -> Principal:
        known = self._tokens.get(digest)
        project = known.project if known else players.project_of(token)
        if not self._secrets.knows(project):
            check()
        secrets = await self.secrets(project)
        if known is None or known.secrets != secrets:
            verified = players.verified(token, secrets, self._audience)
            player = verified.player
            principal = Principal(project, frozenset({"read"}), player.member, player)
            known = _KnownToken(project, secrets, verified, principal)
        if digest not in self._tokens and len(self._tokens) >= MOST_TOKENS:
            self._tokens.clear()
        self._tokens[digest] = known._replace(secrets=secrets)
        known.verified.check(self._laurels.clock())
        return known.principal


class _KnownToken(NamedTuple):
    """A token, and the secrets of its project that verified it: to do so takes some 150 µs."""

    project: str
    secrets: tuple[ActiveSecret, ...]
    verified: VerifiedToken
    principal: Principal


@dataclass(slots=True)
class Call:
    """An admitted request: its principal, engine, project and board."""

    request: Request
    laurels: Laurels
    principal: Principal
    project: str = ""
    name: str = ""

    @property
    def ref(self) -> BoardRef:
        return BoardRef(self.project, self.name)

    @property
    def board(self) -> str:
        return f"{self.project}/{self.name}"


async def identify(request: Request) -> Call:
    """Admits a request with an active key or a valid token."""
    return Call(request, request.app.state.laurels, await _principal_of(request))


async def admit_without_key(request: Request, _: Operation) -> Call:
    """Admits a request without a key."""
    return Call(request, request.app.state.laurels, NO_PRINCIPAL)


async def admit_any_project(request: Request, operation: Operation) -> Call:
    """Admits a request with a key of any project that has the operation's scope."""
    call = await identify(request)
    call.principal.check_scope(operation.required_scope)
    return call


async def admit_operator(request: Request, operation: Operation) -> Call:
    """Admits a request with a key for every project that has the operation's scope."""
    call = await identify(request)
    call.principal.check(EVERY_PROJECT, operation.required_scope)
    return call


def _recalled(request: Request) -> Principal | None:
    """The principal, if this process remembers its key or token, and no limit counts the request."""
    authorization = request.headers.get("authorization", "")
    if not authorization.startswith("Bearer "):
        return None
    principal = request.app.state.keyring.recall(digest_of(authorization[len("Bearer ") :]))
    return None if principal is None or request.app.state.limiter.limits(principal) else principal


async def _principal_of(request: Request) -> Principal:
    authorization = request.headers.get("authorization", "")
    if not authorization and (session := sessions.session_of(request)):
        principal = await _signed_in(request, session)
    else:
        secret, digest = _secret_in(authorization)
        keyring: Keyring = request.app.state.keyring
        principal = keyring.recall(digest) or await principal_with(request, secret)
    limiter: Limiter = request.app.state.limiter
    if limiter.limits(principal):
        await limiter.count(request, principal, headers_of(request))
    return principal


def _secret_in(authorization: str) -> tuple[str, bytes]:
    """The secret of the header, and its digest."""
    scheme, _, secret = authorization.partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Unauthorized("send `Authorization: Bearer KEY`")
    secret = secret.strip()
    return secret, digest_of(secret)


async def principal_with(request: Request, secret: str) -> Principal:
    """The principal with this key or token; a bad one counts as a failure of the client's address."""
    keyring: Keyring = request.app.state.keyring
    limiter: Limiter = request.app.state.limiter
    try:
        return await keyring.get(secret, lambda: limiter.check_failures(request))
    except Unauthorized:
        await limiter.count_failure(request)
        raise


async def _signed_in(request: Request, session: str) -> Principal:
    """The principal of a console session, if its key is active.

    An ended session does not count as a failure: a page that was left open keeps sending requests.
    """
    sessions.check_origin(request)
    keyring: Keyring = request.app.state.keyring
    digest = await sessions.find(request.app.state.laurels.valkey, session)
    principal = digest and await keyring.find_by_digest(digest)
    if not principal:
        await sessions.end(request.app.state.laurels.valkey, session)
        raise Unauthorized("the session is over, or its key was revoked: sign in again")
    return principal


async def admit(
    request: Request, scope: Scope, *, takes_players: bool = False, most_bytes: int = BODY_BYTES
) -> Call:
    """Admits a request about the project and board in its path, with a key that allows it.

    The signature of a submission is verified if it has or needs one, over a body of up to `most_bytes`. An
    operation that takes players submits only for `principal.player`, if there is one.
    """
    principal = _recalled(request) or await _principal_of(request)
    asked: dict[str, str] = request.path_params
    project, board = asked["project"], asked.get("board")
    principal.check(project, scope, takes_players=takes_players)
    check_name("project", project)
    if board is not None:
        check_name("board", board)
    call = Call(request, request.app.state.laurels, principal, project, board or "")
    if scope != "submit":
        return call
    if principal.player:
        await _check_player_writes(call)
    return await _verify_signature(call, most_bytes)


async def _check_player_writes(call: Call) -> None:
    """Raises `Forbidden` for a board that takes nothing from players.

    The engine checks it again for submissions, by the definition in force, if this process has an older one.
    """
    known = call.laurels.remembered(call.board)
    if known is None or not known.player_writes:
        await check_player_writes(call)


async def check_player_writes(call: Call) -> None:
    """Raises `Forbidden` if the definition in force takes nothing from players."""
    if not (await call.laurels.definition_in_force(call.board)).player_writes:
        raise Forbidden(f"players cannot submit to {call.board}: its definition has no player_writes")


async def _verify_signature(call: Call, most_bytes: int) -> Call:
    keyring: Keyring = call.request.app.state.keyring
    secrets = keyring.recall_secrets(call.project)
    if secrets is None:
        secrets = await keyring.secrets(call.project)
    if not secrets and SIGNATURE not in call.request.headers:
        return call
    try:
        request = await signed_body.verified(call.request, call.laurels, call.project, secrets, most_bytes)
    except BadSignature:
        limiter: Limiter = call.request.app.state.limiter
        await limiter.count_failure(call.request)
        raise
    return call if request is call.request else replace(call, request=request)
