"""The access log: a line for an answer that an operator may act on, for every answer, or for none.

Writing a line costs more than answering most requests, so by default only errors, refused credentials and
slow answers get one. Metrics count every answer.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from laurels.logs import get_logger
from laurels.metrics import request_series

if TYPE_CHECKING:
    from typing import Self

    from starlette.types import Scope

    from laurels.errors import LaurelsError
    from laurels.settings import AccessLogMode, Settings

UNMATCHED: Final = "unmatched"
# Monitoring requests these every few seconds.
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
# Credentials that are missing, wrong, or not enough.
REFUSED: Final = frozenset({401, 403})

log = get_logger("laurels.access")
_access = logging.getLogger("laurels.access")


class AccessLog:
    def __init__(self, mode: AccessLogMode, slow_seconds: float) -> None:
        """`slow_seconds`: the time to the first byte of a slow answer."""
        self._mode = mode
        self._slow_seconds = slow_seconds

    @classmethod
    def of(cls, settings: Settings) -> Self:
        return cls(settings.access_log, settings.slow_request_seconds)

    def record(self, scope: Scope, method: str, status: int, seconds: float, first_byte: float) -> None:
        """Counts an answer, and logs it if the mode asks for it. `first_byte`: seconds until it began."""
        route = getattr(scope.get("route"), "path_format", UNMATCHED)
        request_series(method, route, status).add(seconds)
        if self.wants(route, status, first_byte):
            self.write(scope, route, method, status, seconds)

    def wants(self, route: str, status: int, first_byte: float) -> bool:
        if self._mode != "all" and (self._mode == "off" or not self._needs_attention(status, first_byte)):
            return False
        return _access.isEnabledFor(self._level(route, status, first_byte))

    def write(self, scope: Scope, route: str, method: str, status: int, seconds: float) -> None:
        log.log(
            self._level(route, status, seconds),
            "request",
            method=method,
            path=scope["path"],
            route=route,
            status=status,
            milliseconds=round(seconds * 1000, 3),
            client=(scope.get("client") or ("",))[0],
        )

    def _needs_attention(self, status: int, first_byte: float) -> bool:
        return status >= 500 or status in REFUSED or first_byte >= self._slow_seconds

    def _level(self, route: str, status: int, first_byte: float) -> int:
        if self._needs_attention(status, first_byte):
            return logging.WARNING
        return logging.DEBUG if route in QUIET else logging.INFO


def record_unrouted(error: LaurelsError, client: str, request_id: str) -> None:
    """Counts bytes that are not a request. Anybody can send those, so they are logged for debugging only."""
    request_series("", UNMATCHED, error.status).add(0.0)
    log.debug(
        "request refused",
        kind=error.kind,
        detail=error.detail,
        status=error.status,
        client=client,
        request_id=request_id,
    )
