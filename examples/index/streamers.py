"""Fusion of streamers: popular this hour, and close to what a viewer likes. Vectors of 256 dimensions."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pgvector.sqlalchemy import Vector
from sqlalchemy import BigInteger, insert
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from examples.stage import titled
from laurels.cli.output import grouped
from laurels.index import Leaderboard, LeaderboardIndex, Similar, fuse, hnsw_index

if TYPE_CHECKING:
    from rich.table import Table

    from examples.index.place import Place
    from laurels.index import Fused

BEGIN: Final = datetime(2025, 10, 24, 20, tzinfo=UTC)
DIMENSIONS: Final = 256
TOPICS: Final = ("baking", "birds", "chess", "drums", "pottery", "rockets", "sailing", "synths")
LIKES: Final = {"chess": 0.72, "rockets": 0.69}
"""What the viewer has watched, and for how long."""
STREAMERS: Final = 400
SEED: Final = 256


class Base(DeclarativeBase):
    pass


class Streamer(Base):
    __tablename__ = "streamers"
    __leaderboards__ = (LeaderboardIndex(score="viewers", window="hourly", keep=24),)
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    topic: Mapped[str]
    viewers: Mapped[int] = mapped_column(BigInteger)
    embedding: Mapped[list[float]] = mapped_column(Vector(DIMENSIONS))


hnsw_index(Streamer.embedding)


@dataclass(frozen=True)
class Meaning:
    """Stands for a model that makes vectors of what is said in a stream."""

    chance: random.Random

    def direction(self, spread: float = 1.0) -> list[float]:
        return [self.chance.gauss(0, spread) for _ in range(DIMENSIONS)]


def topics() -> dict[str, list[float]]:
    meaning = Meaning(random.Random(SEED))  # noqa: S311  # a story, not a secret
    return {topic: meaning.direction() for topic in TOPICS}


def streamers() -> list[dict[str, Any]]:
    """Who is on the air: a few with very many viewers, most with few."""
    chance = random.Random(SEED + 1)  # noqa: S311
    meaning, directions = Meaning(chance), topics()
    rows: list[dict[str, Any]] = []
    for number in range(1, STREAMERS + 1):
        topic = chance.choice(TOPICS)
        embedding = [one + two for one, two in zip(directions[topic], meaning.direction(0.7), strict=True)]
        viewers = round(chance.lognormvariate(5, 1.6))
        rows.append(
            {
                "id": number,
                "name": f"{topic}{number:03}",
                "topic": topic,
                "viewers": viewers,
                "embedding": embedding,
            }
        )
    return rows


def interest() -> list[float]:
    """The viewer's: the direction of what it likes, each by its weight."""
    directions = topics()
    return [
        sum(weight * directions[topic][at] for topic, weight in LIKES.items()) for at in range(DIMENSIONS)
    ]


async def play(place: Place) -> None:
    async with place.writing(BEGIN) as session:
        await session.execute(insert(Streamer), streamers())


async def popular_and_alike() -> list[Fused[Streamer]]:
    """Either counts: the best of both lists."""
    return (
        await fuse(
            Leaderboard(Streamer.viewers).top(100),
            Similar(Streamer.embedding).nearest(interest(), k=50),
            of=Streamer,
        )
        .rrf()
        .limit(10)
    )


async def alike_among_the_popular() -> list[Fused[Streamer]]:
    """Both count: of the hundred with most viewers the ten that are closest."""
    return (
        await fuse(
            Leaderboard(Streamer.viewers).top(100),
            Similar(Streamer.embedding).nearest(interest(), k=10),
            of=Streamer,
        )
        .pipeline()
        .weighted([0.2, 0.8])
    )


async def tables() -> list[Table]:
    likes = " and ".join(LIKES)
    return [
        drawn(f"Popular, or about {likes}", await popular_and_alike()),
        drawn(f"Popular, and about {likes}", await alike_among_the_popular()),
    ]


def drawn(title: str, found: list[Fused[Streamer]]) -> Table:
    made = titled(title, ">rank", "streamer", ">viewers", ">by viewers", ">by likeness", ">score")
    for each in found:
        ranks = [f"#{part.rank}" if part else "" for part in each.parts]
        made.add_row(str(each.rank), each.item.name, grouped(each.item.viewers), *ranks, f"{each.score:.4f}")
    return made
