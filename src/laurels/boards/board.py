"""A board's definition, compiled: which windows does a submission at this moment write? Pure.

A `WindowAddress` (label, slot, cut) names one ranked list of the board. A submission writes some of them
directly. A `sum_of` window changes with the window that it sums. A rolling window aggregates its days, and
each day belongs to as many rolling windows as these have days.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from laurels.boards import timezones
from laurels.boards.definition import BoardDefinition, Window, require_writer
from laurels.boards.keys import WHOLE, BoardRef, Cut, KeySpace
from laurels.boards.ordering import Ordering
from laurels.boards.unique_moments import UniqueMoments
from laurels.boards.windows import Calendar, Slot
from laurels.errors import InvalidInput, NotFound, WindowGone
from laurels.moments import DAY, MICROSECOND, Moment
from laurels.wording import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from laurels.boards.definition import Owner
    from laurels.valkey.messages import Shape

# From the first moment up to, but not including, the second; None: unbounded.
_Bounds = tuple[Moment | None, Moment | None]

# How far the clocks of two processes may differ before a rolling window misses a submission at midnight.
CLOCK_SKEW: Final = timedelta(minutes=5) // MICROSECOND

# How long a window with a snapshot policy stays after its lateness has passed. If all workers are down for
# longer, its snapshot is lost.
ARCHIVING_GRACE: Final = timedelta(days=3) // MICROSECOND

# How long a window that is over waits for a worker, which deletes a large one in chunks
# (`valkey/chunked_delete.py`). Then it expires.
LINGER: Final = timedelta(minutes=30) // MICROSECOND
# Shorter windows do not wait: a board would hold many more of them than it keeps.
SHORTEST_TO_LINGER: Final = timedelta(hours=1).total_seconds()

# Keys of one board that are cached, and names of slots of one definition.
MOST_NAMES: Final = 4096

# A submission writes the window; or it changes with the window that it sums; or its days are aggregated.
How = Literal["direct", "sum", "fold"]


class WindowAddress(NamedTuple):
    """Names one ranked list of a board: what `period`, `slot` and `group` ask for."""

    label: str
    slot: str
    cut: Cut

    @property
    def token(self) -> str:
        """The name of the window in the board's list of windows, without the group."""
        return f"{self.label}|{self.slot}"


@dataclass(frozen=True, slots=True, eq=False)
class ZonedWindow:
    """One of the board's windows in one timezone."""

    window: Window
    zone: str
    calendar: Calendar
    how: How
    base: ZonedWindow | None
    is_hidden: bool
    # How many microseconds a slot stays after its end, for a window that is computed from it or a snapshot.
    needed: Moment
    linger: Moment

    @property
    def label(self) -> str:
        return self.window.label

    @property
    def fold_op(self) -> str:
        return "sum" if self.window.sum_of else ""

    def held_until(self, slot: Slot) -> Moment | None:
        """When the slot may be deleted: no query, window or snapshot needs it any more. None: never."""
        kept = slot.ends if self.is_hidden else self.calendar.kept_until(slot)
        if kept is None or slot.ends is None:
            return None
        return max(kept, slot.ends + self.needed) if self.needed else kept

    def expires_at(self, slot: Slot) -> Moment | None:
        """When Valkey expires the slot; None: never."""
        until = self.held_until(slot)
        return None if until is None else until + self.linger


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A ranked list that a submission writes."""

    address: WindowAddress
    slot: Slot
    zoned: ZonedWindow
    base: WindowAddress | None = None
    days: tuple[WindowAddress, ...] = ()

    def seconds_to_live(self, now: Moment) -> int:
        """From now, rounded up; 0 if it never expires."""
        until = self.zoned.expires_at(self.slot)
        return 0 if until is None else max(1, -((now - until) // 1_000_000))


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """The windows of one cut that a submission writes. They are the same for every submission whose moment
    and arrival lie within these bounds.
    """

    windows: tuple[Target, ...]
    reported: WindowAddress | None
    """The window whose ranks the submission's result states."""
    moments: _Bounds
    nows: _Bounds

    def holds(self, moment: Moment, now: Moment) -> bool:
        return _within(moment, *self.moments) and _within(now, *self.nows)


def _within(moment: Moment, starts: Moment | None, ends: Moment | None) -> bool:
    return (starts is None or starts <= moment) and (ends is None or moment < ends)


