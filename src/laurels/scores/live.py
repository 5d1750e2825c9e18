"""Who looks at a board hears what changes.

    journal ──▶ Pulse, one a board     something was written, or the definition is another
                  └─▶ Watcher, one a view    looks again, and tells what changed
                        └─▶ Follower, any number     hears it in order, or the whole anew if it lags behind

The journal says only that there is something to see; what it is comes from the window itself, so nothing
depends on how long the journal is kept. A board changes as often as it likes: it is looked at no more than
every `LIVE_SECONDS`, once for all who look at the same.
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
from laurels.scores.submission import check_member
from laurels.scores.view_diff import Seen, change, is_of_one_moment, is_same_window
from laurels.valkey import streams

if TYPE_CHECKING:
    from laurels.boards.board import Board
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.clock import Clock
    from laurels.moments import Moment
    from laurels.scores.queries import Reader
    from laurels.scores.results import Page, Standing
    from laurels.scores.view_diff import Change, Snapshot
    from laurels.valkey.client import Valkey

# How long after a look the next one waits, however much is written meanwhile.
LIVE_SECONDS: Final = 0.25
# How often what no journal tells is asked for: another definition, a window that turned by a clock we set.
CHECK_SECONDS: Final = 1.0
# How long a view is watched after its last follower left: as long as it may take to come back.
LINGER_SECONDS: Final = 10.0
# How often a page and a standing are asked for again when something was written between them.
LOOKS: Final = 3
# How long a store that does not answer is left alone.
RETRY_SECONDS: Final = 0.5
# Changes that a view remembers for those who come back, and that may wait for a follower.
MOST_REMEMBERED: Final = 256
MOST_WAITING: Final = 64

log = get_logger("laurels.live")


@dataclass(frozen=True, slots=True)
class View:
    """What is looked at: the top of a window, and a member if one is followed.

    A slot that is named stays; without one, the view goes from each window to the next.
    """

    ref: BoardRef
    query: PageQuery
    member: str | None = None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Update:
    """The whole view, or what changed in it. With its id, a follower who left goes on from here."""

    id: str
    value: Snapshot | Change


class Live:
    """The views that this process watches."""

    def __init__(self, valkey: Valkey, catalog: Catalog, reader: Reader, clock: Clock) -> None:
        self.valkey = valkey
        self.catalog = catalog
        self.reader = reader
        self.clock = clock
        self.linger_seconds = LINGER_SECONDS
        self._watchers: dict[View, Watcher] = {}
        self._pulses: dict[BoardRef, Pulse] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def follow(self, view: View, last_id: str | None = None) -> Follower:
        """A follower of the view, who begins behind the update of that id, or with a snapshot.

        Raises what a page of it would.
        """
        view = await self._resolved(view)
        if self._is_closed:
            raise Unavailable("the server is stopping")
        watcher = self._watchers.get(view)
        if watcher is None:
            pulse = self._pulses.get(view.ref)
            if pulse is None:
                pulse = self._pulses[view.ref] = Pulse(self, view.ref)
            watcher = self._watchers[view] = Watcher(self, pulse, view)
        return await watcher.join(last_id)

    @property
    def followers(self) -> dict[View, int]:
        """How many follow each view that is watched; some may have just left."""
        return {view: len(watcher.followers) for view, watcher in self._watchers.items()}

    @property
    def boards(self) -> list[BoardRef]:
        """Those whose journals are listened to."""
        return list(self._pulses)

    async def _resolved(self, view: View) -> View:
        """The same for all who mean the same."""
        board = await self.catalog.in_force(view.ref)
        asked = view.query
        cut = parse_cut(asked.group, board.definition)
        zoned = board.zoned_window(asked.period, cut)
        if view.member is not None:
            check_member(view.member)
        query = PageQuery(zoned.label, asked.slot, str(cut) or None, asked.limit)
        query.check()
        return View(view.ref, query, view.member)

    def stop(self) -> None:
        """Every follower is at its end, and nobody else begins: the process is about to."""
        self._is_closed = True
        for watcher in list(self._watchers.values()):
            watcher.end(None)

    async def close(self) -> None:
        self.stop()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def forget(self, watcher: Watcher) -> None:
        """A watcher ended; with the last of a board, so does its pulse."""
        if self._watchers.get(watcher.view) is watcher:
            del self._watchers[watcher.view]
        pulse = watcher.pulse
        pulse.watchers.discard(watcher)
        if not pulse.watchers:
            if self._pulses.get(pulse.ref) is pulse:
                del self._pulses[pulse.ref]
            self._cancel(pulse.task)
        self._cancel(watcher.task)

    def _cancel(self, task: asyncio.Task[None]) -> None:
        if task is not asyncio.current_task():  # which is about to end, in good order
            task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


class Pulse:
    """Tells the watchers of one board that there may be something to see."""

    def __init__(self, live: Live, ref: BoardRef) -> None:
        self.ref = ref
        self.watchers: set[Watcher] = set()
        self._live = live
        self._reading: dict[PageQuery, asyncio.Task[Page]] = {}
        self.task = asyncio.create_task(self._run(), name=f"live pulse of {ref}")

    async def page(self, query: PageQuery) -> Page:
        """Reads a page once for all watchers that ask for it at the same time."""
        reading = self._reading.get(query)
        if reading is None:
            reading = asyncio.create_task(self._live.reader.page(self.ref, query))
            self._reading[query] = reading
            reading.add_done_callback(lambda done: self._has_read(query, done))
        return await asyncio.shield(reading)

    def _has_read(self, query: PageQuery, done: asyncio.Task[Page]) -> None:
        if self._reading.get(query) is done:
            del self._reading[query]
        if not done.cancelled():
            done.exception()  # those who asked hear of it; there may be none left

    async def _run(self) -> None:
        """Listens to the board's journals, under the definition that is in force."""
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
                        self._beat(anew=board is not None)
                        board = newest
                await asyncio.sleep(CHECK_SECONDS)
        except LaurelsError as error:  # there is no such board any more
            self._end(error)
        except Exception:
            log.exception("not watched", board=str(self.ref))
            self._end(LaurelsError("something went wrong on our side"))
        finally:
            await _cancelled(listening)
            await valkey.close()

    async def _listen(self, valkey: Valkey, journal: str) -> None:
        """What is written before `newest` is told is seen by a look after it; what is written later ends the
        wait. An entry that came and was trimmed between the two is found within `CHECK_SECONDS`.
        """
        last = ""
        while True:
            try:
                newest = await streams.last_id(valkey, journal)
                if newest != last:
                    last = newest
                    self._beat()
                    await asyncio.sleep(LIVE_SECONDS)
                    continue
                await streams.wait_for_entry(valkey, journal, last, CHECK_SECONDS)
            except Exception as error:
                if not isinstance(error, Unavailable):
                    log.exception("not listening", board=str(self.ref))
                last = ""
                self._beat(anew=True)
                await asyncio.sleep(RETRY_SECONDS)

    def _end(self, error: LaurelsError) -> None:
        for watcher in list(self.watchers):
            watcher.end(error)

    def _beat(self, *, anew: bool = False) -> None:
        self._reading.clear()  # what is on its way may be from before
        for watcher in self.watchers:
            watcher.wake(anew=anew)


