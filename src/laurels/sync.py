"""Laurels in process, without async: the same operations, each waiting for its answer.

>>> from laurels.sync import Laurels
>>> with Laurels() as laurels:                                              # doctest: +SKIP
...     laurels.define("demo/arcade", {"windows": [{"period": "daily"}]})
...     laurels.submit("demo/arcade", "ada", 1200).rank
1
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import uvloop

from laurels import laurels

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Unpack

P = ParamSpec("P")
Answer = TypeVar("Answer")


def _blocking(
    operation: Callable[Concatenate[laurels.Laurels, P], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate[Laurels, P], Answer]:
    """The same operation, run on the loop of a thread of our own while the caller waits."""

    def wait(self: Laurels, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return self.run(operation(self.engine, *args, **kwargs))

    wait.__name__, wait.__doc__ = operation.__name__, operation.__doc__
    return wait


class Laurels:
    """A leaderboard engine. Safe to use from several threads: they share one engine."""

    def __init__(self, **options: Unpack[laurels.Options]) -> None:
        self.engine = laurels.Laurels(**options)
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="laurels", daemon=True)

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

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    define = _blocking(laurels.Laurels.define)
    drop = _blocking(laurels.Laurels.drop)
    submit = _blocking(laurels.Laurels.submit)
    submit_many = _blocking(laurels.Laurels.submit_many)
    page = _blocking(laurels.Laurels.page)
    standing = _blocking(laurels.Laurels.standing)
    around = _blocking(laurels.Laurels.around)
    among = _blocking(laurels.Laurels.among)
    percentile = _blocking(laurels.Laurels.percentile)
    distribution = _blocking(laurels.Laurels.distribution)
    windows = _blocking(laurels.Laurels.windows)
    remove = _blocking(laurels.Laurels.remove)
