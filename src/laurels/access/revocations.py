"""Who remembers keys and secrets hears at once that one is withdrawn, whichever process withdrew it.

One channel, on one node or a cluster. Valkey passes a message on to those who listen at that moment and keeps
nothing, so whoever was not listening for a while must take what it remembers for doubtful: `gaps` counts.
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

log = get_logger("laurels.withdrawals")


class Withdrawals:
    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._listeners: list[Callable[[str], None]] = []
        self._listening: asyncio.Task[None] | None = None
        self._is_heard = asyncio.Event()
        self.count = 0
        """How many this process has heard of."""
        self.gaps = 0
        """How often it began to listen: what it heard before, it may not have heard whole."""
        self.era = 0
        """Another one whenever something that was remembered may have ceased to hold."""

    @property
    def is_heard(self) -> bool:
        """Whether this process hears of every withdrawal."""
        return self._is_heard.is_set()

    async def heard(self) -> None:
        """Waits until it does."""
        self.listen()
        await self._is_heard.wait()

    def tell(self, listener: Callable[[str], None]) -> None:
        """From now on the listener is told the name of whatever is withdrawn."""
        self._listeners.append(listener)

    def listen(self) -> None:
        """Begins to listen, if it did not before."""
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())

    async def announce(self, name: str) -> None:
        """To every process that listens; to this one in any case."""
        self._hear(name)
        try:
            await self._valkey.publish(CHANNEL, name)
        except LaurelsError as error:
            log.warning("not announced", detail=error.detail)

    async def close(self) -> None:
        # Again and again: redis-py may take a cancellation for a timeout of its own.
        while self._listening and not self._listening.done():
            self._listening.cancel()
            await asyncio.wait({self._listening}, timeout=1)

    def _hear(self, name: str) -> None:
        self.count += 1
        self.era += 1
        for listener in self._listeners:
            listener(name)

    async def _listen(self) -> None:
        while True:
            try:
                async with aclosing(self._valkey.listen(CHANNEL)) as messages:
                    async for name in messages:
                        if name is None:
                            self.gaps += 1
                            self.era += 1
                            self._is_heard.set()
                        else:
                            self._hear(name)
            except LaurelsError as error:
                if self.is_heard:
                    log.warning("not listening", detail=error.detail)
            except Exception:
                log.exception("not listening")
            finally:
                self._is_heard.clear()
                self.era += 1
            await asyncio.sleep(RETRY_SECONDS)
