"""Plots are well-formed, and their labels can be read."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from examples.plot import BOTTOM, LABEL_HEIGHT, RIGHT, TOP, Lines

if TYPE_CHECKING:
    from collections.abc import Sequence

SVG = "{http://www.w3.org/2000/svg}"


def drawn(**series: Sequence[float | None]) -> ET.Element:
    days = [str(day) for day in range(max(map(len, series.values())))]
    return ET.fromstring(Lines("A & B", "<all>", days, series).svg())  # noqa: S314  # ours


def texts(plot: ET.Element) -> list[str]:
    return [element.text or "" for element in plot.iter(f"{SVG}text")]


def labels(plot: ET.Element) -> list[float]:
    """How far down the name of each line stands."""
    return [float(each.attrib["y"]) for each in plot.iter(f"{SVG}text") if float(each.attrib["x"]) > RIGHT]


def test_xml_characters_are_escaped():
    assert {"A & B", "<all>", "x<y"} <= set(texts(drawn(**{"x<y": [1, 2]})))


def test_a_day_without_a_value_is_left_out_of_the_line():
    line = drawn(late=[None, 5, 10]).find(f"{SVG}polyline")
    assert line is not None
    assert len(line.attrib["points"].split()) == 2


def test_a_line_without_values_is_not_drawn():
    assert len(drawn(never=[None, None], ever=[1, 2]).findall(f"{SVG}polyline")) == 1


@pytest.mark.parametrize("ends", [[100.0] * 8, [0.0] * 7 + [100.0], [1.0, 2.0, 3.0, 97.0, 98.0, 99.0, 100.0]])
def test_names_never_stand_upon_each_other_nor_outside(ends: list[float]):
    found = sorted(labels(drawn(**{f"player {number}": [0, end] for number, end in enumerate(ends)})))
    assert len(found) == len(ends)
    assert all(below - above >= LABEL_HEIGHT for above, below in pairwise(found))
    assert found[0] >= TOP
    assert found[-1] <= BOTTOM


@pytest.mark.parametrize(
    ("highest", "marks"),
    [
        (7, ["0", "1", "2", "3", "4", "5", "6", "7"]),
        (329, ["0", "50", "100", "150", "200", "250", "300", "350"]),
        (1000, ["0", "200", "400", "600", "800", "1,000"]),
        (66_707, ["0", "10,000", "20,000", "30,000", "40,000", "50,000", "60,000", "70,000"]),
    ],
)
def test_the_grid_is_of_round_numbers(highest: float, marks: list[str]):
    plot = drawn(line=[0, highest])
    anchored = [each.text for each in plot.iter(f"{SVG}text") if each.get("text-anchor") == "end"]
    assert anchored == marks
