"""Looks at some boards at a time, whatever happens to them, and announces what no process has announced:
journals with entries, dead letters, windows.

A process announces its writes by itself (`valkey/announcements.py`). It may be killed before that, or the
list may be lost with its node. So in its first run, and after Valkey may have lost data, a worker looks at
all boards.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from laurels.boards.keys import BoardRef, KeySpace
from laurels.errors import InvalidInput
from laurels.logs import get_logger
from laurels.valkey.announcements import announce_unknown
from laurels.valkey.keyspace import exists
from laurels.valkey.names import DEAD_LETTERS, JOURNALS, WINDOWS
from laurels.valkey.streams import length

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from laurels.boards.definition import StoredBoard
    from laurels.boards.store import BoardStore
    from laurels.valkey.client import Valkey

BOARDS_A_QUERY: Final = 500
# Every ten seconds: 100,000 boards in 17 minutes. With twice as many, a worker took 11 ms of processor time a
# second more than at a hundred boards.
BOARDS_A_RUN: Final = 1_000

log = get_logger("laurels.history")


class Survey:
    def __init__(self, valkey: Valkey, boards: BoardStore) -> None:
        self._valkey = valkey
        self._boards = boards
        self._after: int | None = None
        """The id of the last board of the previous run; None if that was the last of all."""
        self._losses = -1

    async def run(self, tell: Callable[[str], Awaitable[None]]) -> tuple[int, int]:
        """Looks at the next boards; returns how many, and how many names it announced."""
        looked = found = 0
        losses = self._valkey.losses
        is_complete = losses != self._losses
        after = 0 if is_complete else self._after or 0
        while True:
            boards, last = await self._boards.following(after, BOARDS_A_QUERY)
            found += await self._announce(boards)
            looked += len(boards)
            self._after = last
            if last is None or (looked >= BOARDS_A_RUN and not is_complete):
                break
            after = last
            await tell(f"{looked} boards")
        self._losses = losses
        if found:
            log.info("announced journals, dead letters and windows of boards to background work", names=found)
        return looked, found

    async def _announce(self, boards: list[StoredBoard]) -> int:
        windows: dict[str, str] = {}
        streams: dict[str, str] = {}
        for stored in boards:
            ref = BoardRef(stored.project, stored.board)
            with suppress(InvalidInput):  # defined for a single node: unusable on a cluster
                keys = KeySpace(ref, stored.definition, cluster=self._valkey.is_cluster)
                for shard in range(keys.shards):
                    windows[keys.of_board(shard, "windows")] = str(ref)
                    if stored.definition.archive.journal:
                        streams[keys.of_board(shard, "journal")] = JOURNALS
                        streams[keys.of_board(shard, "dead")] = DEAD_LETTERS
        names: dict[str, set[str]] = {JOURNALS: set(), DEAD_LETTERS: set(), WINDOWS: set()}
        lengths = await self._valkey.run_all(map(length, streams))
        for (stream, of), count in zip(streams.items(), lengths, strict=True):
            if count:
                names[of].add(stream)
        listed = await self._valkey.run_all(map(exists, windows))
        names[WINDOWS] = {board for board, is_there in zip(windows.values(), listed, strict=True) if is_there}
        return sum([await announce_unknown(self._valkey, key, each) for key, each in names.items()])
