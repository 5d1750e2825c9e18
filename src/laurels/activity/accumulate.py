"""Folds the effects of events into one change for each user and day. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from laurels.activity import events
from laurels.activity.days import Day, day_at
from laurels.activity.events import Effect
from laurels.activity.guard import SentMessages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from laurels.moments import Moment


class CampusLike(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def timezone(self) -> str: ...


class EventSource(NamedTuple):
    """Where an effect comes from: an entry of a stream, and the event's own time in milliseconds."""

    stream: str
    id: str
    at: int


class SourcedEffect(NamedTuple):
    effect: Effect
    source: EventSource

    def to_text(self) -> str:
        """The text that is parked in Valkey until the user's campus is known. Each effect has its own."""
        return " ".join(
            (
                self.source.stream,
                self.source.id,
                str(self.source.at),
                self.effect.what,
                self.effect.other,
            )
        )

    @classmethod
    def from_text(cls, user: str, text: str) -> SourcedEffect:
        stream, id_, at, what, other = text.split(" ")
        return cls(Effect(user, what, other), EventSource(stream, id_, int(at)))


@dataclass(slots=True)
class DayChange:
    """What the effects add to one user's day."""

    day: Day
    user: str
    campus: str
    counts: Counter[str] = field(default_factory=Counter[str])
    senders: set[str] = field(default_factory=set[str])
    accepts: set[str] = field(default_factory=set[str])
    seconds: dict[int, SentMessages] = field(default_factory=dict[int, SentMessages])
    """Messages sent, by Unix second."""

    def add(self, effect: Effect, at: int) -> None:
        match effect.what:
            case "dm_sent" | "room_sent":
                dms, room = self.seconds.get(at // 1000, (0, 0))
                is_dm = effect.what == "dm_sent"
                self.seconds[at // 1000] = SentMessages(dms + is_dm, room + (not is_dm))
            case events.SENDER:
                self.senders.add(effect.other)
            case events.ACCEPT:
                self.accepts.add(effect.other)
            case events.TOUCH:
                pass
            case counter:
                self.counts[counter] += 1


@dataclass(slots=True)
class FoldedEffects:
    days: dict[tuple[int, str], DayChange] = field(default_factory=dict[tuple[int, str], DayChange])
    late: Counter[str] = field(default_factory=Counter[str])
    """By stream: how many effects came after their day had expired."""
    parked: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """By user: the effects that wait until the user's campus is known."""


def fold(effects: Iterable[SourcedEffect], campuses: Mapping[str, CampusLike], now: Moment) -> FoldedEffects:
    """Folds effects in any order. Each counts for the day of its own time in its user's campus."""
    folded = FoldedEffects()
    latest: dict[str, DayChange] = {}
    for sourced in effects:
        effect, source = sourced
        moment = source.at * 1000
        change = latest.get(effect.user)
        if change is None or not change.day.begins <= moment < change.day.ends:
            campus = campuses.get(effect.user)
            if campus is None:
                folded.parked.setdefault(effect.user, []).append(sourced.to_text())
                continue
            day = day_at(campus.timezone, moment)
            if day.expires <= now:
                folded.late[source.stream] += 1
                continue
            key = day.ymd, effect.user
            if key not in folded.days:
                folded.days[key] = DayChange(day, effect.user, campus.id)
            change = latest[effect.user] = folded.days[key]
        change.add(effect, source.at)
    return folded
