"""A member's standings in windows that ended, newest first.

The source is Valkey while it keeps the window, then the window's snapshot, then the journal: if there is no
snapshot, or it does not have the member.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from laurels.boards.board import WindowAddress
from laurels.boards.keys import parse_cut
from laurels.errors import InvalidInput, NotFound
from laurels.history.archived_windows import score_of
from laurels.history.records import History, PastStanding
from laurels.history.recount import EndedWindow
from laurels.list_cursor import read_list_cursor, write_list_cursor
from laurels.moments import moment_of
from laurels.scores.page_query import check_bound
from laurels.scores.shards import ShardedWindow
from laurels.scores.submission import check_member
from laurels.valkey.functions import DefinitionChanged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from laurels.boards.board import Board, ZonedWindow
    from laurels.boards.keys import BoardRef, Cut
    from laurels.boards.retention import Retention
    from laurels.boards.windows import Slot
    from laurels.history.archived_windows import ArchivedWindows
    from laurels.history.store.window_journal import WindowJournal
    from laurels.moments import Moment
    from laurels.scores.rolling import Rolling
    from laurels.valkey.client import Valkey

LIMIT: Final = 100
# The limits of one answer: windows read at once and in all, and windows recounted. At a limit the answer ends
# with a cursor, however few windows it found.
WINDOWS_AT_ONCE: Final = 50
MOST_WINDOWS: Final = 1000
MOST_RECOUNTS: Final = 31


@dataclass(frozen=True)
class HistoryQuery:
    """Which windows of a board to look through, and how many to return."""

    period: str | None = None
    group: str | None = None
    limit: int = 30
    cursor: str | None = None


@dataclass(frozen=True)
class _Walk:
    """The search for one member through the past windows of a board."""

    board: Board
    board_id: int
    zoned: ZonedWindow
    cut: Cut
    member: bytes
    live: frozenset[str]
    """The slots that Valkey may still have."""
    oldest: Moment | None
    """No source has a window that ended before this; None if no source has any."""

    def slots(self, before: Moment, now: Moment) -> Iterator[Slot]:
        """The windows that ended before a moment, newest first."""
        slot: Slot | None = self.zoned.calendar.at(min(before - 1, now))
        while slot and self.oldest is not None and (slot.ends is None or slot.ends >= self.oldest):
            if slot.ends is not None and slot.ends < before and slot.ends <= now:
                yield slot
            slot = self.zoned.calendar.previous(slot)


# What is known of a window without a recount: the standing; None if there is none; "unknown" if it takes one.
_Known = PastStanding | None | Literal["unknown"]


@dataclass(frozen=True)
class MemberHistory:
    valkey: Valkey
    retention: Retention
    rolling: Rolling
    archived: ArchivedWindows
    journal: WindowJournal

    async def history(self, ref: BoardRef, member: str, asked: HistoryQuery) -> History:
        """The newest windows where the member had an entry; `next` leads to older ones."""
        check_bound("limit", asked.limit, 1, LIMIT)
        encoded = check_member(member)
        while True:
            try:
                return await self._history(await self.archived.catalog.in_force(ref), member, encoded, asked)
            except DefinitionChanged as changed:
                await self.archived.catalog.refresh(ref, changed.known)

    async def _history(self, board: Board, member: str, encoded: bytes, asked: HistoryQuery) -> History:
        cut = parse_cut(asked.group, board.definition)
        zoned = board.zoned_window(asked.period, cut)
        question = (str(board.ref), zoned.label, str(cut), member)
        now = self.archived.clock()
        before = now + 1
        if asked.cursor is not None:
            before = int(read_list_cursor(question, asked.cursor, (int,))[0])
        walk = await self._set_out(board, zoned, cut, encoded)
        found: list[PastStanding] = []
        slots, looked, recounts = walk.slots(before, now), 0, 0
        while some := list(islice(slots, WINDOWS_AT_ONCE)):
            known = await self._look(walk, some, now)
            for slot in some:
                if len(found) == asked.limit or looked == MOST_WINDOWS or recounts == MOST_RECOUNTS:
                    goes_on = write_list_cursor(question, ((slot.ends or 0) + 1,))
                    return History(member, zoned.label, found, goes_on)
                looked += 1
                standing = known[slot.text]
                if standing == "unknown":
                    recounts += 1
                    standing = await self._recounted(walk, slot)
                if standing is not None:
                    found.append(standing)
        return History(member, zoned.label, found, None)

    async def _set_out(self, board: Board, zoned: ZonedWindow, cut: Cut, member: bytes) -> _Walk:
        board_id = await self.archived.board_id(board.ref)
        live: set[str] = set()
        for shard in range(board.keys.shards):
            live |= {
                slot for label, slot in await self.retention.written(board, shard) if label == zoned.label
            }
        ends = [slot.ends for slot in _parsed(zoned, live) if slot.ends is not None]
        archived = await self.archived.snapshots.begins(board_id, zoned.label, str(cut))
        if archived is not None:
            ends.append(moment_of(archived))
        if board.definition.archive.journal:
            begins = await self.journal.begins(board_id)
            if begins is not None:
                first = zoned.calendar.at(begins)
                ends += [first.ends] if first.ends is not None else []
            ends += _ends_of_placed(zoned, await self.journal.placed(board_id))
        return _Walk(board, board_id, zoned, cut, member, frozenset(live), min(ends, default=None))

    async def _look(self, walk: _Walk, slots: Sequence[Slot], now: Moment) -> dict[str, _Known]:
        """What Valkey and the snapshots know of these windows."""
        live = [slot for slot in slots if slot.text in walk.live and _is_kept(walk.zoned, slot, now)]
        standings = await asyncio.gather(*(self._live(walk, slot) for slot in live))
        known: dict[str, _Known] = {
            slot.text: standing for slot, standing in zip(live, standings, strict=True)
        }
        others = [slot for slot in slots if slot.text not in known]
        if others:
            known |= await self._archived(walk, others)
        return known

    async def _live(self, walk: _Walk, slot: Slot) -> PastStanding | None:
        if walk.zoned.how == "fold":
            try:
                await self.rolling.ensure(walk.board, walk.zoned, slot)
            except NotFound:  # it was never completed, and its days have expired
                return None
        address = WindowAddress(walk.zoned.label, slot.text, walk.cut)
        total, (stood,) = await ShardedWindow(self.valkey, walk.board, address).standing(
            (walk.member,), brief=True
        )
        if stood is None:
            return None
        score = walk.board.ordering.parse_place(stood.place)[0]
        return PastStanding(slot.text, slot.starts_at, slot.ends_at, score, stood.better + 1, total, "live")

    async def _archived(self, walk: _Walk, slots: Sequence[Slot]) -> dict[str, _Known]:
        store = self.archived.snapshots
        texts = [slot.text for slot in slots]
        kept = await store.of_slots(walk.board_id, walk.zoned.label, str(walk.cut), texts)
        ids = [snapshot.id for snapshot in kept.values()]
        stood = await store.standings(ids, [walk.member]) if ids else {}
        known: dict[str, _Known] = {}
        for slot in slots:
            snapshot = kept.get(slot.text)
            own = stood.get((snapshot.id, walk.member)) if snapshot else None
            if snapshot and own:
                known[slot.text] = PastStanding(
                    slot.text,
                    slot.starts_at,
                    slot.ends_at,
                    score_of(walk.board, own.score),
                    own.rank,
                    snapshot.total,
                    "snapshot",
                )
            elif walk.board.definition.archive.journal and not (snapshot and snapshot.is_whole):
                known[slot.text] = "unknown"
            else:
                known[slot.text] = None
        return known

    async def _recounted(self, walk: _Walk, slot: Slot) -> PastStanding | None:
        window = EndedWindow(walk.board, walk.board_id, walk.zoned, slot, walk.cut)
        found = (await self.archived.recount.standings(window, [walk.member])).get(walk.member)
        if found is None:
            return None
        return PastStanding(
            slot.text, slot.starts_at, slot.ends_at, found.score, found.rank, found.total, "journal"
        )


def _parsed(zoned: ZonedWindow, texts: Iterable[str]) -> Iterator[Slot]:
    for text in texts:
        with suppress(InvalidInput):  # an hour that exists only in another timezone
            yield zoned.calendar.parse(text)


def _ends_of_placed(zoned: ZonedWindow, tokens: Iterable[str]) -> Iterator[Moment]:
    """The ends of the windows where an import placed entries, directly or in the first of their days."""
    named = [token.partition("|") for token in tokens]
    slots = list(_parsed(zoned, (text for label, _, text in named if label == zoned.label)))
    if zoned.how == "fold" and zoned.base:
        days = _parsed(zoned.base, (text for label, _, text in named if label == zoned.base.label))
        slots += [zoned.calendar.at(day.starts) for day in days if day.starts is not None]
    return (slot.ends for slot in slots if slot.ends is not None)


def _is_kept(zoned: ZonedWindow, slot: Slot, now: Moment) -> bool:
    until = zoned.calendar.kept_until(slot)
    return until is None or now < until
