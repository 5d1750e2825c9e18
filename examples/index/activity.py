"""Hourly activity: who does most in this hour, and who did in those before. An hour stays as it was."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import BigInteger, DateTime
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from examples.stage import titled
from laurels.cli.output import grouped
from laurels.index import LeaderboardIndex, leaderboard

if TYPE_CHECKING:
    from rich.table import Table

    from examples.index.place import Place

HOUR: Final = timedelta(hours=1)
BEGIN: Final = datetime(2025, 10, 23, 16, tzinfo=UTC)
HOURS: Final = 28
NOW: Final = BEGIN + HOURS * HOUR - timedelta(minutes=5)
USERS: Final = [f"user-{number:02}" for number in range(1, 61)]
SEED: Final = 60


class Base(DeclarativeBase):
    pass


class UserActivity(Base):
    __tablename__ = "user_activity"
    __leaderboards__ = (
        LeaderboardIndex(score="actions", window="hourly", keep=24, at="hour", on_update="keep"),
    )
    user: Mapped[str] = mapped_column(primary_key=True)
    hour: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    actions: Mapped[int] = mapped_column(BigInteger)


def actions_of(hour: datetime) -> dict[str, int]:
    """What users did in an hour: less at night."""
    chance = random.Random(f"{SEED} {hour:%Y-%m-%dT%H}")  # noqa: S311  # a story, not a secret
    awake = 0.15 if hour.hour < 6 else 0.6
    return {user: chance.randrange(1, 80) for user in USERS if chance.random() < awake}


async def play(place: Place) -> None:
    for number in range(HOURS):
        hour = BEGIN + number * HOUR
        async with place.writing(hour + timedelta(minutes=55)) as session:
            rows = [
                {"user": user, "hour": hour, "actions": actions} for user, actions in actions_of(hour).items()
            ]
            new = insert(UserActivity)
            counted = {"hour": new.excluded.hour, "actions": new.excluded.actions}
            await session.execute(new.on_conflict_do_update(index_elements=["user"], set_=counted), rows)


async def tables() -> list[Table]:
    ranking = leaderboard(UserActivity)
    now = titled("Most active this hour", ">rank", "user", ">actions")
    for entry in (await ranking.top(50))[:5]:
        now.add_row(str(entry.rank), entry.item.user, grouped(entry.score))
    day = titled("The last hours", "hour", ">users", ">most active", ">actions", ">median")
    windows = await ranking.windows()
    for window in windows[:6]:
        of_hour = ranking.window(window)
        (best,) = await of_hour.top(1)
        median = await of_hour.percentile(0.5)
        day.add_row(
            f"{window.starts_at:%H:%M}",
            str(window.entries),
            best.item.user,
            grouped(best.score),
            grouped(median or 0),
        )
    day.caption = f"{len(windows)} hours can be asked for"
    return [now, day]
