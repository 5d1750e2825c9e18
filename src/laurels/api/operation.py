"""Thin routes: what the engine's own values go in and out of, without a layer between.

An operation is admitted, its query is read, its endpoint answers. What it is declared with is all that
`document` needs to describe it, beside the routes that FastAPI describes itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from laurels.api.auth import Call, admit
from laurels.api.parameters import NoParameters, query

if TYPE_CHECKING:
    import msgspec
    from starlette.types import Receive, Send
    from starlette.types import Scope as AsgiScope

    from laurels.archive.keys import Scope

BOARD = "/v1/projects/{project:segment}/boards/{board:segment}"

Parameters = TypeVar("Parameters", bound="msgspec.Struct")
Endpoint = Callable[[Call, Parameters], Awaitable[Response]]


class ThinRoute(Route):
    """A route that tells which it is, as FastAPI's do: for metrics and logs."""

    def matches(self, scope: AsgiScope) -> tuple[Match, AsgiScope]:
        match, found = super().matches(scope)
        return match, {**found, "route": self} if found else found


@dataclass(frozen=True)
class Body:
    """What an operation takes: its type, an example, and the media types it may come in."""

    type: Any
    example: Any
    media_types: tuple[str, ...] = ("application/json",)
    lines: str = ""
    """An example as lines, for those that take them."""


class Documented(TypedDict, total=False):
    body: Body
    answer: type[msgspec.Struct]
    example: Any
    headers: dict[str, str]
    """Request headers with a meaning of their own, and what it is."""
    problems: tuple[int, ...]
    """Statuses of the errors that are its own, beside those that every operation has."""


@dataclass(frozen=True, eq=False)
class Operation:
    """One method of one path under a board; an ASGI app."""

    tag: str
    method: str
    path: str
    scope: Scope
    parameters: type[msgspec.Struct]
    endpoint: Endpoint[Any]
    documented: Documented

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        call = await admit(request, self.scope)
        response = await self.endpoint(call, query(request, self.parameters))
        await response(scope, receive, send)

    def route(self) -> ThinRoute:
        return ThinRoute(BOARD + self.path, self, methods=[self.method])


@dataclass(frozen=True)
class Operations:
    """The operations of a module, in the order in which their paths are tried."""

    tag: str
    declared: list[Operation] = field(default_factory=list[Operation])

    def add(
        self,
        method: str,
        path: str,
        scope: Scope,
        parameters: type[Parameters] = NoParameters,
        **documented: Unpack[Documented],
    ) -> Callable[[Endpoint[Parameters]], Endpoint[Parameters]]:
        def declare(endpoint: Endpoint[Parameters]) -> Endpoint[Parameters]:
            self.declared.append(Operation(self.tag, method, path, scope, parameters, endpoint, documented))
            return endpoint

        return declare
