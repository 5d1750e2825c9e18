"""Every zone of the world, every day of 2024 to 2027: windows tile time, and every slot has its own text.

Many zones are aliases or have the same time in these years. Each such group is tested once.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from laurels.boards.definition import Window
from laurels.boards.windows import Calendar
from laurels.moments import HOUR, SECOND, Moment, datetime_of, moment_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from laurels.boards.definition import Period
    from laurels.boards.windows import Slot

FIRST_DAY, LAST_DAY = date(2024, 1, 1), date(2027, 12, 31)
MINUTE = 60 * SECOND

# Not zones: the machine's own setting, and a file for the C library.
NOT_IANA = frozenset({"localtime", "posixrules"})


class Change(NamedTuple):
    """A change of the clock at `moment`: its offsets from UTC before and after."""

    moment: Moment
    before: timedelta
    after: timedelta


class Group(NamedTuple):
    """Zones whose clocks always agree; the first is tested for all."""

    names: tuple[str, ...]
    changes: tuple[Change, ...]

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.names[0])


def ahead(zone: ZoneInfo, when: datetime) -> timedelta:
    offset = when.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def change_between(zone: ZoneInfo, low: datetime, high: datetime) -> Change:
    before, after = ahead(zone, low), ahead(zone, high)
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) // timedelta(seconds=2) * timedelta(seconds=1)
        low, high = (middle, high) if ahead(zone, middle) == before else (low, middle)
    return Change(moment_of(high), before, after)


def days() -> list[date]:
    return [FIRST_DAY + timedelta(days=number) for number in range((LAST_DAY - FIRST_DAY).days + 1)]


def changes_of(zone: ZoneInfo, ticks: list[datetime]) -> Iterator[Change]:
    offsets = [ahead(zone, tick) for tick in ticks]
    for (low, before), (high, after) in pairwise(zip(ticks, offsets, strict=True)):
        if before != after:
            yield change_between(zone, low, high)


@cache
def groups() -> tuple[Group, ...]:
    start = datetime(FIRST_DAY.year, 1, 1, tzinfo=UTC)
    ticks = [start + timedelta(days=number) for number in range(-30, len(days()) + 30)]
    alike: defaultdict[tuple[timedelta, tuple[Change, ...]], list[str]] = defaultdict(list)
    for name in sorted(available_timezones() - NOT_IANA):
        zone = ZoneInfo(name)
        alike[ahead(zone, start), tuple(changes_of(zone, ticks))].append(name)
    return tuple(Group(tuple(names), changes) for (_, changes), names in alike.items())


def calendar(period: Period, zone: ZoneInfo) -> Calendar:
    return Calendar(Window.model_validate({"period": period}), zone)


def bounds(slot: Slot) -> tuple[Moment, Moment]:
    assert slot.starts is not None
    assert slot.ends is not None
    return slot.starts, slot.ends


def shown(zone: ZoneInfo, moment: Moment) -> str:
    return datetime_of(moment).astimezone(zone).isoformat()


def assert_tile(of_zone: Calendar, slots: list[Slot], zone: ZoneInfo) -> None:
    """The slots touch each other, and each is found by its first moment, its last moment and its text."""
    assert len({slot.text for slot in slots}) == len(slots), zone
    for before, after in pairwise(slots):
        assert before.ends == after.starts, (zone, before, after)
    for slot in slots:
        starts, ends = bounds(slot)
        assert starts < ends, (zone, slot)
        assert of_zone.at(ends - 1) == of_zone.at(starts) == slot, zone
        assert of_zone.parse(slot.text) == slot, zone


def between(of_zone: Calendar, first: str, last: str) -> list[Slot]:
    (starts, _), (_, ends) = bounds(of_zone.parse(first)), bounds(of_zone.parse(last))
    return of_zone.slots(starts, ends)


def test_every_zone_is_in_exactly_one_group():
    names = [name for group in groups() for name in group.names]
    assert len(names) == len(set(names))
    assert set(names) == available_timezones() - NOT_IANA
    assert len(names) > 400


def test_days_tile_the_years_and_match_the_clock_in_every_zone():
    expected = [day.isoformat() for day in days()]
    for group in groups():
        daily = calendar("daily", group.zone)
        slots = between(daily, expected[0], expected[-1])
        assert [slot.text for slot in slots] == expected, group.zone
        assert_tile(daily, slots, group.zone)
        for slot in slots:
            starts, ends = bounds(slot)
            assert shown(group.zone, starts)[:10] == shown(group.zone, ends - 1)[:10] == slot.text, group.zone


def test_weeks_months_and_years_begin_with_their_first_day_in_every_zone():
    firsts: dict[Period, dict[str, date]] = {
        "weekly": {f"{day:%G-w%V}": day for day in days() if day.isoweekday() == 1},
        "monthly": {f"{day:%Y-%m}": day for day in days() if day.day == 1},
        "yearly": {f"{day:%Y}": day for day in days() if (day.month, day.day) == (1, 1)},
    }
    for group in groups():
        daily = calendar("daily", group.zone)
        for period, first_days in firsts.items():
            longer = calendar(period, group.zone)
            slots = between(longer, min(first_days), max(first_days))
            assert_tile(longer, slots, group.zone)
            assert [slot.text for slot in slots] == list(first_days), group.zone
            for slot, day in zip(slots, first_days.values(), strict=True):
                assert slot.starts == daily.parse(day.isoformat()).starts, (group.zone, slot)


def hours_by_the_minute(zone: ZoneInfo, starts: Moment, ends: Moment) -> Iterator[tuple[str, Moment]]:
    """The text and the first minute of every hour after `starts`, read from the clock minute by minute."""
    seen: list[str] = []
    last = shown(zone, starts)
    for minute in range(starts + MINUTE, ends, MINUTE):
        now = shown(zone, minute)
        if now[:13] != last[:13] or now[:16] < last[:16]:
            yield now[:13] + "b" * (now[:13] in seen or now[:13] == last[:13]), minute
            seen.append(now[:13])
        last = now


def test_hours_match_the_clock_around_every_change_in_every_zone():
    for group in groups():
        hourly = calendar("hourly", group.zone)
        for change in group.changes:
            starts, ends = change.moment - 5 * HOUR, change.moment + 5 * HOUR
            found = [(slot.text, bounds(slot)[0]) for slot in hourly.slots(starts, ends)]
            assert found[1:] == list(hours_by_the_minute(group.zone, starts, ends)), group.zone


def test_hours_tile_the_days_around_every_change_in_every_zone():
    for group in groups():
        daily, hourly = calendar("daily", group.zone), calendar("hourly", group.zone)
        for change in group.changes:
            day = daily.at(change.moment)
            before, after = daily.previous(day), daily.following(day)
            assert before
            assert after
            starts, ends = bounds(before)[0], bounds(after)[1]
            slots = hourly.slots(starts, ends)
            assert (slots[0].starts, slots[-1].ends) == (starts, ends), group.zone
            assert_tile(hourly, slots, group.zone)


def busiest_of_each_kind(of: Iterable[Group]) -> list[Group]:
    """One group for each kind of clock change: none, an hour, half an hour, two hours."""
    by_count = sorted(of, key=lambda group: len(group.changes))
    by_shifts = {
        frozenset(abs(after - before) for _, before, after in group.changes): group for group in by_count
    }
    return list(by_shifts.values())


def test_all_hours_tile_the_years_in_one_zone_of_each_kind():
    for group in busiest_of_each_kind(groups()):
        hourly = calendar("hourly", group.zone)
        slots = between(hourly, f"{FIRST_DAY}T00", f"{LAST_DAY}T23")
        assert len({slot.text for slot in slots}) == len(slots)
        for before, after in pairwise(slots):
            assert before.ends == after.starts, group.zone
        for slot in slots[::7]:
            assert hourly.parse(slot.text) == slot, group.zone


def test_every_alias_agrees_with_its_group():
    for group in groups():
        moments = [change.moment + nudge for change in group.changes for nudge in (-1, 0)]
        for period in ("hourly", "daily"):
            of_first = calendar(period, group.zone)
            expected = [of_first.at(moment) for moment in moments]
            for name in group.names[1:]:
                of_alias = calendar(period, ZoneInfo(name))
                assert [of_alias.at(moment) for moment in moments] == expected, name
