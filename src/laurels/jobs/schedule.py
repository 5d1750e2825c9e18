"""When a job is due: the moment of its last run in, the next one out. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from cronsim import CronSim

from laurels.boards.timezones import zone
from laurels.moments import HOUR, SECOND, Moment, datetime_of, moment_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

# How many missed runs are caught up at once; the rest follow in the next turn.
MOST_CAUGHT_UP: Final = 1000
LONGEST_BACKOFF_SECONDS: Final = 300
# More than any clock is ever set at once, but for a change of the date line.
SHIFT: Final = 3 * HOUR


class Rule(ABC):
    """Moments without end, in order."""

    @abstractmethod
    def following(self, previous: Moment) -> Moment:
        """The first moment after `previous`."""

    @abstractmethod
    def latest(self, now: Moment) -> Moment:
        """The last moment that is not after `now`."""


@dataclass(frozen=True)
class Every(Rule):
    """So many seconds apart, counted from 1970: every worker has the same moments."""

    seconds: int

    def following(self, previous: Moment) -> Moment:
        return self.latest(previous) + self.seconds * SECOND

    def latest(self, now: Moment) -> Moment:
        return now // (self.seconds * SECOND) * (self.seconds * SECOND)


@dataclass(frozen=True)
class Cron(Rule):
    """By the clock on the wall of a zone: `0 0 * * *` is each midnight.

    A time that the clock skips is due where the clock lands; one that it shows twice, the first time.
    """

    expression: str
    timezone: str = "UTC"

    def following(self, previous: Moment) -> Moment:
        found = (moment_of(shown) for shown in CronSim(self.expression, self._shown(previous)))
        return next(moment for moment in found if moment > previous)

    def latest(self, now: Moment) -> Moment:
        # Looking back, cronsim takes the second of two equal hours, or none: so it only says where to begin.
        begin = moment_of(next(CronSim(self.expression, self._shown(now - SHIFT), reverse=True))) - SHIFT
        moment = self.following(begin)
        while (later := self.following(moment)) <= now:
            moment = later
        return moment

    def _shown(self, moment: Moment) -> datetime:
        return datetime_of(moment).astimezone(zone(self.timezone))


def missed(rule: Rule, previous: Moment, now: Moment) -> list[Moment]:
    """The moments after `previous` that have come, oldest first."""

    def moments() -> Iterator[Moment]:
        moment = rule.following(previous)
        while moment <= now:
            yield moment
            moment = rule.following(moment)

    return list(islice(moments(), MOST_CAUGHT_UP))


def due(rule: Rule, previous: Moment | None, now: Moment, *, each: bool) -> list[Moment]:
    """The runs that are due: each moment that was missed, or the latest for all of them.

    A job that never ran is due at once, unless each of its moments counts: then its first is yet to come.
    A previous run that lies further ahead than the next one was made before the clock was set back: the work
    goes on by the clock as it is. Where each moment counts, those have been done.
    """
    latest = rule.latest(now)
    if previous is None:
        return [] if each else [latest]
    if each:
        return missed(rule, previous, now)
    is_set_back = previous > rule.following(now)
    return [latest] if latest > previous or is_set_back else []


def backoff(attempts: int, longest: int = LONGEST_BACKOFF_SECONDS) -> Moment:
    """How long to wait after so many failures in a row; microseconds."""
    return min(longest, 2 ** min(attempts, 16)) * SECOND
