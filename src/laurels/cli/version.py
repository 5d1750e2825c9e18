import platform
from importlib.metadata import version as installed

from laurels.cli.options import Json
from laurels.cli.output import Output


def version(*, json: Json = False) -> None:
    """Print the versions of Laurels and Python."""
    versions = {"laurels": installed("laurels"), "python": platform.python_version()}
    Output(as_json=json).show(versions, f"Laurels {versions['laurels']}, Python {versions['python']}")
