"""Small line plots as SVG, without a library, for light and dark browsers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WIDTH, HEIGHT = 860, 420  # pixels
LEFT, RIGHT, TOP, BOTTOM = 64, 700, 64, 372
LABEL_HEIGHT = 17
# Distinguishable for colour-blind people, on white and on black (Okabe and Ito, slightly darkened).
COLOURS = ("#0072b2", "#c75000", "#00876c", "#b4568c", "#a67c00", "#3f8fc4", "#7a6fd0", "#6b7280")
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.title { font-size: 17px; font-weight: 600; }
.quiet { fill: #57606a; }
.grid { stroke: #d0d7de; stroke-width: 1; }
.line { fill: none; stroke-width: 2.25; stroke-linejoin: round; stroke-linecap: round; }
.paper { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .quiet { fill: #9198a1; } .grid { stroke: #30363d; } .paper { fill: #0d1117; }
}
"""


@dataclass(frozen=True)
class Lines:
    """A plot with one line for each series, labelled at its end. `None` is a day without a value."""

    title: str
    subtitle: str
    days: Sequence[str]
    series: Mapping[str, Sequence[float | None]]

    def svg(self) -> str:
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            f"<title>{escape(self.title)}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
            f'<text class="title" x="{LEFT - 40}" y="28">{escape(self.title)}</text>',
            f'<text class="quiet" x="{LEFT - 40}" y="48">{escape(self.subtitle)}</text>',
            *self._grid(),
            *self._lines(),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    @property
    def _step(self) -> float:
        """The distance of grid lines: 1, 2 or 5 times a power of ten, for four to eight lines."""
        highest = max((value for values in self.series.values() for value in values if value), default=1)
        step = 10.0 ** len(str(int(highest)))
        return next(
            step / divisor for divisor in (1, 2, 5, 10, 20, 50, 100) if highest / (step / divisor) >= 4
        )

    @property
    def _highest(self) -> float:
        highest = max((value for values in self.series.values() for value in values if value), default=1)
        return -(-highest // self._step) * self._step

    def _x(self, day: int) -> float:
        return LEFT + (RIGHT - LEFT) * day / max(1, len(self.days) - 1)

    def _y(self, value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * value / self._highest

    def _grid(self) -> list[str]:
        parts: list[str] = []
        for number in range(round(self._highest / self._step) + 1):
            value = number * self._step
            y = f"{self._y(value):.1f}"
            parts += [
                f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{RIGHT}" y2="{y}"/>',
                f'<text class="quiet" x="{LEFT - 8}" y="{y}" dy="4" text-anchor="end">{value:,.0f}</text>',
            ]
        every = max(1, len(self.days) // 6)
        for day in range(0, len(self.days), every):
            place = f'x="{self._x(day):.1f}" y="{BOTTOM + 22}" text-anchor="middle"'
            parts.append(f'<text class="quiet" {place}>{escape(self.days[day])}</text>')
        return parts

    def _lines(self) -> list[str]:
        parts: list[str] = []
        ends: list[tuple[float, str, str]] = []
        for number, (name, values) in enumerate(self.series.items()):
            colour = COLOURS[number % len(COLOURS)]
            points = [(self._x(day), self._y(value)) for day, value in enumerate(values) if value is not None]
            if not points:
                continue
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            x, y = points[-1]
            parts += [
                f'<polyline class="line" stroke="{colour}" points="{path}"/>',
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>',
            ]
            ends.append((y, name, colour))
        return parts + _labels(ends)


def _labels(ends: list[tuple[float, str, str]]) -> list[str]:
    """Labels at the ends of the lines, moved down where they would overlap."""
    parts: list[str] = []
    ends = sorted(ends)
    lowest = BOTTOM - LABEL_HEIGHT * (len(ends) - 1)
    above = TOP - LABEL_HEIGHT
    for number, (y, name, colour) in enumerate(ends):
        above = max(above + LABEL_HEIGHT, min(y, lowest + LABEL_HEIGHT * number))
        parts += [
            f'<rect x="{RIGHT + 12}" y="{above - 2:.1f}" width="9" height="3" fill="{colour}"/>',
            f'<text x="{RIGHT + 27}" y="{above:.1f}" dy="4">{escape(name)}</text>',
        ]
    return parts
