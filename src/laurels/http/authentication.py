"""Who asks, and what their key allows.

A key belongs to one project, or to every one (`*`). Its scopes: `read` asks; `submit` submits scores;
`admin` defines and drops boards, removes members, makes and revokes keys, and does what the other two do. A
player has a token of its project: it may read, and submit for itself where a board takes that. Whoever is
beyond their project is told so whether that project exists or not, so nobody learns of other tenants.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from hmac import compare_digest
from typing import TYPE_CHECKING, Final

from laurels.access import players, sessions
from laurels.access.credential_cache import CredentialCache
from laurels.access.principal import BOOTSTRAPPER, Principal
from laurels.access.signing import SIGNATURE
from laurels.access.store.api_keys import EVERY_PROJECT, digest_of, name_of_key
from laurels.access.store.secrets import name_of_secrets
from laurels.errors import BadSignature, Forbidden, Unauthorized
from laurels.http import signed_body
from laurels.http.body import BODY_BYTES
from laurels.http.parameters import check_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from laurels.access.limits import Limiter
    from laurels.access.players import Player
    from laurels.access.store.api_keys import Scope
    from laurels.access.store.secrets import ActiveSecret
    from laurels.engine import Laurels
    from laurels.http.operation import Operation

FOR_EVERY_PROJECT: Final = "The key must be for every project."
NO_PRINCIPAL: Final = Principal("", frozenset(), "")


class Keyring:
    """The keys and secrets in force, as far as this process has cached them."""

    def __init__(self, laurels: Laurels, now: Callable[[], float] = time.monotonic) -> None:
        self._laurels = laurels
        self._now = now
        bootstrap = laurels.settings.bootstrap_key
        self._bootstrap = digest_of(bootstrap.get_secret_value()) if bootstrap else b""
        self._audience = laurels.settings.token_audience

    @cached_property
    def _keys(self) -> CredentialCache[bytes, Principal]:
        # Made by the first request: the engine is open by then.
        return CredentialCache(self._laurels.revocations, self._now)

    @cached_property
    def _secrets(self) -> CredentialCache[str, tuple[ActiveSecret, ...]]:
        return CredentialCache(self._laurels.revocations, self._now)

    @property
    def generation(self) -> int:
        """While it stays the same, everything that was recalled is still valid."""
        return self._laurels.revocations.generation

    async def get(self, secret: str, check: Callable[[], None] = lambda: None) -> Principal:
        """Like `find`, but raises `Unauthorized` for an unknown secret."""
        principal = await self.find(secret, check)
        if principal is None:
            raise Unauthorized("there is no such key, or it was revoked")
        return principal

    async def find(self, secret: str, check: Callable[[], None] = lambda: None) -> Principal | None:
        """The principal with this key or token. `check` is called before a store is asked about it.

        Raises `Unauthorized` for a token that is not valid, with the reason.
        """
        digest = digest_of(secret)
        if players.is_token(secret) and not compare_digest(digest, self._bootstrap):
            return await self._find_player(secret, check)
        return await self.find_by_digest(digest, check)

    async def find_by_digest(
        self, digest: bytes, check: Callable[[], None] = lambda: None
    ) -> Principal | None:
        """The principal whose key has this digest."""
        known = self.recall(digest)
        if known:
            return known

        async def look_up() -> tuple[str, Principal] | None:
            key = await self._laurels.keys.find_by_digest(digest)
            return key and (name_of_key(key.id), Principal(key.project, key.scopes, str(key.id)))

        if not self._keys.knows(digest):
            check()
        return await self._keys.find(digest, look_up)

    def recall(self, digest: bytes) -> Principal | None:
        """Like `find_by_digest`, but from the cache alone, without waiting."""
        return BOOTSTRAPPER if compare_digest(digest, self._bootstrap) else self._keys.recall(digest)

    async def secrets(self, project: str) -> tuple[ActiveSecret, ...]:
        """The project's secrets in force."""

        async def look_up() -> tuple[str, tuple[ActiveSecret, ...]]:
            return name_of_secrets(project), await self._laurels.secrets.active(project)

        return await self._secrets.find(project, look_up) or ()

    def recall_secrets(self, project: str) -> tuple[ActiveSecret, ...] | None:
        """Like `secrets`, but from the cache alone, without waiting."""
        return self._secrets.recall(project)

    async def _find_player(self, token: str, check: Callable[[], None]) -> Principal:
        project = players.project_of(token)
        if not self._secrets.knows(project):
            check()
        player = players.verified(token, await self.secrets(project), self._audience, self._laurels.clock())
        return Principal(project, frozenset({"read"}), player.member, player)


