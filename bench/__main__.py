"""Runs all benchmarks, or the named ones, and prints one table.

A run of all writes docs/performance.md with its plots.
"""

from __future__ import annotations

import argparse
import sys

from bench.ground import console
from bench.page import write_page
from bench.report import summary, table
from bench.runner import BENCHMARKS, measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="which benchmarks (default: all)")
    parser.add_argument("--size", type=int, help="how many members, boards, … the named benchmark has")
    parser.add_argument(
        "--share", type=float, default=1.0, help="how much of each usual size, such as 0.01 for a short look"
    )
    chosen = parser.parse_args()
    if chosen.size and len(chosen.names) != 1:
        parser.error("--size is that of one benchmark: name it")
    run = [
        measured(name, chosen.size or max(1, int(BENCHMARKS[name].size * chosen.share)))
        for name in chosen.names or BENCHMARKS
    ]
    console.print(table(run), summary(run), sep="\n")
    if not chosen.names:
        write_page(run, chosen.share)
    return 0 if all(each.results.hold for each in run) else 1


if __name__ == "__main__":
    sys.exit(main())
