"""Thin routes: what the engine's own values go in and out of, without a layer between.

An operation is admitted, its query is read, its endpoint answers. What it is declared with is all that
`document` needs to describe it, beside the routes that FastAPI describes itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from laurels.http.authentication import Call, admit
from laurels.http.parameters import NoParameters, query

if TYPE_CHECKING:
    import msgspec
    from starlette.types import Receive, Send
    from starlette.types import Scope as AsgiScope

    from laurels.access.store.keys import Scope

BOARD = "/v1/projects/{project:segment}/boards/{board:segment}"

Parameters = TypeVar("Parameters", bound="msgspec.Struct")
Endpoint = Callable[[Call, Parameters], Awaitable[Response]]


class ThinHeaders(Headers):
    """Found by their names, not by looking through them all each time; as ASGI has them, in small letters."""

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:  # pyright: ignore[reportMissingSuperCall]  # which only keeps them
        self._list = raw
        self._first = dict(reversed(raw))

    def __getitem__(self, key: str) -> str:
        return self._first[key.lower().encode("latin-1")].decode("latin-1")

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.lower().encode("latin-1") in self._first

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401  # as Mapping has it
        found = self._first.get(key.lower().encode("latin-1"))
        return default if found is None else found.decode("latin-1")

    def getlist(self, key: str) -> list[str]:
        return super().getlist(key) if key in self else []


class ThinRequest(Request):
    def __init__(self, scope: AsgiScope, receive: Receive) -> None:
        super().__init__(scope, receive)
        self._thin_headers = ThinHeaders(scope["headers"])

    @property
    def headers(self) -> Headers:
        return self._thin_headers


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
    events: str
    """Of one that answers with server-sent events: an example."""
    headers: dict[str, str]
    """Request headers with a meaning of their own, and what it is."""
    most_bytes: int
    """Of one that submits scores: how long its body may be. It takes players, and submits for them alone."""
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
        request = ThinRequest(scope, receive)
        call = await self._admitted(request)
        response = await self.endpoint(call, query(request, self.parameters))
        await response(scope, receive, send)

    async def _admitted(self, request: Request) -> Call:
        if "most_bytes" not in self.documented:
            return await admit(request, self.scope)
        most_bytes = self.documented["most_bytes"]
        return await admit(request, self.scope, takes_players=True, most_bytes=most_bytes)

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
