"""How often somebody may ask: each key, each player, each address; and with a secret that is not good.

Counted in Valkey by the sliding windows of `limits`, for all processes together. Where no limit is set
nothing is asked; where Valkey does not answer, everybody is let through: a limit is no lock.
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
from laurels.valkey import keyspace, server, strings
from laurels.valkey.names import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from laurels.access.principal import Principal
    from laurels.settings import Settings
    from laurels.valkey.client import Valkey

# Longer than a healthy Valkey ever takes.
ANSWER_SECONDS: Final = 1.0
MOST_BLOCKED: Final = 10_000

_SCRIPTS: Final = "resources/redis/lua_scripts"

log = get_logger("laurels.limiter")


class ValkeyStorage(Storage, SlidingWindowCounterSupport):
    """The scripts of `limits`, sent over our own connection.

    Its own storages would open pools of their own beside ours, know no cluster over TLS, and repeat by
    themselves what was not answered.
    """

    def __init__(self, valkey: Callable[[], Valkey]) -> None:
        super().__init__()
        self._valkey = valkey
        self._acquire = get_package_data(f"{_SCRIPTS}/acquire_sliding_window.lua")
        self._read = get_package_data(f"{_SCRIPTS}/sliding_window.lua")
        self._increment = get_package_data(f"{_SCRIPTS}/incr_expire.lua")

    @property
    def base_exceptions(self) -> type[Exception]:
        return RateLimited  # none is wrapped

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return bool(await self._run(self._acquire, self._keys(key), limit, expiry, amount))

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        found = await self._run(self._read, self._keys(key), expiry)
        before, before_left, now, now_left = (max(0, int(each or 0)) for each in found)
        return before, before_left / 1000, now, now_left / 1000

    async def clear_sliding_window(self, key: str, expiry: int) -> None:
        del expiry
        for each in self._keys(key):
            await self._valkey().run(keyspace.delete(each))

    async def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        return int(await self._run(self._increment, [f"{LIMIT}:{key}"], expiry, amount))

    async def get(self, key: str) -> int:
        return int(await self._valkey().run(strings.get(f"{LIMIT}:{key}")) or 0)

    async def get_expiry(self, key: str) -> float:
        return time.time() + max(0, await self._valkey().run(keyspace.time_to_live(f"{LIMIT}:{key}")))

    async def check(self) -> bool:
        return await self._valkey().run(server.ping())

    async def reset(self) -> int | None:
        raise NotImplementedError

    async def clear(self, key: str) -> None:
        await self._valkey().run(keyspace.delete(f"{LIMIT}:{key}"))

    async def _run(self, script: bytes, keys: list[str], *args: int) -> Any:  # noqa: ANN401  # as Valkey answers
        return await self._valkey().run(server.evaluate(script, keys, args))

    @staticmethod
    def _keys(key: str) -> list[str]:
        """The window before, and this one: in one slot of a cluster, whatever the key holds."""
        current = f"{{{LIMIT}:{key}"
        return [f"{current}}}/-1", f"{current}}}"]


class Rates:
    """One limit, or several at once: `10/second;1000/hour`."""

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
        """Until when an address may not try another secret, as far as this process knows."""

    def limits(self, principal: Principal) -> bool:
        """Whether there is anything to count for this one."""
        return bool(self._address.limits or (self._player if principal.player else self._key).limits)

    async def count(self, request: Request, principal: Principal) -> None:
        """One request more; raises `RateLimited` when it is one too many."""
        if self._address.limits:
            await self._spend(request, self._address, self.addresses.of(request))
        rates = self._player if principal.player else self._key
        if rates.limits:
            await self._spend(request, rates, principal.project, principal.name)

    def check_failures(self, request: Request) -> None:
        """Raises `RateLimited` for an address of too many bad secrets, before another is looked up."""
        if not self._blocked:
            return
        address = self.addresses.of(request)
        left = self._blocked.get(address, 0.0) - time.monotonic()
        if left > 0:
            raise _too_many(self._failures, math.ceil(left))
        self._blocked.pop(address, None)

    async def count_failure(self, request: Request) -> None:
        """One bad secret more from this address; raises `RateLimited` when it is one too many."""
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
        except Exception as error:  # noqa: BLE001  # whatever Valkey says: a limiter must not stand in the way
            log.warning("not limited", rates=rates.name, detail=str(error) or type(error).__name__)
            return
        now = time.time()
        remaining, reset = min((each.remaining, max(0, math.ceil(each.reset_time - now))) for each in left)
        told: dict[str, str] = request.scope["state"].setdefault("rate_limit", {})
        _add(told, "RateLimit-Policy", rates.policy)
        _add(told, "RateLimit", f'"{rates.name}";r={remaining};t={reset}')
        if not all(allowed):
            raise _too_many(rates, max(1, reset))


def _add(headers: dict[str, str], name: str, value: str) -> None:
    headers[name] = f"{headers[name]}, {value}" if name in headers else value


def _too_many(rates: Rates, seconds: int) -> RateLimited:
    count_refusal(rates.name)
    what = "keys, tokens or signatures that are not good" if rates.name == "failures" else "requests"
    allowed = " and ".join(str(limit) for limit in rates.limits)
    return RateLimited(f"too many {what}: at most {allowed} for each {_whose(rates)}", seconds)


def _whose(rates: Rates) -> str:
    return "address" if rates.name == "failures" else rates.name
