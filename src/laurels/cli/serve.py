"""`laurels serve`: its options. `server` does the work."""

from typing import Annotated

import typer

from laurels.cli.options import DataDir, Json
from laurels.cli.output import Output


def serve(  # noqa: PLR0913  # a parameter is an option
    *,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="The address to listen on. (default: 127.0.0.1)", show_default=False
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65535,
            help="The port; 0 picks a free one. (default: 8000)",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDir = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="How many processes serve HTTP. (default: 1)", show_default=False
        ),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Fill the demo board, if it is empty.")] = False,
    campus: Annotated[bool, typer.Option("--campus", help="Invent campuses, if there are none.")] = False,
    no_jobs: Annotated[
        bool, typer.Option("--no-jobs", help="Leave background work to a separate `laurels worker`.")
    ] = False,
    json: Json = False,
) -> None:
    """Start the API and the stores. URLs in the settings name stores of your own."""
    from laurels.cli.server import Demos, run  # noqa: PLC0415  # all of Laurels: a second, which --help saves

    given = {"host": host, "port": port, "data_dir": data_dir, "workers": workers}
    run(given, Demos(demo, campus), Output(as_json=json), jobs=not no_jobs)
