"""Bursts: whoever writes too much for too long gains nothing by it. Pure.

A second of a user's day is *hot* when more than `RATE` messages, direct and in rooms together, were sent in
it. More than `LENGTH` hot seconds in a row are a *burst*. Messages in the seconds of a burst do not count,
from its first second to its last; all others do. Seconds are those of the events' own times, so it makes no
difference in which order, from which stream or in which batches the messages came.

`activity.lua` keeps to this step by step, looking only at the seconds around each message.
"""

from __future__ import annotations

from typing import Final, NamedTuple

RATE: Final = 5
"""Messages a second that are still no burst, however long it goes on."""
LENGTH: Final = 10
"""Seconds above the rate that are still no burst."""


class Sent(NamedTuple):
    """Messages of one second, or of a day."""

    dms: int
    room: int
