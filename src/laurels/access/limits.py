"""Rate limits for each key, player and address, and for bad credentials from one address.

Sliding windows count in Valkey, for all processes together. Without limits Valkey is not asked. If Valkey
does not answer, requests pass: a limit must not stop the service.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from limits import parse_many

from laurels.access.addresses import Addresses
from laurels.deadline import Deadline
from laurels.errors import RateLimited
from laurels.logs import get_logger
from laurels.metrics import count_refusal
from laurels.valkey import functions
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

log = get_logger("laurels.limiter")


class Hit(NamedTuple):
    """A request that was counted, or refused; and what is left of the limit."""

    is_allowed: bool
    remaining: int
    resets_in: int
    """Seconds until more is left."""


class Rates:
    """One or more limits that hold together: `10/second;1000/hour`."""

    def __init__(self, name: str, rates: str | None) -> None:
        self.name = name
        self.limits = parse_many(rates) if rates else []
        self.policy = ", ".join(f'"{name}";q={limit.amount};w={limit.get_expiry()}' for limit in self.limits)

    async def hit(self, valkey: Valkey, *who: str) -> Hit:
        """Counts a request against each limit; what is left is that of the tightest."""
        whose = ":".join((self.name, *who))
        hits = [await _hit(valkey, limit, whose) for limit in self.limits]
        if len(hits) == 1:
            return hits[0]
        tightest = min(hits, key=lambda hit: (hit.remaining, hit.resets_in))
        return tightest._replace(is_allowed=all(hit.is_allowed for hit in hits))


async def _hit(valkey: Valkey, limit: RateLimitItem, whose: str) -> Hit:
    seconds = limit.get_expiry()
    key = f"{LIMIT}:{limit.amount}/{seconds}:{whose}"
    is_allowed, before, now, left = await functions.hit(valkey, key, limit.amount, seconds * 1000)
    spent = before * left / 1000 / seconds + now
    # The next hit of the stretch before leaves the window, or the present stretch begins to.
    resets = [left / 1000 % (seconds / before)] if before else []
    resets += [left / 1000] if now else []
    remaining = max(0, limit.amount - math.floor(spent))
    return Hit(bool(is_allowed), remaining, math.ceil(min(resets, default=0.0)))


class Limiter:
    def __init__(self, settings: Settings, valkey: Callable[[], Valkey]) -> None:
        """`valkey` is called for each request: the connection may open after the limiter is made."""
        self.addresses = Addresses(settings.trusted_proxies)
        self._valkey = valkey
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
            with Deadline(ANSWER_SECONDS):
                hit = await rates.hit(self._valkey(), *who)
        except Exception as error:  # noqa: BLE001  # requests pass after any error of Valkey
            detail = str(error) or type(error).__name__
            log.warning("rate limit not counted; the request passes", limit=rates.name, detail=detail)
            return
        headers: dict[str, str] = request.scope["state"].setdefault("rate_limit", {})
        _add(headers, "RateLimit-Policy", rates.policy)
        _add(headers, "RateLimit", f'"{rates.name}";r={hit.remaining};t={hit.resets_in}')
        if not hit.is_allowed:
            raise _too_many(rates, max(1, hit.resets_in))


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
