"""Draws plots as SVG: pages read them by light and by dark, and the same figures give the same file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from bench.results import Bars, Plot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bench.results import Series

WIDTH = 720
LEFT, RIGHT, GAP = 58, 14, 18
HEADER, PANEL, FOOTER = 74, 180, 44
BAR, BAR_LEFT = 26, 130
FINE = 500
"""The widest range with a line at 1, 2 and 5 of each decade."""
THOUSANDS = {1e6: "M", 1e3: "k"}
# Both palettes have a contrast of 4.5 and more; lines differ in their dashes and marks too.
STYLE = """
  svg { --back: #ffffff; --text: #24292f; --faint: #57606a; --grid: #d8dee4;
    --ours: #0b6e4f; --tail: #8250df; --far: #b3350a; --control: #57606a; }
  @media (prefers-color-scheme: dark) {
    svg { --back: #161b22; --text: #e6edf3; --faint: #9ea7b3; --grid: #343b44;
      --ours: #56d3a0; --tail: #c8a6ff; --far: #ffa372; --control: #9ea7b3; }
  }
  text { font: 12px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: var(--text); }
  .title { font-size: 15px; font-weight: 600; } .panel { font-weight: 600; } .faint { fill: var(--faint); }
  .back { fill: var(--back); } .grid { stroke: var(--grid); } .line { fill: none; stroke-width: 2; }
  .ours { --hue: var(--ours); } .tail { --hue: var(--tail); } .far { --hue: var(--far); }
  .control { --hue: var(--control); }
  .line { stroke: var(--hue); } .mark { fill: var(--hue); stroke: none; }
  .control .line { stroke-dasharray: 5 4; }
""".strip("\n")
OURS = ("ours", "tail", "far")


def svg(plot: Plot | Bars) -> str:
    parts = [*(_bars(plot) if isinstance(plot, Bars) else _panels(plot))]
    height = 52 + BAR * len(plot.bars) if isinstance(plot, Bars) else HEADER + PANEL + FOOTER
    size = f'width="{WIDTH}" height="{height}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {size} role="img">',
            f"<title>{escape(plot.title)}</title>",
            f"<style>\n{STYLE}\n</style>",
            f'<rect class="back" {size} rx="6"/>',
            _text(LEFT - 44, 26, plot.title, "title"),
            _text(WIDTH - RIGHT, 26, plot.unit, "faint", "end"),
            *parts,
            "</svg>\n",
        )
    )


def _panels(plot: Plot) -> Iterator[str]:
    styles = _styles(plot.panels[0].series)
    yield from _legend(styles)
    points = [point for panel in plot.panels for series in panel.series for point in series.points]
    width = (WIDTH - LEFT - RIGHT - GAP * (len(plot.panels) - 1)) / len(plot.panels)
    across = _Scale.of_x([x for x, _ in points], 8, width - 8)
    up = _Scale.of_y([y for _, y in points], HEADER + PANEL, HEADER + 20)
    for y in up.ticks():
        yield _text(LEFT - 8, up(y) + 4, _short(y), "faint", "end")
    for number, panel in enumerate(plot.panels):
        yield f'<g transform="translate({LEFT + number * (width + GAP):.1f} 0)">'
        yield _text(width / 2, HEADER + 6, panel.title, "panel", "middle")
        yield from (f'<path class="grid" d="M0 {up(y):.1f}h{width:.1f}"/>' for y in up.ticks())
        for x in _apart({x for x, _ in points}, across):
            yield _text(across(x), HEADER + PANEL + 17, _short(x), "faint", "middle")
        yield _text(width / 2, HEADER + PANEL + 35, plot.x, "faint", "middle")
        for series in panel.series:
            yield _line(series.name, [(across(x), up(y)) for x, y in series.points], styles[series.name])
        yield "</g>"


def _bars(plot: Bars) -> Iterator[str]:
    most = max(value for _, value in plot.bars)
    for number, (name, value) in enumerate(plot.bars):
        y = 44 + number * BAR
        width = (WIDTH - BAR_LEFT - 60) * value / most
        kind = "control" if name == plot.control else "ours"
        yield _text(BAR_LEFT - 10, y + 13, name, anchor="end")
        bar = f'<rect class="mark" x="{BAR_LEFT}" y="{y}" width="{width:.1f}" height="18" rx="2"/>'
        yield f'<g class="{kind}">{bar}</g>'
        yield _text(BAR_LEFT + width + 8, y + 13, f"{value:,.0f}", "faint")


def _legend(styles: dict[str, str]) -> Iterator[str]:
    x = LEFT - 44.0
    for name, style in styles.items():
        yield f'<g class="{style}"><path class="line" d="M{x:.0f} 44h26"/>{_mark(x + 13, 44, style)}</g>'
        yield _text(x + 32, 48, name)
        x += 32 + 6.3 * len(name) + 22


def _line(name: str, places: Sequence[tuple[float, float]], style: str) -> str:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    marks = "".join(_mark(x, y, style) for x, y in places)
    return f'<g class="{style}"><title>{escape(name)}</title><path class="line" d="M{path}"/>{marks}</g>'


def _mark(x: float, y: float, style: str) -> str:
    if style == "ours":
        return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="3.2"/>'
    shapes = {"tail": "m0-4 4 7h-8z", "far": "m-3-3h6v6h-6z", "control": "m0-4 4 4-4 4-4-4z"}
    return f'<path class="mark" d="M{x:.1f} {y:.1f}{shapes[style]}"/>'


@dataclass(frozen=True)
class _Scale:
    """Places values on an axis: from zero on, or by their logarithms if they span more than a decade."""

    least: float
    most: float
    first: float
    """The place of the least."""
    last: float
    is_logarithmic: bool = True

    @classmethod
    def of_x(cls, values: Sequence[float], first: float, last: float) -> _Scale:
        return cls(min(values), max(values), first, last)

    @classmethod
    def of_y(cls, values: Sequence[float], first: float, last: float) -> _Scale:
        least, most = min(values), max(values)
        if least > 0 and most / least > 10:
            return cls(_rounded(least, down=True), _rounded(most), first, last)
        return cls(0, _rounded(most or 1), first, last, is_logarithmic=False)

    def __call__(self, value: float) -> float:
        share = value / self.most
        if self.is_logarithmic:
            share = math.log(value / self.least) / (math.log(self.most / self.least) or 1)
        return self.first + (self.last - self.first) * share

    def ticks(self) -> list[float]:
        if not self.is_logarithmic:
            return [self.most * part / 4 for part in range(5)]
        powers = range(math.floor(math.log10(self.least)), math.ceil(math.log10(self.most)) + 1)
        digits = (1, 2, 5) if self.most / self.least <= FINE else (1,)
        ticks = [float(f"{digit}e{power}") for power in powers for digit in digits]
        return [tick for tick in ticks if self.least <= tick <= self.most]


def _rounded(value: float, *, down: bool = False) -> float:
    """To the next of 1, 2 and 5 times a power of ten."""
    power = math.floor(math.log10(value))
    steps = [float(f"{digit}e{power}") for digit in (1, 2, 5, 10)]
    return (
        max(step for step in steps if step <= value) if down else min(step for step in steps if step >= value)
    )


def _apart(values: Iterable[float], scale: _Scale) -> Iterator[float]:
    """Those whose labels do not touch."""
    last = -math.inf
    for value in sorted(values):
        if scale(value) - last >= 26:
            last = scale(value)
            yield value


def _styles(series: Sequence[Series]) -> dict[str, str]:
    ours = iter(OURS)
    return {each.name: "control" if each.is_control else next(ours) for each in series}


def _short(value: float) -> str:
    """`10k` for 10,000."""
    for size, letter in THOUSANDS.items():
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>'
