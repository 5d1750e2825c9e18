"""Names that background work is to look at, so that it need not look at every board.

A process announces after it has written, in the background: no write waits for the node that has the list.
An announcement may be lost with its process or its node; `history/survey.py` finds what was not announced. A
name is removed, or put off, only if it was not announced again since it was read.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final

from laurels.errors import LaurelsError
from laurels.logs import get_logger
from laurels.valkey import functions, sorted_sets
from laurels.valkey.names import JOURNALS, WINDOWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from laurels.valkey.client import Valkey

# Between two announcements of a process: a board that is always written to is announced ten times a second.
PAUSE_SECONDS: Final = 0.1
RETRY_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 1.0
# Names of one call: some 0.5 ms.
ANNOUNCED_TOGETHER: Final = 1000
# Names that wait while the node is away. Further ones are left to the survey.
MOST_WAITING: Final = 100_000

log = get_logger("laurels.valkey")


class Announcer:
    """Announces what this process has written."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._waiting: dict[str, set[str]] = {JOURNALS: set(), WINDOWS: set()}
        self._sending: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()

    def journal(self, key: str) -> None:
        """A call may have appended to this journal."""
        self._add(JOURNALS, key)

    def windows(self, board: str) -> None:
        """Windows of this board may have been listed."""
        self._add(WINDOWS, board)

    def _add(self, key: str, name: str) -> None:
        waiting = self._waiting[key]
        if len(waiting) < MOST_WAITING:
            waiting.add(name)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        try:
            while any(self._waiting.values()):
                await asyncio.sleep(PAUSE_SECONDS)
                try:
                    await self.flush()
                except LaurelsError as error:
                    log.warning("writes cannot be announced to background work; retrying", error=error.detail)
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._sending = None

    async def flush(self) -> None:
        """Announces everything that waits."""
        async with self._one_at_a_time:
            for key, waiting in self._waiting.items():
                while names := list(islice(waiting, ANNOUNCED_TOGETHER)):
                    waiting.difference_update(names)  # one that is added meanwhile is announced again
                    try:
                        await functions.announce(self._valkey, key, names)
                    except BaseException:
                        waiting.update(names)
                        raise

    async def close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.flush()
        except (LaurelsError, TimeoutError) as error:
            log.warning("writes were not announced; the survey finds them", error=str(error))
        if self._sending:
            self._sending.cancel()


async def announced(valkey: Valkey, key: str) -> dict[str, int]:
    """Every name, with the score that it has."""
    return dict(await valkey.run(sorted_sets.up_to(key, "+inf")))


async def due(valkey: Valkey, key: str, now: int, skip: int, count: int) -> dict[str, int]:
    """Names to look at by this microsecond, with their scores, without the first `skip`."""
    return dict(await valkey.run(sorted_sets.up_to(key, now, skip, count)))


async def looked_at(
    valkey: Valkey, key: str, seen: Mapping[str, int], following: Mapping[str, int] | None = None
) -> None:
    """Removes these names, or puts them off until the microsecond that follows; not one that was announced
    meanwhile.
    """
    again = following or {}
    names = iter(seen.items())
    while together := list(islice(names, ANNOUNCED_TOGETHER)):
        words = [word for name, score in together for word in (name, score, again.get(name, ""))]
        await functions.looked_at(valkey, key, words)


async def announce_unknown(valkey: Valkey, key: str, names: Iterable[str]) -> int:
    """Announces those of these names that are not announced; returns how many."""
    added, coming = 0, iter(names)
    while together := list(islice(coming, ANNOUNCED_TOGETHER)):
        added += await functions.announce(valkey, key, together, only_new=True)
    return added
