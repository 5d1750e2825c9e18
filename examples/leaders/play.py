"""October 2025 of an arcade game on the Leaders service, over HTTP: high scores by `set`, coins by `inc`."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import httpx
import typer

from examples.plot import Lines
from examples.stage import perform, titled
from laurels.cli.output import grouped
from laurels.http.app import create_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from rich.console import Console
    from rich.table import Table

    from examples.stage import Stage

HERE: Final = Path(__file__).parent
BOARDS: Final = HERE / "boards.toml"
GAME: Final = "pacman"
RANGES: Final = ("d", "w", "m", "a")
BEGIN: Final = datetime(2025, 10, 1, tzinfo=UTC)
DAYS: Final = 31
THE_DAY: Final = datetime(2025, 10, 24, tzinfo=UTC)
EVENING: Final = THE_DAY + timedelta(days=1) - timedelta(seconds=1)
FRIENDS: Final = ("ada", "eve", "joe", "kim")
SEED: Final = 1980
USERS: Final = "ada bob cleo dan eve finn gus hana ivo joe kim lou max nora otto pia ron sue tom uli".split()  # noqa: SIM905  # words read best as words


@dataclass(frozen=True)
class Game:
    """One play of the game: its score, and the coins that it earned."""

    at: datetime
    user: str
    score: int
    coins: int


def games_of(day: datetime) -> list[Game]:
    """The plays of a day, in order."""
    people = random.Random(SEED)  # noqa: S311  # a story, not a secret
    chance = random.Random(f"{SEED} {day:%Y-%m-%d}")  # noqa: S311
    games: list[Game] = []
    for user in USERS:
        skill, keenness = people.lognormvariate(8.5, 0.4), people.betavariate(2, 3)
        for _ in range(round(3 * keenness * chance.random())):
            score = max(10, round(skill * chance.lognormvariate(0, 0.4), -1))
            at = day + timedelta(seconds=chance.randrange(86_400))
            games.append(Game(at, user, int(score), coins=int(score) // 200))
    return sorted(games, key=lambda game: (game.at, game.user))


@asynccontextmanager
async def client_of(stage: Stage) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of the service over the stage's engine, with a key for the game."""
    _, key = await stage.laurels.keys.create(GAME, ("read", "submit"))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(create_app(stage.laurels)),
        base_url="http://127.0.0.1:8000",
        headers={"Authorization": f"Bearer {key}"},
    ) as client:
        yield client


async def play(stage: Stage, client: httpx.AsyncClient) -> AsyncGenerator[datetime]:
    """Plays the month: posts each game as it ends. Yields in the last second of each day."""
    await stage.apply(BOARDS)
    for number in range(DAYS):
        day = BEGIN + timedelta(days=number)
        for game in games_of(day):
            stage.turn_to(game.at)
            await asyncio.gather(
                *(_post(client, f"highscore/{code}/{game.user}", game.score) for code in RANGES),
                *(
                    _post(client, f"earned_coins/{code}/{game.user}", game.coins, "inc")
                    for code in ("d", "a")
                ),
            )
        stage.turn_to(day + timedelta(days=1) - timedelta(seconds=1))
        yield stage.now


async def _post(client: httpx.AsyncClient, path: str, value: int, how: str = "set") -> None:
    answer = await client.post(f"/leaders/{GAME}/{path}", data={"value": value, "type": how})
    answer.raise_for_status()


async def read(client: httpx.AsyncClient, path: str) -> dict[str, Any]:
    answer = await client.get(f"/leaders/{GAME}/{path}")
    return answer.raise_for_status().json()


async def evening(client: httpx.AsyncClient) -> list[Table | str]:
    """The tables that the game shows in the evening of a day, each with its request."""
    asked = {
        "Today": "highscore/d?limit=5",
        "Yesterday": "highscore/d/last?limit=5",
        "Friends, this week": f"highscore/w?friends={','.join(FRIENDS)}",
        "This month, from the sixth on": "highscore/m?limit=5&offset=5",
        "Coins of all time": "earned_coins/a?limit=5",
    }
    shown: list[Table | str] = []
    for title, path in asked.items():
        answer = await read(client, path)
        made = titled(f"{title} ({answer['slot']})", ">rank", "user", ">value")
        for entry in answer["entries"]:
            made.add_row(str(entry["rank"]), entry["user"], grouped(entry["value"]))
        shown += [f'$ curl -H "$K" "$B/{GAME}/{path}"', made]
    return shown


async def run(stage: Stage, console: Console) -> str:
    """Plays the month, prints the tables, and returns the plot."""
    coins: list[dict[str, float]] = []
    async with client_of(stage) as client:
        async for now in play(stage, client):
            if now == EVENING:
                console.rule(f"{now:%A %d %B %Y}, just before midnight")
                console.print(*await evening(client), sep="\n", markup=False)
            answer = await read(client, "earned_coins/a?limit=1000")
            coins.append({entry["user"]: entry["value"] for entry in answer["entries"]})
    return Lines(
        "Coins earned",
        "The eight who have most at the end of October 2025, at the end of each day",
        [f"{BEGIN + timedelta(days=number):%-d %b}" for number in range(DAYS)],
        {user: [day.get(user) for day in coins] for user in list(coins[-1])[:8]},
    ).svg()


def main(
    data_dir: Annotated[Path | None, typer.Option(help="Keep the data in this folder.")] = None,
    plot: Annotated[Path, typer.Option(help="The file for the plot.")] = HERE / "month.svg",
) -> None:
    """Play a month of an arcade game over HTTP, show what its players see, and plot their coins."""
    perform(run, BEGIN, data_dir, plot)


if __name__ == "__main__":
    typer.run(main)
