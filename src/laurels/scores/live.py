"""Live views: followers of a board receive its changes.

    journal ──▶ BoardListener, one a board   notices that something was written, or the definition changed
                  └─▶ Watcher, one a view       reads the view again, and finds what changed
                        └─▶ Follower, any number      receives the changes in order, or a snapshot if it lags

The journal only says that something changed. The changes come from the window itself, so nothing depends on
how long the journal is kept. However often a board changes, each view is read at most once every
`LIVE_SECONDS`, for all its followers.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from laurels.boards.keys import parse_cut
from laurels.errors import LaurelsError, NotFound, Unavailable
from laurels.logs import get_logger
from laurels.moments import SECOND, moment_of
from laurels.scores.page_query import PageQuery, WindowQuery
from laurels.scores.people import page_with_people, standing_with_person
from laurels.scores.submission import check_member
from laurels.scores.view_diff import Update, ViewState, change, is_of_one_moment, is_same_window
from laurels.valkey import streams

if TYPE_CHECKING:
    from laurels.boards.board import Board
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.clock import Clock
    from laurels.moments import Moment
    from laurels.scores.people import People
    from laurels.scores.queries import Reader
    from laurels.scores.results import Page, Standing
    from laurels.valkey.client import Valkey

# The least time between two reads of a view, however much is written.
LIVE_SECONDS: Final = 0.25
# How often to check for what the journal does not show: a new definition, or a new window.
CHECK_SECONDS: Final = 1.0
# How long a view is watched after its last follower left, so that it can come back.
LINGER_SECONDS: Final = 10.0
# How often to read a page and a standing again when something was written between the two reads.
LOOKS: Final = 3
# How long to wait after a store did not answer.
RETRY_SECONDS: Final = 0.5
# How many changes a view remembers for returning followers, and how many may wait for one follower.
MOST_REMEMBERED: Final = 256
MOST_WAITING: Final = 64

log = get_logger("laurels.live")


@dataclass(frozen=True, slots=True)
class View:
    """What to follow: the top of a window, and optionally one member.

    Without a slot, the view moves on to each new window.
    """

    ref: BoardRef
    query: PageQuery
    member: str | None = None


class LiveViews:
    """The views that this process watches."""

    def __init__(
        self, valkey: Valkey, catalog: Catalog, reader: Reader, people: People, clock: Clock
    ) -> None:
        self.valkey = valkey
        self.catalog = catalog
        self._reader = reader
        self._people = people
        self.clock = clock
        self.linger_seconds = LINGER_SECONDS
        self._watchers: dict[View, Watcher] = {}
        self._listeners: dict[BoardRef, BoardListener] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def follow(self, view: View, last_id: str | None = None) -> Follower:
        """A follower that begins after the update of that id, or with a snapshot.

        Raises the same errors as a page of the view.
        """
        view = await self._resolved(view)
        if self._is_closed:
            raise Unavailable("the server is stopping")
        watcher = self._watchers.get(view)
        if watcher is None:
            listener = self._listeners.get(view.ref)
            if listener is None:
                listener = self._listeners[view.ref] = BoardListener(self, view.ref)
            watcher = self._watchers[view] = Watcher(self, listener, view)
        return await watcher.join(last_id)

    async def page(self, ref: BoardRef, query: PageQuery) -> Page:
        page = await self._reader.page(ref, query)
        return await page_with_people(self._people, page) if query.people else page

    async def standing(self, view: View, slot: str, member: str) -> Standing:
        """The member's standing in a slot of the view's window."""
        query = WindowQuery(view.query.period, slot, view.query.group)
        found = await self._reader.standing(view.ref, query, member)
        return (
            await standing_with_person(self._people, view.ref.project, found) if view.query.people else found
        )

    @property
    def followers(self) -> dict[View, int]:
        """How many followers each watched view has; some may have just left."""
        return {view: len(watcher.followers) for view, watcher in self._watchers.items()}

    @property
    def boards(self) -> list[BoardRef]:
        """The boards whose journals are followed."""
        return list(self._listeners)

    async def _resolved(self, view: View) -> View:
        """The view in one canonical form, so that equal views share a watcher."""
        board = await self.catalog.in_force(view.ref)
        asked = view.query
        cut = parse_cut(asked.group, board.definition)
        zoned = board.zoned_window(asked.period, cut)
        if view.member is not None:
            check_member(view.member)
        query = PageQuery(zoned.label, asked.slot, str(cut) or None, asked.limit, people=asked.people)
        query.check()
        return View(view.ref, query, view.member)

    def stop(self) -> None:
        """Ends all followers and accepts no new ones, since the process is stopping."""
        self._is_closed = True
        for watcher in list(self._watchers.values()):
            watcher.end(None)

    async def close(self) -> None:
        self.stop()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def forget(self, watcher: Watcher) -> None:
        """Removes an ended watcher, and the listener of the board with its last watcher."""
        if self._watchers.get(watcher.view) is watcher:
            del self._watchers[watcher.view]
        listener = watcher.listener
        listener.watchers.discard(watcher)
        if not listener.watchers:
            if self._listeners.get(listener.ref) is listener:
                del self._listeners[listener.ref]
            self._cancel(listener.task)
        self._cancel(watcher.task)

    def _cancel(self, task: asyncio.Task[None]) -> None:
        if task is not asyncio.current_task():  # the current task ends by itself
            task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


class BoardListener:
    """Wakes the watchers of one board when it may have changed."""

    def __init__(self, live: LiveViews, ref: BoardRef) -> None:
        self.ref = ref
        self.watchers: set[Watcher] = set()
        self._live = live
        self._reading: dict[PageQuery, asyncio.Task[Page]] = {}
        self.task = asyncio.create_task(self._run(), name=f"live listener of {ref}")

    async def page(self, query: PageQuery) -> Page:
        """Reads a page once for all watchers that ask for it at the same time."""
        reading = self._reading.get(query)
        if reading is None:
            reading = asyncio.create_task(self._live.page(self.ref, query))
            self._reading[query] = reading
            reading.add_done_callback(lambda done: self._has_read(query, done))
        return await asyncio.shield(reading)

    def _has_read(self, query: PageQuery, done: asyncio.Task[Page]) -> None:
        if self._reading.get(query) is done:
            del self._reading[query]
        if not done.cancelled():
            done.exception()  # retrieved here, since every reader may have left

    async def _run(self) -> None:
        """Listens to the board's journals, under the current definition."""
        board: Board | None = None
        listening: list[asyncio.Task[None]] = []
        valkey = self._live.valkey.apart()
        try:
            while True:
                with suppress(Unavailable):
                    newest = await self._live.catalog.in_force(self.ref)
                    if newest is not board:
                        await _cancelled(listening)
                        listening = [
                            asyncio.create_task(self._listen(valkey, newest.keys.of_board(shard, "journal")))
                            for shard in range(newest.keys.shards)
                        ]
                        self._wake_watchers(needs_snapshot=board is not None)
                        board = newest
                await asyncio.sleep(CHECK_SECONDS)
        except LaurelsError as error:  # the board no longer exists
            self._end(error)
        except Exception:
            log.exception("live updates of a board stopped", board=str(self.ref))
            self._end(LaurelsError("something went wrong on our side"))
        finally:
            await _cancelled(listening)
            await valkey.close()

    async def _listen(self, valkey: Valkey, journal: str) -> None:
        """Wakes the watchers at new entries. They read after `newest` was fetched, so they see every earlier
        write; a later one ends the wait. An entry that was added and trimmed in between is noticed within
        `CHECK_SECONDS`.
        """
        last = ""
        while True:
            try:
                newest = await streams.last_id(valkey, journal)
                if newest != last:
                    last = newest
                    self._wake_watchers()
                    await asyncio.sleep(LIVE_SECONDS)
                    continue
                await streams.wait_for_entry(valkey, journal, last, CHECK_SECONDS)
            except Exception as error:
                if not isinstance(error, Unavailable):
                    log.exception("cannot read the journal; will retry", board=str(self.ref))
                last = ""
                self._wake_watchers(needs_snapshot=True)
                await asyncio.sleep(RETRY_SECONDS)

    def _end(self, error: LaurelsError) -> None:
        for watcher in list(self.watchers):
            watcher.end(error)

    def _wake_watchers(self, *, needs_snapshot: bool = False) -> None:
        self._reading.clear()  # a read that has begun may miss the change
        for watcher in self.watchers:
            watcher.wake(needs_snapshot=needs_snapshot)