@dataclass(slots=True)
class Call:
    """A request that its key allows: by whom, to which engine, about which project and board."""

    request: Request
    laurels: Laurels
    principal: Principal
    project: str = ""
    name: str = ""

    @property
    def board(self) -> str:
        return f"{self.project}/{self.name}"


async def identify(request: Request) -> Call:
    """A request by a key that is in force, or a token that is good."""
    return Call(request, request.app.state.laurels, await _principal_of(request))


async def admit_without_key(request: Request, _: Operation) -> Call:
    """A request that needs no key."""
    return Call(request, request.app.state.laurels, NO_PRINCIPAL)


async def admit_anybody(request: Request, operation: Operation) -> Call:
    """A request by a key of any project that has the operation's scope."""
    call = await identify(request)
    call.principal.check_scope(operation.required_scope)
    return call


async def admit_operator(request: Request, operation: Operation) -> Call:
    """A request by a key of every project that has the operation's scope."""
    call = await identify(request)
    call.principal.check(EVERY_PROJECT, operation.required_scope)
    return call


async def _principal_of(request: Request) -> Principal:
    authorization = request.headers.get("authorization", "")
    if not authorization and (session := sessions.session_of(request)):
        principal = await _signed_in(request, session)
    else:
        scheme, _, secret = authorization.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise Unauthorized("send `Authorization: Bearer KEY`")
        keyring: Keyring = request.app.state.keyring
        principal = keyring.recall(digest_of(secret)) or await principal_with(request, secret.strip())
    limiter: Limiter = request.app.state.limiter
    if limiter.limits(principal):
        await limiter.count(request, principal)
    return principal


async def principal_with(request: Request, secret: str) -> Principal:
    """Who comes with this secret; one that is not good counts against the address that it came from."""
    keyring: Keyring = request.app.state.keyring
    limiter: Limiter = request.app.state.limiter
    try:
        return await keyring.get(secret, lambda: limiter.check_failures(request))
    except Unauthorized:
        await limiter.count_failure(request)
        raise


async def _signed_in(request: Request, session: str) -> Principal:
    """Who signed in to the console, as long as their key is in force.

    A session that is over counts against nobody: a page that was left open goes on asking.
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
    """A request about the project, and the board, in its path, by a key that allows it.

    What submits is verified if it is signed, or must be: `most_bytes` of its body. An operation that takes
    players submits for `principal.player`, where there is one, and for nobody else.
    """
    principal = await _principal_of(request)
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
        call = await _as_the_board_takes_it(call, principal.player)
    return await _as_signed(call, most_bytes)


async def _as_the_board_takes_it(call: Call, player: Player) -> Call:
    """The player with those of its groups that the board knows; `Forbidden` where players do not submit."""
    definition = await call.laurels.definition_in_force(call.board)
    if not definition.player_writes:
        raise Forbidden(f"players do not submit to {call.board}: it is not defined with player_writes")
    groups = {name: value for name, value in player.groups.items() if name in definition.dimensions}
    return replace(call, principal=replace(call.principal, player=replace(player, groups=groups)))


async def _as_signed(call: Call, most_bytes: int) -> Call:
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
    return replace(call, request=request)
