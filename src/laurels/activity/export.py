"""What campuses know about one user: campus, streak, badges and days, those in the making included."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from laurels.activity.days import day_at
from laurels.activity.dirty_days import DirtyDays
from laurels.activity.streaks import days_from

if TYPE_CHECKING:
    from laurels.activity.campus_people import CampusPeople
    from laurels.activity.campuses import UserCampuses
    from laurels.activity.store.export import ActivityExportStore
    from laurels.activity.valkey_keys import ActivityKeys
    from laurels.clock import Clock
    from laurels.valkey.client import Valkey

# Counters expire 48 hours after the end of their day, in every timezone.
LIVE_DAYS: Final = range(-4, 2)


@dataclass(frozen=True)
class ActivityExporter:
    valkey: Valkey
    keys: ActivityKeys
    store: ActivityExportStore
    people: CampusPeople
    campuses: UserCampuses
    clock: Clock

    async def export(self, member: str) -> dict[str, list[dict[str, Any]]]:
        try:
            user = str(UUID(member))
        except ValueError:
            return {}
        found = await self.store.export(user)
        finalized = {day["ymd"] for day in found["days"]}
        today = day_at("UTC", self.clock()).ymd
        live = [ymd for ago in LIVE_DAYS if (ymd := days_from(today, ago)) not in finalized]
        held = await DirtyDays(self.valkey, self.keys).held([(ymd, user) for ymd in live])
        found["days"] += [
            {"ymd": ymd, "campus_id": each.campus, **asdict(each.counters)}
            for ymd, each in zip(live, held, strict=True)
            if each.campus
        ]
        campus = (await self.campuses.of([user])).get(user)
        known = (await self.people.users([user])).get(user)
        if campus or known:
            about = asdict(known) if known else {"id": user}
            found["users"] = [{**about, "campus_id": campus.id if campus else None}]
        return found
