"""Regional leaderboards: one index, ranked by region and by city besides everybody. A city joins another."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import BigInteger, insert, update
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from examples.stage import titled
from laurels.cli.output import grouped
from laurels.index import LeaderboardIndex, leaderboard

if TYPE_CHECKING:
    from rich.table import Table

    from examples.index.place import Place

BEGIN: Final = datetime(2025, 10, 24, 9, tzinfo=UTC)
CITIES: Final = {
    "americas": ("lima", "montreal", "recife"),
    "asia": ("busan", "osaka", "pune", "tokyo"),
    "europe": ("gdansk", "porto", "turku"),
}
PLAYERS: Final = 300
ME: Final = "player123"
SEED: Final = 24


class Base(DeclarativeBase):
    pass


class RegionalScore(Base):
    __tablename__ = "regional_scores"
    __leaderboards__ = (LeaderboardIndex(score="score", group_by=["region", "city"], window="daily", keep=7),)
    player: Mapped[str] = mapped_column(primary_key=True)
    region: Mapped[str | None]
    city: Mapped[str | None]
    score: Mapped[int] = mapped_column(BigInteger)


def scores() -> list[dict[str, Any]]:
    """The morning's. Who says not where they are from is not ranked."""
    chance = random.Random(SEED)  # noqa: S311  # a story, not a secret
    rows: list[dict[str, Any]] = []
    for number in range(PLAYERS):
        region = chance.choice(list(CITIES))
        city = chance.choice(CITIES[region])
        told = chance.random() < 0.95 or number == 123
        score = chance.randrange(-50, 400) * 25
        rows.append(
            {
                "player": f"player{number:03}",
                "region": region if told else None,
                "city": city if told else None,
                "score": score,
            }
        )
    return rows


async def play(place: Place) -> None:
    async with place.writing(BEGIN) as session:
        await session.execute(insert(RegionalScore), scores())
    async with place.writing(BEGIN + timedelta(hours=1)) as session:
        moved = update(RegionalScore).where(RegionalScore.city == "osaka").values(city="tokyo")
        await session.execute(moved)


async def tables() -> list[Table]:
    asia = leaderboard(RegionalScore).group("asia")
    tokyo = leaderboard(RegionalScore).group("asia", "tokyo")
    made: list[Table] = []
    for title, ranking in (("Asia", asia), ("Tokyo", tokyo)):
        drawn = titled(f"{title} today", ">rank", "player", "city", ">points")
        for entry in await ranking.top(5):
            drawn.add_row(str(entry.rank), entry.item.player, entry.item.city, grouped(entry.score))
        drawn.caption = f"{await ranking.count()} players"
        made.append(drawn)
    everywhere = await leaderboard(RegionalScore).rank(ME)
    regions = {region: await leaderboard(RegionalScore).group(region).rank(ME) for region in CITIES}
    there = next(f"#{rank} in {region}" for region, rank in regions.items() if rank)
    made[-1].caption = f"{made[-1].caption}\n{ME} is {there} and #{everywhere} everywhere"
    return made
