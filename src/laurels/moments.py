"""Moments: points in time in whole microseconds, so that every bound is exact. Pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Annotated, TypeAlias

from msgspec import Meta

from laurels.errors import InvalidInput

Moment: TypeAlias = int
"""Microseconds since 1970-01-01T00:00:00Z; negative before."""

Timestamp: TypeAlias = Annotated[datetime, Meta(tz=True)]
"""A moment as it is shown: an aware datetime."""

MICROSECOND = timedelta(microseconds=1)
MILLISECOND = 1_000
SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_ORDINAL = EPOCH.toordinal()

EARLIEST = (date.min.toordinal() - EPOCH_ORDINAL) * DAY
LATEST = (date.max.toordinal() + 1 - EPOCH_ORDINAL) * DAY  # the first moment after the range of datetime
OUTSIDE = "lies outside the years 1 to 9999"


def moment_of(when: datetime) -> Moment:
    if when.utcoffset() is None:
        raise InvalidInput.at("at", "has no UTC offset; write it like 2025-10-24T12:00:00Z")
    return (when - EPOCH) // MICROSECOND


@lru_cache(maxsize=1024)  # answers name the bounds of few windows
def datetime_of(moment: Moment) -> datetime:
    if not EARLIEST <= moment < LATEST:
        raise InvalidInput.at("at", OUTSIDE)
    return EPOCH + timedelta(microseconds=moment)
