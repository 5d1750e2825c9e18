"""Benchmarks run at tiny sizes, on servers that they start themselves. Their figures mean nothing here."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import bench
from bench import by_boards, by_members, by_windows, memory, writes
from bench.results import Bars, Plot
from bench.runner import BENCHMARKS, measured

if TYPE_CHECKING:
    from bench.results import Results


def figures(results: Results) -> list[float]:
    """All that is plotted."""
    values: list[float] = []
    for plot in results.plots:
        if isinstance(plot, Bars):
            values += [value for _, value in plot.bars]
        else:
            values += [y for panel in plot.panels for series in panel.series for _, y in series.points]
    return values


def xs(results: Results) -> set[tuple[float, ...]]:
    """The horizontal axes of all series."""
    return {
        tuple(x for x, _ in series.points)
        for plot in results.plots
        if isinstance(plot, Plot)
        for panel in plot.panels
        for series in panel.series
    }


@pytest.fixture(autouse=True)
def few_turns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(by_members, "QUESTIONS", 5)
    monkeypatch.setattr(by_members, "FEW", 10)
    monkeypatch.setattr(by_boards, "CHOSEN", 5)
    monkeypatch.setattr(by_windows, "TURNS", {1: 5, 250: 2})


async def test_costs_by_members_have_each_size_and_a_control():
    results = await by_members.run(2000)
    assert xs(results) == {(2, 20, 200, 2000)}
    assert [row.what for row in results.rows if "plain" in row.what] == [
        f"{what}, plain, 2,000 members" for what in ("submit", "rank", "page of 100")
    ]
    assert all(value > 0 and math.isfinite(value) for value in figures(results))


async def test_costs_by_windows_have_each_number_of_windows_and_a_control():
    results = await by_windows.run(20)
    assert xs(results) == {(1, 2, 4, 8)}
    assert len(results.rows) == 8
    assert all(value > 0 and math.isfinite(value) for value in figures(results))


async def test_costs_by_boards_have_each_size_and_a_control(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(by_boards, "PARTS", (10, 1))
    results = await by_boards.run(20)
    assert xs(results) == {(2, 20)}
    assert all(value > 0 and math.isfinite(value) for value in figures(results))


async def test_memory_has_a_bar_for_each_layout_and_the_sorted_set():
    results = await memory.run(500)
    (plot,) = results.plots
    assert isinstance(plot, Bars)
    assert [name for name, _ in plot.bars] == ["sorted set", *memory.BOARDS]
    assert len(results.rows) == len(memory.BOARDS)


async def test_batches_stand_beside_raw_writes():
    results = await writes.run(500, rounds=1)
    assert [row.what for row in results.rows] == [*writes.BOARDS]
    assert all(row.ratio and row.ratio > 0 for row in results.rows)


def test_a_benchmark_that_fails_says_so_and_is_a_missed_target(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("PATH", "")
    run = measured("by_connections", 10)
    (row,) = run.results.rows
    assert row.what == "cannot measure: wrk is missing: install it (apt install wrk, brew install wrk)"
    assert row.holds is False
    assert "Traceback" not in capfd.readouterr().err


def test_every_benchmark_is_run():
    modules = Path(bench.__file__).parent.glob("*.py")
    assert {path.stem for path in modules if "\nasync def run(" in path.read_text()} == BENCHMARKS.keys()
