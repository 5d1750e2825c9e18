"""The set-up of a benchmark: its own servers, an engine over them, and a raw client."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import redis
from rich.console import Console
from rich.progress import track

from bench.results import tail_of
from laurels import Laurels, Submission, embedded
from laurels.clock import FixedClock
from laurels.moments import moment_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator
    from datetime import datetime

    from bench.results import Tail
    from laurels.embedded import Endpoints

T = TypeVar("T")
Raw = Any  # redis-py types its client only in part
console = Console(width=None if sys.stdout.isatty() else 170)
FOUR_WINDOWS = [{"period": period} for period in ("daily", "weekly", "monthly", "all_time")]


@dataclass(frozen=True)
class Ground:
    laurels: Laurels
    raw: Raw
    clock: FixedClock

    async def fill(self, board: str, members: int, first: int = 0) -> None:
        """Gives every member from the first on an entry with a random score."""
        chosen = random.Random(first)  # noqa: S311  # data, not secrets
        scores = (Submission(member(i), chosen.randrange(1_000_000)) for i in range(first, members))
        await self.laurels.submit_many(board, shown(scores, members - first, f"filling {board}"))


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


def sizes(most: int, parts: Iterable[int]) -> list[int]:
    """These parts of the most: 10 for a tenth."""
    return sorted({max(1, most // part) for part in parts})


def member(number: int) -> str:
    """A member of eight bytes, as in earlier measurements."""
    return f"m{number:07d}"


def shown(submissions: Iterable[Submission], total: int, what: str) -> Iterator[Submission]:
    return iter(track(submissions, what, total, console=console, transient=True))


async def in_turns(
    asked: Iterable[T], ours: Callable[[T], Awaitable[object]], other: Callable[[T], Awaitable[object]]
) -> tuple[Tail, Tail]:
    """Times both with the same arguments, in turns, so that both meet the same noise."""
    times: tuple[list[float], list[float]] = ([], [])
    for each in asked:
        for ask, taken in zip((ours, other), times, strict=True):
            began = time.perf_counter()
            await ask(each)
            taken.append(time.perf_counter() - began)
    return tail_of(times[0]), tail_of(times[1])
