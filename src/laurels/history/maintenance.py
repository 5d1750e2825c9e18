"""Maintains boards in the background: completes rolling windows and deletes what has expired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from laurels.boards.keys import BoardRef
from laurels.errors import Conflict, LaurelsError, NotFound
from laurels.logs import get_logger
from laurels.valkey.functions import DefinitionChanged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from laurels.boards.catalog import Catalog
    from laurels.boards.retention import Retention
    from laurels.boards.store import BoardStore
    from laurels.clock import Clock
    from laurels.history.store.snapshots import SnapshotStore
    from laurels.scores.rolling import Rolling

    Tell = Callable[[str], Awaitable[None]]

log = get_logger("laurels.history")

ROLLING: Final = '$.windows[*] ? (@.period == "rolling")'


@dataclass(frozen=True)
class Maintenance:
    catalog: Catalog
    boards: BoardStore
    snapshots: SnapshotStore
    retention: Retention
    rolling: Rolling
    clock: Clock

    async def turn_over(self, tell: Tell) -> int:
        """Completes today's and tomorrow's rolling windows, and returns how many there are.

        An error of one board does not stop the others; it is raised at the end.
        """
        count, failures = 0, list[str]()
        for stored in await self.boards.matching(ROLLING):
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
        """Deletes expired windows, and the snapshots of dropped boards. Returns how many boards it swept and
        how many rows it deleted.

        An error of one board does not stop the others; it is raised at the end.
        """
        boards = deleted = 0
        failures: list[str] = []
        for project in await self.boards.projects():
            for stored in await self.boards.boards(project):
                ref = BoardRef(stored.project, stored.board)
                try:
                    await self.retention.sweep(await self.catalog.in_force(ref))
                except (NotFound, DefinitionChanged):
                    continue
                except Conflict as error:
                    _note(failures, ref, error)
                    continue
                boards += 1
            await tell(f"{boards} boards")
        while rows := await self.snapshots.sweep():
            deleted += rows
            await tell(f"{deleted} rows of dropped boards")
        _raise_noted(failures)
        return boards, deleted

    async def empty_discarded(self) -> int:
        """Deletes large keys of dropped windows piece by piece, and returns how many."""
        return await self.retention.empty_discarded()


def _note(failures: list[str], ref: BoardRef, error: LaurelsError) -> None:
    log.warning("board maintenance failed", board=str(ref), error=error.detail)
    failures.append(f"{ref}: {error.detail}")


def _raise_noted(failures: list[str]) -> None:
    if failures:
        raise LaurelsError(f"{len(failures)} boards failed; the first: {failures[0]}")
