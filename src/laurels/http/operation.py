"""Routes: a function with its types is one operation, served and documented.

    routes = Routes("entries")

    @routes.get(f"{BOARD}/entries/{{member:member}}", scope="read", example={"member": "ada", …}, cached=True)
    async def read_standing(call: Call, member: str, query: WindowQuery) -> Standing:
        ...

`call` is the admitted request. A parameter that the path names is that part of the path; `query` is the query
and `given` the JSON body, decoded as their types. A value that the function returns is sent as JSON, None as
204. A `Response` is sent as it is; `answer` then names the type for the document. The docstring is the
operation's summary and description.

FastAPI's app has the routes, but does not run them: decision 0037 says why.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, get_args

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from laurels.http import body
from laurels.http.authentication import Call, admit
from laurels.http.encoding import (
    JsonResponse,
    TaggedBody,
    coalesced,
    encode_for,
    has_scores,
    tagged,
    tagged_answer,
)
from laurels.http.idempotency_key import answer_once
from laurels.http.parameters import NoParameters, read_query

if TYPE_CHECKING:
    from starlette.types import Receive, Send
    from starlette.types import Scope as AsgiScope

    from laurels.access.store.api_keys import Scope

PROJECT = "/v1/projects/{project:segment}"
BOARD = f"{PROJECT}/boards/{{board:segment}}"

Endpoint = TypeVar("Endpoint", bound=Callable[..., Awaitable[Any]])
Declare = Callable[[Endpoint], Endpoint]


class IndexedHeaders(Headers):
    """Headers in a dictionary: Starlette searches a list at each access."""

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:  # pyright: ignore[reportMissingSuperCall]  # which only keeps them
        self._list = raw
        self._first = dict(reversed(raw))

    def __getitem__(self, key: str) -> str:
        return self._first[key.lower().encode("latin-1")].decode("latin-1")

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.lower().encode("latin-1") in self._first

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401  # as in Mapping
        found = self._first.get(key.lower().encode("latin-1"))
        return default if found is None else found.decode("latin-1")

    def getlist(self, key: str) -> list[str]:
        return super().getlist(key) if key in self else []


class IndexedRequest(Request):
    def __init__(self, scope: AsgiScope, receive: Receive) -> None:
        super().__init__(scope, receive)
        self._indexed_headers = IndexedHeaders(scope["headers"])

    @property
    def headers(self) -> Headers:
        return self._indexed_headers


class RecordedRoute(Route):
    """A route that puts itself into the scope, as FastAPI's do: for metrics and logs."""

    def matches(self, scope: AsgiScope) -> tuple[Match, AsgiScope]:
        match, found = super().matches(scope)
        return match, {**found, "route": self} if found else found


@dataclass(frozen=True)
class Body:
    """A request's body in the document."""

    example: Any
    others: dict[str, Any] = field(default_factory=dict[str, Any])
    """Examples in other media types than JSON."""
    type: Any = None
    """The type of a body that the operation reads itself."""


class RouteOptions(TypedDict, total=False):
    scope: Scope
    """The scope that a key needs; left out if no key is needed."""
    status: int | tuple[int, ...]
    """The status of an answer with a value, by default 200; several if the operation returns a `Response`."""
    example: Any
    """An example of the answer."""
    answer: Any
    """The type of the answer, for an operation that returns a `Response`."""
    media_type: str
    """The type of an answer that is not JSON."""
    responses: dict[int, dict[str, Any]]
    """Other statuses, or more about one, as OpenAPI's response objects."""
    body: Body
    headers: dict[str, str]
    """Request headers that the operation reads, with their descriptions."""
    problems: tuple[int, ...]
    """Statuses of errors that not all operations have."""
    decode: Callable[[Call, bytes], Any]
    """Reads the JSON body; by default it is decoded as the type of `given`."""
    idempotent: bool
    """Whether a request repeated with its `Idempotency-Key` counts once; `given` then has an `id`."""
    cached: bool
    """Whether the answer has an ETag."""
    shared: bool
    """Whether identical concurrent requests share one answer, if it is cached. By default they do."""
    takes_players: bool
    """Whether a player's token may submit; the operation then submits for `call.principal.player` only."""
    most_bytes: int
    """The longest body."""


