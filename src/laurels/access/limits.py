"""Rate limits for each key, player and address, and for bad credentials from one address.

The sliding windows of the library `limits` count in Valkey, for all processes together. Without limits Valkey
is not asked. If Valkey does not answer, requests pass: a limit must not stop the service.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any, Final

from limits import parse_many
from limits.aio.storage import Storage
from limits.aio.storage.base import SlidingWindowCounterSupport
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from limits.util import get_package_data

from laurels.access.addresses import Addresses
from laurels.errors import RateLimited
from laurels.logs import get_logger
from laurels.metrics import count_refusal
from laurels.valkey import server
from laurels.valkey.names import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from laurels.access.principal import Principal
    from laurels.settings import Settings
    from laurels.valkey.client import Valkey

# A healthy Valkey answers much sooner.
ANSWER_SECONDS: Final = 1.0
MOST_BLOCKED: Final = 10_000

_SCRIPTS: Final = "resources/redis/lua_scripts"

log = get_logger("laurels.limiter")


class ValkeyStorage(Storage, SlidingWindowCounterSupport):
    """Runs the scripts of `limits` over Laurels' own connection.

    The library's own storages would open connection pools of their own, know no cluster over TLS, and resend
    commands that were not answered. Only the methods that sliding windows need are implemented.
    """

    def __init__(self, valkey: Callable[[], Valkey]) -> None:
        super().__init__()
        self._valkey = valkey
        self._acquire = get_package_data(f"{_SCRIPTS}/acquire_sliding_window.lua")
        self._read = get_package_data(f"{_SCRIPTS}/sliding_window.lua")

    @property
    def base_exceptions(self) -> type[Exception]:
        return RateLimited  # no other exception is wrapped

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return bool(await self._run(self._acquire, self._keys(key), limit, expiry, amount))

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        found = await self._run(self._read, self._keys(key), expiry)
        before, before_left, now, now_left = (max(0, int(each or 0)) for each in found)
        return before, before_left / 1000, now, now_left / 1000

    async def _unused(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401  # overrides several signatures
        raise NotImplementedError

    incr = get = get_expiry = check = reset = clear = clear_sliding_window = _unused

    async def _run(self, script: bytes, keys: list[str], *args: int) -> Any:  # noqa: ANN401  # as Valkey answers
        return await self._valkey().run(server.evaluate(script, keys, args))

    @staticmethod
    def _keys(key: str) -> list[str]:
        """The previous window and the current one, in the same hash slot of a cluster."""
        current = f"{{{LIMIT}:{key}"
        return [f"{current}}}/-1", f"{current}}}"]


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
        self._windows = SlidingWindowCounterRateLimiter(ValkeyStorage(valkey))
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
                allowed = [await self._windows.hit(limit, rates.name, *who) for limit in rates.limits]
                left = [
                    await self._windows.get_window_stats(limit, rates.name, *who) for limit in rates.limits
                ]
        except Exception as error:  # noqa: BLE001  # requests pass after any error of Valkey
            detail = str(error) or type(error).__name__
            log.warning("rate limit not counted; the request passes", limit=rates.name, detail=detail)
            return
        now = time.time()
        remaining, reset = min((each.remaining, max(0, math.ceil(each.reset_time - now))) for each in left)
        headers: dict[str, str] = request.scope["state"].setdefault("rate_limit", {})
        _add(headers, "RateLimit-Policy", rates.policy)
        _add(headers, "RateLimit", f'"{rates.name}";r={remaining};t={reset}')
        if not all(allowed):
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
