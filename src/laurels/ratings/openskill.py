"""Matches of many players: the Plackett-Luce model of Weng and Lin, by the package `openskill`. Pure.

The package is not among those that Laurels needs; whoever defines such a board installs it.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGE: Final = "openskill"

# A rating, and how far it may be off.
Skill = tuple[float, float]


def check_installed() -> None:
    """Raises `InvalidInput` where the package is missing."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise InvalidInput.at("rating.system", f"needs the Python package {PACKAGE}, which is not installed")


@lru_cache(maxsize=256)
def _model(initial: float, deviation: float) -> Any:  # noqa: ANN401  # the package may be missing
    """In the proportions that the package has for 25 and 25/3."""
    check_installed()
    models = importlib.import_module(f"{PACKAGE}.models")
    return models.PlackettLuce(mu=initial, sigma=deviation, beta=deviation / 2, tau=deviation / 100)


def rated(newcomer: Skill, players: Sequence[Skill], ranks: Sequence[int]) -> list[Skill]:
    """Each player after a match, everybody for themselves; the best has the least rank."""
    model = _model(*newcomer)
    teams = [[model.rating(mu=rating, sigma=deviation)] for rating, deviation in players]
    return [(player.mu, player.sigma) for (player,) in model.rate(teams, ranks=list(map(float, ranks)))]
