"""Matches on their way in: rated games."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from laurels.api import body, signatures
from laurels.api.answers import answer
from laurels.api.durability import DOCUMENTED, durability_of
from laurels.api.idempotency import Fingerprint, claim, key_of, replayed
from laurels.api.operation import Body, Operations
from laurels.errors import InvalidInput
from laurels.ratings.match import Match, Matched

if TYPE_CHECKING:
    from starlette.responses import Response

    from laurels.api.auth import Call
    from laurels.api.parameters import NoParameters

operations = Operations("matches")

_match = msgspec.json.Decoder(Match)

EXAMPLE: Final = {
    "players": ["ada", "bob"],
    "winner": "ada",
    "at": "2025-10-24T12:00:00Z",
    "metadata": {"map": "harbour"},
}
_ADA: Final = {
    "member": "ada",
    "rating": 1016,
    "previous_rating": 1000,
    "change": 16,
    "rank": 1,
    "previous_rank": 3,
    "games": 7,
    "provisional": False,
}


@operations.add(
    "POST",
    "/matches",
    "submit",
    body=Body(Match, EXAMPLE),
    answer=Matched,
    example={
        "id": "~YmTlp2hAyYd2xkGXiXXz1A.0",
        "applied": True,
        "players": [_ADA, {**_ADA, "member": "bob", "rating": 984, "change": -16, "rank": 4}],
    },
    headers={
        **signatures.DOCUMENTED,
        **DOCUMENTED,
        "Idempotency-Key": "Another way to give the `id`; it stands for this request alone. Sent again, the "
        "request gets the same answer, with `Idempotency-Replayed: true`.",
    },
    problems=(400, 408, 409, 413, 415),
)
async def report_match(call: Call, _: NoParameters) -> Response:
    """Report a match.

    For boards with a `rating`. `winner` is one of the players, or null for a draw; `ranks`, in the order of
    the players, say the same. All players change at once. Ranks are of the board's first window. `applied` is
    false when the id was seen before; then the present values come back.
    """
    body.media_type(call.request, body.JSON)
    key = key_of(call.request)
    if key is None:
        return await _play(call, body.decode(await body.read(call.request), _match))
    decoder = body.decoder_of(call.request)
    raw = await body.read_raw(call.request)
    fingerprint = Fingerprint(call)
    fingerprint.add(raw)
    async with claim(call, key, fingerprint) as claimed:
        if claimed.is_done:
            await call.laurels.confirm(call.board, durability_of(call.request))
            return replayed(claimed)
        given = body.decode(body.decompressed(decoder, raw), _match)
        if given.id not in (None, key):
            raise InvalidInput.at("id", "is not the id that the header Idempotency-Key gives")
        given.id = key
        response = await _play(call, given)
        claimed.answer = bytes(response.body)
        return response


async def _play(call: Call, given: Match) -> Response:
    matched = await call.laurels.match(
        call.board,
        given.players,
        given.winner,
        ranks=given.ranks,
        at=given.at,
        id=given.id,
        groups=given.groups,
        metadata=given.metadata,
        durability=durability_of(call.request),
    )
    return await answer(call, matched)
