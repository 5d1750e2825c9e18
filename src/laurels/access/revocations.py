"""Tells every process at once that a key was revoked or that a project's secrets changed.

Notices travel over one Pub/Sub channel of Valkey, on a single node or a cluster. Valkey delivers a notice to
the processes that are subscribed at that moment and stores nothing, so a process that lost its subscription
may have missed some: `gaps` counts how often that can have happened.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from laurels.errors import LaurelsError
from laurels.logs import get_logger
from laurels.valkey.names import REVOCATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from laurels.valkey.client import Valkey

CHANNEL: Final = REVOCATIONS
RETRY_SECONDS: Final = 0.5

log = get_logger("laurels.revocations")


class Revocations:
    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._listeners: list[Callable[[str], None]] = []
        self._listening: asyncio.Task[None] | None = None
        self._is_listening = asyncio.Event()
        self.count = 0
        """Notices received by this process."""
        self.gaps = 0
        """How often this process subscribed: it may have missed notices before each time."""
        self.generation = 0
        """Changes whenever a cached credential may no longer be valid."""

    @property
    def is_listening(self) -> bool:
        """Whether this process receives every notice."""
        return self._is_listening.is_set()

    async def listening(self) -> None:
        """Waits until this process receives every notice."""
        self.listen()
        await self._is_listening.wait()

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Calls `listener` with the name of each credential that is revoked from now on."""
        self._listeners.append(listener)

    def listen(self) -> None:
        """Starts listening, unless this process already does."""
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())

    async def announce(self, name: str) -> None:
        """Notifies this process, then all others that listen; a Valkey that is down stops only the latter."""
        self._notify(name)
        try:
            await self._valkey.publish(CHANNEL, name)
        except LaurelsError as error:
            log.warning(
                "revocation not published; other processes notice within seconds", detail=error.detail
            )

    async def close(self) -> None:
        # Repeated, because redis-py may take a cancellation for a timeout of its own.
        while self._listening and not self._listening.done():
            self._listening.cancel()
            await asyncio.wait({self._listening}, timeout=1)

    def _notify(self, name: str) -> None:
        self.count += 1
        self.generation += 1
        for listener in self._listeners:
            listener(name)

    async def _listen(self) -> None:
        while True:
            try:
                async with aclosing(self._valkey.listen(CHANNEL)) as messages:
                    async for name in messages:
                        if name is None:
                            self.gaps += 1
                            self.generation += 1
                            self._is_listening.set()
                        else:
                            self._notify(name)
            except LaurelsError as error:
                if self.is_listening:
                    log.warning("subscription to revocations lost; retrying", detail=error.detail)
            except Exception:
                log.exception("subscription to revocations failed; retrying")
            finally:
                self._is_listening.clear()
                self.generation += 1
            await asyncio.sleep(RETRY_SECONDS)
