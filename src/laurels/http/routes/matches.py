"""Takes the results of rated matches."""

from typing import Final

from laurels.access import signatures
from laurels.http import idempotency_key
from laurels.http.authentication import Call
from laurels.http.durability import DOCUMENTED, durability_of
from laurels.http.operation import BOARD, Body, Routes
from laurels.ratings.match import Match, Matched

routes = Routes("matches")

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


@routes.post(
    f"{BOARD}/matches",
    scope="submit",
    body=Body(EXAMPLE),
    idempotent=True,
    example={
        "id": "~YmTlp2hAyYd2xkGXiXXz1A.0",
        "applied": True,
        "players": [_ADA, {**_ADA, "member": "bob", "rating": 984, "change": -16, "rank": 4}],
    },
    headers={**signatures.DOCUMENTED, **DOCUMENTED, **idempotency_key.DOCUMENTED},
    problems=(409,),
)
async def report_match(call: Call, given: Match) -> Matched:
    """Report a match.

    For boards with a `rating`. Give the `winner`, null for a draw, or `ranks` in the order of the players.
    All ratings change in one step. The answer's ranks are of the board's first window. `applied` is false if
    the id was seen before; the answer then has the current values.
    """
    return await call.laurels.match(
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
