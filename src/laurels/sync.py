"""Laurels in process without async: the same operations, each of which waits for its answer.

>>> from laurels import Submission
>>> from laurels.sync import Laurels
>>> laurels = Laurels()
>>> laurels.open()

A board is defined once; its name is `project/board`.

>>> windows = [{"period": "all_time"}, {"period": "daily", "keep": 30}]
>>> laurels.define("examples/sync", {"windows": windows, "groups": [["country"]]}).created
True

The answer to a submission has its member's rank. A submission sent again with the same id counts once.

>>> first = laurels.submit("examples/sync", "ada", 1200, groups={"country": "GB"}, id="game-1")
>>> first.rank, first.applied
(1, True)
>>> laurels.submit("examples/sync", "ada", 1200, id="game-1").applied
False

`submit_many` takes many; a refused one does not affect the others.

>>> scores = [("bob", 1500), ("eve", 1200), ("joe", "many")]
>>> result = laurels.submit_many("examples/sync", [Submission(member, score) for member, score in scores])
>>> result.accepted, result.rejected[0].detail
(2, 'score: must be a number, not a string')

Reads use the board's first window and its current slot, unless they name another period, slot or group.

>>> [(entry.rank, entry.member, entry.score) for entry in laurels.page("examples/sync").entries]
[(1, 'bob', 1500), (2, 'eve', 1200), (2, 'ada', 1200)]
>>> standing = laurels.standing("examples/sync", "ada", period="daily")
>>> standing.rank, standing.ordinal, standing.total
(2, 3, 3)
>>> [entry.member for entry in laurels.page("examples/sync", group="country=GB").entries]
['ada']
>>> [entry.member for entry in laurels.entries("examples/sync", limit=2)]
['bob', 'eve', 'ada']
>>> [entry.member for entry in laurels.around("examples/sync", "eve", above=1, below=0).entries]
['bob', 'eve']
>>> among = laurels.among("examples/sync", ["ada", "bob", "zoe"])
>>> [(friend.rank, friend.member, friend.board_rank) for friend in among.entries], among.absent
([(1, 'bob', 1), (2, 'ada', 2)], ['zoe'])
>>> laurels.percentile("examples/sync", 1.0).score
1500
>>> [bucket.count for bucket in laurels.distribution("examples/sync", 2).buckets]
[2, 1]
>>> [(window.period, window.entries) for window in laurels.windows("examples/sync")]
[('daily', 3), ('all_time', 3)]

`set_metadata` needs no score. It changes every window and group of the member, or those that it names.

>>> laurels.set_metadata("examples/sync", "ada", {"level": 8}).entries
4
>>> laurels.standing("examples/sync", "ada", group={"country": "GB"}).metadata
{'level': 8}

`remove` deletes all entries of a member. Dropping a board that holds entries needs consent.

>>> laurels.remove("examples/sync", "eve")
True
>>> laurels.drop("examples/sync", allow_drop="all")
>>> laurels.close()
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar

import uvloop

from laurels import engine
from laurels.arguments import runs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
    from concurrent.futures import Future
    from typing import Unpack

# If the loop takes longer to stop, its thread ends with the process.
STOP_SECONDS: Final = 10.0

P = ParamSpec("P")
Answer = TypeVar("Answer")
Item = TypeVar("Item")


def _answering(
    operation: Callable[Concatenate[engine.Laurels, P], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate[Laurels, P], Answer]:
    @runs(operation)
    def run(self: Laurels, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return self.run(operation(self.engine, *args, **kwargs))

    return run


def _iterating(
    operation: Callable[Concatenate[engine.Laurels, P], AsyncGenerator[Item]],
) -> Callable[Concatenate[Laurels, P], Generator[Item]]:
    @runs(operation, "Generator[{}]")
    def iterate(self: Laurels, *args: P.args, **kwargs: P.kwargs) -> Generator[Item]:
        return self.iterate(operation(self.engine, *args, **kwargs))

    return iterate


class _Steps(Generic[Item]):
    """An async generator, run step by step. One that was interrupted is closed when its step has ended."""

    def __init__(self, items: AsyncGenerator[Item]) -> None:
        self._items = items
        self._lock = asyncio.Lock()

    async def next(self) -> list[Item]:
        """A list of the next item; empty at the end."""
        async with self._lock:
            async for item in self._items:
                return [item]
            return []

    async def close(self) -> None:
        async with self._lock:
            await self._items.aclose()


class Laurels:
    """A leaderboard engine. Safe to use from several threads: they share one engine."""

    def __init__(self, **options: Unpack[engine.Options]) -> None:
        self.engine = engine.Laurels(**options)
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="laurels", daemon=True)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Starts or joins the servers, and brings the schema and the functions up to date."""
        self._thread.start()
        try:
            self.run(self.engine.open())
        except BaseException:
            self._stop()
            raise

    def close(self) -> None:
        try:
            self.run(self.engine.close())
        finally:
            self._stop()

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Runs a coroutine on the engine's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def iterate(self, items: AsyncGenerator[Item]) -> Generator[Item]:
        """Yields the items of an async generator, which runs on the engine's loop."""
        steps = _Steps(items)
        step: Future[list[Item]] | None = None
        try:
            while found := (step := asyncio.run_coroutine_threadsafe(steps.next(), self._loop)).result():
                yield found[0]
        finally:
            if step is not None and not self._loop.is_closed():
                step.cancel()
                # Nothing waits for this: the garbage collector may run it in the thread of the loop.
                asyncio.run_coroutine_threadsafe(steps.close(), self._loop)

    def _run(self) -> None:
        """Runs the loop until it is stopped, then cancels what is left: uvloop cannot close a loop with a
        half-open connection.
        """
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_SECONDS)

    define = _answering(engine.Laurels.define)
    define_many = _answering(engine.Laurels.define_many)
    preview = _answering(engine.Laurels.preview)
    definition = _answering(engine.Laurels.definition)
    drop = _answering(engine.Laurels.drop)
    projects = _answering(engine.Laurels.projects)
    boards = _answering(engine.Laurels.boards)
    submit = _answering(engine.Laurels.submit)
    submit_many = _answering(engine.Laurels.submit_many)
    match = _answering(engine.Laurels.match)
    page = _answering(engine.Laurels.page)
    pages = _iterating(engine.Laurels.pages)
    entries = _iterating(engine.Laurels.entries)
    watch = _iterating(engine.Laurels.watch)
    standing = _answering(engine.Laurels.standing)
    around = _answering(engine.Laurels.around)
    among = _answering(engine.Laurels.among)
    percentile = _answering(engine.Laurels.percentile)
    distribution = _answering(engine.Laurels.distribution)
    windows = _answering(engine.Laurels.windows)
    history = _answering(engine.Laurels.history)
    snapshots = _answering(engine.Laurels.snapshots)
    snapshot = _answering(engine.Laurels.snapshot)
    set_metadata = _answering(engine.Laurels.set_metadata)
    remove = _answering(engine.Laurels.remove)
    put_person = _answering(engine.Laurels.put_person)
    put_people = _answering(engine.Laurels.put_people)
    person = _answering(engine.Laurels.person)
    people = _answering(engine.Laurels.people)
    remove_person = _answering(engine.Laurels.remove_person)
    put_place = _answering(engine.Laurels.put_place)
    put_places = _answering(engine.Laurels.put_places)
    place = _answering(engine.Laurels.place)
    places = _answering(engine.Laurels.places)
    remove_place = _answering(engine.Laurels.remove_place)
    export_member = _answering(engine.Laurels.export_member)
    erase = _answering(engine.Laurels.erase)
    jobs = _answering(engine.Laurels.jobs)
    request_job = _answering(engine.Laurels.request_job)
    rebuild = _answering(engine.Laurels.rebuild)
    verify = _answering(engine.Laurels.verify)
    export = _iterating(engine.Laurels.export)
    import_lines = _answering(engine.Laurels.import_lines)
    import_zset = _answering(engine.Laurels.import_zset)
    archived = _answering(engine.Laurels.archived)
    journal_drained = _answering(engine.Laurels.journal_drained)
    confirm = _answering(engine.Laurels.confirm)
