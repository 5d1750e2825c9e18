"""How much processor time it takes to start: commands, completion and imports, beside `python -c pass`.

Each turn runs everything once, in a process of its own; the medians are compared. Bytecode is compiled before
the first turn. A target is seconds of processor time.
"""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from rich.progress import track

from bench.ground import console
from bench.results import Results, Row, judged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMAND: Final = ("-m", "laurels.cli")
BASE: Final = ("-c", "pass")
WORDS: Final = "laurels se"
COMPLETION: Final = {
    "_LAURELS_COMPLETE": "complete_bash",
    "COMP_WORDS": WORDS,
    "COMP_CWORD": "1",
}
COMMANDS_TARGET: Final = 0.25
IMPORT_TARGET: Final = 0.3
STARTS: Final[Mapping[str, tuple[Sequence[str], float | None]]] = {
    "laurels version": ((*COMMAND, "version"), COMMANDS_TARGET),
    "laurels --help": ((*COMMAND, "--help"), COMMANDS_TARGET),
    "laurels top --help": ((*COMMAND, "top", "--help"), COMMANDS_TARGET),
    "laurels serve --help": ((*COMMAND, "serve", "--help"), COMMANDS_TARGET),
    f"{WORDS}<Tab>": (COMMAND, COMMANDS_TARGET),
    "import laurels": (("-c", "import laurels"), IMPORT_TARGET),
    "from laurels import Submission": (("-c", "from laurels import Submission"), IMPORT_TARGET),
    "from laurels.client import Client": (("-c", "from laurels.client import Client"), None),
    "from laurels.index import LeaderboardIndex": (
        ("-c", "from laurels.index import LeaderboardIndex"),
        None,
    ),
    "from laurels import Laurels": (("-c", "from laurels import Laurels"), None),
}


async def run(turns: int) -> Results:
    return await asyncio.to_thread(measure, turns)


def measure(turns: int) -> Results:
    bases: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in STARTS}
    for name in STARTS:
        once(name)
    for _ in track(range(turns), "starting", console=console, transient=True):
        bases.append(processor_time(BASE))
        for name in STARTS:
            times[name].append(once(name))
    base = statistics.median(bases)
    rows: list[Row] = []
    for name, (_, target) in STARTS.items():
        taken = statistics.median(times[name])
        rows.append(Row(name, f"{taken:.3f} s", f"{base:.3f} s", taken / base, *judged(taken, most=target)))
    return Results(rows)


def once(name: str) -> float:
    return processor_time(STARTS[name][0], COMPLETION if name.endswith("<Tab>") else {})


def processor_time(arguments: Sequence[str], settings: Mapping[str, str] | None = None) -> float:
    """Seconds that a Python process takes, by the user and in the system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | (settings or {}),
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
