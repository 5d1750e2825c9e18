"""Encodes answers: JSON, times in RFC 3339 with Z, scores of int64 boards as strings.

Most clients read JSON numbers as doubles, so an int64 score beyond 2^53 would lose digits.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast, get_args

import msgspec
from pydantic import BaseModel
from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from laurels.http.authentication import Call
    from laurels.http.coalesce import Coalescer

Answer = TypeVar("Answer", bound=msgspec.Struct)

SCORES: Final = frozenset({"score", "previous_score", "low", "high"})
LISTS: Final = frozenset({"entries", "buckets", "windows"})

_REVALIDATED: Final = "private, no-cache"


def _as_builtins(value: Any) -> Any:  # noqa: ANN401  # any type that msgspec does not know
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise NotImplementedError(type(value).__name__)


_to_json = msgspec.json.Encoder(enc_hook=_as_builtins).encode


class JsonResponse(Response):
    """A response whose body is already encoded."""

    def __init__(self, body: bytes, *headers: tuple[bytes, bytes], status: int = 200) -> None:  # pyright: ignore[reportMissingSuperCall]  # which would encode it
        self.status_code = status
        self.background = None
        self.body = body
        length = b"content-length", b"%d" % len(body)
        self.raw_headers = [length, (b"content-type", b"application/json"), *headers]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # an ASGI app
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


class TaggedBody(NamedTuple):
    """An encoded answer with its ETag."""

    body: bytes
    tag: str


def tagged(body: bytes) -> TaggedBody:
    return TaggedBody(body, f'"{sha256(body).hexdigest()[:32]}"')


async def coalesced(request: Request, read: Callable[[], Awaitable[TaggedBody]]) -> TaggedBody:
    """What `read` returns; concurrent requests for the same path and query share one read."""
    coalescer: Coalescer[TaggedBody] = request.app.state.coalescer
    return await coalescer.ask((request.scope["path"], request.scope["query_string"]), read)


def tagged_answer(request: Request, body: bytes, tag: str) -> Response:
    """The answer with its ETag, or 304 if the client has it."""
    if is_known(request, tag):
        return Response(status_code=304, headers={"ETag": tag, "Cache-Control": _REVALIDATED})
    return JsonResponse(body, (b"etag", tag.encode()), (b"cache-control", _REVALIDATED.encode()))


def is_known(request: Request, tag: str) -> bool:
    """Whether `If-None-Match` names the tag."""
    asked = request.headers.get("if-none-match")
    if asked is None:
        return False
    return asked.strip() == "*" or tag in (each.strip().removeprefix("W/") for each in asked.split(","))


async def encode_for(call: Call, value: object, *, has_scores: bool) -> bytes:
    """The JSON of an answer; `has_scores`: whether it may hold scores of the call's board."""
    if not has_scores:
        return encode(value)
    definition = call.laurels.remembered(call.board) or await call.laurels.definition(call.board)
    return encode(value, is_exact=definition.score == "int64")


def encode(value: object, *, is_exact: bool = False) -> bytes:
    return _to_json(with_exact_scores(value) if is_exact and isinstance(value, msgspec.Struct) else value)


def has_scores(kind: Any) -> bool:  # noqa: ANN401  # any annotation
    """Whether values of a type may hold scores that `with_exact_scores` changes."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        return any(each.name in SCORES or has_scores(each.type) for each in fields)
    return any(has_scores(each) for each in get_args(kind))


def with_exact_scores(value: Answer) -> Answer:
    changed: dict[str, Any] = {}
    for name in value.__struct_fields__:
        field = getattr(value, name)
        if name in SCORES and field is not None:
            changed[name] = str(field)
        elif name in LISTS and isinstance(field, list):
            changed[name] = [with_exact_scores(each) for each in cast("list[msgspec.Struct]", field)]
        elif isinstance(field, msgspec.Struct):
            changed[name] = with_exact_scores(field)
    return msgspec.structs.replace(value, **changed)
