"""The options and arguments that several commands have."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

DataDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", metavar="FOLDER", help="The folder of the embedded servers.", show_default=False
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, for programs.")]

BoardName: TypeAlias = Annotated[str, typer.Argument(metavar="PROJECT/BOARD", show_default=False)]
Member: TypeAlias = Annotated[str, typer.Argument(metavar="MEMBER", show_default=False)]

Period: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which window: daily, weekly, … (default: the board's first)"),
]
Slot: TypeAlias = Annotated[
    str | None, typer.Option(metavar="SLOT", help="Which one of them: 2025-10-24, 2025-w43, … (default: now)")
]
Group: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME=VALUE", help="Ranked within a group: country=BR")
]
