"""Which snapshots a board's definition asks for, and when. Pure.

A snapshot of a window is due when it ends, and again, replacing the first, once no late submission can come
any more. With `every`, one is due at each midnight too. The whole board and each of its groups get snapshots,
each by the clock of its timezone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laurels.boards import timezones
from laurels.boards.definition import Window
from laurels.boards.windows import Calendar
from laurels.moments import MICROSECOND, Moment

if TYPE_CHECKING:
    from laurels.boards.board import Board, ZonedWindow
    from laurels.boards.windows import Slot


@dataclass(frozen=True)
class SnapshotPolicy:
    """Which snapshots of one window of a board to take."""

    period: str
    top: int | None
    daily: bool


def policies(board: Board) -> list[SnapshotPolicy]:
    """One policy for each archived window, which combines all that the definition asks for it."""
    asked = board.definition.archive.snapshot
    found: list[SnapshotPolicy] = []
    for period in dict.fromkeys(each.period for each in asked):
        own = [each for each in asked if each.period == period]
        tops = [each.top for each in own if each.top is not None]
        found.append(
            SnapshotPolicy(
                period,
                top=max(tops) if len(tops) == len(own) else None,
                daily=any(each.every == "day" for each in own),
            )
        )
    return found


def lateness(board: Board) -> Moment:
    return board.definition.lateness // MICROSECOND


def final_from(board: Board, slot: Slot) -> Moment | None:
    """When a window becomes final: no late submission can come any more."""
    return None if slot.ends is None else slot.ends + lateness(board)


def due_moment(
    policy: SnapshotPolicy, zoned: ZonedWindow, slot: Slot, previous: Moment | None, now: Moment
) -> Moment | None:
    """The moment for a snapshot of this slot, if one is due since `previous`.

    A current slot only has its present state: after several missed midnights, only the last one is due.
    """
    if slot.ends is not None and slot.ends <= now:
        return slot.ends
    if not policy.daily or previous is None:
        return None
    midnight = midnights(zoned.zone).at(now).starts
    if midnight is None or not previous < midnight <= now:
        return None
    return midnight if slot.starts is None or slot.starts < midnight else None


def is_wanted(board: Board, slot: Slot, taken_at: Moment | None, now: Moment) -> bool:
    """Whether to take a snapshot of this slot, if the existing one was taken at `taken_at`."""
    if taken_at is None:
        return True
    settled = final_from(board, slot)
    return settled is not None and taken_at < settled <= now


def is_due(board: Board, policy: SnapshotPolicy, previous: Moment | None, now: Moment) -> bool:
    """Whether this policy made anything due since `previous`, without asking a store."""
    if previous is None:
        return True
    late = lateness(board)
    for zone in board.zones:
        zoned = next(
            zoned
            for zoned in board.zoned_windows(zone)
            if zoned.label == policy.period and not zoned.is_hidden
        )
        calendars = [zoned.calendar, *([midnights(zone)] if policy.daily else [])]
        if any(_ends_within(calendar, previous, now) for calendar in calendars):
            return True
        if _ends_within(zoned.calendar, previous - late, now - late):
            return True
    return False


def midnights(zone: str) -> Calendar:
    return Calendar(Window(period="daily"), timezones.zone(zone))


def _ends_within(calendar: Calendar, previous: Moment, now: Moment) -> bool:
    ends = calendar.at(previous).ends
    return ends is not None and previous < ends <= now
