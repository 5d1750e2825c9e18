"""Rating systems of a board, and their constants. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt

from laurels.boards.declared import Declaration

# Bounds of ratings and constants: far beyond any scale in use, and no formula overflows.
_Scale = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
_Positive = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]


class _Rated(Declaration):
    provisional: Annotated[StrictInt, Field(ge=0, le=1_000_000)] = Field(
        default=0, description="For how many games a new player's rating is marked as provisional."
    )
    rank_provisional: StrictBool = Field(
        default=True, description="false: such players are in no window until they have played these games."
    )


class Elo(_Rated):
    """Ratings of two players, as Arpad Elo has them; 400 points are odds of ten to one."""

    system: Literal["elo"]
    k: _Positive = 32
    initial: _Scale = 1000


class Glicko2(_Rated):
    """Ratings of two players with what is known of their certainty; each match is a rating period."""

    system: Literal["glicko2"]
    initial: _Scale = 1500
    deviation: _Positive = 350
    volatility: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.06
    tau: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] = 0.5


class OpenSkill(_Rated):
    """Ratings of any number of players, without teams; needs the package `openskill`."""

    system: Literal["openskill"]
    initial: _Scale = 25
    deviation: _Positive = 25 / 3


Rating = Annotated[Elo | Glicko2 | OpenSkill, Field(discriminator="system")]
