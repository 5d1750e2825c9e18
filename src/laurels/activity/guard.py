"""Bursts: whoever writes too much for too long gains nothing by it. Pure.

A second of a user's day is *hot* when more than `RATE` messages, direct and in rooms together, were sent in
it. More than `LENGTH` hot seconds in a row are a *burst*. Messages in the seconds of a burst do not count,
from its first second to its last; all others do. Seconds are those of the events' own times, so it makes no
difference in which order, from which stream or in which batches the messages came.

This is the rule as a whole; `activity.lua` keeps to it step by step, looking only at the seconds around each
message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RATE: Final = 5
"""Messages a second that are still no burst, however long it goes on."""
LENGTH: Final = 10
"""Seconds above the rate that are still no burst."""


class Sent(NamedTuple):
    """Messages of one second, or of a day."""

    dms: int
    room: int


class Judged(NamedTuple):
    """What of a day's messages counts, and the first and last second of the last burst."""

    counted: Sent
    muted: tuple[int, int] | None


def bursts(seconds: Mapping[int, Sent]) -> Iterator[tuple[int, int]]:
    """First and last second of each burst, in order."""
    hot = sorted(second for second, sent in seconds.items() if sum(sent) > RATE)
    first = 0
    for i, second in enumerate(hot):
        if i + 1 < len(hot) and hot[i + 1] == second + 1:
            continue
        if i - first + 1 > LENGTH:
            yield hot[first], second
        first = i + 1


def judge(seconds: Mapping[int, Sent]) -> Judged:
    """Of all the messages of a user's day, by the second (Unix time) in which they were sent."""
    muted = list(bursts(seconds))
    counting = [
        sent for second, sent in seconds.items() if not any(first <= second <= last for first, last in muted)
    ]
    counted = Sent(sum(sent.dms for sent in counting), sum(sent.room for sent in counting))
    return Judged(counted, muted[-1] if muted else None)
