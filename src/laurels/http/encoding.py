"""How values are written down: JSON, times in RFC 3339 with Z, scores of int64 boards as strings.

JSON numbers are doubles to most readers, so an int64 score beyond 2^53 would lose digits on its way.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import msgspec
from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from laurels.http.authentication import Call
    from laurels.http.coalesce import Questions

Answer = TypeVar("Answer", bound=msgspec.Struct)

SCORES: Final = frozenset({"score", "previous_score", "low", "high"})
LISTS: Final = frozenset({"entries", "buckets", "windows"})

_REVALIDATED: Final = "private, no-cache"

_to_json = msgspec.json.Encoder().encode


class JsonResponse(Response):
    """Of a body that is encoded already."""

    def __init__(self, body: bytes, *headers: tuple[bytes, bytes]) -> None:  # pyright: ignore[reportMissingSuperCall]  # which would encode it
        self.status_code = 200
        self.background = None
        self.body = body
        length = b"content-length", b"%d" % len(body)
        self.raw_headers = [length, (b"content-type", b"application/json"), *headers]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # an ASGI app
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


async def answer(call: Call, value: msgspec.Struct) -> Response:
    """To a change."""
    return JsonResponse(await _encoded(call, value))


class Tagged(NamedTuple):
    """An answer, and the tag that tells whether it is still the same."""

    body: bytes
    tag: str


async def cached_answer(call: Call, ask: Callable[[], Awaitable[msgspec.Struct]]) -> Response:
    """To a question that path and query tell whole; asked once for all who come with the same."""

    async def tagged() -> Tagged:
        body = await _encoded(call, await ask())
        return Tagged(body, f'"{blake2b(body, digest_size=16).hexdigest()}"')

    request = call.request
    questions: Questions[Tagged] = request.app.state.questions
    body, tag = await questions.ask((request.scope["path"], request.scope["query_string"]), tagged)
    if is_known(request, tag):
        return Response(status_code=304, headers={"ETag": tag, "Cache-Control": _REVALIDATED})
    return JsonResponse(body, (b"etag", tag.encode()), (b"cache-control", _REVALIDATED.encode()))


def is_known(request: Request, tag: str) -> bool:
    """Whether the client has what the tag stands for (`If-None-Match`)."""
    asked = request.headers.get("if-none-match", "")
    return asked.strip() == "*" or tag in (each.strip().removeprefix("W/") for each in asked.split(","))


async def _encoded(call: Call, value: msgspec.Struct) -> bytes:
    definition = await call.laurels.definition(call.board)
    return encode(value, is_exact=definition.score == "int64")


def encode(value: msgspec.Struct, *, is_exact: bool) -> bytes:
    return _to_json(with_exact_scores(value) if is_exact else value)


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
