"""The results of a run, as one table for the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.results import Results, Row

COLUMNS = ("what", "ours", "the other way", "ratio", "target", "holds", "p50 ms", "p99 ms", "p99.9 ms")
TEXTS = ("what", "the other way", "target")


@dataclass(frozen=True)
class Measured:
    """A benchmark that was run."""

    name: str
    size: int
    unit: str
    about: str
    seconds: float
    results: Results


def table(run: Sequence[Measured]) -> Table:
    drawn = Table()
    for column in COLUMNS:
        drawn.add_column(column, justify="left" if column in TEXTS else "right", overflow="fold")
    for each in run:
        drawn.add_section()
        drawn.add_row(f"[bold]{each.name}[/]", f"{each.size:,} {each.unit}", f"{each.seconds:.0f} s")
        for row in each.results.rows:
            drawn.add_row(*cells(row), style="red" if row.holds is False else "")
    return drawn


def cells(row: Row) -> list[str]:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    holds = "" if row.holds is None else "yes" if row.holds else "MISSED"
    tail = ("", "", "")
    if row.tail:
        tail = (f"{row.tail.p50:.2f}", f"{row.tail.p99:.2f}", f"{row.tail.p999:.2f}")
    return [row.what, row.ours, row.other, ratio, row.target, holds, *tail]


def summary(run: Sequence[Measured]) -> str:
    held = [row.holds for each in run for row in each.results.rows if row.holds is not None]
    return f"{sum(held)} of {len(held)} targets hold."
