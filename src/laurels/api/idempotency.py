"""`Idempotency-Key`: a request that may be sent again, and is done once.

The key stands for one request: its method, its path and its body to the byte; on one board, and of one
player where it comes from a player. Sent again while it is under way, it is told to wait (409); with anything
else under the same key, it is refused (422); once it was answered, the answer comes again, with
`Idempotency-Replayed: true`.
"""

from __future__ import annotations

import re
from contextlib import aclosing
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from laurels.boards.keys import BoardRef
from laurels.boards.once import FIELD
from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager

    from starlette.requests import Request

    from laurels.api.auth import Call
    from laurels.boards.once import Claim

# So that KEY.INDEX is still an id, a player's own too.
KEY_BYTES: Final = 200
REPLAYED: Final = "Idempotency-Replayed"

_KEY: Final = re.compile(rf"[ -~]{{1,{KEY_BYTES}}}")


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
        request, player = call.request, call.holder.player
        who = player.member if player else ""
        self._hash = sha256(f"{request.method} {request.scope['path']}\n{len(who)} {who}\n".encode())

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
    player = call.holder.player
    return call.laurels.once.claim(BoardRef.parse(call.board), player.own_id(key) if player else key, told)


def replayed(claim: Claim) -> Response:
    """The answer that the request got before; raises `KeyReused` if it was another request."""
    claim.check()
    return Response(claim.answer, headers={REPLAYED: "true"}, media_type="application/json")