class Watcher:
    """Looks at one view whenever there may be something to see, and tells its followers what changed."""

    def __init__(self, live: Live, pulse: Pulse, view: View) -> None:
        self.view = view
        self.pulse = pulse
        self._live = live
        self.followers: set[Follower] = set()
        # No other watcher's ids are taken for this one's: not of another process, nor of an earlier time.
        self._incarnation = secrets.token_hex(8)
        self._sequence = 0
        self._recent: deque[Update] = deque(maxlen=MOST_REMEMBERED)
        self._seen: Seen | None = None
        self._snapshot: Update | None = None
        self._turns: Moment | None = None
        self._is_anew = False
        self._woken = asyncio.Event()
        self._looked = asyncio.Event()
        self._error: LaurelsError | None = None
        self._has_ended = False
        self._leaving: asyncio.TimerHandle | None = None
        pulse.watchers.add(self)
        self.task = asyncio.create_task(self._run(), name=f"live view of {view.ref}")

    async def join(self, last_id: str | None) -> Follower:
        follower = Follower(self)
        self.followers.add(follower)
        if self._leaving:
            self._leaving.cancel()
            self._leaving = None
        try:
            await self._looked.wait()
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

    def wake(self, *, anew: bool = False) -> None:
        """`anew`: what was seen before may not be what the next look goes on from."""
        self._is_anew = self._is_anew or anew
        self._woken.set()

    def end(self, error: LaurelsError | None) -> None:
        """There is nothing more to see; with an error, which says why."""
        if self._has_ended:
            return
        self._has_ended, self._error = True, error
        if self._leaving:
            self._leaving.cancel()
        self._looked.set()
        for follower in list(self.followers):
            follower.end(error)
        self._live.forget(self)

    def snapshot(self) -> Update:
        """The view as it was last seen; one object until it is seen otherwise."""
        if self._snapshot is None:
            if self._seen is None:
                raise RuntimeError("nothing was seen yet")
            self._snapshot = Update(self._id, self._seen.snapshot)
        return self._snapshot

    @property
    def _id(self) -> str:
        return f"{self._incarnation}-{self._sequence}"

    def _since(self, last_id: str | None) -> list[Update] | None:
        """What a follower who has seen this update missed; None if that cannot be told."""
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
                    self._tell(await self._look())
                except Unavailable:
                    if self._seen is None:
                        raise
                    self._is_anew = True
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                await self._rest()
        except LaurelsError as error:  # the board, the window or the group is no more
            self.end(error)
        except Exception:
            log.exception("not watched", board=str(self.view.ref))
            self.end(LaurelsError("something went wrong on our side"))

    async def _look(self) -> Seen:
        view = self.view
        page = await self.pulse.page(view.query)
        if view.member is None:
            return Seen(page)
        seen = Seen(page, await self._standing(page, view.member))
        for _ in range(LOOKS):
            if is_of_one_moment(seen, view.member):
                break
            page = await self.pulse.page(view.query)
            seen = Seen(page, await self._standing(page, view.member))
        return seen

    async def _standing(self, page: Page, member: str) -> Standing | None:
        query = WindowQuery(self.view.query.period, page.slot, self.view.query.group)
        try:
            return await self._live.reader.standing(self.view.ref, query, member)
        except NotFound:  # the page was there a moment ago, so it is the member who is not
            return None

    def _tell(self, seen: Seen) -> None:
        before, self._seen = self._seen, seen
        resets = seen.page.next_reset_at
        self._turns = None if resets is None else moment_of(resets)
        if before is None:
            self._is_anew = False
            self._looked.set()
            return
        if self._is_anew or not is_same_window(before, seen):
            self._is_anew = False
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
            follower.hear(update)

    async def _rest(self) -> None:
        """Until something may have been written, or the window turns."""
        while not self._woken.is_set():
            seconds = CHECK_SECONDS
            if self._turns is not None:
                left = (self._turns - self._live.clock()) / SECOND
                if left <= 0:
                    return
                seconds = min(seconds, left)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._woken.wait()


