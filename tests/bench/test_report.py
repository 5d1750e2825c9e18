"""The table, the page and the plots of benchmarks, from made-up results."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from bench import by_connections
from bench.http import Seen
from bench.page import page, write_page
from bench.plots import svg
from bench.report import Measured, summary, table
from bench.results import (
    Bars,
    Panel,
    Plot,
    Results,
    Row,
    Series,
    Tail,
    judged,
    panel_of,
    rates_in_turns,
    rows_of,
    tail_of,
)

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
MOMENT = datetime(2025, 10, 24, 12, tzinfo=UTC)
COSTS = {10: (Tail(0.2, 0.4, 0.9), Tail(0.1, 0.2, 0.3)), 100_000: (Tail(0.3, 40, 90), Tail(0.1, 0.3, 0.4))}
PLOT = Plot("cost", "Cost by <members>", "members", "milliseconds", [panel_of("submit", COSTS, "ZADD")])
BARS = Bars("memory", "Memory", "bytes", [("sorted set", 72.8), ("plain", 76.1)], control="sorted set")
RUN = [
    Measured(
        "writes",
        1000,
        "members",
        "Batches beside raw `ZADD`.",
        12.3,
        Results(
            [
                Row("plain", "90/s", "100/s", 0.9, *judged(0.9, least=0.85), Tail(1.5, 2.25, 30)),
                Row("exact | slow", "30/s", "100/s", 0.3, *judged(0.3, least=0.35)),
                Row("sum", "50/s", "100/s", 0.5),
            ],
            [PLOT, BARS],
        ),
    )
]


def printed() -> str:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(table(RUN))
    return captured.get()


def test_the_table_has_a_line_for_each_row_and_marks_missed_targets():
    lines = {line.split("│")[1].strip(): line for line in printed().splitlines() if line.startswith("│")}
    assert list(lines) == ["writes", "plain", "exact | slow", "sum"]
    shown = [cell.strip() for cell in lines["plain"].split("│")[1:-1]]
    assert shown == ["plain", "90/s", "100/s", "0.90", "≥ 0.85", "yes", "1.50", "2.25", "30.00"]
    assert [name for name, line in lines.items() if "MISSED" in line] == ["exact | slow"]


def test_the_summary_counts_only_rows_with_a_target():
    assert summary(RUN) == "1 of 2 targets hold."
    assert not RUN[0].results.hold
    assert Results([Row("sum", "50/s")]).hold


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ({"least": 2}, ("≥ 2", True)),
        ({"least": 2.1}, ("≥ 2.1", False)),
        ({"most": 2}, ("≤ 2", True)),
        ({"most": 1.9}, ("≤ 1.9", False)),
        ({"most": 5000}, ("≤ 5,000", True)),
        ({"least": None}, ("", None)),
    ],
)
def test_a_target_is_told_and_judged(bound: dict[str, float | None], expected: tuple[str, bool | None]):
    assert judged(2, **bound) == expected


def test_a_ratio_of_rates_is_the_median_over_the_turns():
    row = rates_in_turns("ours", [10, 90, 40], ("theirs", [10, 100, 50]), least=0.85)
    assert (row.ratio, row.holds, row.ours, row.other) == (0.9, True, "40/s", "theirs: 50/s")


def test_a_tail_is_in_milliseconds():
    assert tail_of([number / 1000 for number in range(1000)]) == Tail(500, 990, 999)


def test_costs_become_rows_beside_the_control():
    few, many = rows_of("submit", COSTS, "members")
    assert (few.what, few.ours, few.other, few.ratio) == ("submit, 10 members", "0.20 ms", "0.10 ms", 2)
    assert many.tail == COSTS[100_000][0]


def test_a_plot_is_well_formed_and_has_every_series():
    drawn = ET.fromstring(svg(PLOT))  # noqa: S314  # we made it
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    series = [group for group in drawn.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    names = [group.findtext(f"{SVG}title") for group in series]
    assert names == ["Laurels, p50", "Laurels, p99", "ZADD, p50"]
    assert [group.get("class") for group in series] == ["ours", "tail", "control"]
    for group in series:
        line = group.find(f"{SVG}path")
        assert line is not None
        assert len(re.findall(r"[ML]", line.get("d", ""))) == len(COSTS)
    assert {*names, "Cost by <members>", "submit", "members", "milliseconds", "10", "100k"} <= {*texts}


def test_a_range_of_decades_has_a_logarithmic_axis_and_a_small_one_begins_at_zero():
    def labels(values: list[float]) -> set[str | None]:
        series = Series("Laurels", [*zip((1, 4, 16), values, strict=True)])
        drawn = ET.fromstring(svg(Plot("x", "x", "x", "y", [Panel("x", [series])])))  # noqa: S314  # we made it
        return {text.text for text in drawn.iter(f"{SVG}text")}

    assert {"0.1", "1", "10", "100"} <= labels([0.1, 5, 90])
    assert {"0", "5k", "10k", "15k", "20k"} <= labels([8000, 12_000, 18_000])
    assert {"0", "25", "50"} <= labels([0, 5, 50])


def test_rates_and_tails_are_plotted_by_connections_beside_the_bare_app():
    bare, ours = Seen(2000, 2, 0, 0.001, 0.002, 0.003), Seen(1000, 2, 0, 0.002, 0.004, 0.006)
    rates, tails = by_connections.plots({"submit": [(bare, ours)] * len(by_connections.CONNECTIONS)})
    assert {each.name: each.points[0] for each in rates.panels[0].series} == {
        "Laurels": (1, 500),
        "bare ASGI app": (1, 1000),
    }
    assert {each.name: each.points[-1] for each in tails.panels[0].series} == {
        "Laurels, p50": (256, 2),
        "Laurels, p99": (256, 4),
        "Laurels, p99.9": (256, 6),
        "bare ASGI app, p99": (256, 2),
    }


def test_bars_are_well_formed_and_set_the_control_apart():
    drawn = ET.fromstring(svg(BARS))  # noqa: S314  # we made it
    assert [group.get("class") for group in drawn.iter(f"{SVG}g")] == ["control", "ours"]
    assert {"sorted set", "73", "plain", "76", "bytes"} <= {text.text for text in drawn.iter(f"{SVG}text")}


def test_a_plot_has_colours_for_light_and_dark_and_is_the_same_each_time():
    assert "prefers-color-scheme: dark" in svg(PLOT)
    assert svg(PLOT) == svg(PLOT)
    assert len(svg(PLOT)) < 10_000


def test_the_page_says_what_was_measured_where_and_marks_missed_targets():
    text = page(RUN, 1, "2 cores", MOMENT)
    assert text.startswith("# Performance\n")
    assert "on 2025-10-24" in text
    assert "The machine has 2 cores." in text
    assert '## Writes\nBatches beside raw `ZADD`.\n\n`make bench ARGS="writes"`: 1,000 members, 12 s.' in text
    assert "![Memory](pictures/performance/memory.svg)" in text
    assert r"| exact \| slow | 30/s | 100/s | 0.30 | ≥ 0.35 | **MISSED** |  |  |  |" in text
    assert "short run" not in text
    assert "short run, with 0.01 of the usual sizes" in page(RUN, 0.01, "2 cores", MOMENT)


def test_the_page_is_written_with_its_plots_alone(tmp_path: Path):
    old = tmp_path / "pictures" / "performance" / "gone.svg"
    old.parent.mkdir(parents=True)
    old.write_text("")
    write_page(RUN, 1, tmp_path)
    text = (tmp_path / "performance.md").read_text()
    assert {path.name for path in old.parent.iterdir()} == {"cost.svg", "memory.svg"}
    assert re.search(r"Valkey \d+\.\d+\.\d+ and PostgreSQL \d+\.\d+", text)
