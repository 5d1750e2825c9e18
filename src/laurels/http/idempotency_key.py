"""`Idempotency-Key`: a request that is sent again counts once.

The key identifies one request to a board: method, path, query and body, byte for byte, and the player if one
sends it. The same request gets the same answer again, with `Idempotency-Replayed: true`; or 409 while the
first is still running. Another request with the same key gets 422.
"""

from __future__ import annotations

import re
from contextlib import aclosing
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeVar

from starlette.responses import Response

from laurels.errors import InvalidInput
from laurels.http import body
from laurels.http.durability import durability_of
from laurels.scores.idempotency import FIELD
from laurels.scores.submission import AdmittedSubmission

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from starlette.requests import Request

    from laurels.access.players import Player
    from laurels.http.authentication import Call
    from laurels.scores.idempotency import Claim
    from laurels.scores.submission import Submission

# Leaves room for KEY.INDEX in an id, also within a player's namespace.
KEY_BYTES: Final = 200
REPLAYED: Final = "Idempotency-Replayed"
REPLAY: Final = (REPLAYED.lower().encode(), b"true")

DOCUMENTED: Final = {
    "Idempotency-Key": "Another way to give the `id`, which identifies this request only. The same request "
    "sent again gets the same answer, with `Idempotency-Replayed: true`.",
}

_KEY: Final = re.compile(rf"[ -~]{{1,{KEY_BYTES}}}")


class HasId(Protocol):
    """A decoded body with an id."""

    id: str | None


Given = TypeVar("Given", bound=HasId)


def is_valid(key: str) -> bool:
    return _KEY.fullmatch(key) is not None


def key_of(request: Request) -> str | None:
    given = request.headers.getlist(FIELD)
    if not given:
        return None
    if len(given) > 1 or not is_valid(given[0]):
        raise InvalidInput.at(FIELD, f"must be one value of 1 to {KEY_BYTES} ASCII characters")
    return given[0]


class Fingerprint:
    """The hash of a request, complete after its whole body was added."""

    def __init__(self, method: str, path: str, query: bytes, player: Player | None) -> None:
        who = player.member if player else ""
        target = f"{method} {path}".encode() + (b"?" + query if query else b"")
        self._hash = sha256(target + f"\n{len(who)} {who}\n".encode())

    @classmethod
    def begun(cls, call: Call) -> Self:
        """The fingerprint of a call, still without its body."""
        scope = call.request.scope
        return cls(call.request.method, scope["path"], scope["query_string"], call.principal.player)

    @classmethod
    def whole(cls, call: Call, sent: bytes) -> str:
        fingerprint = cls.begun(call)
        fingerprint.add(sent)
        return str(fingerprint)

    def add(self, piece: bytes | bytearray) -> None:
        self._hash.update(piece)

    def __str__(self) -> str:
        return self._hash.hexdigest()

    async def of(self, pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """Yields the pieces and adds each."""
        async with aclosing(pieces):
            async for piece in pieces:
                self.add(piece)
                yield piece


def with_key(given: Submission, key: str, fingerprint: str) -> AdmittedSubmission:
    """The submission with the key as its id."""
    require_id(given, key)
    if isinstance(given, AdmittedSubmission):
        given.fingerprint = fingerprint
        return given
    return AdmittedSubmission.from_given(given, fingerprint=fingerprint)


def require_id(given: HasId, key: str) -> None:
    """Makes the key the id; raises for another id in the body."""
    if given.id not in (None, key):
        raise InvalidInput.at("id", "differs from the header Idempotency-Key: send one of them")
    given.id = key


def claim(call: Call, key: str, fingerprint: str = "") -> AbstractAsyncContextManager[Claim]:
    """Claims the key while the request runs; a fingerprint that is not known yet is set on the claim."""
    player = call.principal.player
    return call.laurels.idempotency_keys.claim(
        call.ref,
        player.own_id(key) if player else key,
        fingerprint,
    )


def replayed(claim: Claim) -> Response:
    """The stored answer; raises `KeyReused` if it belongs to another request."""
    claim.check()
    return Response(claim.answer, headers={REPLAYED: "true"}, media_type="application/json")


async def answer_once(
    call: Call, decode: Callable[[bytes], Given], act: Callable[[Given], Awaitable[Response]]
) -> Response:
    """The answer to a JSON body. With an `Idempotency-Key`, which becomes its id, `act` runs once."""
    body.media_type(call.request, body.JSON)
    key = key_of(call.request)
    if key is None:
        return await act(decode(await body.read(call.request)))
    decoder = body.decoder_of(call.request)
    raw = await body.read_raw(call.request)
    async with claim(call, key, Fingerprint.whole(call, raw)) as claimed:
        if claimed.is_done:
            await call.laurels.confirm(call.board, durability_of(call.request))
            return replayed(claimed)
        given = decode(body.decompressed(decoder, raw))
        require_id(given, key)
        response = await act(given)
        claimed.answer = bytes(response.body)
        return response
