"""Reads windows: pages, standings, neighbourhoods, friends, percentiles and distributions.

Ranks count from 1. An entry has
- a rank: 1 + the number of strictly better entries (1-2-2-4); unique if the board breaks ties;
- an ordinal: its place in the list (1-2-3-4);
- a dense rank: 1 + the number of distinct better scores (1-2-2-3), if the board is defined with `dense`;
- a percentile: the share of entries that are equal or worse, itself included.
Valkey answers each in O(log n).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec

from laurels.boards.board import WindowAddress
from laurels.boards.keys import WHOLE, parse_cut
from laurels.boards.ordering import Position
from laurels.errors import InvalidInput, NotFound, StaleCursor
from laurels.scores.page_cursor import Cursor, Direction, read_cursor, write_cursor
from laurels.scores.page_query import PageQuery, WindowQuery, check_bound
from laurels.scores.results import Among, Bucket, Distribution, Entry, Friend, Page, Percentile, Standing
from laurels.scores.shards import ShardedWindow
from laurels.scores.submission import check_member, member_text
from laurels.valkey.functions import DefinitionChanged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from laurels.arguments import Start
    from laurels.boards.board import Board, ZonedWindow
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.boards.ordering import Score
    from laurels.boards.windows import Slot
    from laurels.clock import Clock
    from laurels.moments import Moment
    from laurels.scores.rolling import Rolling
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import PageReply

AMONG_LIMIT: Final = 1000
AROUND_LIMIT: Final = 500
BUCKET_LIMIT: Final = 1000
SHARE_DIGITS: Final = 6
# Windows whose keys are remembered: some 2 KB each, with their boards.
MOST_WINDOWS: Final = 1024

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class _View:
    """The window that a query names."""

    now: Moment
    board: Board
    zoned: ZonedWindow
    slot: Slot
    address: WindowAddress
    window: ShardedWindow


class ArchivedRanks(Protocol):
    """Reads windows that Valkey no longer keeps."""

    async def ranks(self, board: Board, address: WindowAddress, members: Sequence[bytes]) -> list[int | None]:
        """Each member's rank in the window; None if the member was not in it, or it is not known."""
        ...