class Follower:
    """Hears the updates of a view in order. One that lags behind hears the whole anew instead."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._waiting: deque[Update] = deque()
        self._has_begun = False
        self._is_behind = False
        self._has_ended = False
        self._error: LaurelsError | None = None
        self._stirred = asyncio.Event()

    def begin(self, missed: list[Update] | None) -> None:
        self._has_begun = True
        self._is_behind = missed is None
        self._waiting.extend(missed or ())

    def hear(self, update: Update) -> None:
        if not self._has_begun:
            return
        if len(self._waiting) >= MOST_WAITING:
            self._is_behind = True
            self._waiting.clear()
        if not self._is_behind:
            self._waiting.append(update)
        self._stirred.set()

    def end(self, error: LaurelsError | None) -> None:
        self._has_ended, self._error = True, error
        self._stirred.set()

    def leave(self) -> None:
        """Hears no more; whoever waits for the next update is told that there is none."""
        self._waiting.clear()
        self.end(None)
        self._watcher.leave(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Update:
        """The next update, whenever there is one; raises why there are no more, if the view is at its end."""
        while not self._has_ended or self._waiting:
            if self._is_behind:
                self._is_behind = False
                return self._watcher.snapshot()
            if self._waiting:
                return self._waiting.popleft()
            self._stirred.clear()
            await self._stirred.wait()
        if self._error:
            raise self._error
        raise StopAsyncIteration


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
