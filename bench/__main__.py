"""Runs all benchmarks, or the named ones."""

from __future__ import annotations

import argparse
import os
import sys

import uvloop

from bench import (
    accrual,
    archive,
    boards,
    finalize,
    http,
    index,
    journal,
    live,
    memory,
    reads,
    rebuild,
    stalls,
    start,
    writes,
)
from bench.ground import console

BENCHMARKS = {
    "writes": writes.run,
    "reads": reads.run,
    "memory": memory.run,
    "stalls": stalls.run,
    "http": http.run,
    "journal": journal.run,
    "archive": archive.run,
    "rebuild": rebuild.run,
    "live": live.run,
    "index": index.run,
    "accrual": accrual.run,
    "finalize": finalize.run,
    "start": start.run,
    "boards": boards.run,
}
MEMBERS = {
    "writes": 1_000_000,
    "reads": 10_000_000,
    "memory": 1_000_000,
    "stalls": 1_000_000,
    "http": 1_000_000,
    "journal": 100_000,
    "archive": 1_000_000,
    "rebuild": 1_000_000,
    "live": 1_000,  # clients
    "index": 10_000,  # records
    "accrual": 3_000,  # users
    "finalize": 100_000,  # users
    "start": 7,  # turns
    "boards": 10_000,  # boards
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="which benchmarks (default: all)")
    parser.add_argument(
        "--members",
        "--records",
        "--boards",
        type=int,
        help="how many members (default: 1M; reads 10M), records (10k) or boards (10k)",
    )
    chosen = parser.parse_args()
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", style="dim")
    good = True
    for name in chosen.names or BENCHMARKS:
        good = uvloop.run(BENCHMARKS[name](chosen.members or MEMBERS[name])) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