class Reader:
    """Reads the boards of the catalog."""

    def __init__(
        self,
        valkey: Valkey,
        catalog: Catalog,
        rolling: Rolling,
        clock: Clock,
        kept: ArchivedRanks | None = None,
    ) -> None:
        self._valkey = valkey
        self._catalog = catalog
        self._rolling = rolling
        self._clock = clock
        self._kept = kept
        self._current: dict[tuple[Board, str | None, str | None], _View] = {}
        """The views of windows in their current slots, as queries name them."""
        self._window = lru_cache(maxsize=MOST_WINDOWS)(partial(ShardedWindow, valkey))

    async def page(self, ref: BoardRef, query: PageQuery) -> Page:
        """Entries from the top or the bottom, after a cursor, or from a rank on."""
        query.check()
        limit, rank = query.limit, query.rank

        async def ask(view: _View) -> Page:
            if query.cursor is None:
                if rank is not None:
                    reply = await view.window.from_start(rank - 1, limit)
                elif query.start == "top":
                    reply = await view.window.from_start(0, limit)
                else:
                    reply = await view.window.from_end(0, limit)
                return await self._page_of(view, reply, query.start, change=query.change)
            found = read_cursor(view.board, query.cursor)
            go = view.window.after if found.direction == "after" else view.window.before
            return await self._page_of(
                view, await go(found.position, limit), found.start, change=query.change
            )

        return await self._asked(ref, query, ask)

    async def standing(self, ref: BoardRef, query: WindowQuery, member: str) -> Standing:
        """Where one member stands. Raises `NotFound` if it has no entry."""
        encoded = check_member(member)

        async def ask(view: _View) -> Standing:
            total, stood = await view.window.standing_of(encoded)
            if stood is None:
                raise NotFound(f"{ref}: {member!r} has no entry in {_named(view)}")
            return Standing(
                member=member,
                score=view.board.ordering.parse_place(stood.place)[0],
                rank=stood.better + 1,
                ordinal=stood.before + 1,
                percentile=(total - stood.better) / total,
                total=total,
                dense_rank=stood.distinct_better + 1 if view.board.definition.dense else msgspec.UNSET,
                metadata=_metadata(stood.metadata),
            )

        return await self._asked(ref, query, ask)

    async def around(
        self, ref: BoardRef, query: WindowQuery, member: str, above: int = 5, below: int = 5
    ) -> Page:
        """A member with the entries just above and below."""
        encoded = check_member(member)
        check_bound("above", above, 0, AROUND_LIMIT)
        check_bound("below", below, 0, AROUND_LIMIT)

        async def ask(view: _View) -> Page:
            reply = await view.window.around(encoded, above, below)
            if reply is None:
                raise NotFound(f"{ref}: {member!r} has no entry in {_named(view)}")
            return await self._page_of(view, reply, "top", change=False)

        return await self._asked(ref, query, ask)

    async def among(self, ref: BoardRef, query: WindowQuery, members: Sequence[str]) -> Among:
        """These members ranked among themselves, each with its rank on the board."""
        if len(members) > AMONG_LIMIT:
            raise InvalidInput.at("members", f"must be at most {AMONG_LIMIT}, not {len(members)}")
        distinct = {check_member(member): member for member in members}

        async def ask(view: _View) -> Among:
            _, found = await view.window.standing(list(distinct), brief=True)
            ordering = view.board.ordering
            present: list[tuple[tuple[Score, int, bytes], Score, str, int]] = []
            for (encoded, member), stood in zip(distinct.items(), found, strict=True):
                if stood:
                    score, moment = ordering.parse_place(stood.place)
                    present.append(
                        (ordering.sort_key(score, moment, encoded), score, member, stood.better + 1)
                    )
            present.sort(reverse=ordering.reverse)  # by the keys, of which no two are equal
            friends: list[Friend] = []
            for index, (_, score, member, board_rank) in enumerate(present):
                shares = bool(friends) and not ordering.unique and friends[-1].score == score
                rank = friends[-1].rank if shares else index + 1
                friends.append(Friend(rank, member, score, board_rank))
            absent = [member for member, stood in zip(distinct.values(), found, strict=True) if stood is None]
            return Among(len(friends), friends, absent)

        return await self._asked(ref, query, ask)

    async def percentile(self, ref: BoardRef, query: WindowQuery, share: float | str) -> Percentile:
        """The score at this share of the entries: 1 is the best, 0 the worst."""
        numerator, denominator = _parse_share(share)

        async def ask(view: _View) -> Percentile:
            reply = await view.window.at_share(numerator, denominator)
            if not reply.entries:
                raise NotFound(f"{ref}: no member has an entry in {_named(view)}")
            score = view.board.ordering.parse_place(reply.entries[0].place)[0]
            return Percentile(numerator / denominator, score, reply.total)

        return await self._asked(ref, query, ask)

    async def distribution(self, ref: BoardRef, query: WindowQuery, buckets: int = 20) -> Distribution:
        """A histogram of the scores, in buckets of equal width."""
        check_bound("buckets", buckets, 1, BUCKET_LIMIT)

        async def ask(view: _View) -> Distribution:
            ends = [await view.window.from_start(0, 1), await view.window.from_end(0, 1)]
            if not all(reply.entries for reply in ends):
                return Distribution(0, [])
            ordering = view.board.ordering
            low, high = sorted(ordering.parse_place(reply.entries[0].place)[0] for reply in ends)
            edges = _edges(low, high, buckets, whole=ordering.int64)
            positions = [Position(*ordering.edge(edge)) for edge in edges[1:-1]]
            total, counted = await view.window.count(positions)
            befores = [each.before for each in counted]
            lower = [total - before for before in befores] if ordering.descending else befores
            below = _rising([0, *lower, total])
            return Distribution(
                total,
                [Bucket(edges[i], edges[i + 1], below[i + 1] - below[i]) for i in range(len(edges) - 1)],
            )

        return await self._asked(ref, query, ask)

    async def _asked(
        self, ref: BoardRef, query: WindowQuery, ask: Callable[[_View], Awaitable[Answer]]
    ) -> Answer:
        """The answer about a window, under the current definition."""
        board = self._catalog.known(ref) or await self._catalog.board(ref)
        while True:
            try:
                window = _window_in(board, query)
                return await ask(self._current_view(board, window) or await self._view(board, window))
            except DefinitionChanged as changed:
                board = await self._catalog.refresh(ref, changed.known)
            except (InvalidInput, NotFound):
                newest = await self._catalog.in_force(ref)
                if newest is board:
                    raise
                board = newest

    def _current_view(self, board: Board, query: WindowQuery) -> _View | None:
        """The view of a window in its current slot, if it is remembered."""
        if query.slot is not None:
            return None
        current = self._current.get((board, query.period, query.group))
        return current if current and current.slot.holds(self._clock()) else None

    async def _view(self, board: Board, query: WindowQuery) -> _View:
        now = self._clock()
        cut = parse_cut(query.group, board.definition) if query.group else WHOLE
        zoned = board.zoned_window(query.period, cut)
        slot = board.slot(zoned, query.slot, now)
        if zoned.how == "fold":
            await self._rolling.ensure(board, zoned, slot)
            self._rolling.prepare(board, now)
        address = WindowAddress(zoned.label, slot.text, cut)
        view = _View(now, board, zoned, slot, address, self._window(board, address))
        if query.slot is None and zoned.how != "fold":  # a rolling window has work to do at every read
            if len(self._current) >= MOST_WINDOWS:
                self._current.clear()
            self._current[board, query.period, query.group] = view
        return view

    async def _page_of(self, view: _View, reply: PageReply, start: Start, *, change: bool) -> Page:
        entries = _entries(view.board, reply)
        if change and entries:
            ranks_before = await self._ranks_before(view, [listed.member for listed in reply.entries])
            entries = [
                msgspec.structs.replace(entry, change=None if before is None else before - entry.rank)
                for entry, before in zip(entries, ranks_before, strict=True)
            ]
        last = reply.first + len(reply.entries)
        back = self._cursor(view, reply, start, "before") if reply.first > 0 and reply.entries else None
        ahead = self._cursor(view, reply, start, "after") if last < reply.total and reply.entries else None
        if start == "bottom":
            entries.reverse()
            back, ahead = ahead, back
        return Page(
            project=view.board.ref.project,
            board=view.board.ref.board,
            period=view.zoned.label,
            slot=view.slot.text,
            starts_at=view.slot.starts_at,
            ends_at=view.slot.ends_at,
            next_reset_at=view.zoned.calendar.at(view.now).ends_at,
            total=reply.total,
            entries=entries,
            next=ahead,
            previous=back,
        )

    def _cursor(self, view: _View, reply: PageReply, start: Start, direction: Direction) -> str:
        edge = reply.entries[-1 if direction == "after" else 0]
        return write_cursor(view.board, view.address, start, direction, Position(edge.place, edge.member))

    async def _ranks_before(self, view: _View, members: list[bytes]) -> list[int | None]:
        """Each member's rank in the previous window; None if the member or the window is not known."""
        earlier = view.zoned.calendar.previous(view.slot)
        if earlier is None:
            return [None] * len(members)
        try:
            before = await self._view(
                view.board, WindowQuery(view.address.label, earlier.text, str(view.address.cut))
            )
        except NotFound:
            if self._kept is None:
                return [None] * len(members)
            address = WindowAddress(view.address.label, earlier.text, view.address.cut)
            return await self._kept.ranks(view.board, address, members)
        _, found = await before.window.standing(members, brief=True)
        return [stood.better + 1 if stood else None for stood in found]


