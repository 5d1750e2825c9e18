"""What the engine without async has of its own: a loop in a thread, and iterators."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from waiting import until

from laurels.errors import NotFound
from laurels.scores.submission import Submission
from laurels.scores.view_diff import Change, Snapshot
from laurels.sync import Laurels

if TYPE_CHECKING:
    from collections.abc import Generator

    from laurels.embedded import Endpoints


@pytest.fixture
def laurels(endpoints: Endpoints) -> Generator[Laurels]:
    with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as laurels:
        laurels.define("sync/board")
        yield laurels
        laurels.drop("sync/board", allow_drop="all")


def test_what_is_under_way_is_cancelled_when_it_is_closed(endpoints: Endpoints):
    is_cancelled = threading.Event()

    async def wait_for_ever() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            is_cancelled.set()
            raise

    async def begin() -> asyncio.Task[None]:
        task = asyncio.create_task(wait_for_ever())
        await asyncio.sleep(0)
        return task

    laurels = Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url)
    laurels.open()
    task = laurels.run(begin())
    laurels.close()
    assert is_cancelled.is_set()
    assert task.cancelled()
    assert not thread_of(laurels).is_alive()


def test_who_cannot_open_leaves_no_thread(endpoints: Endpoints):
    laurels = Laurels(valkey_url="redis://127.0.0.1:1", postgres_url=endpoints.postgres_url)
    with pytest.raises(Exception, match="Valkey"):
        laurels.open()
    assert not thread_of(laurels).is_alive()


def test_long_answers_are_iterated(laurels: Laurels):
    laurels.submit_many("sync/board", [Submission(f"m{number}", number) for number in range(5)])
    assert [len(page.entries) for page in laurels.pages("sync/board", limit=2)] == [2, 2, 1]
    assert [entry.score for entry in laurels.entries("sync/board", limit=2)] == [4, 3, 2, 1, 0]
    assert len(list(laurels.export(["sync/board"]))) > 0


def test_an_error_ends_an_iteration(laurels: Laurels):
    with pytest.raises(NotFound):
        next(laurels.entries("sync/nothing"))


def test_who_stops_watching_leaves_the_view(laurels: Laurels):
    for update in laurels.watch("sync/board"):
        if isinstance(update.value, Snapshot):
            laurels.submit("sync/board", "ada", 5)
            continue
        assert isinstance(update.value, Change)
        assert update.value.entries[0].member == "ada"
        break
    until(lambda: followers(laurels) == 0)


INTERRUPTED = """
import sys

from laurels.sync import Laurels
from waiting import until

with Laurels(valkey_url=sys.argv[1], postgres_url=sys.argv[2]) as laurels:
    try:
        for _ in laurels.watch("sync/board"):
            print("watching", flush=True)
    except KeyboardInterrupt:
        until(lambda: not sum(laurels.engine.live.followers.values()))
        print("has left")
"""


def test_an_interrupted_watch_leaves_the_view(laurels: Laurels, endpoints: Endpoints):
    command = [sys.executable, "-c", INTERRUPTED, endpoints.valkey_url, endpoints.postgres_url]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as watching:
        assert watching.stdout
        assert watching.stdout.readline() == "watching\n"
        watching.send_signal(signal.SIGINT)
        assert watching.communicate()[0] == "has left\n"
    assert watching.returncode == 0


def test_an_iteration_that_outlives_the_engine_ends_quietly(endpoints: Endpoints):
    with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as laurels:
        laurels.define("sync/left")
        updates = laurels.watch("sync/left")
        assert isinstance(next(updates).value, Snapshot)
        laurels.drop("sync/left")
    updates.close()


def thread_of(laurels: Laurels) -> threading.Thread:
    inside: Any = laurels
    return inside._thread


def followers(laurels: Laurels) -> int:
    return sum(laurels.engine.live.followers.values())
