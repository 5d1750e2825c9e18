"""A board as it is made anew, under names of its own beside the one that is in use. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.boards.board import Board
from laurels.boards.definition import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laurels.boards.board import WindowAddress, ZonedWindow
    from laurels.boards.windows import Slot
    from laurels.moments import Moment


class Rebuilt(Board):
    """The same windows, those that are over at `now` left out unless another is computed from them.

    It refuses nothing, feeds nobody and keeps no journal: what it is told was accepted once.
    """

    def __init__(self, board: Board, *, cluster: bool, prefix: str, now: Moment) -> None:
        kept = board.definition.archive.model_copy(update={"journal": False})
        definition = board.definition.model_copy(update={"limits": Limits(), "feeds": (), "archive": kept})
        super().__init__(board.ref, definition, board.version, cluster=cluster, prefix=prefix)
        self.now = now

    def is_kept(self, zoned: ZonedWindow, slot: Slot) -> bool:
        """Whether the window is there at `now`."""
        until = zoned.held_until(slot)
        return until is None or self.now < until

    def keeps(self, address: WindowAddress) -> bool:
        """Whether the board has this window, and it is there at `now`."""
        for zoned in self.zoned_windows(self.zone_of(address.cut)):
            if zoned.label == address.label:
                return self.is_kept(zoned, zoned.calendar.parse(address.slot))
        return False

    def made_of(self, zoned: ZonedWindow, slot: Slot) -> Iterator[tuple[ZonedWindow, Slot]]:
        """The rolling windows that are computed from a day."""
        for other in self.zoned_windows(zoned.zone):
            if other.how == "fold" and other.base is zoned and slot.starts is not None:
                following: Slot | None = other.calendar.at(slot.starts)
                for _ in range(other.window.days or 1):
                    if following is None:
                        break
                    yield other, following
                    following = other.calendar.following(following)

    def is_wanted(self, zoned: ZonedWindow, slot: Slot) -> bool:
        """Whether the window is there at `now`, or one that is computed from it."""
        return self._is_wanted(zoned, slot)

    def _is_wanted(self, zoned: ZonedWindow, slot: Slot) -> bool:
        if self.is_kept(zoned, slot) or any(self.is_kept(*each) for each in self.made_of(zoned, slot)):
            return True
        sums = (
            other for other in self.zoned_windows(zoned.zone) if other.how == "sum" and other.base is zoned
        )
        starts = slot.starts
        return starts is not None and any(self.is_kept(other, other.calendar.at(starts)) for other in sums)
