"""What the examples share: Laurels on a clock that they set, and the boards of a file."""

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
    """An engine at a moment of the play's choice; its background work is done when the play says so."""

    laurels: Laurels
    clock: FixedClock
    _worker: Runner

    @property
    def now(self) -> datetime:
        return datetime_of(self.clock.now)

    def turn_to(self, when: datetime) -> None:
        self.clock.now = moment_of(when)

    async def work(self) -> None:
        """What workers would have done by now: the journal archived, snapshots taken."""
        await self._worker.run_due()

    async def apply(self, file: Path) -> None:
        """Defines the boards of a file, as `laurels apply` does; refused where one of them is there."""
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
    """On the servers of the settings or of these URLs; else on embedded ones, in a folder that goes with
    them unless one is named.
    """
    async with AsyncExitStack() as stack:
        settings = load_settings(data_dir=data_dir, valkey_url=valkey_url, postgres_url=postgres_url)
        if data_dir is None and not (settings.valkey_url and settings.postgres_url):
            data_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="laurels-example-")))
            data_dir.chmod(0o711)  # root's servers run as another user
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
    """A table as wide as its title."""
    made = table(*columns, title=title, caption=caption)
    made.min_width = len(title)
    return made


def perform(
    run: Callable[[Stage, Console], Awaitable[str]], begin: datetime, data_dir: Path | None, plot: Path
) -> None:
    """Runs a play in a terminal, and writes its plot."""
    console = Console(highlight=False, emoji=False)

    async def played() -> str:
        async with opened(begin, data_dir) as stage:
            return await run(stage, console)

    plot.write_text(asyncio.run(played()))
    console.print(f"Plot: {plot}", soft_wrap=True)
