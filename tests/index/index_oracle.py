"""The expected answers of an index by brute force: rows in a dict, windows in lists, no code of Laurels."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

DAY = 86_400_000_000


class Row(NamedTuple):
    region: str | None
    city: str | None
    score: int | None

    @property
    def is_indexed(self) -> bool:
        return None not in self


@dataclass
class Oracle:
    """A table, and the contents of each window of its index: key -> row."""

    moves: bool
    keep: int
    is_ascending: bool = False
    rows: dict[int, Row] = field(default_factory=dict[int, Row])
    windows: dict[int, dict[int, Row]] = field(default_factory=dict[int, dict[int, Row]])

    def copy(self) -> Oracle:
        return deepcopy(self)

    def become(self, rows: dict[int, Row], moment: int) -> None:
        """Takes over the table as one statement left it."""
        before, self.rows = self.rows, rows
        window = moment // DAY
        for key in before.keys() - rows.keys():
            for held in self.windows.values():
                held.pop(key, None)
        for key, row in rows.items():
            if before.get(key) == row:
                continue
            for number, held in self.windows.items():
                if self.moves or number == window:
                    held.pop(key, None)
            if row.is_indexed:
                self.windows.setdefault(window, {})[key] = row

    def asked(self, now: int) -> list[int]:
        """The current window and the kept, non-empty ones before it, newest first."""
        current = now // DAY
        kept = (each for each in self.windows if current - self.keep < each <= current)
        return sorted({current, *(each for each in kept if self.windows[each])}, reverse=True)

    def groups(self) -> set[tuple[str, ...]]:
        found: set[tuple[str, ...]] = {()}
        for held in self.windows.values():
            for row in held.values():
                if row.region is not None and row.city is not None:
                    found |= {(row.region,), (row.region, row.city)}
        return found

    def ranking(self, window: int, group: tuple[str, ...]) -> list[tuple[int, int]]:
        """Key and score, best first; ties by key."""
        sign = 1 if self.is_ascending else -1
        held = [
            (key, row.score)
            for key, row in self.windows.get(window, {}).items()
            if row.score is not None and (row.region, row.city)[: len(group)] == group
        ]
        return sorted(held, key=lambda each: (sign * each[1], each[0]))


def dense_rank(ranking: list[tuple[int, int]], key: int) -> int:
    scores = [score for _, score in ranking]
    own = dict(ranking)[key]
    return 1 + len(set(scores[: scores.index(own)]))


def percentile(ranking: list[tuple[int, int]], share: float) -> int | None:
    """The score that this share of the entries do not exceed."""
    if not ranking:
        return None
    no_better = max(1, math.ceil(round(share * 10**6) * len(ranking) / 10**6))
    return ranking[len(ranking) - no_better][1]
