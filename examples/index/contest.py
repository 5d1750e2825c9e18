"""Weekly contest: this week's standings, and last week's results. A record for each user and week."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import BigInteger, DateTime, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from examples.stage import titled
from laurels.cli.output import grouped
from laurels.index import LeaderboardIndex, leaderboard

if TYPE_CHECKING:
    from rich.table import Table

    from examples.index.place import Place

WEEK: Final = timedelta(weeks=1)
BEGIN: Final = datetime(2025, 10, 2, tzinfo=UTC)
"""A Thursday, as 1 January 1970 was: weeks of 604,800 seconds begin with it."""
NOW: Final = datetime(2025, 10, 27, 20, tzinfo=UTC)
USERS: Final = """
    ada bela chen dara elif femi gita hugo ines jonas kofi lena mara nils olga pavel quinn rosa sami tara
""".split()  # noqa: SIM905  # words read best as words
SEED: Final = 52


class Base(DeclarativeBase):
    pass


class ContestEntry(Base):
    __tablename__ = "contest_entries"
    __leaderboards__ = (LeaderboardIndex(score="points", window="weekly", keep=4),)
    id: Mapped[int] = mapped_column(primary_key=True)
    user: Mapped[str]
    week: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    points: Mapped[int] = mapped_column(BigInteger)


def days() -> list[datetime]:
    """The evenings on which points are given."""
    first = BEGIN + timedelta(hours=20)
    return [first + timedelta(days=number) for number in range((NOW - first).days + 1)]


def points_of(day: datetime) -> dict[str, int]:
    """What each user who took part won on a day."""
    chance = random.Random(f"{SEED} {day:%Y-%m-%d}")  # noqa: S311  # a story, not a secret
    return {user: 5 * chance.randrange(1, 30) for user in USERS if chance.random() < 0.6}


def week_of(day: datetime) -> datetime:
    return BEGIN + (day - BEGIN) // WEEK * WEEK


async def play(place: Place) -> None:
    for day in days():
        async with place.writing(day) as session:
            of_week = select(ContestEntry).where(ContestEntry.week == week_of(day))
            entries = {entry.user: entry for entry in await session.scalars(of_week)}
            for user, points in points_of(day).items():
                if entry := entries.get(user):
                    entry.points += points
                else:
                    session.add(ContestEntry(user=user, week=week_of(day), points=points))


async def tables() -> list[Table]:
    ranking = leaderboard(ContestEntry)
    windows = await ranking.windows()
    made: list[Table] = []
    for title, window in (("This week", windows[0]), ("Last week", windows[1])):
        drawn = titled(f"{title}, from {window.starts_at:%-d %B}", ">rank", "user", ">points")
        for entry in await ranking.window(window).top(5):
            drawn.add_row(str(entry.rank), entry.item.user, grouped(entry.score))
        made.append(drawn)
    last = (await ranking.window(windows[1]).bottom(1))[0]
    made[-1].caption = f"Last of all: {last.item.user}, #{last.rank} with {grouped(last.score)}"
    return made
