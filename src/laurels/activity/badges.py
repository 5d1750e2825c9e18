"""Who earns a badge on a day. Pure.

    daily_top10       rank 10 or better of the day, overall, with a score above 0
    weekly_top10      the same of the seven days that end on a Sunday
    streak_30         a streak of 30 days or more, by whoever never had the badge
    social_butterfly  15 or more distinct peers a day, summed over seven days; once in any seven days

A badge belongs to its day: a correction of the day may take it away again.
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
    """Each user's rank: 1 + how many have more (1-2-2-4)."""
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
    """Those with a rank that earns one, and a score above 0."""
    for user, rank in ranked(scores).items():
        if rank > policy.BADGE_TOP:
            return
        if scores[user] > 0:
            meta = {"campus_id": campus_id, "rank": rank, "score": scores[user]}
            yield Badge(user, kind, ymd, meta)


def long_streaks(
    ymd: int, campus_id: str, streaks: Mapping[str, int], holders: Collection[str], policy: CampusPolicy
) -> Iterator[Badge]:
    """`holders`: who earned it on an earlier day."""
    for user, streak in streaks.items():
        if streak >= policy.BADGE_STREAK_DAYS and user not in holders:
            yield Badge(user, "streak_30", ymd, {"campus_id": campus_id, "streak": streak})


def butterflies(
    ymd: int, campus_id: str, peers: Iterable[tuple[str, int]], holders: Collection[str], policy: CampusPolicy
) -> Iterator[Badge]:
    """`peers`: of active users the peers of seven days; `holders`: who earned it on the six days before."""
    for user, met in peers:
        if met >= policy.BADGE_PEERS and user not in holders:
            yield Badge(user, "social_butterfly", ymd, {"campus_id": campus_id, "peers": met})
