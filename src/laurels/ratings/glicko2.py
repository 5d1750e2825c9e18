"""Glicko-2, by the steps of Mark Glickman's «Example of the Glicko-2 system». Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# Points of the usual scale for one of Glicko-2's own.
SCALE: Final = 173.7178
# The tolerance of the volatility.
TOLERANCE: Final = 0.000001
# A limit far above the steps of any search.
MOST_STEPS: Final = 1000
# A greater difference, on Glicko-2's own scale, counts as this one. It makes the win all but certain; beyond
# it the variance would leave the range of doubles.
FARTHEST: Final = 30.0


class Glicko2Player(NamedTuple):
    rating: float
    deviation: float
    volatility: float


class Game(NamedTuple):
    """A result against an opponent: 1, 0.5 or 0."""

    opponent: Glicko2Player
    result: float


def rated(player: Glicko2Player, games: Sequence[Game], tau: float) -> Glicko2Player:
    """The player after a rating period with these games, at least one.

    >>> player, weak, even, strong = (
    ...     Glicko2Player(*each, 0.06) for each in [(1500, 200), (1400, 30), (1550, 100), (1700, 300)]
    ... )
    >>> after = rated(player, [Game(weak, 1), Game(even, 0), Game(strong, 0)], tau=0.5)
    >>> round(after.rating, 2), round(after.deviation, 2), round(after.volatility, 5)
    (1464.05, 151.52, 0.06)
    """
    phi = player.deviation / SCALE
    precision, gained = 0.0, 0.0
    for game in games:
        weight = _weight(game.opponent.deviation / SCALE)
        ahead = weight * (player.rating - game.opponent.rating) / SCALE
        expected = 1 / (1 + math.exp(-max(-FARTHEST, min(ahead, FARTHEST))))
        precision += weight**2 * expected * (1 - expected)
        gained += weight * (game.result - expected)
    variance = 1 / precision
    sigma = _volatility(player.volatility, phi, variance, variance * gained, tau)
    after = 1 / math.sqrt(1 / (phi**2 + sigma**2) + precision)
    return Glicko2Player(player.rating + SCALE * after**2 * gained, after * SCALE, sigma)


def _weight(phi: float) -> float:
    """The weight of a result against an opponent of this deviation: the paper's g."""
    return 1 / math.sqrt(1 + 3 * phi**2 / math.pi**2)


def _volatility(sigma: float, phi: float, variance: float, delta: float, tau: float) -> float:
    """Step 5: the root of f, by the Illinois algorithm."""
    start = math.log(sigma**2)

    def f(x: float) -> float:
        square = math.exp(x)
        below = phi**2 + variance + square
        return square * (delta**2 - below) / (2 * below**2) - (x - start) / tau**2

    low, high = start, start - tau
    if delta**2 > phi**2 + variance:
        high = math.log(delta**2 - phi**2 - variance)
    else:
        while f(high) < 0:
            high -= tau
    at_low, at_high = f(low), f(high)
    for _ in range(MOST_STEPS):
        if abs(high - low) <= TOLERANCE:
            break
        between = low + (low - high) * at_low / (at_high - at_low)
        at_between = f(between)
        if at_between * at_high <= 0:
            low, at_low = high, at_high
        else:
            at_low /= 2
        high, at_high = between, at_between
    return math.exp(low / 2)
