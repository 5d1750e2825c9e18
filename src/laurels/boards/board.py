"""A board at work: its definition made ready to answer «which windows does this moment touch?». Pure.

Every window of the board, whole or of a group, is an `Address`: label, slot, cut. A submission touches some
of them directly; a `sum_of` window follows the change of the window that it sums; a rolling window is the
aggregate of its days, and a day belongs to as many rolling windows as it has days.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from laurels.boards import timezones
from laurels.boards.arrivals import Arrivals
from laurels.boards.definition import BoardDefinition, Window, require_writer
from laurels.boards.keys import WHOLE, BoardRef, Cut, KeySpace
from laurels.boards.ordering import Ordering
from laurels.boards.windows import Calendar, Slot
from laurels.errors import InvalidInput, NotFound, WindowGone
from laurels.moments import DAY, MICROSECOND, Moment
from laurels.wording import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laurels.boards.definition import Owner
    from laurels.valkey.messages import Shape

# From the first, up to but not including the second; None where it is open.
_Interval = tuple[Moment | None, Moment | None]

# How far the clocks of two processes may be apart without a rolling window missing a submission at midnight.
CLOCK_SKEW: Final = timedelta(minutes=5) // MICROSECOND


# How long a window that is to be archived stays after the last late submission: as long as all workers may
# be away without a snapshot being lost.
ARCHIVING_GRACE: Final = timedelta(days=3) // MICROSECOND

# How long a window's memory stays at the most, once it may go. A large one is taken away in pieces meanwhile
# (`valkey/chunked_delete.py`), others at once; where nobody does so, it expires.
LINGER: Final = timedelta(minutes=30) // MICROSECOND
# Of windows that end every few minutes there would be many more at a time than the board keeps.
SHORTEST_TO_LINGER: Final = timedelta(hours=1).total_seconds()

# A submission changes the window itself; or the window moves with another; or it is made of its days.
How = Literal["direct", "sum", "fold"]


class Address(NamedTuple):
    """One window: what `period`, `slot` and `group` ask for."""

    label: str
    slot: str
    cut: Cut

    @property
    def token(self) -> str:
        """How the window is named among the board's windows."""
        return f"{self.label}|{self.slot}"


@dataclass(frozen=True, slots=True, eq=False)
class Pane:
    """One window definition of the board, in one timezone."""

    window: Window
    zone: str
    calendar: Calendar
    how: How
    base: Pane | None
    is_hidden: bool
    # How long after its end a slot must stay because another window is computed from it, or a snapshot taken;
    # microseconds.
    needed: Moment
    linger: Moment

    @property
    def label(self) -> str:
        return self.window.label

    @property
    def fold_op(self) -> str:
        return "sum" if self.window.sum_of else ""

    def held_until(self, slot: Slot) -> Moment | None:
        """When its memory may go: not before nobody can ask for it, nothing is computed from it, and it could
        be archived.
        """
        kept = slot.ends if self.is_hidden else self.calendar.kept_until(slot)
        if kept is None or slot.ends is None:
            return None
        return max(kept, slot.ends + self.needed) if self.needed else kept

    def expires_at(self, slot: Slot) -> Moment | None:
        """When its memory goes by itself."""
        until = self.held_until(slot)
        return None if until is None else until + self.linger


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A window that a submission writes."""

    address: Address
    slot: Slot
    pane: Pane
    base: Address | None = None
    days: tuple[Address, ...] = ()

    def seconds_to_live(self, now: Moment) -> int:
        """From now, rounded up; 0 for ever."""
        until = self.pane.expires_at(self.slot)
        return 0 if until is None else max(1, -((now - until) // 1_000_000))


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """The windows of one cut that submissions touch, for as long as nobody crosses a window's end."""

    targets: tuple[Target, ...]
    reported: Address | None
    moments: _Interval
    nows: _Interval

    def holds(self, moment: Moment, now: Moment) -> bool:
        return _within(moment, *self.moments) and _within(now, *self.nows)


def _within(moment: Moment, starts: Moment | None, ends: Moment | None) -> bool:
    return (starts is None or starts <= moment) and (ends is None or moment < ends)


