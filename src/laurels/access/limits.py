"""Rate limits for each key, player and address, and for bad credentials from one address.

The sliding windows of the library `limits` count in Valkey, for all processes together. Without limits Valkey
is not asked. If Valkey does not answer, requests pass: a limit must not stop the service.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from limits import parse_many
from limits.util import get_package_data

from laurels.access.addresses import Addresses
from laurels.errors import RateLimited
from laurels.logs import get_logger
from laurels.metrics import count_refusal
from laurels.valkey import server
from laurels.valkey.names import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from limits import RateLimitItem
    from starlette.requests import Request

    from laurels.access.principal import Principal
    from laurels.settings import Settings
    from laurels.valkey.client import Valkey

# A healthy Valkey answers much sooner.
ANSWER_SECONDS: Final = 1.0
MOST_BLOCKED: Final = 10_000

_SCRIPTS: Final = "resources/redis/lua_scripts"

log = get_logger("laurels.limiter")


class Hit(NamedTuple):
    """A request that was counted, or refused; and what is left of the limit."""

    is_allowed: bool
    remaining: int
    resets_in: float
    """Seconds until more is left."""


class SlidingWindows:
    """Counts with the scripts of `limits`, both in one call to Valkey.

    The library's own storages would open connection pools of their own, know no cluster over TLS, and resend
    commands that were not answered; its strategy asks twice for each request.
    """

    def __init__(self, valkey: Callable[[], Valkey]) -> None:
        self._valkey = valkey
        acquire, read = (
            get_package_data(f"{_SCRIPTS}/{name}.lua").decode()
            for name in ("acquire_sliding_window", "sliding_window")
        )
        self._script = (
            f"local function acquire(KEYS, ARGV)\n{acquire}\nend\n"
            f"local function read(KEYS, ARGV)\n{read}\nend\n"
            "return {acquire(KEYS, ARGV) and 1 or 0, read(KEYS, {ARGV[2]})}"
        ).encode()

    async def hit(self, limit: RateLimitItem, *who: str) -> Hit:
        expiry = limit.get_expiry()
        # The previous window and the current one, in the same hash slot of a cluster.
        current = f"{{{LIMIT}:{limit.key_for(*who)}"
        keys = [f"{current}}}/-1", f"{current}}}"]
        reply = await self._valkey().run(server.evaluate(self._script, keys, (limit.amount, expiry, 1)))
        is_allowed, read = reply
        before, before_left, now, now_left = (max(0, int(each or 0)) for each in read)
        spent = before * before_left / 1000 / expiry + now
        resets = [before_left / 1000 % (expiry / before)] if before else []
        resets += [now_left / 1000 % expiry] if now else []
        return Hit(bool(is_allowed), max(0, limit.amount - math.floor(spent)), min(resets, default=0.0))


class Rates:
    """One or more limits that hold together: `10/second;1000/hour`."""

    def __init__(self, name: str, rates: str | None) -> None:
        self.name = name
        self.limits = parse_many(rates) if rates else []

    @property
    def policy(self) -> str:
        return ", ".join(f'"{self.name}";q={limit.amount};w={limit.get_expiry()}' for limit in self.limits)


class Limiter:
    def __init__(self, settings: Settings, valkey: Callable[[], Valkey]) -> None:
        """`valkey` is called for each request: the connection may open after the limiter is made."""
        self.addresses = Addresses(settings.trusted_proxies)
        self._windows = SlidingWindows(valkey)
        self._key = Rates("key", settings.rate_limit_key)
        self._player = Rates("player", settings.rate_limit_player)
        self._address = Rates("address", settings.rate_limit_address)
        self._failures = Rates("failures", settings.rate_limit_failures)
        self._blocked: dict[str, float] = {}
        """Addresses that sent too many bad credentials, and until when this process refuses more."""

    def limits(self, principal: Principal) -> bool:
        """Whether any limit applies to this principal."""
        return bool(self._address.limits or (self._player if principal.player else self._key).limits)

    async def count(self, request: Request, principal: Principal) -> None:
        """Counts one request; raises `RateLimited` when it exceeds a limit."""
        if self._address.limits:
            await self._spend(request, self._address, self.addresses.of(request))
        rates = self._player if principal.player else self._key
        if rates.limits:
            await self._spend(request, rates, principal.project, principal.name)

    def check_failures(self, request: Request) -> None:
        """Raises `RateLimited` for a blocked address, before its credentials are looked up."""
        if not self._blocked:
            return
        address = self.addresses.of(request)
        left = self._blocked.get(address, 0.0) - time.monotonic()
        if left > 0:
            raise _too_many(self._failures, math.ceil(left))
        self._blocked.pop(address, None)

    async def count_failure(self, request: Request) -> None:
        """Counts one bad credential from this address; raises `RateLimited` when it exceeds the limit."""
        count_refusal("secret")
        if not self._failures.limits:
            return
        address = self.addresses.of(request)
        try:
            await self._spend(request, self._failures, address)
        except RateLimited as error:
            if len(self._blocked) >= MOST_BLOCKED:
                self._blocked.clear()
            self._blocked[address] = time.monotonic() + error.retry_after
            raise

    async def _spend(self, request: Request, rates: Rates, *who: str) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                hits = [await self._windows.hit(limit, rates.name, *who) for limit in rates.limits]
        except Exception as error:  # noqa: BLE001  # requests pass after any error of Valkey
            detail = str(error) or type(error).__name__
            log.warning("rate limit not counted; the request passes", limit=rates.name, detail=detail)
            return
        remaining, reset = min((hit.remaining, math.ceil(hit.resets_in)) for hit in hits)
        headers: dict[str, str] = request.scope["state"].setdefault("rate_limit", {})
        _add(headers, "RateLimit-Policy", rates.policy)
        _add(headers, "RateLimit", f'"{rates.name}";r={remaining};t={reset}')
        if not all(hit.is_allowed for hit in hits):
            raise _too_many(rates, max(1, reset))


def _add(headers: dict[str, str], name: str, value: str) -> None:
    headers[name] = f"{headers[name]}, {value}" if name in headers else value


def _too_many(rates: Rates, seconds: int) -> RateLimited:
    count_refusal(rates.name)
    allowed = " and ".join(str(limit) for limit in rates.limits)
    if rates.name == "failures":
        what, whose = "bad keys, tokens or signatures", "address"
    else:
        what, whose = "requests", rates.name
    return RateLimited(f"too many {what}: at most {allowed} for each {whose}", seconds)
