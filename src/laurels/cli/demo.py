from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from laurels.activity.simulator import PLACES, SimulationPlan
from laurels.cli.options import DataDir, Json
from laurels.cli.output import table
from laurels.cli.session import CommandSession

if TYPE_CHECKING:
    from laurels import Laurels
    from laurels.activity.simulator import World

# Counters of older days have expired, so their events would not count.
MOST_DAYS: Final = 3


class What(StrEnum):
    ARCADE = "arcade"
    CAMPUS = "campus"


def demo(  # noqa: PLR0913  # a parameter is an option
    *,
    what: Annotated[What, typer.Argument(help="The board demo/arcade, or campuses.")] = What.ARCADE,
    reset: Annotated[
        bool, typer.Option("--reset", help="Drop the demo board first, then fill it again.")
    ] = False,
    campuses: Annotated[
        int, typer.Option(metavar="N", min=1, max=len(PLACES), help="How many campuses.")
    ] = 3,
    users: Annotated[int, typer.Option(metavar="N", min=2, help="How many users in all.")] = 300,
    days: Annotated[
        int, typer.Option(metavar="N", min=1, max=MOST_DAYS, help="How many days, up to today.")
    ] = MOST_DAYS,
    events: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="About how many events. (default: 40 a user and day)", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Each seed invents other people.")] = 7,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Invent scores for the board demo/arcade, or campuses with users and events."""
    session = CommandSession(data_dir, as_json=json)
    if what is What.ARCADE:
        _fill_arcade(session, reset=reset)
    else:
        _play_campuses(session, SimulationPlan(campuses, users, days, events), seed)


def _fill_arcade(session: CommandSession, *, reset: bool) -> None:
    from laurels import demo as demo_project  # noqa: PLC0415  # Pydantic and SQLAlchemy, which --help saves

    async def fill(laurels: "Laurels") -> int:
        with session.output.counting("Filling the demo board") as progress:
            return await demo_project.fill(laurels, reset=reset, progress=progress)

    submitted = session.run(fill)
    result = (
        f"filled with {submitted:,} scores" if submitted else "has entries already; --reset replaces them"
    )
    session.show({"board": demo_project.BOARD, "submitted": submitted}, f"{demo_project.BOARD} {result}")


def _play_campuses(session: CommandSession, plan: SimulationPlan, seed: int) -> None:
    from laurels import demo as demo_project  # noqa: PLC0415  # as above

    async def play(laurels: "Laurels") -> "tuple[World, int]":
        with session.output.counting("Inventing campuses") as progress:
            return await demo_project.play_campuses(laurels, plan, seed, progress)

    world, events = session.run(play)
    drawn = table("campus", "id", ">users", caption=f"{events:,} events")
    for campus, residents in zip(world.campuses, world.residents, strict=True):
        drawn.add_row(campus.name, campus.id, str(len(residents)))
    listed = [campus._asdict() for campus in world.campuses]
    session.show({"plan": asdict(plan), "seed": seed, "campuses": listed, "events": events}, drawn)
