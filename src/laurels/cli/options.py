"""Options and arguments that several commands have."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from laurels.errors import InvalidInput

DataDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", metavar="FOLDER", help="The folder of the embedded servers.", show_default=False
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]

BoardName: TypeAlias = Annotated[
    str, typer.Argument(metavar="PROJECT/BOARD", help="Such as demo/arcade.", show_default=False)
]
Member: TypeAlias = Annotated[
    str, typer.Argument(metavar="MEMBER", help="The name to rank.", show_default=False)
]

Period: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The window: daily, weekly, … (default: the board's first)"),
]
Slot: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="SLOT", help="The window's slot: 2025-10-24, 2025-w43, … (default: the current one)"
    ),
]
Group: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME=VALUE", help="Rank within a group: country=BR")
]
At: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TIME", help="When: 2025-10-24T12:00:00Z (default: now)")
]
Id: TypeAlias = Annotated[
    str | None, typer.Option("--id", metavar="ID", help="A repeat with the same id does not count again.")
]

Project: TypeAlias = Annotated[str, typer.Option(metavar="PROJECT", help="The project.")]
Prefix: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Only those whose id or name begins with it.")
]
RecordsFile: TypeAlias = Annotated[
    str, typer.Argument(metavar="FILE", help="A .csv or NDJSON file, or - for NDJSON on stdin.")
]
Column: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="FIELD=COLUMN", help="A column with another name: name=nickname. Can be repeated."),
]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Check the file, and write nothing.")]


def parse_time(text: str, field: str = "--at") -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput.at(field, f"write it like 2025-10-24T12:00:00Z, not {text!r}") from None
