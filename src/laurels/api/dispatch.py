"""The short way to thin operations: found and run without the layers that the other routes pass through.

FastAPI knows their routes too, for the document and for what it says of a wrong method; whatever is not found
here goes on to it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.convertors import Convertor
    from starlette.types import ASGIApp, Receive, Scope, Send

    from laurels.api.operation import Operation, ThinRoute

# What is the same in the paths of all of them; then what tells them apart.
_SHAPE: Final = re.compile(r"(/v1/projects/[^/]+/boards/[^/]+)(/.*)", re.DOTALL)


class Dispatch:
    def __init__(self, operations: Iterable[Operation], app: ASGIApp, rest: ASGIApp) -> None:
        """`app`: what the operations are told that they belong to; `rest`: what takes everything else."""
        self._app = app
        self._rest = rest
        self._fixed: dict[tuple[str, str], tuple[Operation, ThinRoute]] = {}
        self._others: list[tuple[Operation, ThinRoute]] = []
        for operation in operations:
            found = operation, operation.route()
            if "{" in operation.path:
                self._others.append(found)
            else:
                self._fixed[operation.method, operation.path] = found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._find(scope["method"], scope["path"])
        if found is None:
            await self._rest(scope, receive, send)
            return
        operation, route, parameters = found
        scope["app"], scope["route"], scope["path_params"] = self._app, route, parameters
        await operation(scope, receive, send)

    def _find(self, method: str, path: str) -> tuple[Operation, ThinRoute, dict[str, str]] | None:
        shape = _SHAPE.fullmatch(path)
        if shape is None:
            return None
        fixed = self._fixed.get((method, shape[2]))
        for operation, route in (fixed,) if fixed else self._others:
            if operation.method == method and (found := route.path_regex.fullmatch(path)):
                return operation, route, _converted(found.groupdict(), route.param_convertors)
        return None


def _converted(found: dict[str, str], convertors: Mapping[str, Convertor[str]]) -> dict[str, str]:
    return {name: convertors[name].convert(value) for name, value in found.items()}