class Watcher:
    """Reads one view whenever it may have changed, and sends the changes to its followers."""

    def __init__(self, live: LiveViews, listener: BoardListener, view: View) -> None:
        self.view = view
        self.listener = listener
        self._live = live
        self.followers: set[Follower] = set()
        # Part of the ids, which so differ from those of other processes and earlier watchers.
        self._incarnation = secrets.token_hex(8)
        self._sequence = 0
        self._recent: deque[Update] = deque(maxlen=MOST_REMEMBERED)
        self._seen: ViewState | None = None
        self._snapshot: Update | None = None
        self._resets_at: Moment | None = None
        self._needs_snapshot = False
        self._woken = asyncio.Event()
        self._was_read = asyncio.Event()
        self._error: LaurelsError | None = None
        self._has_ended = False
        self._leaving: asyncio.TimerHandle | None = None
        listener.watchers.add(self)
        self.task = asyncio.create_task(self._run(), name=f"live view of {view.ref}")

    async def join(self, last_id: str | None) -> Follower:
        follower = Follower(self)
        self.followers.add(follower)
        if self._leaving:
            self._leaving.cancel()
            self._leaving = None
        try:
            await self._was_read.wait()
        except asyncio.CancelledError:
            follower.leave()
            raise
        if self._error:
            raise self._error
        follower.begin(self._since(last_id))
        return follower

    def leave(self, follower: Follower) -> None:
        self.followers.discard(follower)
        if not self.followers and not self._has_ended and self._leaving is None:
            loop = asyncio.get_running_loop()
            self._leaving = loop.call_later(self._live.linger_seconds, self.end, None)

    def wake(self, *, needs_snapshot: bool = False) -> None:
        """`needs_snapshot`: changes since the last read may be lost, so followers get a snapshot."""
        self._needs_snapshot = self._needs_snapshot or needs_snapshot
        self._woken.set()

    def end(self, error: LaurelsError | None) -> None:
        """Ends the view for all its followers, with an error if there is one."""
        if self._has_ended:
            return
        self._has_ended, self._error = True, error
        if self._leaving:
            self._leaving.cancel()
        self._was_read.set()
        for follower in list(self.followers):
            follower.end(error)
        self._live.forget(self)

    def snapshot(self) -> Update:
        """The view as it was last read; the same object until it changes."""
        if self._snapshot is None:
            if self._seen is None:
                raise RuntimeError("the view was not read yet")
            self._snapshot = Update(self._id, self._seen.snapshot)
        return self._snapshot

    @property
    def _id(self) -> str:
        return f"{self._incarnation}-{self._sequence}"

    def _since(self, last_id: str | None) -> list[Update] | None:
        """The updates after this id; None if they are not known."""
        incarnation, _, sequence = (last_id or "").rpartition("-")
        if incarnation != self._incarnation or not sequence.isdecimal() or not sequence.isascii():
            return None
        missed = self._sequence - int(sequence)
        if not 0 <= missed <= min(len(self._recent), MOST_WAITING):
            return None
        return list(self._recent)[len(self._recent) - missed :]

    async def _run(self) -> None:
        try:
            while True:
                self._woken.clear()
                try:
                    self._publish(await self._read())
                except Unavailable:
                    if self._seen is None:
                        raise
                    self._needs_snapshot = True
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                await self._wait()
        except LaurelsError as error:  # the board, the window or the group no longer exists
            self.end(error)
        except Exception:
            log.exception("live updates of a view stopped", board=str(self.view.ref))
            self.end(LaurelsError("something went wrong on our side"))

    async def _read(self) -> ViewState:
        view = self.view
        page = await self.listener.page(view.query)
        if view.member is None:
            return ViewState(page)
        seen = ViewState(page, await self._standing(page, view.member))
        for _ in range(LOOKS):
            if is_of_one_moment(seen, view.member):
                break
            page = await self.listener.page(view.query)
            seen = ViewState(page, await self._standing(page, view.member))
        return seen

    async def _standing(self, page: Page, member: str) -> Standing | None:
        try:
            return await self._live.standing(self.view, page.slot, member)
        except NotFound:  # the page was just read, so only the member can be missing
            return None

    def _publish(self, seen: ViewState) -> None:
        before, self._seen = self._seen, seen
        resets = seen.page.next_reset_at
        self._resets_at = None if resets is None else moment_of(resets)
        if before is None:
            self._needs_snapshot = False
            self._was_read.set()
            return
        if self._needs_snapshot or not is_same_window(before, seen):
            self._needs_snapshot = False
            self._sequence += 1
            self._snapshot = None
            self._recent.clear()
            update = self.snapshot()
        else:
            changed = change(before, seen)
            if changed is None:
                return
            self._sequence += 1
            self._snapshot = None
            update = Update(self._id, changed)
            self._recent.append(update)
        for follower in self.followers:
            follower.receive(update)

    async def _wait(self) -> None:
        """Waits until the board may have changed, or the window ends."""
        while not self._woken.is_set():
            seconds = CHECK_SECONDS
            if self._resets_at is not None:
                left = (self._resets_at - self._live.clock()) / SECOND
                if left <= 0:
                    return
                seconds = min(seconds, left)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._woken.wait()


