"""Forks a worker for each line of input. The worker drains the journal and kills itself after the commit,
before it trims. Prints the signal that ended it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

from laurels.boards.catalog import Catalog
from laurels.boards.store import BoardStore
from laurels.clock import system_clock
from laurels.journal.drain import Drain
from laurels.postgres.engine import Postgres
from laurels.scores.feeds import Feeds
from laurels.scores.rolling import Rolling
from laurels.valkey.client import Valkey

if TYPE_CHECKING:
    from laurels.journal.entry import StreamId
    from laurels.journal.store.rows import Stream


class Dying(Drain):
    async def _trim(self, archived: dict[Stream, StreamId]) -> None:
        assert archived
        os.kill(os.getpid(), signal.SIGKILL)


async def work(valkey_url: str, postgres_url: str) -> None:
    valkey, postgres = Valkey(valkey_url), Postgres(postgres_url)
    store = BoardStore(postgres)
    catalog = Catalog(valkey, store)
    feeds = Feeds(valkey, catalog, Rolling(valkey, catalog, system_clock), system_clock, "fast")
    await Dying(valkey, postgres, store, feeds, system_clock).run_once()


for _ in sys.stdin:
    worker = os.fork()
    if worker == 0:
        asyncio.run(work(*sys.argv[1:]))
        os._exit(1)
    sys.stdout.write(f"{os.WTERMSIG(os.waitpid(worker, 0)[1])}\n")
    sys.stdout.flush()
