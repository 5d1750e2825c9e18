"""Elo ratings. Pure.

The expected score of A against B is 1 / (1 + 10^((B - A) / 400)); a rating becomes
old + K * (result - expected), where the result is 1, 0.5 or 0.
"""

from __future__ import annotations

from typing import Final

# A greater difference of ratings counts as this one: the power would leave the range of doubles.
FARTHEST: Final = 400.0 * 300


def expected(own: float, other: float) -> float:
    """The expected score against another player: 0.5 among equals.

    >>> expected(1000, 1000), round(expected(1200, 1000), 4)
    (0.5, 0.7597)
    """
    return 1 / (1 + 10 ** (min(other - own, FARTHEST) / 400))


def change(own: float, other: float, result: float, k: float) -> float:
    """The points that a player gains by a result. The other player loses as many.

    >>> change(1000, 1000, 1, 32), round(change(1200, 1000, 0, 32), 4)
    (16.0, -24.3119)
    """
    return k * (result - expected(own, other))
