"""Previews a definition: its current windows, and their keys in Valkey. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  # msgspec reads the annotations
from typing import TYPE_CHECKING, Final

from laurels.boards.definition import BoardDefinition  # noqa: TC001  # as above
from laurels.boards.keys import WHOLE, Cut
from laurels.errors import Drop  # noqa: TC001  # as above

if TYPE_CHECKING:
    from laurels.boards.board import Board, ZonedWindow
    from laurels.moments import Moment

# Stands for the value of a group's dimension, which only submissions have.
ANY: Final = "…"


@dataclass(frozen=True)
class PreviewedKey:
    group: str
    """`country=…`; "" for the whole board."""
    key: str
    """The key of the first shard."""


@dataclass(frozen=True)
class PreviewedWindow:
    """The current slot of a window, in the board's own timezone."""

    period: str
    slot: str
    starts_at: datetime | None
    ends_at: datetime | None
    next_slot: str | None
    keys: tuple[PreviewedKey, ...]


@dataclass(frozen=True)
class Preview:
    definition: BoardDefinition
    is_new: bool
    changed: tuple[str, ...]
    """Fields that differ from the definition in force."""
    conflict: str | None
    """Why the board's entries forbid the definition, and what to do instead."""
    drops: tuple[Drop, ...]
    """What the definition would drop, window by window. `define` requires these names in `allow_drop`."""
    windows: tuple[PreviewedWindow, ...]


def preview_windows(board: Board, now: Moment) -> tuple[PreviewedWindow, ...]:
    zoned_windows = {zoned.label: zoned for zoned in board.zoned_windows(board.definition.timezone)}
    return tuple(_previewed(board, zoned_windows[window.label], now) for window in board.definition.windows)


def _previewed(board: Board, zoned: ZonedWindow, now: Moment) -> PreviewedWindow:
    slot = zoned.calendar.at(now)
    following = zoned.calendar.following(slot)
    placeholders = zoned.calendar.placeholders(slot)
    cuts = (WHOLE, *(Cut(group, (ANY,) * len(group)) for group in board.definition.groups))
    return PreviewedWindow(
        period=zoned.label,
        slot=slot.text,
        starts_at=slot.starts_at,
        ends_at=slot.ends_at,
        next_slot=following.text if following else None,
        keys=tuple(
            PreviewedKey(str(cut), board.keys.window(0, zoned.label, placeholders, cut)) for cut in cuts
        ),
    )
