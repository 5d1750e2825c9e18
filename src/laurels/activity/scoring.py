"""Scores a day: three pillars from its counters, and overall from the pillars and the streak. Pure.

    social      3 invites_accepted + 5 friends_new + 0.3 min(dm_sent, 60) + 0.15 min(room_sent, 80)
    engagement  2 acts_played + 3 acts_won + 1 min(rooms_joined, 6) + 2 min(rooms_created, 2)
    popularity  1 min(uniq_senders, 20) + 2 min(uniq_invite_accept_from, 10)
    overall     (social + engagement + popularity) * streak_multiplier

Each score is the double nearest to the exact value, so users who earned the same have the same score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from laurels.activity.counters import Counters
    from laurels.activity.policy import CampusPolicy

Scope = Literal["social", "popularity", "engagement", "overall"]
SCOPES: Final[tuple[Scope, ...]] = ("social", "popularity", "engagement", "overall")


class Scores(NamedTuple):
    social: float
    engagement: float
    popularity: float
    overall: float


def score(counters: Counters, streak: int, policy: CampusPolicy) -> Scores:
    """`streak`: the number of active days in a row, this one included."""
    weights = policy.weights
    social = (
        weights.invite_accept * counters.invites_accepted
        + weights.friend_new * counters.friends_new
        + weights.dm_sent * min(counters.dm_sent, policy.CAP_DM_SENT)
        + weights.room_sent * min(counters.room_sent, policy.CAP_ROOM_SENT)
    )
    engagement = (
        weights.act_played * counters.acts_played
        + weights.act_won * counters.acts_won
        + weights.room_join * min(counters.rooms_joined, policy.CAP_ROOM_JOIN)
        + weights.room_create * min(counters.rooms_created, policy.CAP_ROOM_CREATE)
    )
    popularity = weights.uniq_sender * min(
        counters.uniq_senders, policy.CAP_POP_UNIQ_SENDER
    ) + weights.uniq_invite_from * min(counters.uniq_invite_accept_from, policy.CAP_POP_UNIQ_INVITE_FROM)
    times = policy.streak_multiplier(streak)
    overall = (social + engagement + popularity) * times.numerator
    units = weights.units
    return Scores(
        social / units, engagement / units, popularity / units, overall / (units * times.denominator)
    )
