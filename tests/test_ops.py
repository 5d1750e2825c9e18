"""Dashboards and alert rules speak of metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from laurels import metrics
from laurels.activity.store.totals import BOUNDS
from laurels.jobs.agenda import AGENDA

OPS = Path(__file__).parents[1] / "ops"
DASHBOARDS = sorted((OPS / "grafana").glob("*.json"))
ALERTS = OPS / "prometheus" / "alerts.yml"
NAME = re.compile(r"\b(?:lb|laurels)_\w+\b")
# What a counter and a histogram are called where they are asked for.
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}


def known() -> set[str]:
    """Every name that `/metrics` may have, by its type."""
    names: set[str] = set()
    for family in text_string_to_metric_families(metrics.render().decode()):
        names |= {family.name + suffix for suffix in SUFFIXES.get(family.type, ("",))}
    return names


def expressions(board: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def alert_expressions() -> list[str]:
    return re.findall(r"^\s+expr: (.+)$", ALERTS.read_text(), re.MULTILINE)


def test_there_is_a_dashboard():
    assert DASHBOARDS


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_a_dashboard_asks_for_metrics_that_there_are(path: Path):
    board = json.loads(path.read_text())
    assert board["title"]
    assert board["uid"]
    asked = expressions(board)
    assert asked
    for expression in asked:
        names = NAME.findall(expression)
        assert names, expression
        assert set(names) <= known(), expression


def test_panels_have_ids_of_their_own_and_places_that_do_not_overlap():
    for path in DASHBOARDS:
        panels = json.loads(path.read_text())["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        taken = [
            (x, y)
            for panel in panels
            for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
            for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
        ]
        assert len(taken) == len(set(taken))


def test_alerts_ask_for_metrics_and_jobs_that_there_are():
    asked = alert_expressions()
    assert len(asked) == ALERTS.read_text().count("- alert: ")
    for expression in asked:
        assert set(NAME.findall(expression)) <= known(), expression
        for job in re.findall(r'job="(\w+)"', expression):
            assert job in {each.name for each in AGENDA}


def test_the_documented_metrics_have_their_names_and_labels():
    noted = metrics.CampusMetrics()
    noted.snapshots.add_metric(("daily", "overall"), 1)
    noted.badges.add_metric(("streak_30",), 1)
    noted.add_compute("daily", [(bound, 1.0) for bound in BOUNDS], 2.5)
    streams = metrics.StreamMetrics()
    streams.add("x:chat.events", processed=3, late=0, lag_seconds=1.5)
    samples = {
        (sample.name, *sorted(sample.labels))
        for family in (*noted.families(), *streams.families())
        for sample in family.samples
    }
    assert {
        ("lb_events_processed_total", "stream"),
        ("lb_snapshots_total", "period", "scope"),
        ("lb_badges_awarded_total", "kind"),
        ("lb_backlog_lag_seconds", "stream"),
        ("lb_compute_seconds_bucket", "le", "period"),
        ("lb_compute_seconds_sum", "period"),
        ("lb_compute_seconds_count", "period"),
    } <= samples


def test_promtool_agrees_where_it_is_installed():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    checked = subprocess.run([promtool, "check", "rules", str(ALERTS)], check=False, capture_output=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
