"""Indexes declared on models: a game, regions, a contest, streamers, activity. All of them, or by name."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  # Typer reads the annotations
from typing import Annotated, Final

import typer

from examples.index import activity, contest, game, regional, streamers
from examples.index.place import Example, perform

EXAMPLES: Final[dict[str, Example]] = {
    "game": game,
    "regional": regional,
    "contest": contest,
    "streamers": streamers,
    "activity": activity,
}


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Some of {', '.join(EXAMPLES)} (default: all).")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Keep the data in this folder.")] = None,
) -> None:
    """Play the examples of the index, and show their tables."""
    if unknown := set(names or ()) - EXAMPLES.keys():
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: there are {', '.join(EXAMPLES)}")
    perform(*(EXAMPLES[name] for name in names or EXAMPLES), data_dir=data_dir)


if __name__ == "__main__":
    typer.run(main)
