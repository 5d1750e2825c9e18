"""Rolling windows: the last N days, always exact, without a long pause at midnight.

A member's entry is the aggregate of its daily entries. Each submission recomputes it from the days, in its
own call, for every rolling window with its day, including tomorrow's. The entries of all other members are
copied into tomorrow's window in the background, a few hundred members a call. A window is readable once it
is complete; an earlier reader completes it first.

Completion may stop anywhere and start again, run twice at once, and run beside submissions: an entry is
always computed from the days as they are.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from laurels.boards.board import Target, WindowAddress
from laurels.boards.keys import WHOLE, Cut, parse_cut
from laurels.errors import NotFound
from laurels.logs import get_logger
from laurels.valkey import functions, keyspace, sets, strings
from laurels.valkey.messages import FoldHeader

if TYPE_CHECKING:
    from laurels.boards.board import Board, ZonedWindow
    from laurels.boards.catalog import Catalog
    from laurels.boards.windows import Slot
    from laurels.clock import Clock
    from laurels.moments import Moment
    from laurels.valkey.client import Valkey

# How many entries a call reads (members times days): one or two milliseconds (bench/stalls.py).
ENTRIES_A_CALL: Final = 3_000
MOST_MEMBERS_A_CALL: Final = 250

log = get_logger("laurels.boards")

# A window to complete: board, window and slot, timezone.
_Work = tuple["Board", str, str]


class Rolling:
    """Completes rolling windows: today's on demand, tomorrow's ahead of time."""

    def __init__(self, valkey: Valkey, catalog: Catalog, clock: Clock) -> None:
        self._valkey = valkey
        self._catalog = catalog
        self._clock = clock
        self._complete: WeakKeyDictionary[Board, set[tuple[str, str]]] = WeakKeyDictionary()
        """Window and slot, and timezone: forgotten with the board."""
        self._losses = valkey.losses
        self._under_way: dict[_Work, asyncio.Task[None]] = {}

    async def ensure(self, board: Board, zoned: ZonedWindow, slot: Slot) -> None:
        """Waits until the window of this slot is complete, whole and in every group."""
        await self._completion(board, zoned, slot)

    def prepare(self, board: Board, now: Moment) -> None:
        """Starts to complete tomorrow's windows, in the background."""
        for zone in board.zones:
            for zoned in board.zoned_windows(zone):
                if zoned.how == "fold":
                    tomorrow = zoned.calendar.following(zoned.calendar.at(now))
                    if tomorrow and not self._is_complete(_work(board, zoned, tomorrow)):
                        self._completion(board, zoned, tomorrow).add_done_callback(_log_failure)

    async def turn_over(self, board: Board, now: Moment) -> int:
        """Completes the windows of today and tomorrow, and returns how many there are."""
        windows = [
            (zoned, slot)
            for zone in board.zones
            for zoned in board.zoned_windows(zone)
            if zoned.how == "fold"
            for slot in (zoned.calendar.at(now), zoned.calendar.following(zoned.calendar.at(now)))
            if slot
        ]
        for zoned, slot in windows:
            with suppress(NotFound):  # its days have expired
                await self.ensure(board, zoned, slot)
        return len(windows)

    def forget(self, board: Board) -> None:
        """Forgets that the board's windows are complete, after a change of their days without submissions."""
        self._complete.pop(board, None)

    def _is_complete(self, work: _Work) -> bool:
        """Whether this process has completed the window, and Valkey has lost no data since."""
        if self._losses != self._valkey.losses:
            self._losses = self._valkey.losses
            self._complete.clear()
        board, *window = work
        return tuple(window) in self._complete.get(board, ())

    async def close(self) -> None:
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    def _completion(self, board: Board, zoned: ZonedWindow, slot: Slot) -> asyncio.Future[None]:
        work = _work(board, zoned, slot)
        if self._is_complete(work):
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done
        task = self._under_way.get(work)
        if task is None:
            task = asyncio.create_task(self._complete_all(board, zoned, slot))
            self._under_way[work] = task
            task.add_done_callback(lambda _: self._under_way.pop(work, None))
        return asyncio.shield(task)

    async def _complete_all(self, board: Board, zoned: ZonedWindow, slot: Slot) -> None:
        for shard in range(board.keys.shards):
            marker = board.keys.of_board(shard, f"built:{_token(zoned, slot)}:{zoned.zone}")
            if not await self._valkey.run(keyspace.exists(marker)):
                self._check_days(board, zoned, slot)
                for cut in await self._cuts(board, shard, zoned, slot):
                    await self._complete_one(board, shard, zoned, slot, cut)
                seconds = Target(WindowAddress(zoned.label, slot.text, WHOLE), slot, zoned).seconds_to_live(
                    self._clock()
                )
                await self._valkey.run(strings.put(marker, 1, seconds=seconds))
        self._complete.setdefault(board, set()).add((_token(zoned, slot), zoned.zone))

    def _check_days(self, board: Board, zoned: ZonedWindow, slot: Slot) -> None:
        days = zoned.base
        if days is None:
            return
        oldest = days.calendar.parse(zoned.calendar.days(slot)[0])
        held_until = days.held_until(oldest)
        if held_until is not None and self._clock() >= held_until:
            raise NotFound(
                f"{board.ref}: the {zoned.label} window {slot.text} cannot be computed: its days have expired"
            )

    async def _cuts(self, board: Board, shard: int, zoned: ZonedWindow, slot: Slot) -> list[Cut]:
        """The whole board and the groups of the slot's days, as far as they have the window's timezone."""
        names: set[str] = set()
        for day in board.fold_addresses(zoned, slot, WHOLE):
            names |= await self._valkey.run(sets.members(board.keys.of_board(shard, f"cuts:{day.token}")))
        cuts = [WHOLE, *(parse_cut(name, board.definition) for name in sorted(names))]
        return [cut for cut in cuts if board.zone_of(cut) == zoned.zone]

    async def _complete_one(self, board: Board, shard: int, zoned: ZonedWindow, slot: Slot, cut: Cut) -> None:
        target = Target(WindowAddress(zoned.label, slot.text, cut), slot, zoned)
        await self._catalog.register(board, shard, [target], self._clock())
        await fold_days(self._valkey, board, shard, target, target.seconds_to_live(self._clock()))


