"""Game leaderboard: the best scores of today. A player has one record; a new day's first game replaces it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import BigInteger, DateTime
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from examples.stage import titled
from laurels.cli.output import grouped
from laurels.index import LeaderboardIndex, leaderboard

if TYPE_CHECKING:
    from rich.table import Table

    from examples.index.place import Place

NOON: Final = datetime(2024, 1, 28, 12, tzinfo=UTC)
"""In window 19750: 1706443200 // 86400."""
BEGIN: Final = NOON - timedelta(days=1, hours=12)
PLAYERS: Final = 200
ME: Final = "player123"
SEED: Final = 19750


class Base(DeclarativeBase):
    pass


class GameScore(Base):
    __tablename__ = "game_scores"
    __leaderboards__ = (LeaderboardIndex(score="score", window="daily", keep=7, at="played_at"),)
    player: Mapped[str] = mapped_column(primary_key=True)
    score: Mapped[int] = mapped_column(BigInteger)
    level: Mapped[int]
    played_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


@dataclass(frozen=True)
class Game:
    at: datetime
    player: str
    score: int


def games() -> list[Game]:
    """Two days' games up to noon, in order."""
    chance = random.Random(SEED)  # noqa: S311  # a story, not a secret
    played: list[Game] = []
    for number in range(PLAYERS):
        skill = chance.lognormvariate(8, 0.6)
        for _ in range(chance.randrange(1, 5)):
            at = BEGIN + timedelta(minutes=chance.randrange(36 * 60))
            played.append(
                Game(at, f"player{number:03}", 10 * round(skill * chance.lognormvariate(0, 0.3) / 10))
            )
    return sorted(played, key=lambda game: (game.at, game.player))


async def play(place: Place) -> None:
    for day in (BEGIN, BEGIN + timedelta(days=1)):
        async with place.writing(min(day + timedelta(days=1, seconds=-1), NOON)) as session:
            for game in (game for game in games() if game.at.date() == day.date()):
                record = await session.get(GameScore, game.player)
                if record is None:
                    record = GameScore(player=game.player, score=game.score, played_at=game.at)
                    session.add(record)
                elif record.played_at < day or record.score < game.score:
                    record.score, record.played_at = game.score, game.at
                record.level = 1 + record.score // 1000


async def tables() -> list[Table]:
    today = leaderboard(GameScore)
    made = titled("Today's best", ">rank", "player", ">points", ">level")
    for entry in await today.top(10):
        item = entry.item
        made.add_row(str(entry.rank), item.player, grouped(entry.score), str(item.level))
    mine, half = await today.rank(ME), await today.percentile(0.5)
    made.caption = f"{ME} is #{mine} of {await today.count()}; half of them have {grouped(half or 0)} or less"
    return [made]
