"""Laurels in process, without async: the same operations, each waiting for its answer.

>>> from laurels import Submission
>>> from laurels.sync import Laurels
>>> laurels = Laurels()
>>> laurels.open()

A board is defined once; its name is `project/board`.

>>> windows = [{"period": "all_time"}, {"period": "daily", "keep": 30}]
>>> laurels.define("examples/sync", {"windows": windows, "groups": [["country"]]}).created
True

A submission tells where it leaves its member. Sent again with the same id, it counts once.

>>> first = laurels.submit("examples/sync", "ada", 1200, groups={"country": "GB"}, id="game-1")
>>> first.rank, first.applied
(1, True)
>>> laurels.submit("examples/sync", "ada", 1200, id="game-1").applied
False

Many go in together; what is refused harms no other.

>>> scores = [("bob", 1500), ("eve", 1200), ("joe", "many")]
>>> result = laurels.submit_many("examples/sync", [Submission(member, score) for member, score in scores])
>>> result.accepted, result.rejected[0].detail
(2, 'score: must be a number, not a string')

Questions are about the board's first window, unless they name another one, a past slot or a group.

>>> [(entry.rank, entry.member, entry.score) for entry in laurels.page("examples/sync").entries]
[(1, 'bob', 1500), (2, 'eve', 1200), (2, 'ada', 1200)]
>>> standing = laurels.standing("examples/sync", "ada", period="daily")
>>> standing.rank, standing.ordinal, standing.total
(2, 3, 3)
>>> [entry.member for entry in laurels.page("examples/sync", group="country=GB").entries]
['ada']
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

Metadata can be set without a score, in every window and group of the member or in those that are named.

>>> laurels.set_metadata("examples/sync", "ada", {"level": 8}).entries
4
>>> laurels.standing("examples/sync", "ada", group="country=GB").metadata
{'level': 8}

Members leave without a trace, and so do boards; what would drop entries must be allowed.

>>> laurels.remove("examples/sync", "eve")
True
>>> laurels.drop("examples/sync", allow_drop="all")
>>> laurels.close()
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar

import uvloop

from laurels import engine

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Unpack

# What takes longer to end is left to itself, in a thread that ends with the process.
STOP_SECONDS: Final = 10.0

P = ParamSpec("P")
Answer = TypeVar("Answer")


def _blocking(
    operation: Callable[Concatenate[engine.Laurels, P], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate[Laurels, P], Answer]:
    """The same operation, run on the loop of a thread of our own while the caller waits."""

    def wait(self: Laurels, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return self.run(operation(self.engine, *args, **kwargs))

    wait.__name__, wait.__doc__ = operation.__name__, operation.__doc__
    return wait


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
        """Runs a coroutine beside the engine, on its loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _run(self) -> None:
        """Until it is stopped. What is still under way then is cancelled: uvloop waits for ever to close a
        loop on which a connection is left half open.
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

    define = _blocking(engine.Laurels.define)
    drop = _blocking(engine.Laurels.drop)
    submit = _blocking(engine.Laurels.submit)
    submit_many = _blocking(engine.Laurels.submit_many)
    match = _blocking(engine.Laurels.match)
    page = _blocking(engine.Laurels.page)
    standing = _blocking(engine.Laurels.standing)
    around = _blocking(engine.Laurels.around)
    among = _blocking(engine.Laurels.among)
    percentile = _blocking(engine.Laurels.percentile)
    distribution = _blocking(engine.Laurels.distribution)
    windows = _blocking(engine.Laurels.windows)
    history = _blocking(engine.Laurels.history)
    snapshots = _blocking(engine.Laurels.snapshots)
    snapshot = _blocking(engine.Laurels.snapshot)
    jobs = _blocking(engine.Laurels.jobs)
    request_job = _blocking(engine.Laurels.request_job)
    remove = _blocking(engine.Laurels.remove)
    set_metadata = _blocking(engine.Laurels.set_metadata)
    rebuild = _blocking(engine.Laurels.rebuild)
    verify = _blocking(engine.Laurels.verify)
    erase = _blocking(engine.Laurels.erase)
    preview = _blocking(engine.Laurels.preview)
    import_lines = _blocking(engine.Laurels.import_lines)
    import_zset = _blocking(engine.Laurels.import_zset)
    archived = _blocking(engine.Laurels.archived)
    journal_drained = _blocking(engine.Laurels.journal_drained)
    confirm = _blocking(engine.Laurels.confirm)
