"""Runs the benchmarks: all of them, or those that are named."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from bench import memory, reads, stalls, writes
from bench.ground import console

BENCHMARKS = {"writes": writes.run, "reads": reads.run, "memory": memory.run, "stalls": stalls.run}
MEMBERS = {"writes": 1_000_000, "reads": 10_000_000, "memory": 1_000_000, "stalls": 1_000_000}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="which ones (default: all)")
    parser.add_argument("--members", type=int, help="how many members (default: 1M; reads 10M)")
    chosen = parser.parse_args()
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", style="dim")
    good = True
    for name in chosen.names or BENCHMARKS:
        good = asyncio.run(BENCHMARKS[name](chosen.members or MEMBERS[name])) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
