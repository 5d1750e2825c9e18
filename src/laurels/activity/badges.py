"""Who earns a badge on a day. Pure.

    daily_top10       overall rank 10 or better on a day, with a score above 0
    weekly_top10      the same for the sum of the seven days that end on a Sunday
    streak_30         a streak of 30 days or more; once for each user
    social_butterfly  15 or more peers: the distinct peers of each of seven days, added up; once in seven days

A badge belongs to its day: a correction of the day may revoke it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from laurels.activity.streaks import date_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from laurels.activity.policy import CampusPolicy

Kind = Literal["daily_top10", "weekly_top10", "streak_30", "social_butterfly"]
KINDS: Final[tuple[Kind, ...]] = ("daily_top10", "weekly_top10", "streak_30", "social_butterfly")
SUNDAY: Final = 7


@dataclass(frozen=True, slots=True)
class Badge:
    user_id: str
    kind: Kind
    earned_ymd: int
    meta: dict[str, Any] = field(default_factory=dict[str, Any])


def ends_week(ymd: int) -> bool:
    return date_of(ymd).isoweekday() == SUNDAY


def ranked(scores: Mapping[str, float]) -> dict[str, int]:
    """The rank of each user: 1 + how many users have a higher score (1-2-2-4)."""
    ranks: dict[str, int] = {}
    rank, previous = 0, None
    for place, user in enumerate(sorted(scores, key=scores.__getitem__, reverse=True), 1):
        if scores[user] != previous:
            rank, previous = place, scores[user]
        ranks[user] = rank
    return ranks


def top(
    kind: Kind, ymd: int, campus_id: str, scores: Mapping[str, float], policy: CampusPolicy
) -> Iterator[Badge]:
    for user, rank in ranked(scores).items():
        if rank > policy.BADGE_TOP:
            return
        if scores[user] > 0:
            yield Badge(user, kind, ymd, {"campus_id": campus_id, "rank": rank, "score": scores[user]})


def long_streaks(
    ymd: int, campus_id: str, streaks: Mapping[str, int], holders: Collection[str], policy: CampusPolicy
) -> Iterator[Badge]:
    """`holders`: the users who earned it on an earlier day."""
    for user, streak in streaks.items():
        if streak >= policy.BADGE_STREAK_DAYS and user not in holders:
            yield Badge(user, "streak_30", ymd, {"campus_id": campus_id, "streak": streak})


def butterflies(
    ymd: int, campus_id: str, peers: Iterable[tuple[str, int]], holders: Collection[str], policy: CampusPolicy
) -> Iterator[Badge]:
    """`peers`: active users and their peers of seven days. `holders`: who earned it in the last six days."""
    for user, met in peers:
        if met >= policy.BADGE_PEERS and user not in holders:
            yield Badge(user, "social_butterfly", ymd, {"campus_id": campus_id, "peers": met})