class Follower:
    """Receives the updates of a view in order; if it lags behind, a snapshot instead."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._waiting: deque[Update] = deque()
        self._has_begun = False
        self._is_behind = False
        self._has_ended = False
        self._error: LaurelsError | None = None
        self._changed = asyncio.Event()

    def begin(self, missed: list[Update] | None) -> None:
        self._has_begun = True
        self._is_behind = missed is None
        self._waiting.extend(missed or ())

    def receive(self, update: Update) -> None:
        if not self._has_begun:
            return
        if len(self._waiting) >= MOST_WAITING:
            self._is_behind = True
            self._waiting.clear()
        if not self._is_behind:
            self._waiting.append(update)
        self._changed.set()

    def end(self, error: LaurelsError | None) -> None:
        self._has_ended, self._error = True, error
        self._changed.set()

    def leave(self) -> None:
        """Ends this follower: iteration over it stops."""
        self._waiting.clear()
        self.end(None)
        self._watcher.leave(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Update:
        """Waits for the next update. If the view ended with an error, raises it after the last update."""
        while not self._has_ended or self._waiting:
            if self._is_behind:
                self._is_behind = False
                return self._watcher.snapshot()
            if self._waiting:
                return self._waiting.popleft()
            self._changed.clear()
            await self._changed.wait()
        if self._error:
            raise self._error
        raise StopAsyncIteration


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
