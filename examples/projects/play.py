"""October 2025 in a company that gives points: three projects, and one table over all."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from examples.plot import Lines
from examples.stage import perform, titled
from laurels.cli.output import grouped
from laurels.scores.submission import Submission

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from rich.console import Console
    from rich.table import Table

    from examples.stage import Stage
    from laurels.engine import Laurels

HERE: Final = Path(__file__).parent
BOARDS: Final = HERE / "boards.toml"
PROJECTS: Final = ("1", "2", "3")
GLOBAL: Final = "global"
PERIODS: Final = ("weekly", "monthly", "yearly", "all_time")
BEGIN: Final = datetime(2025, 10, 1, tzinfo=UTC)
DAYS: Final = 31
END: Final = BEGIN + timedelta(days=DAYS)
FRIDAY: Final = datetime(2025, 10, 24, 17, tzinfo=UTC)
"""When the week's tables are shown."""
SEED: Final = 43
USERS: Final = """
    ada bela chen dara elif femi gita hugo ines jonas kofi lena mara nils olga pavel quinn rosa sami tara
    uma vera wanja xenia yusuf zoe
""".split()  # noqa: SIM905  # words read best as words
WORK: Final = {"comment": 1, "review": 5, "fix": 8, "feature": 20}
"""The actions, and the points for each."""


@dataclass(frozen=True)
class Deed:
    at: datetime
    project: str
    user: str
    points: int


def deeds_of(day: datetime) -> list[Deed]:
    """The actions of a day, in order: many on workdays, few at the weekend."""
    people = random.Random(SEED)  # noqa: S311  # a story, not a secret
    chance = random.Random(f"{SEED} {day:%Y-%m-%d}")  # noqa: S311
    deeds: list[Deed] = []
    for user in USERS:
        zeal, home = people.betavariate(2, 2), people.choice(PROJECTS)
        for _ in range(round(6 * zeal * (chance.random() if day.weekday() < 5 else 0.15 * chance.random()))):
            project = home if chance.random() < 0.75 else chance.choice(PROJECTS)
            kind = chance.choices(list(WORK), (10, 6, 3, 1))[0]
            at = day + timedelta(hours=7, seconds=chance.randrange(12 * 3600))
            deeds.append(Deed(at, project, user, WORK[kind]))
    return sorted(deeds, key=lambda deed: (deed.at, deed.user))


async def play(stage: Stage) -> AsyncGenerator[datetime]:
    """The month on an empty stage, hour by hour; at each midnight the background work. Yields whenever
    something has happened: after an hour in which points were given, and just after midnight.
    """
    await stage.apply(BOARDS)
    await stage.work()
    for number in range(DAYS):
        day = BEGIN + timedelta(days=number)
        deeds = deeds_of(day)
        for hour in sorted({deed.at.hour for deed in deeds}):
            stage.turn_to(day + timedelta(hours=hour + 1))
            for project in PROJECTS:
                given = [
                    Submission(deed.user, deed.points, deed.at)
                    for deed in deeds
                    if deed.project == project and deed.at.hour == hour
                ]
                await stage.laurels.submit_many(f"{project}/score", given)
            yield stage.now
        stage.turn_to(day + timedelta(days=1, seconds=10))
        await stage.work()
        yield stage.now


async def friday(laurels: Laurels) -> list[Table]:
    """The tables of the week, for each project and for all."""
    tables: list[Table] = []
    for project in (*PROJECTS, GLOBAL):
        page = await laurels.page(f"{project}/score", period="weekly", limit=3, change=True)
        title = "All projects" if project == GLOBAL else f"Project {project}"
        made = titled(f"{title}, {page.slot}", ">rank", "user", ">points", ">change")
        for entry in page.entries:
            change = f"{entry.change:+}" if isinstance(entry.change, int) else "new"
            made.add_row(str(entry.rank), entry.member, grouped(entry.score), change)
        tables.append(made)
    return tables


async def run(stage: Stage, console: Console) -> str:
    """Plays the month, prints the tables, and returns the plot of the global table's history."""
    laurels, board = stage.laurels, f"{GLOBAL}/score"
    async for now in play(stage):
        if now == FRIDAY:
            console.rule(f"{now:%A %d %B %Y}")
            console.print(*await friday(laurels), sep="\n")
    snapshots = (await laurels.snapshots(board, period="all_time")).snapshots[::-1]
    pages = [await laurels.snapshot(board, snapshot.id) for snapshot in snapshots]
    history = [{entry.member: entry.score for entry in page.entries} for page in pages]
    middle, last = len(history) // 2, history[-1]
    made = titled("All projects, all time", "user", ">points", f">{snapshots[middle].taken_for:%-d %B}")
    for user in list(last)[:8]:
        made.add_row(user, grouped(last[user]), grouped(history[middle].get(user, 0)))
    console.rule(f"{len(snapshots)} days, {len(snapshots)} snapshots")
    console.print(made)
    return Lines(
        "Points over all projects",
        "The eight who lead at the end of October 2025, at each midnight; from the snapshots in PostgreSQL",
        [f"{snapshot.taken_for:%-d %b}" for snapshot in snapshots],
        {user: [day.get(user) for day in history] for user in list(last)[:8]},
    ).svg()


def main(
    data_dir: Annotated[Path | None, typer.Option(help="Keep the data in this folder.")] = None,
    plot: Annotated[Path, typer.Option(help="The file for the plot.")] = HERE / "month.svg",
) -> None:
    """Play a month of three projects, show their tables, and plot the history of the global one."""
    perform(run, BEGIN, data_dir, plot)


if __name__ == "__main__":
    typer.run(main)
