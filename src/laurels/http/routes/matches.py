"""Matches on their way in: rated games."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from laurels.access import signatures
from laurels.http import body, idempotency_key
from laurels.http.durability import DOCUMENTED, durability_of
from laurels.http.encoding import answer
from laurels.http.idempotency_key import answer_once
from laurels.http.operation import Body, Operations
from laurels.ratings.match import Match, Matched

if TYPE_CHECKING:
    from starlette.responses import Response

    from laurels.http.authentication import Call
    from laurels.http.parameters import NoParameters

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
    headers={**signatures.DOCUMENTED, **DOCUMENTED, **idempotency_key.DOCUMENTED},
    problems=(400, 408, 409, 413, 415),
)
async def report_match(call: Call, _: NoParameters) -> Response:
    """Report a match.

    For boards with a `rating`. `winner` is one of the players, or null for a draw; `ranks`, in the order of
    the players, say the same. All players change at once. Ranks are of the board's first window. `applied` is
    false when the id was seen before; then the present values come back.
    """
    return await answer_once(call, lambda sent: body.decode(sent, _match), lambda given: _play(call, given))


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
