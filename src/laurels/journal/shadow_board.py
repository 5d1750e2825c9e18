"""The board that a replay writes, under keys of its own beside the live board. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.boards.board import Board
from laurels.boards.definition import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laurels.boards.board import WindowAddress, ZonedWindow
    from laurels.boards.windows import Slot
    from laurels.moments import Moment


class ShadowBoard(Board):
    """The board's windows, without those that are over at `now` and that no other is computed from.

    It has no limits, no feeds and no journal: the submissions were accepted before.
    """

    def __init__(self, board: Board, *, cluster: bool, prefix: str, now: Moment) -> None:
        kept = board.definition.archive.model_copy(update={"journal": False})
        definition = board.definition.model_copy(update={"limits": Limits(), "feeds": (), "archive": kept})
        super().__init__(board.ref, definition, board.version, cluster=cluster, prefix=prefix)
        self.now = now

    def is_kept(self, zoned: ZonedWindow, slot: Slot) -> bool:
        """Whether the window exists at `now`."""
        until = zoned.held_until(slot)
        return until is None or self.now < until

    def keeps(self, address: WindowAddress) -> bool:
        """Whether the board has this window, and it exists at `now`."""
        for zoned in self.zoned_windows(self.zone_of(address.cut)):
            if zoned.label == address.label:
                return self.is_kept(zoned, zoned.calendar.parse(address.slot))
        return False

    def made_of(self, zoned: ZonedWindow, slot: Slot) -> Iterator[tuple[ZonedWindow, Slot]]:
        """The rolling windows that a day belongs to."""
        for other in self.zoned_windows(zoned.zone):
            if other.how == "fold" and other.base is zoned and slot.starts is not None:
                following: Slot | None = other.calendar.at(slot.starts)
                for _ in range(other.window.days or 1):
                    if following is None:
                        break
                    yield other, following
                    following = other.calendar.following(following)

    def is_wanted(self, zoned: ZonedWindow, slot: Slot) -> bool:
        """Whether the window exists at `now`, or one that is computed from it."""
        if self.is_kept(zoned, slot) or any(self.is_kept(*each) for each in self.made_of(zoned, slot)):
            return True
        sums = (
            other for other in self.zoned_windows(zoned.zone) if other.how == "sum" and other.base is zoned
        )
        starts = slot.starts
        return starts is not None and any(self.is_kept(other, other.calendar.at(starts)) for other in sums)
