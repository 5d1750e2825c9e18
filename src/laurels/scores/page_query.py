"""Queries: which window to read, and which of its entries, in the engine and in a URL. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import msgspec
from msgspec import Meta

from laurels.arguments import Start  # noqa: TC001  # msgspec reads the annotations
from laurels.boards.keys import group_text
from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laurels.arguments import InWindow

PAGE_LIMIT: Final = 1000


class WindowQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which window to read: by default the board's first, its current slot, and all members."""

    period: Annotated[
        str | None, Meta(description="A window by its name. Default: the board's first.", examples=["daily"])
    ] = None
    slot: Annotated[
        str | None, Meta(description="One of its slots. Default: the current one.", examples=["2025-10-24"])
    ] = None
    group: Annotated[
        str | None,
        Meta(
            description="A group, such as `country=BR` or `region=asia,city=tokyo`; in a value, `%`, `,` and "
            "`=` are percent-encoded once more. Default: all members.",
            examples=["country=BR"],
        ),
    ] = None

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Self:
        """From keyword arguments; a group may be a mapping."""
        return cls(**{**asked, "group": group_text(asked.get("group"))})

    def in_window(self) -> InWindow:
        """As keyword arguments."""
        return {"period": self.period, "slot": self.slot, "group": self.group}


class EntriesQuery(WindowQuery, frozen=True, kw_only=True):
    """Which window's entries to read, and whether with the names and avatars of their members."""

    people: Annotated[
        bool, Meta(description="Whether to add the `person` that each member is: name and avatar.")
    ] = False


class PageQuery(EntriesQuery, frozen=True):
    """Which entries of a window: `limit` of them, from an end, after a cursor, or from a rank on."""

    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT, description="How many entries.")] = 100
    start: Annotated[Start, Meta(description="Which end to start at.")] = msgspec.field(
        name="from", default="top"
    )
    cursor: Annotated[str | None, Meta(description="`next` or `previous` of a page.")] = None
    rank: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Start at this place from the top.")
    ] = None
    change: Annotated[
        bool, Meta(description="Whether to show the ranks that each gained since the previous window.")
    ] = False

    def check(self) -> None:
        check_bound("limit", self.limit, 1, PAGE_LIMIT)
        if self.rank is not None:
            check_bound("rank", self.rank, 1, 2**53)
            if self.cursor is not None or self.start == "bottom":
                raise InvalidInput.at(
                    "rank", "counts from the top, so it cannot be combined with a cursor or from=bottom"
                )


def check_bound(field: str, value: int, least: int, greatest: int) -> None:
    if not least <= value <= greatest:
        raise InvalidInput.at(field, f"must be from {least} to {greatest}, not {value}")
