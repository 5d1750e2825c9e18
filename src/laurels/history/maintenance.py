"""Maintains boards in the background: completes rolling windows and deletes what has expired."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from laurels.boards.keys import BoardRef
from laurels.errors import Conflict, LaurelsError, NotFound, Unavailable
from laurels.logs import get_logger
from laurels.moments import DAY
from laurels.postgres.tables import WITH_ROLLING
from laurels.scores.rolling import days_began
from laurels.valkey.announcements import due, looked_at
from laurels.valkey.functions import DefinitionChanged
from laurels.valkey.names import WINDOWS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from laurels.boards.catalog import Catalog
    from laurels.boards.retention import Retention
    from laurels.boards.store import BoardStore
    from laurels.clock import Clock
    from laurels.history.store.snapshots import SnapshotStore
    from laurels.moments import Moment
    from laurels.scores.rolling import Rolling
    from laurels.valkey.client import Valkey

    Tell = Callable[[str], Awaitable[None]]

log = get_logger("laurels.history")

# Boards that are swept at the same time.
SWEPT_TOGETHER: Final = 100


@dataclass(frozen=True)
class Maintenance:
    valkey: Valkey
    catalog: Catalog
    boards: BoardStore
    snapshots: SnapshotStore
    retention: Retention
    rolling: Rolling
    clock: Clock

    async def turn_over(self, previous: Moment | None, tell: Tell) -> int:
        """Completes today's and tomorrow's rolling windows, if a day began since `previous`; returns how many
        there are. Submissions and readers complete those of boards that are defined in between.

        An error of one board does not stop the others; it is raised at the end.
        """
        count, failures = 0, list[str]()
        turning = [
            stored
            for digest, example in (await self.boards.definitions(WITH_ROLLING)).items()
            if days_began(self.catalog.compile(example), previous, self.clock())
            for stored in await self.boards.matching(WITH_ROLLING, digest)
        ]
        for stored in turning:
            ref = BoardRef(stored.project, stored.board)
            try:
                board = await self.catalog.in_force(ref)
                count += await self.rolling.turn_over(board, self.clock())
            except (NotFound, DefinitionChanged):
                continue  # dropped, or changed: the process that changed it completes them
            except Conflict as error:
                _note(failures, ref, error)
            await tell(f"{ref}: {count} windows")
        _raise_noted(failures)
        return count

    async def sweep(self, tell: Tell) -> tuple[int, int]:
        """Deletes expired windows of the boards that are due, and the snapshots of dropped boards. Returns
        how many boards it swept and how many rows it deleted.

        An error of one board does not stop the others; it is raised at the end.
        """
        boards = deleted = left = 0
        failures: list[str] = []
        await self.valkey.announcer.flush()
        while seen := await due(self.valkey, WINDOWS, self.clock(), left, SWEPT_TOGETHER):
            results = await asyncio.gather(*(self._sweep_one(BoardRef.parse(name)) for name in seen))
            done: dict[str, int] = {}
            following: dict[str, Moment] = {}
            for (name, score), result in zip(seen.items(), results, strict=True):
                if isinstance(result, int):
                    following[name] = result
                    boards += 1
                elif isinstance(result, NotFound) and score < 0:  # it may be about to be defined
                    following[name] = self.clock() + DAY
                elif not isinstance(result, NotFound):
                    left += 1
                    if isinstance(result, LaurelsError):
                        _note(failures, BoardRef.parse(name), result)
                    continue
                done[name] = score
            await looked_at(self.valkey, WINDOWS, done, following)
            await tell(f"{boards} boards")
        while rows := await self.snapshots.sweep():
            deleted += rows
            await tell(f"{deleted} rows of dropped boards")
        _raise_noted(failures)
        return boards, deleted

    async def _sweep_one(self, ref: BoardRef) -> Moment | LaurelsError | None:
        """When to look again, or the board's error; None while its definition changes."""
        try:
            return await self.retention.sweep(await self.catalog.in_force(ref))
        except DefinitionChanged:
            return None
        except Unavailable:
            raise
        except LaurelsError as error:
            return error

    async def empty_discarded(self) -> int:
        """Deletes large keys of dropped windows piece by piece, and returns how many."""
        return await self.retention.empty_discarded()


def _note(failures: list[str], ref: BoardRef, error: LaurelsError) -> None:
    log.warning("board maintenance failed", board=str(ref), error=error.detail)
    failures.append(f"{ref}: {error.detail}")


def _raise_noted(failures: list[str]) -> None:
    if failures:
        raise LaurelsError(f"{len(failures)} boards failed; the first: {failures[0]}")
