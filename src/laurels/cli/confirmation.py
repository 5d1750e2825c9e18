"""Asks for confirmation of commands that cannot be undone."""

import sys

import typer
from rich.console import Console
from rich.text import Text

from laurels.cli.output import printable
from laurels.errors import InvalidInput, LaurelsError


def require_typed(doing: str, name: str, *, yes: bool) -> None:
    """Returns when the user typed the name, or at once with `--yes`. Without a terminal, requires `--yes`."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(f"{doing} cannot be undone, and there is no terminal to confirm it: add --yes")
    shown = printable(name)
    console = Console(stderr=True, highlight=False, emoji=False)
    console.print(Text.assemble(doing, (" cannot be undone.", "bold red")), soft_wrap=True)
    typed = typer.prompt(f"Type {shown} to continue", default="", show_default=False, err=True)
    if typed != shown:
        raise LaurelsError(f"that is not {shown}: nothing was changed")