class Board:
    """A stored definition, compiled. One per board and version, shared by all who use it."""

    def __init__(
        self, ref: BoardRef, definition: BoardDefinition, version: int, *, cluster: bool, prefix: str = ""
    ) -> None:
        self.ref = ref
        self.owner: Owner | None = None
        self.definition = definition
        self.version = version
        self.ordering = Ordering.of(definition)
        self.keys = KeySpace(ref, definition, cluster=cluster, prefix=prefix)
        self.dimensions = definition.dimensions
        self.arrivals = Arrivals() if self.ordering.timed else None
        self._templated = {target.partition(":")[0] for target in definition.keys or ()}
        self._panes: dict[str, tuple[Pane, ...]] = {}
        self._touched: dict[Cut, list[Touched]] = {}
        self.window_key = lru_cache(maxsize=4096)(self._window_key)

    def require_writer(self, writer: Owner | None) -> None:
        """Raises `Conflict` unless this writer may change the board; None is every caller from outside."""
        require_writer(str(self.ref), self.owner, writer)

    @cached_property
    def is_fast(self) -> bool:
        """Whether entries can be written without reading them first."""
        definition = self.definition
        return (
            not self.ordering.exact
            and not definition.dense
            and definition.aggregate != "sum"
            and definition.limits.max_change is None
            and all(pane.how == "direct" for pane in self.panes(definition.timezone))
        )

    @cached_property
    def is_rated(self) -> bool:
        """Whether its scores come from matches."""
        return self.definition.rating is not None

    @cached_property
    def is_limited(self) -> bool:
        """Whether scores are refused for their size, or because the board makes its own."""
        return bool(self.definition.limits) or self.is_rated

    @cached_property
    def writes_per_cut(self) -> int:
        """What a submission costs in each cut, in plain windows written; a day that is read is a quarter."""
        panes = self.panes(self.definition.timezone)
        return sum(2 + (pane.window.days or 0) // 4 if pane.how == "fold" else 1 for pane in panes)

    @cached_property
    def zones(self) -> frozenset[str]:
        """Every zone that the board's windows are cut in."""
        return frozenset({self.definition.timezone, *self.definition.timezones.values()})

    def shape(self, *, metadata: bool) -> Shape:
        """What every call says of the board. `metadata`: whether it names the keys of metadata."""
        ordering, definition = self.ordering, self.definition
        return (
            "exact" if ordering.exact else "plain",
            "int64" if ordering.int64 else "number",
            int(ordering.descending),
            ordering.ties,
            int(definition.dense),
            int(metadata),
            int(bool(definition.keys)),
        )

    def names_keys(self, address: Address) -> bool:
        """Whether a template names the window's key, so that another program may have it."""
        return address.label in self._templated

    def zone_of(self, cut: Cut) -> str:
        """Where the days of this cut begin."""
        definition = self.definition
        if definition.timezone_by is None or not cut:
            return definition.timezone
        value = cut.value(definition.timezone_by)
        return definition.timezones.get(value, definition.timezone) if value else definition.timezone

    def panes(self, zone: str) -> tuple[Pane, ...]:
        """The board's windows in a zone, each after the one that it is computed from."""
        if zone not in self._panes:
            self._panes[zone] = tuple(self._compile(zone))
        return self._panes[zone]

    def pane(self, label: str | None, cut: Cut = WHOLE) -> Pane:
        """The window that `period=label` asks for; the board's first when none is named."""
        asked = label or self.definition.windows[0].label
        for pane in self.panes(self.zone_of(cut)):
            if pane.label == asked and not pane.is_hidden:
                return pane
        known = [window.label for window in self.definition.windows]
        why = f"the board has no window {asked!r}; {suggestion(asked, known)}"
        raise InvalidInput.at("period", why)

    def slot(self, pane: Pane, text: str | None, now: Moment) -> Slot:
        """The slot that `slot=text` asks for, or the current one; raises `NotFound` once it is past keep."""
        current = pane.calendar.at(now)
        if text is None or text == current.text:
            return current
        slot = pane.calendar.parse(text)
        if slot.ends is not None and current.ends is not None and slot.ends > current.ends:
            raise NotFound(f"{self.ref}: the {pane.label} window {text} has not begun")
        until = pane.calendar.kept_until(slot)
        if until is not None and now >= until:
            raise WindowGone(f"{self.ref}: the {pane.label} window {text} is over and no longer kept")
        return slot

    def touched(self, moment: Moment, now: Moment, cut: Cut) -> Touched:
        """The windows of this cut that a submission at `moment` touches, arriving at `now`."""
        remembered = self._touched.get(cut)
        if remembered is None:
            if len(self._touched) > 10_000:
                self._touched.clear()
            remembered = self._touched[cut] = []
        for touched in remembered:
            if touched.holds(moment, now):
                return touched
        touched = self._touch(moment, now, cut)
        remembered.insert(0, touched)
        del remembered[4:]
        return touched

    def fold_addresses(self, pane: Pane, slot: Slot, cut: Cut) -> tuple[Address, ...]:
        """The days of a rolling window, oldest first."""
        if pane.base is None:
            return ()
        return tuple(Address(pane.base.label, day, cut) for day in pane.calendar.days(slot))

    def fold_op(self, pane: Pane) -> str:
        """How a rolling window aggregates its days."""
        return pane.fold_op or self.definition.aggregate

    def _window_key(self, shard: int, address: Address) -> str:
        zone = self.zone_of(address.cut)
        pane = next(pane for pane in self.panes(zone) if pane.label == address.label)
        slot = pane.calendar.parse(address.slot)
        return self.keys.window(shard, address.label, pane.calendar.placeholders(slot), address.cut)

    def _compile(self, zone: str) -> Iterator[Pane]:
        windows = self.definition.windows
        lateness = self.definition.lateness // MICROSECOND
        summed = {window.sum_of for window in windows}
        longest = max((window.days or 0 for window in windows), default=0)
        under_rolling = lateness + (longest + 2) * DAY
        archived = {snapshot.period for snapshot in self.definition.archive.snapshot}

        def pane(window: Window, how: How = "direct", base: Pane | None = None, needed: Moment = 0) -> Pane:
            is_hidden = window not in windows
            if window.label in archived and not is_hidden:
                needed = max(needed, lateness + ARCHIVING_GRACE)
            calendar = Calendar(window, timezones.zone(zone))
            return Pane(window, zone, calendar, how, base, is_hidden, needed, self._linger(window))

        direct: dict[str, Pane] = {}
        for window in windows:
            if window.sum_of is None and window.period != "rolling":
                needed = lateness + DAY if window.label in summed else 0
                if window.period == "daily" and longest:
                    needed = under_rolling
                direct[window.label] = pane(window, needed=needed)
        days = next((each for each in direct.values() if each.window.period == "daily"), None)
        if longest and days is None:
            days = pane(Window(period="daily"), needed=under_rolling)
            yield days
        yield from direct.values()
        for window in windows:
            if window.period == "rolling":
                yield pane(window, "fold", direct[window.sum_of] if window.sum_of else days)
            elif window.sum_of is not None:
                yield pane(window, "sum", direct[window.sum_of])

    def _linger(self, window: Window) -> Moment:
        """Keys that the definition names live as long as it says, to the second."""
        is_short = window.seconds is not None and window.seconds < SHORTEST_TO_LINGER
        return 0 if is_short or self.definition.keys else LINGER

    def _touch(self, moment: Moment, now: Moment, cut: Cut) -> Touched:
        targets: list[Target] = []
        moments: list[_Interval] = []
        nows: list[_Interval] = []
        for pane in self.panes(self.zone_of(cut)):
            at = (pane.base or pane).calendar.at(moment)
            moments.append((at.starts, at.ends))
            if pane.how == "fold":
                nows += _whole_days(pane, now)
            for slot in self._slots(pane, moment, now):
                until = pane.held_until(slot)
                is_gone = until is not None and now >= until
                nows.append((until, None) if is_gone else (None, until))
                if not is_gone and self._is_wanted(pane, slot):
                    targets.append(self._target(pane, slot, moment, cut))
        return Touched(
            targets=tuple(targets),
            reported=self._reported(targets, moment, now, cut),
            moments=_intersection(moments),
            nows=_intersection(nows),
        )

    def _is_wanted(self, _pane: Pane, _slot: Slot) -> bool:
        return True

    def _target(self, pane: Pane, slot: Slot, moment: Moment, cut: Cut) -> Target:
        base = None
        if pane.how == "sum" and pane.base:
            base = Address(pane.base.label, pane.base.calendar.at(moment).text, cut)
        days = self.fold_addresses(pane, slot, cut) if pane.how == "fold" else ()
        return Target(Address(pane.label, slot.text, cut), slot, pane, base, days)

    def _slots(self, pane: Pane, moment: Moment, now: Moment) -> list[Slot]:
        """The slots of a window that a submission at `moment` changes, arriving at `now`."""
        first = pane.calendar.at(moment)
        if pane.how != "fold":
            return [first]
        slots = [first]
        tomorrow = pane.calendar.following(pane.calendar.at(max(now + CLOCK_SKEW, moment)))
        while len(slots) < (pane.window.days or 1) and tomorrow and slots[-1].text != tomorrow.text:
            following = pane.calendar.following(slots[-1])
            if following is None:
                break
            slots.append(following)
        return slots

    def _reported(self, targets: list[Target], moment: Moment, now: Moment, cut: Cut) -> Address | None:
        """The board's first window, as the submission's answer speaks of it."""
        pane = self.pane(None, cut)
        slot = pane.calendar.at(now if pane.how == "fold" else moment)
        address = Address(pane.label, slot.text, cut)
        return address if any(target.address == address for target in targets) else None


def _whole_days(pane: Pane, now: Moment) -> Iterator[_Interval]:
    """For how long `now` stays in its day, with and without the skew that is allowed for."""
    for skew in (0, CLOCK_SKEW):
        day = pane.calendar.at(now + skew)
        before = pane.calendar.previous(day)
        starts = before.ends - skew if before and before.ends is not None else None
        yield starts, day.ends - skew if day.ends is not None else None


def _intersection(intervals: list[_Interval]) -> _Interval:
    starts = [start for start, _ in intervals if start is not None]
    ends = [end for _, end in intervals if end is not None]
    return max(starts, default=None), min(ends, default=None)
