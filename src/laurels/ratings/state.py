"""A player's rating state, and its text in Valkey and the journal. Pure."""

from __future__ import annotations

from typing import NamedTuple, Self


class RatingState(NamedTuple):
    """A player's state. Fields that the rating system does not use are 0.

    >>> RatingState(1016.0, 1).text()
    b'1016.0 1 0.0 0.0'
    >>> RatingState.parse(b"1016.0 1 0.0 0.0") == RatingState(1016.0, 1)
    True
    """

    rating: float
    games: int = 0
    deviation: float = 0.0
    volatility: float = 0.0

    def text(self) -> bytes:
        """The text with the fewest digits that give the same doubles, so equal states have equal texts."""
        return f"{self.rating!r} {self.games} {self.deviation!r} {self.volatility!r}".encode()

    @classmethod
    def parse(cls, text: bytes) -> Self:
        rating, games, deviation, volatility = text.split()
        return cls(float(rating), int(games), float(deviation), float(volatility))
