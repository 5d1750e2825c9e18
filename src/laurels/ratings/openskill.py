"""Ratings of matches with many players: the Plackett-Luce model of Weng and Lin. Pure.

Needs the optional package `openskill`.
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

# A rating and its uncertainty.
Skill = tuple[float, float]


def check_installed() -> None:
    """Raises `InvalidInput` if the package is missing."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise InvalidInput.at("rating.system", f"needs the Python package {PACKAGE}, which is not installed")


@lru_cache(maxsize=256)
def _model(initial: float, deviation: float) -> Any:  # noqa: ANN401  # the package may be missing
    """The model, in the proportions of the package's defaults of 25 and 25/3."""
    check_installed()
    models = importlib.import_module(f"{PACKAGE}.models")
    return models.PlackettLuce(mu=initial, sigma=deviation, beta=deviation / 2, tau=deviation / 100)


def rated(newcomer: Skill, players: Sequence[Skill], ranks: Sequence[int]) -> list[Skill]:
    """Each player after a match without teams. The best player has the lowest rank."""
    model = _model(*newcomer)
    teams = [[model.rating(mu=rating, sigma=deviation)] for rating, deviation in players]
    return [(player.mu, player.sigma) for (player,) in model.rate(teams, ranks=list(map(float, ranks)))]
