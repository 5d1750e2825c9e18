"""Policies: the weights and caps that score a day. Pure.

A day is always scored under the policy of its date, also when it is scored again later. A changed weight is a
new version, in force from a date that has not begun in any timezone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Final


@dataclass(frozen=True)
class CampusPolicy:
    """The constants by their documented names; caps are per day."""

    version: int

    W_INVITE_ACCEPT: float = 3.0
    W_FRIEND_NEW: float = 5.0
    W_DM_SENT: float = 0.3
    CAP_DM_SENT: int = 60
    W_ROOM_SENT: float = 0.15
    CAP_ROOM_SENT: int = 80

    W_ACT_PLAYED: float = 2.0
    W_ACT_WON: float = 3.0
    W_ROOM_JOIN: float = 1.0
    CAP_ROOM_JOIN: int = 6
    W_ROOM_CREATE: float = 2.0
    CAP_ROOM_CREATE: int = 2

    W_POP_UNIQ_SENDER: float = 1.0
    CAP_POP_UNIQ_SENDER: int = 20
    W_POP_UNIQ_INVITE_FROM: float = 2.0
    CAP_POP_UNIQ_INVITE_FROM: int = 10

    STREAK_MULT_MIN: float = 1.00
    STREAK_MULT_MAX: float = 1.50
    STREAK_AT_30: float = 1.50

    BADGE_TOP: int = 10
    BADGE_STREAK_DAYS: int = 30
    BADGE_PEERS: int = 15
    BADGE_PEER_DAYS: int = 7

    @cached_property
    def weights(self) -> Weights:
        return Weights.of(self)

    def streak_multiplier(self, days: int) -> Fraction:
        """Rises linearly from the first day to the thirtieth, up to the maximum; exact."""
        return self._multipliers[min(max(days, 1), 30) - 1]

    @cached_property
    def _multipliers(self) -> tuple[Fraction, ...]:
        least, most, thirtieth = (
            Fraction(str(given)) for given in (self.STREAK_MULT_MIN, self.STREAK_MULT_MAX, self.STREAK_AT_30)
        )
        return tuple(min(most, least + (thirtieth - least) * day / 29) for day in range(30))


@dataclass(frozen=True)
class Weights:
    """The weights as whole numbers of a unit, so that sums are exact and equal scores are equal."""

    units: int
    """The number of units in 1."""
    invite_accept: int
    friend_new: int
    dm_sent: int
    room_sent: int
    act_played: int
    act_won: int
    room_join: int
    room_create: int
    uniq_sender: int
    uniq_invite_from: int

    @classmethod
    def of(cls, policy: CampusPolicy) -> Weights:
        given = [
            Fraction(str(weight))
            for weight in (
                policy.W_INVITE_ACCEPT,
                policy.W_FRIEND_NEW,
                policy.W_DM_SENT,
                policy.W_ROOM_SENT,
                policy.W_ACT_PLAYED,
                policy.W_ACT_WON,
                policy.W_ROOM_JOIN,
                policy.W_ROOM_CREATE,
                policy.W_POP_UNIQ_SENDER,
                policy.W_POP_UNIQ_INVITE_FROM,
            )
        ]
        units = lcm(*(weight.denominator for weight in given))
        return cls(units, *(int(weight * units) for weight in given))


POLICIES: Final = ((0, CampusPolicy(version=1)),)
"""The policies, oldest first, each with the date (ymd) from which it is in force."""


def policy_on(ymd: int) -> CampusPolicy:
    return next(policy for since, policy in reversed(POLICIES) if since <= ymd)
