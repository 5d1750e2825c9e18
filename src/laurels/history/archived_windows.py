"""Reads windows that Valkey no longer keeps, from snapshots and the journal."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from laurels.boards.board import WindowAddress
from laurels.boards.keys import parse_cut
from laurels.boards.ordering import Position, whole
from laurels.errors import NotFound, WindowGone
from laurels.history.records import SnapshotInfo, SnapshotList, SnapshotPage
from laurels.history.recount import EndedWindow
from laurels.history.snapshots import order_of
from laurels.list_cursor import read_list_cursor, write_list_cursor
from laurels.moments import datetime_of, moment_of
from laurels.scores.page_cursor import read_cursor, write_cursor
from laurels.scores.page_query import PAGE_LIMIT, check_bound
from laurels.scores.queries import AROUND_LIMIT, window_of
from laurels.scores.results import Entry, Page, Standing
from laurels.scores.submission import check_member, member_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.arguments import Start
    from laurels.boards.board import Board
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.boards.ordering import Score
    from laurels.boards.store import BoardStore
    from laurels.clock import Clock
    from laurels.history.recount import Recount
    from laurels.history.store.snapshots import SnapshotEntry, SnapshotStore, StoredSnapshot
    from laurels.scores.page_cursor import Direction
    from laurels.scores.page_query import PageQuery, WindowQuery


@dataclass(frozen=True)
class _OrdinalRange:
    """Consecutive entries of a snapshot, from an ordinal on."""

    first: int
    limit: int
    start: Start = "top"
    change: bool = False


@dataclass(frozen=True)
class ArchivedWindows:
    catalog: Catalog
    boards: BoardStore
    snapshots: SnapshotStore
    recount: Recount
    clock: Clock

    async def page(self, ref: BoardRef, query: PageQuery) -> Page:
        """A page of the window's snapshot, which may have only the top entries."""
        board = await self.catalog.in_force(ref)
        found = None if query.cursor is None else read_cursor(board, query.cursor)
        gone = await self._gone(board, query if found is None else window_of(board, found, query))
        snapshot = await self._snapshot(gone)
        limit, start = query.limit, query.start if found is None else found.start
        if found is not None:
            first, limit = await self._from(gone, snapshot, found.position, found.direction, limit)
        elif query.rank is not None:
            first = query.rank
        else:
            first = 1 if start == "top" else max(1, snapshot.entries - limit + 1)
        return await self._page(gone, snapshot, _OrdinalRange(first, limit, start, query.change))

    async def standing(self, ref: BoardRef, query: WindowQuery, member: str) -> Standing:
        """Where a member stood: from the window's snapshot, or recounted from the journal."""
        encoded = check_member(member)
        gone = await self._gone(await self.catalog.in_force(ref), query)
        board, dense = gone.board, gone.board.definition.dense
        snapshot = await self.snapshots.of_window(gone.board_id, *_named(gone.address))
        if snapshot:
            stood = (await self.snapshots.standings([snapshot.id], [encoded])).get((snapshot.id, encoded))
            if stood:
                return Standing(
                    member=member,
                    score=score_of(board, stood.score),
                    rank=stood.rank,
                    ordinal=stood.ordinal,
                    percentile=(snapshot.total - stood.rank + 1) / snapshot.total,
                    total=snapshot.total,
                    dense_rank=stood.dense_rank if dense else msgspec.UNSET,
                    metadata=stood.metadata,
                )
        if snapshot is None or not snapshot.is_whole:
            recounted = await self.recount.standings(gone, [encoded])
            if encoded in recounted:
                found = recounted[encoded]
                return Standing(
                    member=member,
                    score=found.score,
                    rank=found.rank,
                    ordinal=found.ordinal,
                    percentile=(found.total - found.rank + 1) / found.total,
                    total=found.total,
                    dense_rank=found.dense_rank if dense else msgspec.UNSET,
                )
        if snapshot is None:
            raise _not_kept(gone)
        raise NotFound(f"{gone}: {member!r} has no archived entry")

    async def around(
        self, ref: BoardRef, query: WindowQuery, member: str, above: int = 5, below: int = 5
    ) -> Page:
        """A member with the entries just above and below, as far as they were archived."""
        encoded = check_member(member)
        check_bound("above", above, 0, AROUND_LIMIT)
        check_bound("below", below, 0, AROUND_LIMIT)
        gone = await self._gone(await self.catalog.in_force(ref), query)
        snapshot = await self._snapshot(gone)
        stood = (await self.snapshots.standings([snapshot.id], [encoded])).get((snapshot.id, encoded))
        if stood is None:
            raise NotFound(f"{gone}: {member!r} has no archived entry")
        first = max(1, stood.ordinal - above)
        return await self._page(gone, snapshot, _OrdinalRange(first, stood.ordinal - first + 1 + below))

    async def ranks(self, board: Board, address: WindowAddress, members: Sequence[bytes]) -> list[int | None]:
        """Each member's rank in the window's snapshot; None if it is not in it."""
        snapshot = await self.snapshots.of_window(await self.board_id(board.ref), *_named(address))
        if snapshot is None:
            return [None] * len(members)
        found = await self.snapshots.standings([snapshot.id], members)
        ranked = [found.get((snapshot.id, member)) for member in members]
        return [stood.rank if stood else None for stood in ranked]

    async def listed(
        self, ref: BoardRef, period: str | None, group: str | None, limit: int, cursor: str | None
    ) -> SnapshotList:
        """The board's snapshots, newest first, for one window or group or for all."""
        check_bound("limit", limit, 1, PAGE_LIMIT)
        board = await self.catalog.in_force(ref)
        cut = None if group is None else str(parse_cut(group, board.definition))
        board_id = await self.board_id(ref)
        question = (str(board_id), period or "", "*" if cut is None else f"={cut}")
        behind = None
        if cursor is not None:
            moment, identity = read_list_cursor(question, cursor, (int, str))
            behind = (datetime_of(int(moment)), UUID(str(identity)))
        found = await self.snapshots.listed(board_id, limit + 1, period=period, cut=cut, behind=behind)
        more = None
        if len(found) > limit:
            last = found[limit - 1]
            more = write_list_cursor(question, (moment_of(last.taken_for), str(last.id)))
        return SnapshotList([info_of(each) for each in found[:limit]], more)

    async def snapshot(self, ref: BoardRef, named: str, limit: int, cursor: str | None) -> SnapshotPage:
        """A page of one snapshot, from the best on."""
        check_bound("limit", limit, 1, PAGE_LIMIT)
        board = await self.catalog.in_force(ref)
        found = None
        with suppress(ValueError):  # not a UUID
            found = await self.snapshots.get(await self.board_id(ref), UUID(named))
        if found is None:
            raise NotFound(f"{ref}: there is no snapshot {named!r}")
        question = (str(found.id),)
        first = 1 if cursor is None else int(read_list_cursor(question, cursor, (int,))[0])
        ranked = await self.snapshots.page(found.id, first, limit)
        following = ranked[-1].ordinal + 1 if ranked else first
        return SnapshotPage(
            project=ref.project,
            board=ref.board,
            snapshot=info_of(found),
            total=found.total,
            entries=entries_of(board, ranked),
            next=write_list_cursor(question, (following,)) if ranked and following <= found.entries else None,
        )

    async def board_id(self, ref: BoardRef) -> int:
        """The board's id in PostgreSQL."""
        stored = await self.boards.get(ref.project, ref.board)
        if stored is None:
            raise NotFound(f"there is no board {ref}")
        return stored.id

    async def _gone(self, board: Board, query: WindowQuery) -> EndedWindow:
        cut = parse_cut(query.group, board.definition)
        zoned = board.zoned_window(query.period, cut)
        slot = zoned.calendar.parse(query.slot or "")
        return EndedWindow(board, await self.board_id(board.ref), zoned, slot, cut)

    async def _snapshot(self, gone: EndedWindow) -> StoredSnapshot:
        found = await self.snapshots.of_window(gone.board_id, *_named(gone.address))
        if found is None:
            raise _not_kept(gone)
        return found

    async def _from(
        self,
        gone: EndedWindow,
        snapshot: StoredSnapshot,
        position: Position,
        direction: Direction,
        limit: int,
    ) -> tuple[int, int]:
        """The first ordinal and the number of entries to read, after or before a position."""
        board = gone.board
        known = (await self.snapshots.standings([snapshot.id], [position.member])).get(
            (snapshot.id, position.member)
        )
        if known and _place(board, known) == position.place:
            before, behind = known.ordinal - 1, known.ordinal + 1
        else:
            score, moment = board.ordering.parse_place(position.place)
            exact = Decimal(repr(score))
            before = await self.snapshots.before(snapshot.id, order_of(board), exact, moment, position.member)
            behind = before + 1
        if direction == "after":
            return behind, limit
        first = max(1, before - limit + 1)
        return first, before - first + 1

    async def _page(self, gone: EndedWindow, snapshot: StoredSnapshot, part: _OrdinalRange) -> Page:
        start = part.start
        ranked = await self.snapshots.page(snapshot.id, part.first, part.limit)
        entries = entries_of(gone.board, ranked)
        if part.change and entries:
            entries = await self._with_change(gone, ranked, entries)
        has_before = bool(ranked) and ranked[0].ordinal > 1
        has_behind = bool(ranked) and ranked[-1].ordinal < snapshot.entries
        back = self._cursor(gone, ranked[0], start, "before") if has_before else None
        ahead = self._cursor(gone, ranked[-1], start, "after") if has_behind else None
        if start == "bottom":
            entries.reverse()
            back, ahead = ahead, back
        return Page(
            project=gone.board.ref.project,
            board=gone.board.ref.board,
            period=gone.zoned.label,
            slot=gone.slot.text,
            starts_at=gone.slot.starts_at,
            ends_at=gone.slot.ends_at,
            next_reset_at=gone.zoned.calendar.at(self.clock()).ends_at,
            total=snapshot.total,
            entries=entries,
            next=ahead,
            previous=back,
        )

    async def _with_change(
        self, gone: EndedWindow, ranked: list[SnapshotEntry], entries: list[Entry]
    ) -> list[Entry]:
        earlier = gone.zoned.calendar.previous(gone.slot)
        before: list[int | None] = [None] * len(ranked)
        if earlier is not None:
            address = WindowAddress(gone.zoned.label, earlier.text, gone.cut)
            before = await self.ranks(gone.board, address, [each.member for each in ranked])
        return [
            msgspec.structs.replace(entry, change=None if rank is None else rank - entry.rank)
            for entry, rank in zip(entries, before, strict=True)
        ]

    def _cursor(self, gone: EndedWindow, edge: SnapshotEntry, start: Start, direction: Direction) -> str:
        position = Position(_place(gone.board, edge), edge.member)
        return write_cursor(gone.board, gone.address, start, direction, position)


def score_of(board: Board, score: Decimal) -> Score:
    return int(score) if board.ordering.int64 else whole(float(score))


def entries_of(board: Board, ranked: list[SnapshotEntry]) -> list[Entry]:
    return [
        Entry(each.rank, member_text(each.member), score_of(board, each.score), metadata=each.metadata)
        for each in ranked
    ]


def info_of(snapshot: StoredSnapshot) -> SnapshotInfo:
    return SnapshotInfo(
        id=str(snapshot.id),
        period=snapshot.period,
        slot=snapshot.slot,
        group=snapshot.cut,
        taken_for=snapshot.taken_for,
        taken_at=snapshot.taken_at,
        starts_at=snapshot.starts_at,
        ends_at=snapshot.ends_at,
        total=snapshot.total,
        kept=snapshot.entries,
    )


def _named(address: WindowAddress) -> tuple[str, str, str]:
    return address.label, address.slot, str(address.cut)


def _place(board: Board, ranked: SnapshotEntry) -> bytes:
    """The place in the form that a page of the live window uses."""
    return board.ordering.place(score_of(board, ranked.score), ranked.moment)


def _not_kept(gone: EndedWindow) -> WindowGone:
    return WindowGone(f"{gone} is over and no longer kept")
