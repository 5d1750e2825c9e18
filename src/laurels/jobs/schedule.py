"""When a job is due: the moment of its last run in, the next one out. Pure."""

from __future__ import annotations

from typing import Final

from laurels.moments import SECOND, Moment

LONGEST_BACKOFF_SECONDS: Final = 300


def latest(seconds: int, now: Moment) -> Moment:
    """The last moment, of those so many seconds apart, that is not after `now`."""
    return now // (seconds * SECOND) * (seconds * SECOND)


def following(seconds: int, previous: Moment) -> Moment:
    """The first of them after `previous`."""
    return latest(seconds, previous) + seconds * SECOND


def due(seconds: int, previous: Moment | None, now: Moment) -> Moment | None:
    """The moment whose run is due; one run makes up for all that were missed.

    A job that never ran is due at once. A previous run further ahead than the next moment dates from before
    the clock was set back, so the job is due by the present clock.
    """
    moment = latest(seconds, now)
    if previous is None or previous > following(seconds, now):
        return moment
    return moment if moment > previous else None


def backoff(attempts: int, longest: int = LONGEST_BACKOFF_SECONDS) -> Moment:
    """How long to wait after so many failures in a row; microseconds."""
    return min(longest, 2 ** min(attempts, 16)) * SECOND
