"""Runs a benchmark in a process of its own, so that none meets the memory of another."""

from __future__ import annotations

import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from inspect import getdoc
from multiprocessing import get_context

import uvloop

from bench.ground import console
from bench.report import Measured
from bench.results import CannotMeasure, Results, Row


@dataclass(frozen=True)
class Benchmark:
    size: int
    unit: str
    seconds: int
    """About so many, on two cores that do nothing else."""


BENCHMARKS = {
    "http": Benchmark(1_000_000, "members", 240),
    "by_connections": Benchmark(100_000, "members", 110),
    "writes": Benchmark(250_000, "members", 45),
    "by_members": Benchmark(10_000_000, "members", 120),
    "by_windows": Benchmark(50_000, "members", 20),
    "boards": Benchmark(50_000, "boards", 150),
    "by_boards": Benchmark(100_000, "boards", 90),
    "memory": Benchmark(500_000, "members", 50),
    "stalls": Benchmark(200_000, "members", 90),
    "journal": Benchmark(100_000, "members", 20),
    "archive": Benchmark(200_000, "members", 40),
    "rebuild": Benchmark(200_000, "members", 30),
    "live": Benchmark(1_000, "clients", 30),
    "index": Benchmark(10_000, "records", 50),
    "accrual": Benchmark(3_000, "users", 30),
    "finalize": Benchmark(30_000, "users", 30),
    "start": Benchmark(5, "turns", 25),
}


def measured(name: str, size: int) -> Measured:
    console.print(f"{name}, {size:,} {BENCHMARKS[name].unit}, usually {BENCHMARKS[name].seconds} s")
    began = time.perf_counter()
    try:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            results = process.submit(results_of, name, size).result()
    except Exception as error:  # noqa: BLE001  # the others go on
        if not isinstance(error, CannotMeasure):
            traceback.print_exception(error)
        results = Results([Row(f"cannot measure: {error}", "", holds=False)])
    seconds = time.perf_counter() - began
    console.print(f"{name} took {seconds:.0f} s", style="dim")
    about = getdoc(import_module(f"bench.{name}")) or ""
    return Measured(name, size, BENCHMARKS[name].unit, about, seconds, results)


def results_of(name: str, size: int) -> Results:
    return uvloop.run(import_module(f"bench.{name}").run(size))
