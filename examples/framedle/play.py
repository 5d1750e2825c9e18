"""Four weeks of Framedle, from Monday 3 February 2025: what the game asks of its boards."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from examples.plot import Lines
from examples.stage import perform, titled
from laurels.cli.output import grouped
from laurels.demo import ADJECTIVES, COUNTRIES, CREATURES
from laurels.scores.submission import Submission

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator

    from rich.console import Console
    from rich.table import Table

    from examples.stage import Stage
    from laurels.engine import Laurels
    from laurels.scores.results import Entry

HERE: Final = Path(__file__).parent
BOARDS: Final = HERE / "boards.toml"
MODES: Final = ("daily_frame", "daily_clip", "speed_round")
XP: Final = "framedle/xp"
DUELS: Final = "framedle/duels"
BEGIN: Final = datetime(2025, 2, 3, tzinfo=UTC)
DAYS: Final = 28
END: Final = BEGIN + timedelta(days=DAYS)
QUARTER: Final = timedelta(hours=6)
THE_DAY: Final = datetime(2025, 2, 22, tzinfo=UTC)
"""The day whose tables are shown, in its last second."""
EVENING: Final = THE_DAY + timedelta(days=1) - timedelta(seconds=1)
SEED: Final = 1895  # of the first film show
PLAYERS: Final = 240
DUELS_A_DAY: Final = 24


@dataclass(frozen=True)
class Player:
    name: str
    country: str
    skill: float
    """The share of a play's points that this player usually gets."""
    keenness: float
    """How likely to play on a day."""


@dataclass(frozen=True)
class Play:
    at: datetime
    mode: str
    player: Player
    score: int

    @property
    def submission(self) -> Submission:
        return Submission(self.player.name, self.score, self.at, {"country": self.player.country})


@dataclass(frozen=True)
class Duel:
    at: datetime
    players: tuple[str, str]
    winner: str | None
    """None is a draw."""


@cache
def players() -> tuple[Player, ...]:
    """The same players in each run; most play now and then, some every day."""
    chance = random.Random(SEED)  # noqa: S311  # a story, not a secret
    names = chance.sample(
        [f"{manner}_{creature}" for manner, creature in product(ADJECTIVES, CREATURES)], PLAYERS
    )
    countries = chance.choices(list(COUNTRIES), list(COUNTRIES.values()), k=PLAYERS)
    return tuple(
        Player(name, country, skill=chance.betavariate(4, 3), keenness=chance.betavariate(3, 2))
        for name, country in zip(names, countries, strict=True)
    )


def plays_of(day: datetime) -> list[Play]:
    """The plays of a day, in order. Some players repeat a daily game, though only the first try counts."""
    chance = random.Random(f"{SEED} {day:%Y-%m-%d}")  # noqa: S311  # a story, not a secret
    found = [play for player in players() for play in _plays(player, day, chance)]
    return sorted(found, key=lambda play: (play.at, play.player.name, play.mode))


def _plays(player: Player, day: datetime, chance: random.Random) -> Iterator[Play]:
    tries = {"daily_frame": 1, "daily_clip": 1, "speed_round": chance.randint(1, 3)}
    for mode in MODES:
        if chance.random() > player.keenness * (1 if mode == "daily_frame" else 0.6):
            continue
        again = 1 if chance.random() < 0.05 else 0
        for _ in range(tries[mode] + again):
            at = day + timedelta(seconds=chance.randrange(86_400))
            score = round(1000 * min(1.0, max(0.02, player.skill + chance.gauss(0, 0.15))))
            yield Play(at, mode, player, score)


