from typing import TYPE_CHECKING, Annotated

import typer

from laurels import demo as demo_project
from laurels.cli.options import DataDir, Json
from laurels.cli.session import Session

if TYPE_CHECKING:
    from laurels import Laurels


def demo(
    *,
    reset: Annotated[
        bool, typer.Option("--reset", help="Drop the demo board first, and fill it anew.")
    ] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Fill the demo board, demo/arcade, with invented players. Nothing happens when it has entries."""
    session = Session(data_dir, as_json=json)

    async def fill(laurels: "Laurels") -> int:
        with session.output.counting("Filling the demo") as progress:
            return await demo_project.fill(laurels, reset=reset, progress=progress)

    submitted = session.run(fill)
    said = f"filled with {submitted:,} scores" if submitted else "has entries already; --reset begins anew"
    session.show({"board": demo_project.BOARD, "submitted": submitted}, f"{demo_project.BOARD} {said}")
