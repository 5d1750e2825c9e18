"""What the tables of campuses keep about one user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from laurels.activity.store.days import COUNTERS
from laurels.postgres.tables import badges, lb_counters, lb_daily, streaks

if TYPE_CHECKING:
    from sqlalchemy import Select

    from laurels.postgres.engine import Postgres

_SCORES = ("social", "engagement", "popularity", "overall")


class ActivityExportStore:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def export(self, user: str) -> dict[str, list[dict[str, Any]]]:
        of_user = {"streaks": streaks, "badges": badges, "days": lb_daily}
        names = {
            "streaks": ("current", "best", "last_active_ymd"),
            "badges": ("kind", "earned_ymd", "meta"),
        }
        found = {
            name: await self._rows(
                select(*(of_user[name].c[each] for each in columns)).where(of_user[name].c.user_id == user)
            )
            for name, columns in names.items()
        }
        same = [lb_counters.c[name] == lb_daily.c[name] for name in ("ymd", "campus_id", "user_id")]
        days = (
            select(
                *(lb_daily.c[name] for name in ("ymd", "campus_id", *_SCORES, "rank_overall")),
                *(lb_counters.c[name] for name in (*COUNTERS, "peers", "streak")),
            )
            .outerjoin(lb_counters, same[0] & same[1] & same[2])
            .where(lb_daily.c.user_id == user)
            .order_by(lb_daily.c.ymd)
        )
        rows = await self._rows(days)
        return {
            **found,
            "days": [{**row, **{name: float(row[name]) for name in _SCORES}} for row in rows],
        }

    async def _rows(self, asked: Select[Any]) -> list[dict[str, Any]]:
        async with self._postgres.reading() as connection:
            return [dict(row) for row in (await connection.execute(asked)).mappings()]
