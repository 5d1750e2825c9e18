"""The tree of commands. A command ends with an answer, or with one line that says what went wrong."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import NoReturn

import typer

from laurels.cli import (
    apply,
    boards,
    demo,
    doctor,
    erase,
    export,
    keys,
    load,
    matches,
    project_secrets,
    rebuild,
    serve,
    version,
    worker,
)
from laurels.cli.output import complain
from laurels.errors import LaurelsError

INTERRUPTED = 130
"""128 + SIGINT, as shells report it."""
PIPE_CLOSED = 141
"""128 + SIGPIPE."""

app = typer.Typer(
    name="laurels",
    help="Leaderboards: boards, scores, ranks.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(serve.serve)
app.command()(worker.worker)
app.command()(apply.apply)
# A negative score such as -5 is not an option.
app.command(context_settings={"ignore_unknown_options": True})(boards.submit)
app.command()(load.load)
app.command()(matches.match)
app.command()(boards.top)
app.command()(boards.rank)
app.add_typer(keys.app, name="keys")
app.add_typer(project_secrets.app, name="secrets")
app.command()(rebuild.rebuild)
app.command()(export.export)
app.command(name="import")(export.import_)
app.command()(erase.erase)
app.command()(doctor.doctor)
app.command()(demo.demo)
app.command()(version.version)


def main() -> NoReturn:
    sys.exit(_run())


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