def duels_of(day: datetime) -> list[Duel]:
    """The duels of a day, in order, among a third of the players; better players win more often."""
    chance = random.Random(f"{SEED} duels {day:%Y-%m-%d}")  # noqa: S311  # a story, not a secret
    found: list[Duel] = []
    for _ in range(DUELS_A_DAY):
        one, other = chance.sample(players()[: PLAYERS // 3], 2)
        edge = one.skill - other.skill + chance.gauss(0, 0.25)
        winner = None if abs(edge) < 0.03 else one.name if edge > 0 else other.name
        found.append(Duel(day + timedelta(seconds=chance.randrange(86_400)), (one.name, other.name), winner))
    return sorted(found, key=lambda duel: (duel.at, duel.players))


async def play(stage: Stage) -> AsyncGenerator[datetime]:
    """The month on an empty stage, six hours at a time; at each midnight the background work. Yields whenever
    something has happened, standing in the last second of it or ten seconds into a day.
    """
    await stage.apply(BOARDS)
    await stage.work()
    for number in range(DAYS):
        day = BEGIN + timedelta(days=number)
        plays, duels = plays_of(day), duels_of(day)
        for quarter in range(4):
            begin, end = day + quarter * QUARTER, day + (quarter + 1) * QUARTER
            stage.turn_to(end - timedelta(seconds=1))
            for mode in MODES:
                played = [each.submission for each in plays if each.mode == mode and begin <= each.at < end]
                await stage.laurels.submit_many(f"framedle/{mode}", played)
            for duel in duels:
                if begin <= duel.at < end:
                    await stage.laurels.match(DUELS, duel.players, duel.winner, at=duel.at)
            yield stage.now
        stage.turn_to(day + timedelta(days=1, seconds=10))
        await stage.work()
        yield stage.now


async def evening(laurels: Laurels) -> list[Table]:
    """The tables that the game shows in the evening of a day."""
    board = "framedle/daily_frame"
    top = await laurels.page(board, limit=10)
    rank_100 = (await laurels.page(board, rank=100, limit=1)).entries[0].member
    around = await laurels.around(board, rank_100, above=5, below=5)
    standing = await laurels.standing(board, rank_100)
    friends = await laurels.among(board, [player.name for player in players()[:12]])
    brazil = await laurels.page(board, group="country=BR", limit=5)
    week = await laurels.page(board, period="weekly", limit=5)
    absent = f"{len(friends.absent)} did not play"
    circle = titled("Twelve friends", ">rank", "player", ">score", ">of all", caption=absent)
    for friend in friends.entries:
        circle.add_row(str(friend.rank), friend.member, grouped(friend.score), str(friend.board_rank))
    return [
        _ranked(f"Daily Frame, {top.slot}: {top.total} players", top.entries),
        _ranked(f"{rank_100} is at {standing.rank} of {standing.total}", around.entries),
        _ranked(f"Brazil: {brazil.total} players", brazil.entries),
        circle,
        _ranked(f"Week {week.slot} so far: the sum of each player's days", week.entries),
    ]


async def month(laurels: Laurels) -> list[Table]:
    """The tables after the four weeks."""
    experience = await laurels.page(XP, limit=10)
    duels = await laurels.page(DUELS, limit=10)
    ratings = titled(f"Duels: {duels.total} players", ">rank", "player", ">rating")
    for entry in duels.entries:
        ratings.add_row(str(entry.rank), entry.member, f"{entry.score:,.1f}")
    pictures = titled("Weekly snapshots in PostgreSQL", "week", "mode", ">players", ">kept", "best")
    for mode in MODES:
        for snapshot in (await laurels.snapshots(f"framedle/{mode}", period="weekly", group="")).snapshots:
            best = (await laurels.snapshot(f"framedle/{mode}", snapshot.id, limit=1)).entries[0]
            pictures.add_row(
                snapshot.slot,
                mode,
                str(snapshot.total),
                str(snapshot.kept),
                f"{best.member} {grouped(best.score)}",
            )
    return [_ranked(f"All-time XP: {experience.total} players", experience.entries), ratings, pictures]


def _ranked(title: str, entries: Iterable[Entry]) -> Table:
    made = titled(title, ">rank", "player", ">score")
    for entry in entries:
        made.add_row(str(entry.rank), entry.member, grouped(entry.score))
    return made


async def run(stage: Stage, console: Console) -> str:
    """Plays the month, prints the tables, and returns the plot."""
    totals: list[dict[str, float]] = []
    async for now in play(stage):
        if now == EVENING:
            console.rule(f"{now:%A %d %B %Y}, just before midnight")
            console.print(*await evening(stage.laurels), sep="\n")
        if now.hour == 0:
            totals.append(
                {each.member: each.score for each in (await stage.laurels.page(XP, limit=1000)).entries}
            )
    console.rule("Four weeks later")
    console.print(*await month(stage.laurels), sep="\n")
    days = [f"{BEGIN + timedelta(days=number):%-d %b}" for number in range(DAYS)]
    best = list(totals[-1])[:5]
    return Lines(
        "The race for XP",
        "All-time XP of the five who lead after four weeks, at the end of each day",
        days,
        {member: [day.get(member) for day in totals] for member in best},
    ).svg()


def main(
    data_dir: Annotated[Path | None, typer.Option(help="Keep the data in this folder.")] = None,
    plot: Annotated[Path, typer.Option(help="The file for the plot.")] = HERE / "month.svg",
) -> None:
    """Play four weeks of Framedle, show its boards, and plot them."""
    perform(run, BEGIN, data_dir, plot)


if __name__ == "__main__":
    typer.run(main)
