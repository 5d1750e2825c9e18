"""`laurels apply`: its options. `board_changes` does the work."""

from pathlib import Path
from typing import Annotated

import typer

from laurels.cli.options import DataDir, Json
from laurels.cli.session import CommandSession


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file of boards.", show_default=False)],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes, but make none.")] = False,
    allow_drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WINDOW",
            help="Allow a window to lose its entries: weekly, or PROJECT/BOARD:weekly if several boards of "
            "the file have it. Can be repeated, or a list separated by commas.",
        ),
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Define the boards of a file, and show what changes. Boards outside the file stay as they are."""
    from laurels.cli.board_changes import apply_file  # noqa: PLC0415  # Pydantic, which --help saves

    apply_file(file, allow_drop or [], CommandSession(data_dir, as_json=json), dry_run=dry_run)
