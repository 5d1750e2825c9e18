"""The tree of commands. A command ends with an answer, or with one line that says what went wrong.

A command's module is imported only when the command is used: its name and summary are enough for `laurels
--help` and for completion, which a shell runs at each press of Tab.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import traceback
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, cast

import typer
from typer.core import TyperCommand
from typer.main import get_command, get_group

from laurels.cli.output import complain
from laurels.errors import LaurelsError

if TYPE_CHECKING:
    from typer.core import TyperGroup

INTERRUPTED = 130
"""128 + SIGINT, as shells report it."""
PIPE_CLOSED = 141
"""128 + SIGPIPE."""


class Listed(NamedTuple):
    """A command as `laurels --help` lists it."""

    home: str
    """MODULE:NAME of its function, or of the Typer with its subcommands."""
    summary: str
    """The first sentence of its help."""
    takes_negative_numbers: bool = False
    """A score such as -5 is not an option."""


COMMANDS: Final = {
    "serve": Listed("serve:serve", "Start the API and the stores."),
    "worker": Listed("worker:worker", "Do background work."),
    "apply": Listed("apply:apply", "Define the boards of a file, and show what changes."),
    "submit": Listed("boards:submit", "Submit a score for a member.", takes_negative_numbers=True),
    "load": Listed("load:load", "Submit a file of scores to a board."),
    "match": Listed("matches:match", "Report a match of two players on a board with ratings."),
    "top": Listed("boards:top", "Show the best entries of a board."),
    "rank": Listed("boards:rank", "Show a member's rank, and the members just above and below."),
    "rebuild": Listed("rebuild:rebuild", "Rebuild a board from its journal, or compare them."),
    "export": Listed("export:export", "Export boards to a file: one board, a project, or all."),
    "import": Listed("export:import_", "Import boards from a file, or a sorted set from another server."),
    "erase": Listed("erase:erase", "Erase a member permanently from every board of a project."),
    "doctor": Listed("doctor:doctor", "Examine this machine and the stores, and suggest fixes."),
    "demo": Listed(
        "demo:demo", "Invent scores for the board demo/arcade, or campuses with users and events."
    ),
    "version": Listed("version:version", "Print the versions of Laurels and Python."),
    "people": Listed("people:app", "Import, list and change the people of a project."),
    "places": Listed("places:app", "Import, list and change the places of a project."),
    "keys": Listed("keys:app", "Create, list and revoke API keys."),
    "secrets": Listed("project_secrets:app", "Create, list and revoke secrets of projects."),
}


class LazyCommand(TyperCommand):
    """Stands for a command until it is used: has its name and summary, but not its options."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:  # noqa: ANN401  # Typer's own types are private
        """The context of the command itself; Typer asks for it to run, describe or complete a command."""
        return loaded(self.name or "").make_context(info_name, args, *rest, **extra)


def loaded(name: str) -> TyperCommand | TyperGroup:
    """A command with all its options, or a group with its subcommands."""
    listed = COMMANDS[name]
    module, _, function = listed.home.partition(":")
    found = getattr(import_module(f"laurels.cli.{module}"), function)
    if isinstance(found, typer.Typer):
        return get_group(found)
    one = typer.Typer(add_completion=False, rich_markup_mode=None)
    one.command(name, context_settings={"ignore_unknown_options": listed.takes_negative_numbers})(found)
    return cast("TyperCommand", get_command(one))


def _stand_in() -> None:
    """Is never called: `LazyCommand` gives the context to another command."""


app = typer.Typer(
    name="laurels",
    help="Leaderboards: boards, scores, ranks.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _name, _listed in COMMANDS.items():
    app.command(_name, cls=LazyCommand, help=_listed.summary)(_stand_in)


def main() -> NoReturn:
    collect_seldom()
    sys.exit(_run())


def collect_seldom() -> None:
    """Spares a short command garbage collection, at the end too: it would visit all that was imported."""
    gc.set_threshold(50_000, 20, 1000)
    atexit.register(gc.freeze)


def _run() -> int:
    try:
        ended = app(sys.argv[1:] or ["--help"], prog_name="laurels", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        complain(f"{error.format_message()} (see {context.command_path if context else 'laurels'} --help)")
        return error.exit_code
    except LaurelsError as error:
        complain(error.detail)
        return 1
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has stopped. Without this, Python would report it again at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except Exception as error:  # noqa: BLE001  # the last resort: a defect also prints one line
        if os.environ.get("LAURELS_LOG_LEVEL", "").lower() == "debug":
            traceback.print_exc()
        complain(f"{type(error).__name__}: {error} (a defect: LAURELS_LOG_LEVEL=debug shows where)")
        return 1
    return ended if isinstance(ended, int) else 0
