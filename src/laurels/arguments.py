"""The keyword arguments of the engine's operations, as the client has them too. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from datetime import datetime

    from laurels.scores.queries import Start


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


class Paging(InWindow, total=False):
    """Which stretch of the window."""

    limit: int
    start: Start
    cursor: str | None
    rank: int | None
    change: bool


class Asked(TypedDict, total=False):
    """Which part of a list of the archive: of one window, or group; so many, behind a cursor."""

    period: str | None
    group: str | None
    limit: int
    cursor: str | None


class Watching(InWindow, total=False):
    """What to follow: how many of the best, and a member besides; behind the update of an id."""

    limit: int
    member: str | None
    last_id: str | None
