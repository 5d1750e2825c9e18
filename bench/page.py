"""Writes docs/performance.md and its plots."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from bench.plots import svg
from bench.report import COLUMNS, cells, summary
from laurels.embedded import binaries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.report import Measured

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = "pictures/performance"
INTRODUCTION = """
# Performance

`make bench` wrote this page on {date}, with Laurels {version}, in {minutes:.0f} minutes. {summary}

The machine has {machine}. Absolute figures differ from machine to machine; ratios less so.

## How it is measured
- **Beside a control.** What Laurels does stands beside another way in the same run: an app that does nothing,
  the bare command by redis-py, plain SQL, or Laurels itself at a smaller size. The two take turns, so that
  both meet the same noise of the machine. The ratio is ours by the other.
- **As users start it.** Figures over HTTP are those of `laurels serve` with default settings.
  [wrk](https://github.com/wg/wrk) sends the requests from the same machine, so both share its cores.
- **Warm, with new scores.** Boards are full before the clock starts, and every submission has a new score.
- **With the tail.** p50, p99 and p99.9 are those of single requests or calls, in milliseconds.
- **Alone.** Each benchmark has a process of its own, and stores of its own that Laurels starts.

Each section names the command that measures it alone, which prints its figures and leaves this page as it is.
"""
SHORT_RUN = """
**This was a short run, with {share:g} of the usual sizes. Its figures do not say how fast Laurels is.**
"""


def write_page(run: Sequence[Measured], share: float, docs: Path = DOCS) -> None:
    pictures = docs / PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    for old in pictures.glob("*.svg"):
        old.unlink()
    for each in run:
        for plot in each.results.plots:
            (pictures / f"{plot.name}.svg").write_text(svg(plot), encoding="utf-8")
    text = page(run, share, machine(), datetime.now(UTC))
    (docs / "performance.md").write_text(text, encoding="utf-8")


def page(run: Sequence[Measured], share: float, machine: str, moment: datetime) -> str:
    introduction = INTRODUCTION.format(
        date=f"{moment:%Y-%m-%d}",
        version=version("laurels"),
        minutes=sum(each.seconds for each in run) / 60,
        summary=summary(run),
        machine=machine,
    )
    short = "" if share == 1 else SHORT_RUN.format(share=share)
    return "\n".join((introduction.strip(), short, *(section(each) for each in run)))


def section(measured: Measured) -> str:
    size = f"{measured.size:,} {measured.unit}"
    plots = (f"![{plot.title}]({PICTURES}/{plot.name}.svg)\n" for plot in measured.results.plots)
    rows = (f"| {' | '.join(map(escaped, cells(row)))} |" for row in measured.results.rows)
    return "\n".join(
        (
            f"## {measured.name.replace('_', ' ').capitalize()}",
            f"{measured.about}\n",
            f'`make bench ARGS="{measured.name}"`: {size}, {measured.seconds:.0f} s.\n',
            *plots,
            f"| {' | '.join(COLUMNS)} |",
            f"|{' --- |' * len(COLUMNS)}",
            *rows,
            "",
        )
    )


def escaped(cell: str) -> str:
    cell = cell.replace("|", "\\|").replace("<", "&lt;")
    return f"**{cell}**" if cell == "MISSED" else cell


def machine() -> str:
    """What the figures depend on, without the machine's name."""
    servers = binaries.in_wheels()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return (
        f"{os.cpu_count()} cores ({platform.machine()}) and {memory:.0f} GiB of memory, and runs "
        f"{platform.system()}, Python {platform.python_version()}, Valkey "
        f"{binaries.version(servers.valkey_server)} and PostgreSQL {binaries.version(servers.postgres)}"
    )
