import asyncio
from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from laurels.cli.options import DataDir, Json
from laurels.cli.output import Output, printable, table

if TYPE_CHECKING:
    from laurels.doctor import Finding

MARKS = {"ok": Text("ok", "green"), "warning": Text("warning", "yellow"), "wrong": Text("wrong", "bold red")}


def doctor(*, data_dir: DataDir = None, json: Json = False) -> None:
    """Examine this machine and the stores, and suggest fixes. The exit code is 1 if something is wrong."""
    from laurels.doctor import examine  # noqa: PLC0415  # the stores' clients: a second, which --help saves

    output = Output(as_json=json)
    with output.working("Examining") as say:
        findings = asyncio.run(examine(data_dir, say=say))
    is_well = all(finding.status != "wrong" for finding in findings)
    output.show({"ok": is_well, "findings": findings}, _picture(findings))
    if not is_well:
        raise typer.Exit(1)


def _picture(findings: "list[Finding]") -> Table:
    picture = table("", "what", "found", "fix")
    for finding in findings:
        picture.add_row(
            MARKS[finding.status], finding.name, Text(printable(finding.found)), Text(printable(finding.fix))
        )
    return picture
