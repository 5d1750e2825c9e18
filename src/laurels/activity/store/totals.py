"""The counters of campuses in `/metrics`, kept in PostgreSQL so that every process shows the same."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from laurels.postgres.tables import lb_totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from laurels.postgres.engine import Postgres

SNAPSHOTS: Final = "lb_snapshots"
BADGES: Final = "lb_badges_awarded"
COMPUTE: Final = "lb_compute_seconds"
BOUNDS: Final = ("0.01", "0.05", "0.1", "0.5", "1.0", "5.0", "10.0", "30.0", "60.0", "300.0", "+Inf")
"""The histogram's bounds in seconds: from one user's day to a large campus."""

_NUMBERS: Final = tuple(map(float, BOUNDS))


@dataclass(frozen=True)
class RunTotals:
    """What a run did."""

    periods: Iterable[str]
    scopes: Iterable[str]
    tables: int
    """How many campus days it updated, each in every period and scope."""
    seconds: float
    badges: Sequence[str] = ()
    """The kinds of the badges that it awarded."""


class Totals:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def add(self, worked: RunTotals) -> None:
        """One statement, so that processes can add at the same time."""
        bound = BOUNDS[bisect_left(_NUMBERS, worked.seconds)]
        more: dict[tuple[str, str], float] = {}
        for period in worked.periods:
            more |= {(COMPUTE, f"{period}|{bound}"): 1, (COMPUTE, f"{period}|sum"): worked.seconds}
            more |= {(SNAPSHOTS, f"{period}|{scope}"): worked.tables for scope in worked.scopes}
        more |= {(BADGES, kind): count for kind, count in Counter(worked.badges).items()}
        rows = [
            {"metric": metric, "labels": labels, "value": value}
            for (metric, labels), value in sorted(more.items())
        ]
        added = insert(lb_totals).values(rows)
        total = {"value": lb_totals.c.value + added.excluded.value}
        async with self._postgres.writing() as connection:
            await connection.execute(
                added.on_conflict_do_update(index_elements=["metric", "labels"], set_=total)
            )

    async def read(self) -> dict[str, dict[tuple[str, ...], float]]:
        """The values by metric and labels; a histogram's last label is the bound, or `sum`."""
        found: dict[str, dict[tuple[str, ...], float]] = {SNAPSHOTS: {}, BADGES: {}, COMPUTE: {}}
        async with self._postgres.reading() as connection:
            for metric, labels, value in await connection.execute(select(lb_totals)):
                found.setdefault(metric, {})[tuple(labels.split("|"))] = value
        return found
