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
from laurels.together import Together
from laurels.valkey import functions
from laurels.valkey.names import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limits import RateLimitItem
    from starlette.requests import HTTPConnection

    from laurels.access.principal import Principal
    from laurels.settings import Settings
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import HitReply

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

    def __init__(self, name: str, rates: str | None, valkey: Callable[[], Valkey]) -> None:
        """`valkey` is called for each call: the connection may open after the limits are made."""
        self.name = name
        self.limits = parse_many(rates) if rates else []
        self.policy = ", ".join(f'"{name}";q={limit.amount};w={limit.get_expiry()}' for limit in self.limits)
        self._counters = [_Counter(limit, name, valkey) for limit in self.limits]

    async def hit(self, who: str) -> Hit:
        """Counts a request against each limit; what is left is that of the tightest."""
        if len(self._counters) == 1:
            return await self._counters[0].hit(who)
        hits = [await counter.hit(who) for counter in self._counters]
        tightest = min(hits, key=lambda hit: (hit.remaining, hit.resets_in))
        return tightest._replace(is_allowed=all(hit.is_allowed for hit in hits))


class _Counter:
    """Counts requests against one limit; those that come at the same time in one call."""

    def __init__(self, limit: RateLimitItem, name: str, valkey: Callable[[], Valkey]) -> None:
        self._most, self._seconds = limit.amount, limit.get_expiry()
        self._prefix = f"{LIMIT}:{self._most}/{self._seconds}:{name}:"
        self._valkey = valkey
        self._together = Together(self._ask)

    async def hit(self, who: str) -> Hit:
        is_allowed, before, now, left = await self._together.ask(who)
        seconds = self._seconds
        spent = before * left / 1000 / seconds + now
        # The next hit of the stretch before leaves the window, or the present stretch begins to.
        resets = [left / 1000 % (seconds / before)] if before else []
        resets += [left / 1000] if now else []
        remaining = max(0, self._most - math.floor(spent))
        return Hit(bool(is_allowed), remaining, math.ceil(min(resets, default=0.0)))

    async def _ask(self, who: Sequence[str]) -> list[HitReply]:
        keys = [self._prefix + each for each in who]
        return await functions.hit(self._valkey(), keys, self._most, self._seconds * 1000)


class Limiter:
    def __init__(self, settings: Settings, valkey: Callable[[], Valkey]) -> None:
        self.addresses = Addresses(settings.trusted_proxies)
        self._key = Rates("key", settings.rate_limit_key, valkey)
        self._player = Rates("player", settings.rate_limit_player, valkey)
        self._address = Rates("address", settings.rate_limit_address, valkey)
        self._failures = Rates("failures", settings.rate_limit_failures, valkey)
        self._blocked: dict[str, float] = {}
        """Addresses that sent too many bad credentials, and until when this process refuses more."""

    def limits(self, principal: Principal) -> bool:
        """Whether any limit applies to this principal."""
        return bool(self._address.limits or (self._player if principal.player else self._key).limits)

    async def count(self, request: HTTPConnection, principal: Principal, headers: dict[str, str]) -> None:
        """Counts one request; raises `RateLimited` when it exceeds a limit. `headers` get what is left."""
        if self._address.limits:
            await self._spend(headers, self._address, self.addresses.of(request))
        rates = self._player if principal.player else self._key
        if rates.limits:
            await self._spend(headers, rates, f"{principal.project}:{principal.name}")

    def check_failures(self, request: HTTPConnection) -> None:
        """Raises `RateLimited` for a blocked address, before its credentials are looked up."""
        if not self._blocked:
            return
        address = self.addresses.of(request)
        left = self._blocked.get(address, 0.0) - time.monotonic()
        if left > 0:
            raise _too_many(self._failures, math.ceil(left))
        self._blocked.pop(address, None)

    async def count_failure(self, request: HTTPConnection) -> None:
        """Counts one bad credential from this address; raises `RateLimited` when it exceeds the limit."""
        count_refusal("secret")
        if not self._failures.limits:
            return
        address = self.addresses.of(request)
        try:
            await self._spend(headers_of(request), self._failures, address)
        except RateLimited as error:
            if len(self._blocked) >= MOST_BLOCKED:
                self._blocked.clear()
            self._blocked[address] = time.monotonic() + error.retry_after
            raise

    async def _spend(self, headers: dict[str, str], rates: Rates, who: str) -> None:
        try:
            with Deadline(ANSWER_SECONDS):
                hit = await rates.hit(who)
        except Exception as error:  # noqa: BLE001  # requests pass after any error of Valkey
            detail = str(error) or type(error).__name__
            log.warning("rate limit not counted; the request passes", limit=rates.name, detail=detail)
            return
        _add(headers, "RateLimit-Policy", rates.policy)
        _add(headers, "RateLimit", f'"{rates.name}";r={hit.remaining};t={hit.resets_in}')
        if not hit.is_allowed:
            raise _too_many(rates, max(1, hit.resets_in))


def headers_of(request: HTTPConnection) -> dict[str, str]:
    """The headers of limits that the request's answer will have."""
    return request.scope["state"].setdefault("rate_limit", {})


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
