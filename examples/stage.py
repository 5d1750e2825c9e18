"""Shared by the examples: Laurels with a clock that the example sets, and boards from a file."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from laurels.cli.boards_file import in_order, read_boards
from laurels.cli.output import table
from laurels.clock import FixedClock
from laurels.engine import Laurels
from laurels.jobs.agenda import AGENDA
from laurels.jobs.runner import Runner
from laurels.moments import datetime_of, moment_of
from laurels.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from datetime import datetime

    from rich.table import Table


@dataclass(frozen=True)
class Stage:
    """An engine with a clock that the example sets. Background work runs only when the example asks."""

    laurels: Laurels
    clock: FixedClock
    _worker: Runner

    @property
    def now(self) -> datetime:
        return datetime_of(self.clock.now)

    def turn_to(self, when: datetime) -> None:
        self.clock.now = moment_of(when)

    async def work(self) -> None:
        """Does the background work that is due: archives the journal, takes snapshots."""
        await self._worker.run_due()

    async def apply(self, file: Path) -> None:
        """Defines the boards of a file, as `laurels apply` does. Refuses boards that exist."""
        boards = read_boards(file)
        for board in in_order(boards):
            await self.laurels.define(board, boards[board], only_new=True)


@asynccontextmanager
async def opened(
    begin: datetime,
    data_dir: Path | None = None,
    *,
    valkey_url: str | None = None,
    postgres_url: str | None = None,
) -> AsyncGenerator[Stage]:
    """Opens a stage on the servers of the settings or these URLs, or else on embedded servers, in a temporary
    folder unless `data_dir` is given.
    """
    async with AsyncExitStack() as stack:
        settings = load_settings(data_dir=data_dir, valkey_url=valkey_url, postgres_url=postgres_url)
        if data_dir is None and not (settings.valkey_url and settings.postgres_url):
            data_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="laurels-example-")))
            data_dir.chmod(0o711)  # root's servers run as another user, which needs access
            data_dir /= "data"
        clock = FixedClock(moment_of(begin))
        laurels = Laurels(
            data_dir=data_dir, valkey_url=valkey_url, postgres_url=postgres_url, clock=clock, jobs=False
        )
        await stack.enter_async_context(laurels)
        worker = Runner(laurels, AGENDA)
        stack.push_async_callback(worker.close)
        yield Stage(laurels, clock, worker)


def titled(title: str, *columns: str, caption: str | None = None) -> Table:
    """A table at least as wide as its title."""
    made = table(*columns, title=title, caption=caption)
    made.min_width = len(title)
    return made


def perform(
    run: Callable[[Stage, Console], Awaitable[str]], begin: datetime, data_dir: Path | None, plot: Path
) -> None:
    """Runs an example in a terminal, and writes its plot."""
    console = Console(highlight=False, emoji=False)

    async def played() -> str:
        async with opened(begin, data_dir) as stage:
            return await run(stage, console)

    plot.write_text(asyncio.run(played()))
    console.print(f"Plot: {plot}", soft_wrap=True)
