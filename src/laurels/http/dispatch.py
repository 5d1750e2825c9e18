"""Finds and runs the operations below a board without FastAPI's layers.

FastAPI has these routes too, to answer a wrong method; it gets every request that matches none here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from laurels.http.operation import BOARD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from laurels.http.operation import Operation, RecordedRoute

# The part that all paths share, and the rest.
_SHAPE: Final = re.compile(r"(/v1/projects/[^/]+/boards/[^/]+)(/.*)", re.DOTALL)

# Limits of the cache of paths without a member; the number is enough for a service with very many boards.
MOST_REMEMBERED: Final = 10_000
LONGEST_REMEMBERED: Final = 200


class Found(NamedTuple):
    """The operation for a request, its route, and the decoded parts of the path."""

    operation: Operation
    route: RecordedRoute
    parts: dict[str, str]


class Dispatch:
    def __init__(self, operations: Iterable[Operation], app: ASGIApp, rest: ASGIApp) -> None:
        """`app` becomes the scope's app; `rest` gets all other requests."""
        self._app = app
        self._rest = rest
        self._fixed: dict[tuple[str, str], tuple[Operation, RecordedRoute]] = {}
        self._others: list[tuple[Operation, RecordedRoute]] = []
        self._found: dict[tuple[str, str], Found] = {}
        for operation in operations:
            found, below_board = (operation, operation.route()), operation.path.removeprefix(BOARD)
            if "{" in below_board:
                self._others.append(found)
            else:
                self._fixed[operation.method, below_board] = found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self.find(scope["method"], scope["path"])
        if found is None:
            await self._rest(scope, receive, send)
            return
        self.enter(found, scope)
        await found.operation(scope, receive, send)

    def find(self, method: str, path: str) -> Found | None:
        return self._found.get((method, path)) or self._find(method, path)

    def enter(self, found: Found, scope: Scope) -> None:
        """Puts into the scope what routing puts there."""
        scope["app"], scope["route"], scope["path_params"] = self._app, found.route, found.parts.copy()

    def _find(self, method: str, path: str) -> Found | None:
        shape = _SHAPE.fullmatch(path)
        if shape is None:
            return None
        fixed = self._fixed.get((method, shape[2]))
        if fixed is not None:
            found = _found(*fixed, path)
            if found and len(path) <= LONGEST_REMEMBERED:
                if len(self._found) >= MOST_REMEMBERED:
                    self._found.clear()
                self._found[method, path] = found
            return found
        for operation, route in self._others:
            if operation.method == method and (found := _found(operation, route, path)):
                return found
        return None


def _found(operation: Operation, route: RecordedRoute, path: str) -> Found | None:
    match = route.path_regex.fullmatch(path)
    if match is None:
        return None
    parts = match.groupdict()
    if "%" in path:
        convertors = route.param_convertors
        parts = {name: convertors[name].convert(value) for name, value in parts.items()}
    return Found(operation, route, parts)
