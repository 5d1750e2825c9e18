"""Moments of their own for submissions that ties order by the moment. Pure.

On a board whose ties go to the earliest, submissions that arrive together, or that state the same moment,
would tie again. Each takes the next free microsecond instead, in order of arrival. The journal records that
moment, so a rebuild, a fed board and every shard order them alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from laurels.moments import SECOND

if TYPE_CHECKING:
    from laurels.moments import Moment

# How many moments are remembered at least. A moment that is stated again after that ties by member.
REMEMBERED: Final = 10_000


class UniqueMoments:
    """The moments that this process gave to submissions of one board."""

    def __init__(self) -> None:
        self._following: dict[Moment, Moment] = {}
        """For each moment that was taken, where the search for a free one goes on."""
        self._older: dict[Moment, Moment] = {}

    def next_free(self, moment: Moment) -> Moment:
        """The first moment from this one on that no submission took."""
        following, older = self._following, self._older
        free = moment
        while (after := following.get(free) or older.get(free)) is not None:
            free = after
        if len(following) >= REMEMBERED:
            self._older, self._following = following, {}
            following = self._following
        following[moment] = following[free] = free + 1
        return free

    def next_stated(self, moment: Moment) -> Moment:
        """As `next_free`, within the second of a moment that a caller stated: windows begin at whole seconds,
        and the submission stays in its own.
        """
        free = self.next_free(moment)
        return free if free // SECOND == moment // SECOND else moment