async def fold_days(valkey: Valkey, board: Board, shard: int, target: Target, seconds: int) -> None:
    """Computes every entry of a rolling window from its days, a few hundred members a call."""
    days = board.fold_addresses(target.zoned, target.slot, target.address.cut)
    keys = [board.keys.of_board(shard, "board")]
    keys += [
        key
        for address in (target.address, *days)
        for key in board.keys.parts(board.window_key(shard, address), metadata=False)
    ]
    header = FoldHeader(
        shape=board.shape(metadata=False),
        version=board.version,
        op=board.fold_op(target.zoned),
        day=1,
        cursor="0",
        count=min(MOST_MEMBERS_A_CALL, ENTRIES_A_CALL // len(days)),
        seconds=seconds,
    )
    for header.day in range(1, len(days) + 1):
        while (cursor := await functions.fold(valkey, keys, header)) != "0":
            header.cursor = cursor
        header.cursor = "0"


def days_began(board: Board, previous: Moment | None, now: Moment) -> bool:
    """Whether a day of a rolling window began since `previous`, in any of the board's timezones."""
    return previous is None or any(
        zoned.calendar.at(previous).text != zoned.calendar.at(now).text
        for zone in board.zones
        for zoned in board.zoned_windows(zone)
        if zoned.how == "fold"
    )


def _work(board: Board, zoned: ZonedWindow, slot: Slot) -> _Work:
    return board, _token(zoned, slot), zoned.zone


def _token(zoned: ZonedWindow, slot: Slot) -> str:
    return f"{zoned.label}|{slot.text}"


def _log_failure(completion: asyncio.Future[None]) -> None:
    if not completion.cancelled() and (error := completion.exception()):
        log.warning("rolling window not completed; the next reader completes it", error=str(error))
