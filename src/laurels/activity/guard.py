"""The limits of the guard against bursts of messages. Pure.

A second of a user's day is *hot* when the user sent more than `RATE` messages in it, direct and in rooms
together. More than `LENGTH` hot seconds in a row are a *burst*. Messages in the seconds of a burst do not
count, from its first second to its last; all others do. Seconds are those of the events' own times, so the
order, the streams and the batches in which messages arrive make no difference.

`activity.lua` implements this rule incrementally: it looks only at the seconds around each message.
"""

from __future__ import annotations

from typing import Final, NamedTuple

RATE: Final = 5
"""The most messages in a second that is not hot."""
LENGTH: Final = 10
"""The most hot seconds in a row that are not a burst."""


class SentMessages(NamedTuple):
    """Messages of one second."""

    dms: int
    room: int
