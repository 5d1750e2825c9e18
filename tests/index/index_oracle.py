"""The expected answers of an index by brute force: rows in a dict, windows in lists, no code of Laurels."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Iterable

DAY = 86_400_000_000
Slot = int | str
LENGTHS = {"hourly": DAY // 24, "daily": DAY, "weekly": 7 * DAY, "monthly": 30 * DAY}


class Row(NamedTuple):
    region: str | None
    city: str | None
    score: int | None
    player: int | None = 0
    seen: datetime | None = None


class Seen(NamedTuple):
    """A row as a window shows it: with the moment that put it there."""

    row: Row
    moment: int


class Entry(NamedTuple):
    key: int
    score: int
    moment: int


@dataclass
class Oracle:
    """A table, and the contents of each window of its index: key -> row."""

    moves: bool = True
    keep: int = 3
    is_ascending: bool = False
    ties: str = "member"
    aggregate: str | None = None
    """With members; else each row is an entry."""
    windows: tuple[str, ...] = ("daily",)
    timezone: str | None = None
    has_at: bool = False
    rows: dict[int, Row] = field(default_factory=dict[int, Row])
    seen: dict[str, dict[Slot, dict[int, Seen]]] = field(
        default_factory=dict[str, dict[Slot, dict[int, Seen]]]
    )
    """By window and slot."""

    def copy(self) -> Oracle:
        return deepcopy(self)

    def is_indexed(self, row: Row) -> bool:
        needed = [row.region, row.city, row.score]
        needed += [row.player] if self.aggregate else []
        return None not in needed and not (self.has_at and row.seen is None)

    def become(self, rows: dict[int, Row], moment: int) -> None:
        """Takes over the table as one statement left it."""
        before, self.rows = self.rows, rows
        for window in self.windows:
            slots = self.seen.setdefault(window, {})
            for key in before.keys() - rows.keys():
                for held in slots.values():
                    held.pop(key, None)
            for key, row in rows.items():
                if self._watched(before.get(key)) != self._watched(row):
                    self._put(window, key, row, moment)

    def _watched(self, row: Row | None) -> object:
        if row is None:
            return None
        return row._replace(
            player=row.player if self.aggregate else 0, seen=row.seen if self.has_at else None
        )

    def _put(self, window: str, key: int, row: Row, moment: int) -> None:
        slots = self.seen[window]
        written = moment
        if self.has_at and row.seen is not None and self.is_indexed(row):
            moment = (row.seen - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        own = self.slots(window, moment)
        for number, held in slots.items():
            if self.moves or number in self.slots(window, written if not self.is_indexed(row) else moment):
                held.pop(key, None)
        if self.is_indexed(row):
            for slot in own:
                slots.setdefault(slot, {})[key] = Seen(row, moment)

    def slots(self, window: str, moment: int) -> list[Slot]:
        """The slots that contain a moment; of a rolling window, those of all its days."""
        if window == "all_time":
            return [""]
        if self.timezone is None and window in LENGTHS:
            return [moment // LENGTHS[window]]
        day = self.day(moment)
        if window.startswith("rolling"):
            days = int(window.split("_")[1].removesuffix("d"))
            return [(day + timedelta(days=ahead)).isoformat() for ahead in range(days)]
        year, week, _ = day.isocalendar()
        return [
            {
                "daily": day.isoformat(),
                "weekly": f"{year}-w{week:02}",
                "monthly": f"{day:%Y-%m}",
                "yearly": f"{day:%Y}",
            }[window]
        ]

    def day(self, moment: int) -> date:
        zone = ZoneInfo(self.timezone or "UTC")
        return datetime.fromtimestamp(moment // 1_000_000, zone).date()

    def current(self, window: str, now: int) -> Slot:
        return self.slots(window, now)[0]

    def asked(self, window: str, now: int) -> list[Slot]:
        """The current window and the kept, non-empty ones before it, newest first."""
        current = self.current(window, now)
        kept = self._kept(window, now)
        return sorted({current, *(each for each in kept if self.seen[window].get(each))}, reverse=True)

    def _kept(self, window: str, now: int) -> list[Slot]:
        """The current one and the `keep` - 1 before it."""
        found: list[Slot] = []
        moment = now
        while len(found) < self.keep:
            slot = self.current(window, moment)
            if slot not in found:
                found.append(slot)
            elif window == "all_time":
                break
            moment -= DAY // 24
        return found

    def groups(self) -> set[tuple[str, ...]]:
        found: set[tuple[str, ...]] = {()}
        for slots in self.seen.values():
            for held in slots.values():
                for row, _ in held.values():
                    if row.region is not None and row.city is not None:
                        found |= {(row.region,), (row.region, row.city)}
        return found

    def ranking(self, window: str, slot: Slot, group: tuple[str, ...]) -> list[Entry]:
        """Best first; ties as declared."""
        sign = 1 if self.is_ascending else -1
        held = [
            Entry(key, row.score, moment)
            for key, (row, moment) in self.seen[window].get(slot, {}).items()
            if row.score is not None and (row.region, row.city)[: len(group)] == group
        ]
        if self.aggregate:
            players: dict[int, list[Entry]] = {}
            for entry in held:
                player = self.seen[window][slot][entry.key].row.player
                if player is not None:
                    players.setdefault(player, []).append(entry)
            held = [each for player, own in players.items() for each in self._entry(player, own)]
        if self.ties == "shared":
            held.sort(key=lambda each: each.key, reverse=not self.is_ascending)
            return sorted(held, key=lambda each: sign * each.score)
        if self.ties == "earliest":
            return sorted(held, key=lambda each: (sign * each.score, each.moment, each.key))
        return sorted(held, key=lambda each: (sign * each.score, each.key))

    def _entry(self, player: int, own: list[Entry]) -> Iterable[Entry]:
        sign = 1 if self.is_ascending else -1
        in_order = sorted(own, key=lambda each: (each.moment, each.key))
        if self.aggregate == "sum":
            total = sum(each.score for each in own)
            if -(2**63) <= total < 2**63:
                yield Entry(player, total, in_order[-1].moment)
            return
        best = min(own, key=lambda each: (sign * each.score, each.moment, each.key))
        chosen = {"best": best, "first": in_order[0], "last": in_order[-1]}[self.aggregate or "best"]
        yield chosen._replace(key=player)

    def rank(self, ranking: list[Entry], place: int) -> int:
        """Of the entry at this place, from 0."""
        if self.ties != "shared":
            return place + 1
        return 1 + next(i for i, each in enumerate(ranking) if each.score == ranking[place].score)

    def better(self, ranking: list[Entry], score: int) -> int:
        return sum(each.score < score if self.is_ascending else each.score > score for each in ranking)


def dense_rank(ranking: list[Entry], place: int) -> int:
    scores = [each.score for each in ranking]
    return 1 + len(set(scores[: scores.index(scores[place])]))


def percentile(ranking: list[Entry], share: float) -> int | None:
    """The score that this share of the entries do not exceed."""
    if not ranking:
        return None
    no_better = max(1, math.ceil(round(share * 10**6) * len(ranking) / 10**6))
    return ranking[len(ranking) - no_better].score