def _window_in(board: Board, query: WindowQuery) -> WindowQuery:
    """The query, or that of its cursor."""
    if isinstance(query, PageQuery) and query.cursor is not None:
        return window_of(board, read_cursor(board, query.cursor), query)
    return query


def window_of(board: Board, cursor: Cursor, query: WindowQuery) -> WindowQuery:
    """The cursor's window. Raises `StaleCursor` if the query names another."""
    group = None if query.group is None else str(parse_cut(query.group, board.definition))
    for name, asked, own in (
        ("period", query.period, cursor.label),
        ("slot", query.slot, cursor.slot),
        ("group", group, cursor.cut),
    ):
        if asked is not None and asked != own:
            raise StaleCursor.at("cursor", f"belongs to {name} {own!r}, not {asked!r}; start without it")
    return WindowQuery(cursor.label, cursor.slot, cursor.cut)


def _entries(board: Board, reply: PageReply) -> list[Entry]:
    parse = board.ordering.parse_placed_score
    if board.ordering.unique:
        return [
            Entry(rank, member_text(member), parse(place), metadata=_metadata(metadata) if metadata else None)
            for rank, (member, place, metadata) in enumerate(reply.entries, reply.first + 1)
        ]
    entries: list[Entry] = []
    rank, previous = reply.better + 1, None
    for index, (member, place, metadata) in enumerate(reply.entries, reply.first + 1):
        score = parse(place)
        if previous is not None and score != previous:
            rank = index
        previous = score
        entries.append(Entry(rank, member_text(member), score, metadata=_metadata(metadata)))
    return entries


def _metadata(encoded: bytes) -> dict[str, Any] | None:
    return msgspec.json.decode(encoded) if encoded else None


def _named(view: _View) -> str:
    group = f" of {view.address.cut}" if view.address.cut else ""
    return f"the {view.zoned.label} window {view.slot.text}".rstrip() + group


def _parse_share(share: float | str) -> tuple[int, int]:
    try:
        exact = Decimal(str(share))
    except InvalidOperation as error:
        raise InvalidInput.at("p", f"must be a number from 0 to 1, not {share!r}") from error
    if not exact.is_finite() or not 0 <= exact <= 1:
        raise InvalidInput.at("p", f"must be from 0 to 1, not {share}")
    scaled = exact * 10**SHARE_DIGITS
    if scaled != scaled.to_integral_value():
        raise InvalidInput.at("p", f"must have at most {SHARE_DIGITS} digits after the point")
    return int(scaled), 10**SHARE_DIGITS


def _edges(low: Score, high: Score, buckets: int, *, whole: bool) -> list[Score]:
    """The distinct bounds of buckets of equal width."""
    if low == high:
        return [low, high]
    if whole:
        span = int(high) - int(low)
        return sorted({int(low) + span * i // buckets for i in range(buckets + 1)})
    between = (low * (1 - i / buckets) + high * (i / buckets) for i in range(1, buckets))
    return sorted({low, high, *(min(max(edge, low), high) for edge in between)})


def _rising(below: list[int]) -> list[int]:
    """The counts, made to rise up to the last one, since entries may change between the calls."""
    return list(accumulate((min(each, below[-1]) for each in below), max))
