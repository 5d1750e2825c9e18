"""What a benchmark finds: rows of the table, and the series of its plots."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Judgement: TypeAlias = tuple[str, bool | None]
"""A target, and whether it holds; None without a target."""


class CannotMeasure(Exception):
    """Something is missing on this machine; the message says what to do."""


@dataclass(frozen=True)
class Tail:
    """Milliseconds."""

    p50: float
    p99: float
    p999: float


@dataclass(frozen=True)
class Row:
    what: str
    ours: str
    """With its unit."""
    other: str = ""
    """The same for the other way; its name, where the benchmark has several."""
    ratio: float | None = None
    """Ours by the other."""
    target: str = ""
    holds: bool | None = None
    tail: Tail | None = None


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[tuple[float, float]]
    is_control: bool = False


@dataclass(frozen=True)
class Panel:
    title: str
    series: Sequence[Series]


@dataclass(frozen=True)
class Plot:
    """Panels side by side, with the same axes."""

    name: str
    """Of its file."""
    title: str
    x: str
    unit: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Bars:
    name: str
    title: str
    unit: str
    bars: Sequence[tuple[str, float]]
    control: str
    """The bar that is not ours."""


Compared: TypeAlias = "Mapping[int, tuple[Tail, Tail]]"
"""The tails of ours and of the control, by what the horizontal axis shows."""


@dataclass(frozen=True)
class Results:
    rows: Sequence[Row]
    plots: Sequence[Plot | Bars] = ()

    @property
    def hold(self) -> bool:
        return all(row.holds is not False for row in self.rows)


def judged(value: float, *, least: float | None = None, most: float | None = None) -> Judgement:
    if least is not None:
        return f"≥ {least:,g}", value >= least
    if most is not None:
        return f"≤ {most:,g}", value <= most
    return "", None


def counted(number: int, unit: str) -> str:
    return f"{number:,} {unit.removesuffix('s') if number == 1 else unit}"


def tail_of(seconds: Sequence[float]) -> Tail:
    ordered = sorted(seconds)
    p50, p99, p999 = (1000 * ordered[int(len(ordered) * share)] for share in (0.5, 0.99, 0.999))
    return Tail(p50, p99, p999)


def rates_in_turns(
    what: str, ours: Sequence[float], other: tuple[str, Sequence[float]], *, least: float
) -> Row:
    """Two rates a second, and the median of their ratios in each turn."""
    name, rates = other
    ratio = statistics.median(rate / beside for rate, beside in zip(ours, rates, strict=True))
    return Row(
        what,
        f"{statistics.median(ours):,.0f}/s",
        f"{name}: {statistics.median(rates):,.0f}/s",
        ratio,
        *judged(ratio, least=least),
    )


def panel_of(title: str, compared: Compared, control: str) -> Panel:
    return Panel(
        title,
        (
            Series("Laurels, p50", [(size, ours.p50) for size, (ours, _) in compared.items()]),
            Series("Laurels, p99", [(size, ours.p99) for size, (ours, _) in compared.items()]),
            Series(
                f"{control}, p50",
                [(size, other.p50) for size, (_, other) in compared.items()],
                is_control=True,
            ),
        ),
    )


def rows_of(what: str, compared: Compared, unit: str) -> list[Row]:
    return [
        Row(
            f"{what}, {counted(size, unit)}",
            f"{ours.p50:.2f} ms",
            f"{other.p50:.2f} ms",
            ours.p50 / other.p50,
            tail=ours,
        )
        for size, (ours, other) in compared.items()
    ]
