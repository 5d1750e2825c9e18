"""Computes when a job is due, from the moment of its last run. Pure."""

from __future__ import annotations

from typing import Final

from laurels.moments import SECOND, Moment

LONGEST_BACKOFF_SECONDS: Final = 300


def latest(seconds: int, now: Moment) -> Moment:
    """The last multiple of an interval, counted from 1970, that is not after `now`."""
    return now // (seconds * SECOND) * (seconds * SECOND)


def following(seconds: int, previous: Moment) -> Moment:
    """The first multiple of an interval after `previous`."""
    return latest(seconds, previous) + seconds * SECOND


def due(seconds: int, previous: Moment | None, now: Moment) -> Moment | None:
    """The moment whose run is due; one run makes up for all that were missed.

    A job that never ran is due at once. So is one whose previous run lies further ahead than the next moment,
    because the clock was set back since.
    """
    moment = latest(seconds, now)
    if previous is None or previous > following(seconds, now):
        return moment
    return moment if moment > previous else None


def backoff(attempts: int, longest: int = LONGEST_BACKOFF_SECONDS) -> Moment:
    """How long to wait after this many failures in a row; microseconds."""
    return min(longest, 2 ** min(attempts, 16)) * SECOND