class Operation:
    """An ASGI app for one method of one path."""

    def __init__(
        self,
        routes: Routes,
        method: str,
        path: str,
        endpoint: Callable[..., Awaitable[Any]],
        options: RouteOptions,
    ) -> None:
        self.routes = routes
        self.method = method
        self.path = path
        self.endpoint = endpoint
        self.options = options
        self.scope: Scope | None = options.get("scope")
        signature = inspect.signature(endpoint)
        types = {name: each.annotation for name, each in signature.parameters.items()}
        self.query: type[msgspec.Struct] = types.get("query", NoParameters)
        self.given: Any = types.get("given")
        returned = signature.return_annotation
        self.answer: Any = options.get("answer", _value_of(returned))
        status = options.get("status", 200)
        self.statuses = (status,) if isinstance(status, int) else status
        self.takes_players = options.get("takes_players", False)
        self.most_bytes = options.get("most_bytes", body.BODY_BYTES)
        self._is_cached = options.get("cached", False)
        self._is_shared = options.get("shared", True)
        self._in_path = tuple(name for name in re.findall(r"{(\w+):", path) if name in types)
        self._takes_query = "query" in types
        self._decode = options.get("decode") or self._decoder()
        self._has_scores = path.startswith(f"{BOARD}/") and has_scores(self.answer)

    @property
    def required_scope(self) -> Scope:
        assert self.scope is not None, f"{self.method} {self.path} has no scope"  # noqa: S101  # a wrong declaration
        return self.scope

    def _decoder(self) -> Callable[[Call, bytes], Any]:
        decoder = msgspec.json.Decoder(self.given)
        return lambda _, sent: body.decode(sent, decoder)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        response = await self.respond(IndexedRequest(scope, receive))
        await response(scope, receive, send)

    async def respond(self, request: Request) -> Response:
        call = await self.routes.admit(request, self)
        arguments: dict[str, Any] = {name: request.path_params[name] for name in self._in_path}
        if self.routes.checks_query:
            query = read_query(request, self.query)
            if self._takes_query:
                arguments["query"] = query
        return await self._respond(call, arguments)

    async def _respond(self, call: Call, arguments: dict[str, Any]) -> Response:
        if self._is_cached:
            read = partial(self._tagged, call, arguments)
            found = await (coalesced(call.request, read) if self._is_shared else read())
            return tagged_answer(call.request, *found)
        if self.given is None:
            return await self._act(call, **arguments)
        decode = partial(self._decode, call)
        if self.options.get("idempotent"):
            return await answer_once(call, decode, lambda given: self._act(call, given=given, **arguments))
        body.media_type(call.request, body.JSON)
        given = decode(await body.read(call.request, self.most_bytes))
        return await self._act(call, given=given, **arguments)

    async def _tagged(self, call: Call, arguments: dict[str, Any]) -> TaggedBody:
        value = await self.endpoint(call, **arguments)
        return tagged(await encode_for(call, value, has_scores=self._has_scores))

    async def _act(self, call: Call, **arguments: Any) -> Response:  # noqa: ANN401  # as the endpoint takes them
        value = await self.endpoint(call, **arguments)
        if value is None:
            return Response(status_code=204)
        if isinstance(value, Response):
            return value
        encoded = await encode_for(call, value, has_scores=self._has_scores)
        return JsonResponse(encoded, status=self.statuses[0])

    def route(self) -> RecordedRoute:
        return RecordedRoute(self.path, self, methods=[self.method])


def _value_of(returned: Any) -> Any:  # noqa: ANN401  # any annotation
    """The type of the value that an endpoint returns, apart from None and `Response`."""
    each_of = get_args(returned) if isinstance(returned, UnionType) else (returned,)
    values = [each for each in each_of if each not in (None, NoneType, Response)]
    return values[0] if values else None


async def admit_to_project(request: Request, operation: Operation) -> Call:
    """Admits a request with a key of the project in the path that has the operation's scope."""
    return await admit(
        request,
        operation.required_scope,
        takes_players=operation.takes_players,
        most_bytes=operation.most_bytes,
    )


@dataclass(frozen=True)
class Routes:
    """The operations of a part of the API, in the order in which their paths are matched."""

    tag: str
    admit: Callable[[Request, Operation], Awaitable[Call]] = admit_to_project
    needs: str = ""
    """What a key needs besides the scope, for the document."""
    in_path: dict[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])
    """Path parameters that differ from those of other routes, as OpenAPI describes them."""
    checks_query: bool = True
    """Whether unknown query parameters are refused."""
    operations: list[Operation] = field(default_factory=list["Operation"])

    def get(self, path: str, **options: Unpack[RouteOptions]) -> Declare[Endpoint]:
        return self._declare("GET", path, options)

    def put(self, path: str, **options: Unpack[RouteOptions]) -> Declare[Endpoint]:
        return self._declare("PUT", path, options)

    def post(self, path: str, **options: Unpack[RouteOptions]) -> Declare[Endpoint]:
        return self._declare("POST", path, options)

    def patch(self, path: str, **options: Unpack[RouteOptions]) -> Declare[Endpoint]:
        return self._declare("PATCH", path, options)

    def delete(self, path: str, **options: Unpack[RouteOptions]) -> Declare[Endpoint]:
        return self._declare("DELETE", path, options)

    def _declare(self, method: str, path: str, options: RouteOptions) -> Declare[Endpoint]:
        def declare(endpoint: Endpoint) -> Endpoint:
            self.operations.append(Operation(self, method, path, endpoint, options))
            return endpoint

        return declare
