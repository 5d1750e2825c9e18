"""The set-up of a benchmark: its own servers, an engine over them, and a raw client."""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
from rich.console import Console
from rich.progress import track
from rich.table import Table

from laurels import Laurels, Submission, embedded
from laurels.clock import FixedClock
from laurels.moments import moment_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterable, Iterator
    from datetime import datetime

    from laurels.embedded import Endpoints

Raw = Any  # redis-py types its client only in part
console = Console()
FOUR_WINDOWS = [{"period": period} for period in ("daily", "weekly", "monthly", "all_time")]


@dataclass(frozen=True)
class Ground:
    laurels: Laurels
    raw: Raw
    clock: FixedClock

    async def fill(self, board: str, members: int, seed: int = 1) -> None:
        """Gives every member an entry with a random score."""
        chosen = random.Random(seed)  # noqa: S311  # data, not secrets
        scores = (Submission(member(i), chosen.randrange(1_000_000)) for i in range(members))
        await self.laurels.submit_many(board, shown(scores, members, f"filling {board}"))


@asynccontextmanager
async def ground(now: datetime) -> AsyncGenerator[Ground]:
    """Starts fresh embedded servers. The clock shows `now` until it is advanced."""
    with temporary_servers() as urls:
        clock = FixedClock(moment_of(now))
        raw = connected(urls)
        async with Laurels(
            valkey_url=urls.valkey_url, postgres_url=urls.postgres_url, clock=clock
        ) as laurels:
            yield Ground(laurels, raw, clock)
        raw.close()


@contextmanager
def temporary_servers() -> Generator[Endpoints]:
    folder = Path(tempfile.mkdtemp(prefix="laurels-bench-"))
    folder.chmod(0o711)  # root's servers run as another user, which needs access
    try:
        with embedded.start(folder / "data") as servers:
            # A rewrite of the append-only file would take a core in one of the turns.
            with closing(connected(servers.endpoints)) as raw:
                raw.config_set("auto-aof-rewrite-percentage", 0)
            yield servers.endpoints
    finally:
        shutil.rmtree(folder)


def connected(urls: Endpoints) -> Raw:
    client: Any = redis.Redis
    return client.from_url(urls.valkey_url)


def member(number: int) -> str:
    """A member of eight bytes, as in earlier measurements."""
    return f"m{number:07d}"


def shown(submissions: Iterable[Submission], total: int, what: str) -> Iterator[Submission]:
    return iter(track(submissions, what, total, console=console, transient=True))


def table(title: str, *columns: str) -> Table:
    drawn = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        drawn.add_column(column, justify="left" if number == 0 else "right")
    return drawn


def verdict(*, holds: bool) -> str:
    return "[green]holds[/]" if holds else "[red]missed[/]"


def show_turns(
    title: str, base: tuple[str, list[float]], ours: tuple[str, list[float]], target: float
) -> bool:
    """Prints two rates and their ratio in each turn; returns whether the median ratio reaches the target."""
    ratios = [rate / other for rate, other in zip(ours[1], base[1], strict=True)]
    holds = statistics.median(ratios) >= target
    drawn = table(title, "", "median a second", "least")
    for name, rates in (base, ours):
        drawn.add_row(name, f"{statistics.median(rates):,.0f}", f"{min(rates):,.0f}")
    ratio = f"{ours[0]} by {base[0]}, target {target}"
    drawn.add_row(ratio, f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f}")
    console.print(drawn, verdict(holds=holds))
    return holds