class CompiledDefinition:
    """What boards with equal definitions share: windows in each timezone, and what submissions write."""

    def __init__(self, definition: BoardDefinition) -> None:
        self.definition = definition
        self.ordering = Ordering.of(definition)
        self.dimensions = definition.dimensions
        self.templated = {target.partition(":")[0] for target in definition.keys or ()}
        self.targets: dict[Cut, list[Targets]] = {}
        self._zoned_windows: dict[str, tuple[ZonedWindow, ...]] = {}
        self._placeholders: dict[tuple[str, str, str], Mapping[str, str]] = {}

    @cached_property
    def is_direct(self) -> bool:
        """Whether an entry depends on nothing but its submissions, and nothing else on it."""
        definition = self.definition
        return (
            not definition.dense
            and definition.limits.max_change is None
            and all(zoned.how == "direct" for zoned in self.zoned_windows(definition.timezone))
        )

    @cached_property
    def is_fast(self) -> bool:
        """Whether entries can be written without reading them first."""
        return self.is_direct and not self.ordering.prefixed and self.definition.aggregate != "sum"

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
        """The cost of a submission in each cut, in plain windows written; reading a day costs a quarter."""
        zoned_windows = self.zoned_windows(self.definition.timezone)
        return sum(2 + (zoned.window.days or 0) // 4 if zoned.how == "fold" else 1 for zoned in zoned_windows)

    @cached_property
    def zones(self) -> frozenset[str]:
        """Every timezone that the board's windows use."""
        return frozenset({self.definition.timezone, *self.definition.timezones.values()})

    def zone_of(self, cut: Cut) -> str:
        """The timezone in which the days of this cut begin."""
        definition = self.definition
        if definition.timezone_by is None or not cut:
            return definition.timezone
        value = cut.value(definition.timezone_by)
        return definition.timezones.get(value, definition.timezone) if value else definition.timezone

    def zoned_windows(self, zone: str) -> tuple[ZonedWindow, ...]:
        """The board's windows in a timezone, each after the one that it is computed from."""
        if zone not in self._zoned_windows:
            self._zoned_windows[zone] = tuple(self._compile(zone))
        return self._zoned_windows[zone]

    def placeholders(self, address: WindowAddress) -> Mapping[str, str]:
        """What key templates may name of the window's slot. Cached."""
        zone = self.zone_of(address.cut)
        key = address.label, address.slot, zone
        found = self._placeholders.get(key)
        if found is None:
            if len(self._placeholders) >= MOST_NAMES:
                self._placeholders.clear()
            zoned = next(zoned for zoned in self.zoned_windows(zone) if zoned.label == address.label)
            slot = zoned.calendar.parse(address.slot)
            found = self._placeholders[key] = zoned.calendar.placeholders(slot)
        return found

    def _compile(self, zone: str) -> Iterator[ZonedWindow]:
        windows = self.definition.windows
        lateness = self.definition.lateness // MICROSECOND
        summed = {window.sum_of for window in windows}
        longest = max((window.days or 0 for window in windows), default=0)
        under_rolling = lateness + (longest + 2) * DAY
        archived = {snapshot.period for snapshot in self.definition.archive.snapshot}

        def compiled(
            window: Window, how: How = "direct", base: ZonedWindow | None = None, needed: Moment = 0
        ) -> ZonedWindow:
            is_hidden = window not in windows
            if window.label in archived and not is_hidden:
                needed = max(needed, lateness + ARCHIVING_GRACE)
            calendar = Calendar(window, timezones.zone(zone))
            return ZonedWindow(window, zone, calendar, how, base, is_hidden, needed, self._linger(window))

        direct: dict[str, ZonedWindow] = {}
        for window in windows:
            if window.sum_of is None and window.period != "rolling":
                needed = lateness + DAY if window.label in summed else 0
                if window.period == "daily" and longest:
                    needed = under_rolling
                direct[window.label] = compiled(window, needed=needed)
        days = next((each for each in direct.values() if each.window.period == "daily"), None)
        if longest and days is None:
            days = compiled(Window(period="daily"), needed=under_rolling)
            yield days
        yield from direct.values()
        for window in windows:
            if window.period == "rolling":
                yield compiled(window, "fold", direct[window.sum_of] if window.sum_of else days)
            elif window.sum_of is not None:
                yield compiled(window, "sum", direct[window.sum_of])

    def _linger(self, window: Window) -> Moment:
        """How long a window lingers: 0 with key templates, whose keys expire as the definition says."""
        is_short = window.seconds is not None and window.seconds < SHORTEST_TO_LINGER
        return 0 if is_short or self.definition.keys else LINGER


class Board:
    """A stored definition under its name. A process shares one instance per board and version."""

    __slots__ = (
        "__weakref__",
        "_compiled",
        "_window_keys",
        "definition",
        "dimensions",
        "keys",
        "ordering",
        "owner",
        "ref",
        "unique_moments",
        "version",
    )

    def __init__(  # noqa: PLR0913  # of the catalog, which alone shares compiled definitions
        self,
        ref: BoardRef,
        definition: BoardDefinition,
        version: int,
        *,
        cluster: bool,
        prefix: str = "",
        compiled: CompiledDefinition | None = None,
    ) -> None:
        """`compiled`: this definition, if other boards have it too."""
        self.ref = ref
        self.owner: Owner | None = None
        self.definition = definition
        self.version = version
        self.keys = KeySpace(ref, definition, cluster=cluster, prefix=prefix)
        self._compiled = compiled = compiled or CompiledDefinition(definition)
        self.ordering = compiled.ordering
        self.dimensions = compiled.dimensions
        self.unique_moments = UniqueMoments() if self.ordering.timed else None
        self._window_keys: dict[tuple[int, WindowAddress], str] = {}

    def require_writer(self, writer: Owner | None) -> None:
        """Raises `Conflict` unless this writer may change the board; None stands for outside callers."""
        require_writer(str(self.ref), self.owner, writer)

    @property
    def is_direct(self) -> bool:
        """Whether an entry depends on nothing but its submissions, and nothing else on it."""
        return self._compiled.is_direct

    @property
    def is_fast(self) -> bool:
        """Whether entries can be written without reading them first."""
        return self._compiled.is_fast

    @property
    def is_rated(self) -> bool:
        """Whether its scores come from matches."""
        return self._compiled.is_rated

    @property
    def is_limited(self) -> bool:
        """Whether scores are refused for their size, or because the board makes its own."""
        return self._compiled.is_limited

    @property
    def writes_per_cut(self) -> int:
        """The cost of a submission in each cut, in plain windows written; reading a day costs a quarter."""
        return self._compiled.writes_per_cut

    @property
    def zones(self) -> frozenset[str]:
        """Every timezone that the board's windows use."""
        return self._compiled.zones

    def zone_of(self, cut: Cut) -> str:
        """The timezone in which the days of this cut begin."""
        return self._compiled.zone_of(cut)

    def zoned_windows(self, zone: str) -> tuple[ZonedWindow, ...]:
        """The board's windows in a timezone, each after the one that it is computed from."""
        return self._compiled.zoned_windows(zone)

    def names_keys(self, address: WindowAddress) -> bool:
        """Whether a template names the window's key, so that another program may use the same key."""
        return address.label in self._compiled.templated

    def window_key(self, shard: int, address: WindowAddress) -> str:
        """The key of a window's entries. Cached."""
        key = self._window_keys.get((shard, address))
        if key is None:
            if len(self._window_keys) >= MOST_NAMES:
                self._window_keys.clear()
            placeholders = self._compiled.placeholders(address)
            key = self.keys.window(shard, address.label, placeholders, address.cut)
            self._window_keys[shard, address] = key
        return key

    def shape(self, *, metadata: bool) -> Shape:
        """How the board stores entries, for a call's header. `metadata`: whether the call has its keys."""
        ordering, definition = self.ordering, self.definition
        return (
            "int64" if ordering.int64 else "number",
            int(ordering.descending),
            ordering.ties,
            int(definition.dense),
            int(metadata),
            int(bool(definition.keys)),
        )

    def zoned_window(self, label: str | None, cut: Cut = WHOLE) -> ZonedWindow:
        """The window that `period=label` asks for; by default the board's first."""
        asked = label or self.definition.windows[0].label
        for zoned in self.zoned_windows(self.zone_of(cut)):
            if zoned.label == asked and not zoned.is_hidden:
                return zoned
        known = [window.label for window in self.definition.windows]
        why = f"the board has no window {asked!r}; {suggestion(asked, known)}"
        raise InvalidInput.at("period", why)

    def slot(self, zoned: ZonedWindow, text: str | None, now: Moment) -> Slot:
        """The slot that `slot=text` asks for, by default the current one. Raises `WindowGone` past its
        `keep`, and `NotFound` for a future slot.
        """
        current = zoned.calendar.at(now)
        if text is None or text == current.text:
            return current
        slot = zoned.calendar.parse(text)
        if slot.ends is not None and current.ends is not None and slot.ends > current.ends:
            raise NotFound(f"{self.ref}: the {zoned.label} window {text} has not begun")
        until = zoned.calendar.kept_until(slot)
        if until is not None and now >= until:
            raise WindowGone(f"{self.ref}: the {zoned.label} window {text} is over and no longer kept")
        return slot

    def targets(self, moment: Moment, now: Moment, cut: Cut) -> Targets:
        """The windows of this cut that a submission at `moment` writes when it arrives at `now`."""
        by_cut = self._compiled.targets
        remembered = by_cut.get(cut)
        if remembered is None:
            if len(by_cut) > 10_000:
                by_cut.clear()
            remembered = by_cut[cut] = []
        for targets in remembered:
            if targets.holds(moment, now):
                return targets
        targets = self._find_targets(moment, now, cut)
        remembered.insert(0, targets)
        del remembered[4:]
        return targets

    def fold_addresses(self, zoned: ZonedWindow, slot: Slot, cut: Cut) -> tuple[WindowAddress, ...]:
        """The days of a rolling window, oldest first."""
        if zoned.base is None:
            return ()
        return tuple(WindowAddress(zoned.base.label, day, cut) for day in zoned.calendar.days(slot))

    def fold_op(self, zoned: ZonedWindow) -> str:
        """How a rolling window aggregates its days."""
        return zoned.fold_op or self.definition.aggregate

    def _find_targets(self, moment: Moment, now: Moment, cut: Cut) -> Targets:
        targets: list[Target] = []
        moments: list[_Bounds] = []
        nows: list[_Bounds] = []
        for zoned in self.zoned_windows(self.zone_of(cut)):
            at = (zoned.base or zoned).calendar.at(moment)
            moments.append((at.starts, at.ends))
            if zoned.how == "fold":
                nows += _whole_days(zoned, now)
            for slot in self._slots(zoned, moment, now):
                until = zoned.held_until(slot)
                is_gone = until is not None and now >= until
                nows.append((until, None) if is_gone else (None, until))
                if not is_gone and self.is_wanted(zoned, slot):
                    targets.append(self._target(zoned, slot, moment, cut))
        return Targets(
            windows=tuple(targets),
            reported=self._reported(targets, moment, now, cut),
            moments=_intersection(moments),
            nows=_intersection(nows),
        )

    def is_wanted(self, zoned: ZonedWindow, slot: Slot) -> bool:  # noqa: ARG002  # a shadow board overrides it
        """Whether submissions write this slot."""
        return True

    def _target(self, zoned: ZonedWindow, slot: Slot, moment: Moment, cut: Cut) -> Target:
        base = None
        if zoned.how == "sum" and zoned.base:
            base = WindowAddress(zoned.base.label, zoned.base.calendar.at(moment).text, cut)
        days = self.fold_addresses(zoned, slot, cut) if zoned.how == "fold" else ()
        return Target(WindowAddress(zoned.label, slot.text, cut), slot, zoned, base, days)

    def _slots(self, zoned: ZonedWindow, moment: Moment, now: Moment) -> list[Slot]:
        """The slots of a window that a submission at `moment` changes when it arrives at `now`."""
        first = zoned.calendar.at(moment)
        if zoned.how != "fold":
            return [first]
        slots = [first]
        tomorrow = zoned.calendar.following(zoned.calendar.at(max(now + CLOCK_SKEW, moment)))
        while len(slots) < (zoned.window.days or 1) and tomorrow and slots[-1].text != tomorrow.text:
            following = zoned.calendar.following(slots[-1])
            if following is None:
                break
            slots.append(following)
        return slots

    def _reported(self, targets: list[Target], moment: Moment, now: Moment, cut: Cut) -> WindowAddress | None:
        """The board's first window, whose ranks the submission's result states."""
        zoned = self.zoned_window(None, cut)
        slot = zoned.calendar.at(now if zoned.how == "fold" else moment)
        address = WindowAddress(zoned.label, slot.text, cut)
        return address if any(target.address == address for target in targets) else None


def _whole_days(zoned: ZonedWindow, now: Moment) -> Iterator[_Bounds]:
    """The bounds of the day of `now`, with and without the allowed clock skew."""
    for skew in (0, CLOCK_SKEW):
        day = zoned.calendar.at(now + skew)
        before = zoned.calendar.previous(day)
        starts = before.ends - skew if before and before.ends is not None else None
        yield starts, day.ends - skew if day.ends is not None else None


def _intersection(intervals: list[_Bounds]) -> _Bounds:
    starts = [start for start, _ in intervals if start is not None]
    ends = [end for _, end in intervals if end is not None]
    return max(starts, default=None), min(ends, default=None)
