"""`laurels worker`: its options. `background` does the work."""

from laurels.cli.options import DataDir, Json
from laurels.cli.output import Output


def worker(*, data_dir: DataDir = None, json: Json = False) -> None:
    """Do background work. Archives journals, takes snapshots and removes old windows; workers share it."""
    from laurels.cli.background import run  # noqa: PLC0415  # the engine: a second, which --help saves

    run(data_dir, Output(as_json=json))
