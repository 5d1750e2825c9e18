"""`Idempotency-Key`: a request that may be sent again, and is done once.

The key stands for one request: its method, its path, its query and its body to the byte; on one board, and of
one player where it comes from a player. Sent again while it is under way, it is told to wait (409); with
anything else under the same key, it is refused (422); once it was answered, the answer comes again, with
`Idempotency-Replayed: true`.
"""

from __future__ import annotations

import re
from contextlib import aclosing
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from starlette.responses import Response

from laurels.boards.keys import BoardRef
from laurels.errors import InvalidInput
from laurels.http import body
from laurels.http.durability import durability_of
from laurels.scores.idempotency import FIELD

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from starlette.requests import Request

    from laurels.http.authentication import Call
    from laurels.scores.idempotency import Claim

# So that KEY.INDEX is still an id, a player's own too.
KEY_BYTES: Final = 200
REPLAYED: Final = "Idempotency-Replayed"

DOCUMENTED: Final = {
    "Idempotency-Key": "Another way to give the `id`; it stands for this request alone. Sent again, the "
    "request gets the same answer, with `Idempotency-Replayed: true`.",
}

_KEY: Final = re.compile(rf"[ -~]{{1,{KEY_BYTES}}}")


class HasId(Protocol):
    """What a body gives, under an id."""

    id: str | None


Given = TypeVar("Given", bound=HasId)


def key_of(request: Request) -> str | None:
    given = request.headers.getlist(FIELD)
    if not given:
        return None
    if len(given) > 1 or not _KEY.fullmatch(given[0]):
        raise InvalidInput.at(FIELD, f"must be one value of 1 to {KEY_BYTES} ASCII characters")
    return given[0]


class Fingerprint:
    """What a request is, once all of its body was added."""

    def __init__(self, call: Call) -> None:
        request, player = call.request, call.principal.player
        who = player.member if player else ""
        query = request.scope["query_string"]
        self._hash = sha256(f"{request.method} {request.scope['path']}".encode())
        self._hash.update(b"?" + query if query else b"")
        self._hash.update(f"\n{len(who)} {who}\n".encode())

    def add(self, piece: bytes) -> None:
        self._hash.update(piece)

    def __str__(self) -> str:
        return self._hash.hexdigest()

    async def of(self, pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """The same pieces, added as they pass."""
        async with aclosing(pieces):
            async for piece in pieces:
                self.add(piece)
                yield piece


def claim(call: Call, key: str, fingerprint: Fingerprint | None = None) -> AbstractAsyncContextManager[Claim]:
    """The key, for as long as the request is worked on; without a fingerprint, its end will tell."""
    told = str(fingerprint) if fingerprint else ""
    player = call.principal.player
    return call.laurels.idempotency_keys.claim(
        BoardRef.parse(call.board), player.own_id(key) if player else key, told
    )


def replayed(claim: Claim) -> Response:
    """The answer that the request got before; raises `KeyReused` if it was another request."""
    claim.check()
    return Response(claim.answer, headers={REPLAYED: "true"}, media_type="application/json")


async def answer_once(
    call: Call, decode: Callable[[bytes], Given], act: Callable[[Given], Awaitable[Response]]
) -> Response:
    """The answer to a JSON body, which is acted on once if the request has a key: the key is then its id."""
    body.media_type(call.request, body.JSON)
    key = key_of(call.request)
    if key is None:
        return await act(decode(await body.read(call.request)))
    decoder = body.decoder_of(call.request)
    raw = await body.read_raw(call.request)
    fingerprint = Fingerprint(call)
    fingerprint.add(raw)
    async with claim(call, key, fingerprint) as claimed:
        if claimed.is_done:
            await call.laurels.confirm(call.board, durability_of(call.request))
            return replayed(claimed)
        given = decode(body.decompressed(decoder, raw))
        if given.id not in (None, key):
            raise InvalidInput.at("id", "is not the id that the header Idempotency-Key gives")
        given.id = key
        response = await act(given)
        claimed.answer = bytes(response.body)
        return response
