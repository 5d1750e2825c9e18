"""What changed between two looks at a stretch of a window. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from laurels.scores.results import Page, Standing

if TYPE_CHECKING:
    from laurels.scores.results import Entry

Followed = Standing | msgspec.UnsetType | None
"""A member's standing; None while it has no entry; UNSET where none is followed."""


class Snapshot(Page, frozen=True, omit_defaults=True):
    """The stretch as it stands; with `member`, the standing of who is followed."""

    member: Standing | msgspec.UnsetType | None = msgspec.UNSET


class Moved(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry that is new in the stretch, or has another rank, score or metadata than before."""

    rank: int
    member: str
    score: int | float
    previous_rank: int | None
    metadata: dict[str, Any] | None = None


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """What changed: entries, who `left` the stretch, and `member` where who is followed stands elsewhere."""

    total: int
    entries: list[Moved]
    left: list[str]
    member: Standing | msgspec.UnsetType | None = msgspec.UNSET


class Seen(NamedTuple):
    """One look."""

    page: Page
    member: Followed = msgspec.UNSET

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(**msgspec.structs.asdict(self.page), member=self.member)


def is_same_window(before: Seen, after: Seen) -> bool:
    """Whether both looks were at one window; from one to another there is no change, only a beginning."""
    return (before.page.period, before.page.slot) == (after.page.period, after.page.slot)


def is_of_one_moment(seen: Seen, member: str) -> bool:
    """Whether the page and the standing of the member, which were asked for one after the other, agree."""
    entry = next((entry for entry in seen.page.entries if entry.member == member), None)
    stood = seen.member
    if not isinstance(stood, Standing):
        return entry is None
    if entry is None:
        return stood.total == seen.page.total and stood.ordinal > len(seen.page.entries)
    told = (stood.total, stood.rank, stood.score, stood.metadata)
    return told == (seen.page.total, entry.rank, entry.score, entry.metadata)


def change(before: Seen, after: Seen) -> Change | None:
    """What a follower who has seen the first must be told to have seen the second; None for nothing."""
    gone = {entry.member: entry for entry in before.page.entries}
    moved: list[Moved] = []
    for entry in after.page.entries:
        old = gone.pop(entry.member, None)
        if old is None or _differs(old, entry):
            was = None if old is None else old.rank
            moved.append(Moved(entry.rank, entry.member, entry.score, was, entry.metadata))
    followed = msgspec.UNSET if before.member == after.member else after.member
    is_same = before.page.total == after.page.total and followed is msgspec.UNSET
    if is_same and not moved and not gone:
        return None
    return Change(after.page.total, moved, list(gone), followed)


def _differs(old: Entry, new: Entry) -> bool:
    return old.rank != new.rank or old.score != new.score or old.metadata != new.metadata
