"""The keyword arguments of the engine's operations, as the client has them too. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from datetime import datetime

Start = Literal["top", "bottom"]


class InWindow(TypedDict, total=False):
    """Which window a question is about: the board's first, its current slot and everybody, unless said."""

    period: str | None
    slot: str | None
    group: str | None


class Carried(TypedDict, total=False):
    """What a submission may carry besides member and score."""

    at: datetime | None
    groups: dict[str, str] | None
    id: str | None
    op: str | None
    metadata: dict[str, Any] | None


class AboutMatch(TypedDict, total=False):
    """What a match may carry besides its players and its winner."""

    ranks: list[int] | None
    """Instead of a winner: each player's rank, in the order of the players."""
    at: datetime | None
    id: str | None
    groups: dict[str, dict[str, str]] | None
    """By player."""
    metadata: dict[str, Any] | None


class FirstPage(InWindow, total=False):
    """Which entries of the window come first, and how many make a page."""

    limit: int
    start: Start
    rank: int | None
    change: bool


class Paging(FirstPage, total=False):
    """Which entries of the window: from an end, from a rank on, or behind a cursor."""

    cursor: str | None


class Selection(TypedDict, total=False):
    """Which entries of a member a change of metadata is about, and the id of the change.

    `period` and `slot` name one window, as in reads; `group` names one group. By default it is about every
    live window and group.
    """

    period: str | None
    slot: str | None
    group: str | None
    id: str | None


class ArchiveArguments(TypedDict, total=False):
    """Which part of a list of the archive: of one window, or group; so many, behind a cursor."""

    period: str | None
    group: str | None
    limit: int
    cursor: str | None


class WatchArguments(InWindow, total=False):
    """What to follow: how many of the best, and a member besides; behind the update of an id."""

    limit: int
    member: str | None
    last_id: str | None
