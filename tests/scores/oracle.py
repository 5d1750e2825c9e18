"""What a board should answer, by the plainest means: submissions folded into a dictionary, then a sort."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from laurels.boards.definition import BoardDefinition, Window
from laurels.boards.timezones import zone
from laurels.boards.windows import Calendar, Slot
from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from laurels.moments import Moment

Groups = tuple[tuple[str, str], ...]  # () for everybody
WindowKey = tuple[str, str, Groups]  # label, slot, group


@dataclass(frozen=True)
class Scored:
    member: str
    score: float
    moment: Moment
    metadata: dict[str, Any] | None = None
    arrival: int = 0


@dataclass(frozen=True)
class Stand:
    """One line of a ranking, with all four kinds of rank."""

    entry: Scored
    rank: int
    ordinal: int
    dense: int
    percentile: float


@dataclass
class Oracle:
    definition: BoardDefinition
    entries: dict[WindowKey, dict[str, Scored]] = field(default_factory=dict)
    ended: set[tuple[str, str]] = field(default_factory=set)
    """Windows that were once past their keep: a longer keep does not bring them back."""

    def zone(self, group: Groups) -> ZoneInfo:
        named = dict(group)
        by = self.definition.timezone_by
        zones = self.definition.timezones
        return zone(
            zones.get(named[by], self.definition.timezone) if by in named else self.definition.timezone
        )

    def calendar(self, window: Window, group: Groups = ()) -> Calendar:
        return Calendar(window, self.zone(group))

    def groups(self, given: dict[str, str] | None) -> Iterator[Groups]:
        yield ()
        for dimensions in self.definition.groups:
            if given and all(name in given for name in dimensions):
                yield tuple((name, given[name]) for name in dimensions)

    def days(self) -> Window:
        """The days that rolling windows are made of."""
        declared = (w for w in self.definition.windows if w.period == "daily" and w.sum_of is None)
        return next(declared, Window(period="daily"))

    def direct_windows(self) -> list[Window]:
        windows = [w for w in self.definition.windows if w.sum_of is None and w.period != "rolling"]
        if any(w.period == "rolling" for w in self.definition.windows) and self.days() not in windows:
            windows.append(self.days())
        return windows

    def submit(
        self, given: Scored, now: Moment, groups: dict[str, str] | None = None, op: str | None = None
    ) -> None:
        self.end_windows(now)
        for group in self.groups(groups):
            changed = set[str]()
            aggregate = op or self.definition.aggregate
            for window in self.direct_windows():
                slot = self.calendar(window, group).at(given.moment)
                if self.is_over(window, slot, group, now):
                    self.ended.add((window.label, slot.text))
                of_window = self.entries.setdefault((window.label, slot.text, group), {})
                old = of_window.get(given.member)
                new = self.aggregated(aggregate, old, given)
                if new != old or self.sets_metadata(aggregate, given):
                    of_window[given.member] = new
                    changed.add(window.label)
            for window in self.definition.windows:
                if window.period != "rolling" and window.sum_of in changed:
                    self._move_sum(window, group, given, aggregate)

    def _move_sum(self, window: Window, group: Groups, given: Scored, aggregate: str) -> None:
        slot = self.calendar(window, group).at(given.moment)
        base = next(w for w in self.definition.windows if w.label == window.sum_of)
        total = sum(
            entries[given.member].score
            for (label, text, cut), entries in self.entries.items()
            if (label, cut) == (base.label, group)
            and given.member in entries
            and _inside(self.calendar(base, group).parse(text), slot)
        )
        of_window = self.entries.setdefault((window.label, slot.text, group), {})
        old = of_window.get(given.member)
        if old is None or old.score != total:
            of_window[given.member] = replace(given, score=total)
        elif self.sets_metadata(aggregate, given):
            of_window[given.member] = replace(old, metadata=given.metadata)

    def sets_metadata(self, op: str, given: Scored) -> bool:
        """Whether the metadata is taken although the score is the same."""
        return op == "last" and given.metadata is not None

    def is_over(self, window: Window, slot: Slot, group: Groups, now: Moment) -> bool:
        until = self.calendar(window, group).kept_until(slot)
        return until is not None and now >= until

    def end_windows(self, now: Moment) -> None:
        for label, text, group in self.entries:
            window = self.definition.window(label)
            if window and self.is_over(window, self.calendar(window, group).parse(text), group, now):
                self.ended.add((label, text))

    def aggregated(self, op: str, old: Scored | None, new: Scored) -> Scored:
        if old is None:
            return new
        if op == "sum":
            return old if new.score == 0 else replace(new, score=old.score + new.score)
        if new.score == old.score and self.sets_metadata(op, new):
            return replace(old, metadata=new.metadata)
        if op == "first" or new.score == old.score:
            return old
        if op == "best" and (new.score > old.score) != (self.definition.order == "desc"):
            return old
        return new

    def remove(self, member: str) -> None:
        for of_window in self.entries.values():
            of_window.pop(member, None)

    def set_metadata(
        self,
        member: str,
        metadata: dict[str, Any] | None,
        now: Moment,
        chosen: tuple[str | None, str | None, Groups],
    ) -> int:
        """For the member's entries in one window (label and slot) or all, in one group or all; how many."""
        self.end_windows(now)
        label, slot, group = chosen
        changed = 0
        for (of_label, text, cut), of_window in self.entries.items():
            window = self.definition.window(of_label)
            is_chosen = label in (None, of_label) and slot in (None, text) and group in ((), cut)
            if window is None or not is_chosen or member not in of_window:
                continue
            if not self.is_over(window, self.calendar(window, cut).parse(text), cut, now):
                of_window[member] = replace(of_window[member], metadata=metadata)
                changed += (of_label, text) not in self.ended
        return changed

    def forget(self, label: str) -> None:
        self.entries = {key: value for key, value in self.entries.items() if key[0] != label}

    def known_groups(self) -> list[Groups]:
        return sorted({(), *(group for _, _, group in self.entries)})

    def queryable(self, window: Window, group: Groups, now: Moment) -> list[Slot]:
        """The slots that hold something and can be asked for, and the current one."""
        calendar = self.calendar(window, group)
        current = calendar.at(now)
        labels = self.days().label if window.period == "rolling" else window.label
        texts = {text for label, text, _ in self.entries if label == labels}
        slots = {current.text: current}
        for text in texts:
            try:
                slot = calendar.parse(text)
            except InvalidInput:  # an hour that only another zone's clock repeats
                continue
            has_begun = slot.ends is None or slot.ends <= (current.ends or 0)
            if has_begun and not self.is_over(window, slot, group, now):
                slots[text] = slot
        return [slot for slot in slots.values() if (window.label, slot.text) not in self.ended]

    def standings(self, window: Window, slot: Slot, group: Groups) -> list[Stand]:
        return self.ranked(self._held(window, slot, group))

    def ranked(self, held: list[Scored]) -> list[Stand]:
        ordered = sorted(held, key=self._order, reverse=self.definition.ties == "shared" and self._descends())
        unique = self.definition.ties != "shared"
        stands: list[Stand] = []
        for ordinal, entry in enumerate(ordered, 1):
            better = [other for other in ordered if self._is_better(other.score, entry.score)]
            rank = ordinal if unique else len(better) + 1
            dense = len({other.score for other in better}) + 1
            percentile = (len(ordered) - rank + 1) / len(ordered)
            stands.append(Stand(entry, rank, ordinal, dense, percentile))
        return stands

    def score_at(self, stands: list[Stand], share: Fraction) -> float:
        """The worst entry that at least this share of the entries are no better than."""
        for place, stand in enumerate(reversed(stands), 1):
            if Fraction(place, len(stands)) >= share:
                return stand.entry.score
        raise AssertionError

    def _held(self, window: Window, slot: Slot, group: Groups) -> list[Scored]:
        if window.period != "rolling":
            return list(self.entries.get((window.label, slot.text, group), {}).values())
        op = "sum" if window.sum_of else self.definition.aggregate
        folded: dict[str, Scored] = {}
        for day in self.calendar(window, group).days(slot):
            for member, entry in self.entries.get((self.days().label, day, group), {}).items():
                folded[member] = self._folded(op, folded.get(member), entry)
        return [replace(entry, metadata=None) for entry in folded.values()]

    def _folded(self, op: str, old: Scored | None, new: Scored) -> Scored:
        if old is None:
            return new
        if op == "sum":
            latest = max(old, new, key=lambda entry: (entry.moment, entry.arrival))
            return replace(latest, score=old.score + new.score)
        if op == "best" and old.score == new.score:
            return min(old, new, key=lambda entry: entry.moment)
        if op == "last":
            return new
        return self.aggregated(op, old, new)

    def _descends(self) -> bool:
        return self.definition.order == "desc"

    def _is_better(self, left: float, right: float) -> bool:
        return left > right if self._descends() else left < right

    def _order(self, entry: Scored) -> tuple[float, int, int, bytes]:
        if self.definition.ties == "shared":
            return entry.score, 0, 0, entry.member.encode()
        rising = -entry.score if self._descends() else entry.score
        if self.definition.ties == "member":
            return rising, 0, 0, entry.member.encode()
        return rising, entry.moment, entry.arrival, b""


def _inside(inner: Slot, outer: Slot) -> bool:
    return (outer.starts is None or (inner.starts or 0) >= outer.starts) and (
        outer.ends is None or (inner.ends or 0) <= outer.ends
    )


def group_text(group: Groups) -> str | None:
    """As `group=` asks for it."""
    escaped = {ord(char): f"%{ord(char):02X}" for char in "%,="}
    return ",".join(f"{name}={value.translate(escaped)}" for name, value in group) or None


def microseconds(length: timedelta) -> Moment:
    return length // timedelta(microseconds=1)
