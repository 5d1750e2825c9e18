"""Checks the deadlines of all connections of a server once a second.

One timer for all: a timer for each connection or request would cost more than answering a submission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Collection

    from uvicorn.server import ServerState

TICK_SECONDS: Final = 1.0


class HasDeadline(Protocol):
    def check_deadline(self, now: float) -> None: ...


class DeadlineWatcher:
    """Runs while the server has connections."""

    def __init__(self, loop: AbstractEventLoop, connections: Collection[HasDeadline]) -> None:
        self._loop = loop
        self._connections = connections
        self._is_running = False

    def start(self) -> None:
        if not self._is_running:
            self._is_running = True
            self._loop.call_later(TICK_SECONDS, self._look)

    def _look(self) -> None:
        self._is_running = False
        now = self._loop.time()
        try:
            for connection in tuple(self._connections):
                connection.check_deadline(now)
        finally:
            if self._connections:
                self.start()


_watches: WeakKeyDictionary[ServerState, DeadlineWatcher] = WeakKeyDictionary()


def watch(state: ServerState, loop: AbstractEventLoop) -> None:
    """Starts checking the server's connections, if nothing does."""
    found = _watches.get(state)
    if found is None:
        # The server makes all connections of our class.
        found = _watches[state] = DeadlineWatcher(loop, cast("Collection[HasDeadline]", state.connections))
    found.start()
