"""The rating systems behind one interface: new players, and the outcome of a match. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from laurels.boards.rating import Elo, Glicko2, OpenSkill
from laurels.ratings import elo, glicko2, openskill
from laurels.ratings.state import RatingState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.boards.rating import Rating

# In one match of OpenSkill. The cost grows with the square of the players.
MOST_PLAYERS: Final = 64


class RatingChange(NamedTuple):
    """A player before and after a match."""

    before: RatingState
    after: RatingState
    change: float
    """Of the rating."""


def newcomer(rating: Rating) -> RatingState:
    """The state of a player who has not played yet."""
    if isinstance(rating, Elo):
        return RatingState(float(rating.initial))
    volatility = rating.volatility if isinstance(rating, Glicko2) else 0.0
    return RatingState(float(rating.initial), 0, float(rating.deviation), float(volatility))


def most_players(rating: Rating) -> int:
    """The most players that a match can have."""
    return MOST_PLAYERS if isinstance(rating, OpenSkill) else 2


def check_available(rating: Rating | None) -> None:
    """Raises `InvalidInput` if the system needs a package that is not installed."""
    if isinstance(rating, OpenSkill):
        openskill.check_installed()


def outcomes(rating: Rating, players: Sequence[RatingState], ranks: Sequence[int]) -> list[RatingChange]:
    """The outcome for each player. The best rank is the lowest; equal ranks are a draw.

    >>> board = Elo(system="elo")
    >>> [outcome.after.rating for outcome in outcomes(board, [newcomer(board)] * 2, [1, 2])]
    [1016.0, 984.0]
    """
    if isinstance(rating, OpenSkill):
        return _rated_together(rating, players, ranks)
    first, second = players
    result = (1 + (ranks[0] < ranks[1]) - (ranks[0] > ranks[1])) / 2
    if isinstance(rating, Elo):
        change = elo.change(first.rating, second.rating, result, rating.k)
        return [_moved(first, change), _moved(second, -change)]
    return [_rated(rating, first, second, result), _rated(rating, second, first, 1 - result)]


def _moved(before: RatingState, change: float) -> RatingChange:
    return RatingChange(before, RatingState(before.rating + change, before.games + 1), change)


def _rated(rating: Glicko2, before: RatingState, opponent: RatingState, result: float) -> RatingChange:
    """Rates a match as a rating period of its own. The deviation never exceeds a newcomer's."""
    player, other = (
        glicko2.Glicko2Player(each.rating, each.deviation, each.volatility) for each in (before, opponent)
    )
    after = glicko2.rated(player, [glicko2.Game(other, result)], rating.tau)
    deviation = min(after.deviation, max(rating.deviation, before.deviation))
    state = RatingState(after.rating, before.games + 1, deviation, after.volatility)
    return RatingChange(before, state, after.rating - before.rating)


def _rated_together(
    rating: OpenSkill, players: Sequence[RatingState], ranks: Sequence[int]
) -> list[RatingChange]:
    new = newcomer(rating)
    skills = [(player.rating, player.deviation) for player in players]
    after = openskill.rated((new.rating, new.deviation), skills, ranks)
    return [
        RatingChange(before, RatingState(skill, before.games + 1, deviation), skill - before.rating)
        for before, (skill, deviation) in zip(players, after, strict=True)
    ]
