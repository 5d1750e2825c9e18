"""The difference between two reads of a view. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from laurels.scores.results import Page, ShownPerson, Standing

if TYPE_CHECKING:
    from laurels.scores.results import Entry

Followed = Standing | msgspec.UnsetType | None
"""The standing of the followed member; None while it has no entry; UNSET if no member is followed."""


class Snapshot(Page, frozen=True, omit_defaults=True):
    """The whole view; `member` is the standing of the followed member."""

    member: Standing | msgspec.UnsetType | None = msgspec.UNSET


class Moved(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry that is new in the view, or whose rank, score, metadata or person changed."""

    rank: int
    member: str
    score: int | float
    previous_rank: int | None
    metadata: dict[str, Any] | None = None
    person: ShownPerson | msgspec.UnsetType = msgspec.UNSET


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """What changed: entries, members that `left` the view, and the followed `member`'s standing."""

    total: int
    entries: list[Moved]
    left: list[str]
    member: Standing | msgspec.UnsetType | None = msgspec.UNSET


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Update:
    """The whole view, or what changed in it. A returning follower resumes after the update of this id."""

    id: str
    value: Snapshot | Change


class ViewState(NamedTuple):
    """One read of a view."""

    page: Page
    member: Followed = msgspec.UNSET

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(**msgspec.structs.asdict(self.page), member=self.member)


def is_same_window(before: ViewState, after: ViewState) -> bool:
    """Whether both reads are of the same window; a new window needs a snapshot, not a change."""
    return (before.page.period, before.page.slot) == (after.page.period, after.page.slot)


def is_of_one_moment(seen: ViewState, member: str) -> bool:
    """Whether the page and the member's standing, which were read one after the other, agree."""
    entry = next((entry for entry in seen.page.entries if entry.member == member), None)
    stood = seen.member
    if not isinstance(stood, Standing):
        return entry is None
    if entry is None:
        return stood.total == seen.page.total and stood.ordinal > len(seen.page.entries)
    return (stood.total, stood.rank, stood.score, stood.metadata) == (
        seen.page.total,
        entry.rank,
        entry.score,
        entry.metadata,
    )


def change(before: ViewState, after: ViewState) -> Change | None:
    """The change from one read to the next, or None if nothing changed."""
    gone = {entry.member: entry for entry in before.page.entries}
    moved: list[Moved] = []
    for entry in after.page.entries:
        old = gone.pop(entry.member, None)
        if old is None or _differs(old, entry):
            was = None if old is None else old.rank
            moved.append(Moved(entry.rank, entry.member, entry.score, was, entry.metadata, entry.person))
    followed = msgspec.UNSET if before.member == after.member else after.member
    is_same = before.page.total == after.page.total and followed is msgspec.UNSET
    if is_same and not moved and not gone:
        return None
    return Change(after.page.total, moved, list(gone), followed)


def _differs(old: Entry, new: Entry) -> bool:
    return (
        old.rank != new.rank
        or old.score != new.score
        or old.metadata != new.metadata
        or old.person != new.person
    )
