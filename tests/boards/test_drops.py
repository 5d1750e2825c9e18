"""Interrupted drops are finished later, and no board shows anything of an older one."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Self

import pytest

from laurels.boards.keys import BoardRef
from laurels.boards.store import BoardStore
from laurels.errors import NotFound, Unavailable
from laurels.jobs.agenda import AGENDA
from laurels.jobs.job import JobRun
from laurels.scores.submission import Submission
from laurels.sync import Laurels

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from raw_valkey import RawValkey

    from laurels.boards.store import RetiredDefinition
    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints
    from laurels.jobs.job import PeriodicJob

DEFINITION: dict[str, Any] = {
    "windows": [{"period": "daily"}, {"period": "rolling", "days": 7}, {"period": "all_time"}],
    "ties": "earliest",
    "groups": [["country"]],
    "shards": 2,
}
MEMBERS = [
    Submission(f"m{number}", number, id=f"id-{number}", groups={"country": "BR"}, metadata={"n": number})
    for number in range(10)
]
_numbers = count(1)


class ValkeyProxy:
    """A proxy to a Valkey at a unix socket that stops after a number of sends."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._left: int | None = None
        self.sent = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return "redis://{}:{}".format(*self._listener.getsockname())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def allow(self, sends: int | None) -> None:
        with self._lock:
            self._left, self.sent = sends, 0

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._address)
                for work in ((self._forth, client, server), (self._back, server, client)):
                    threading.Thread(target=work[0], args=work[1:], daemon=True).start()

    def _may_pass(self) -> bool:
        with self._lock:
            self.sent += 1
            if self._left is not None:
                self._left -= 1
            return self._left is None or self._left >= 0

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, suppress(OSError):
            while piece := client.recv(2**20):
                if not self._may_pass():
                    return
                server.sendall(piece)

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while piece := server.recv(2**20):
                client.sendall(piece)
            client.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(endpoints: Endpoints) -> Generator[ValkeyProxy]:
    with ValkeyProxy(endpoints.valkey_url.removeprefix("unix://").partition("?")[0]) as proxy:
        yield proxy


@pytest.fixture
def engine(endpoints: Endpoints, clock: FixedClock) -> Generator[Laurels]:
    with Laurels(
        valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=clock
    ) as laurels:
        yield laurels


@pytest.fixture
def cut_engine(endpoints: Endpoints, proxy: ValkeyProxy, clock: FixedClock) -> Generator[Laurels]:
    """An engine whose connection to Valkey can be cut."""
    with Laurels(valkey_url=proxy.url, postgres_url=endpoints.postgres_url, clock=clock) as laurels:
        yield laurels
        proxy.allow(None)


@pytest.fixture
def fill(engine: Laurels) -> Callable[[], str]:
    def define() -> str:
        board = f"tests/drops-{next(_numbers)}"
        engine.define(board, DEFINITION)
        engine.submit_many(board, MEMBERS)
        engine.page(board, period="rolling_7d")
        return board

    return define


def finish(engine: Laurels) -> None:
    engine.run(engine.engine.drops.finish_all())


def is_pending(engine: Laurels, board: str) -> bool:
    return tuple(board.split("/")) in engine.run(engine.engine.store.all_retired())


def left(raw: RawValkey, board: str) -> list[bytes]:
    return raw.keys(f"{{{board}/")


def steps_of(proxy: ValkeyProxy, work: Callable[[], object]) -> int:
    proxy.allow(None)
    work()
    return proxy.sent


def test_a_drop_cut_off_at_any_step_is_finished_by_the_job(
    engine: Laurels, cut_engine: Laurels, proxy: ValkeyProxy, fill: Callable[[], str], raw: RawValkey
):
    (job,) = (job for job in AGENDA if job.name == "drops")
    step, was_cut_off = 0, True
    while was_cut_off:  # until a drop gets through; how many steps it takes differs by one or two
        board = fill()
        proxy.allow(step)
        cut_engine.drop(board, allow_drop="all")
        was_cut_off = is_pending(engine, board)
        engine.run(_run(job, engine))
        assert not is_pending(engine, board)
        assert left(raw, board) == [], f"after step {step}"
        step += 1
    assert step > 10


def test_a_board_made_again_after_a_drop_cut_off_at_any_step_begins_empty(
    engine: Laurels, cut_engine: Laurels, proxy: ValkeyProxy, fill: Callable[[], str], raw: RawValkey
):
    first = fill()
    for step in range(0, steps_of(proxy, lambda: cut_engine.drop(first, allow_drop="all")), 2):
        board = fill()
        proxy.allow(step)
        cut_engine.drop(board, allow_drop="all")
        engine.define(board, DEFINITION)
        assert [raw.client.type(key) for key in left(raw, board)] == [b"hash"] * 2, "but for versions"
        assert engine.submit_many(board, MEMBERS[:7]).accepted == 7
        for period in ("daily", "rolling_7d", "all_time"):
            assert engine.page(board, period=period, group="country=BR").total == 7
        engine.drop(board, allow_drop="all")


def test_a_process_that_knows_the_dropped_board_cannot_write_to_it(
    engine: Laurels, cut_engine: Laurels, proxy: ValkeyProxy, fill: Callable[[], str], raw: RawValkey
):
    board = fill()
    stale = engine.run(engine.engine.store.get(*board.split("/")))
    assert stale
    proxy.allow(0)
    cut_engine.drop(board, allow_drop="all")
    finish(engine)
    with pytest.raises(NotFound):
        engine.submit(board, "late", 1)
    catalog = engine.engine.drops.catalog
    engine.run(catalog.adopt(catalog.compile(stale)))  # loaded before the drop, and put in force after it
    with pytest.raises(NotFound):
        engine.submit(board, "late", 1)
    assert left(raw, board) == []


def test_a_late_worker_deletes_nothing_of_the_next_board(
    engine: Laurels, cut_engine: Laurels, proxy: ValkeyProxy, fill: Callable[[], str]
):
    board = fill()
    proxy.allow(0)
    cut_engine.drop(board, allow_drop="all")
    late = engine.run(engine.engine.store.retired(*board.split("/")))
    engine.define(board, DEFINITION)
    engine.submit_many(board, MEMBERS[:7])
    store, drops = engine.engine.store, engine.engine.drops

    class Late(BoardStore):
        async def retired(self, project: str, board: str) -> list[RetiredDefinition]:  # noqa: ARG002  # as it was
            return late

        async def get(self, project: str, board: str) -> None:  # noqa: ARG002  # as it was
            return None

    engine.run(replace(drops, store=Late(engine.engine.postgres)).finish(BoardRef.parse(board)))
    assert engine.page(board).total == 7
    stored = engine.run(store.get(*board.split("/")))
    assert stored
    assert engine.submit(board, "new", 1).applied


def test_a_change_of_shards_cut_off_at_any_step_leaves_a_board_that_works(
    engine: Laurels, cut_engine: Laurels, proxy: ValkeyProxy, fill: Callable[[], str]
):
    def emptied() -> str:
        board = fill()
        for each in MEMBERS:
            engine.remove(board, each.member)
        proxy.allow(None)
        cut_engine.page(board)
        return board

    first = emptied()
    wanted = {**DEFINITION, "shards": 3}
    for step in range(0, steps_of(proxy, lambda: cut_engine.define(first, wanted)), 3):
        board = emptied()
        proxy.allow(step)
        with suppress(Unavailable):
            cut_engine.define(board, wanted)
        finish(engine)
        new = [Submission(f"new{number}", number) for number in range(7)]
        assert engine.submit_many(board, new).accepted == 7
        assert engine.page(board).total == 7
        engine.drop(board, allow_drop="all")


def test_a_change_for_which_the_board_is_held_cut_off_at_any_step_leaves_a_board_that_works(
    engine: Laurels, cut_engine: Laurels, proxy: ValkeyProxy, fill: Callable[[], str]
):
    def emptied() -> str:
        board = fill()
        for each in MEMBERS:
            engine.remove(board, each.member)
        proxy.allow(None)
        cut_engine.page(board)
        return board

    wanted = {**DEFINITION, "windows": [{"period": "daily"}], "score": "int64"}
    first = emptied()
    for step in range(0, steps_of(proxy, lambda: cut_engine.define(first, wanted)), 3):
        board = emptied()
        proxy.allow(step)
        with suppress(Unavailable):
            cut_engine.define(board, wanted)
        finish(engine)
        engine.submit_many(board, MEMBERS)  # with ids that were seen before: they count once
        new = [Submission(f"new{number}", number) for number in range(7)]
        assert engine.submit_many(board, new).accepted == 7
        assert engine.page(board).total == 7
        engine.drop(board, allow_drop="all")


def test_a_window_that_was_taken_out_comes_back_empty_wherever_that_was_cut_off(
    engine: Laurels, cut_engine: Laurels, proxy: ValkeyProxy, fill: Callable[[], str]
):
    without = {**DEFINITION, "windows": [{"period": "daily"}]}
    both = {**DEFINITION, "windows": [{"period": "daily"}, {"period": "all_time"}]}
    first, gone = fill(), ["daily", "rolling_7d", "all_time"]
    for step in range(0, steps_of(proxy, lambda: cut_engine.define(first, without, allow_drop=gone)), 3):
        board = fill()
        proxy.allow(None)
        cut_engine.page(board)
        proxy.allow(step)
        with suppress(Unavailable):
            cut_engine.define(board, without, allow_drop=gone)
        engine.define(board, without, allow_drop=gone)
        engine.define(board, both)
        assert engine.page(board).total == len(MEMBERS)
        assert engine.page(board, period="all_time").total == 0
        engine.drop(board, allow_drop="all")


def test_keys_that_a_dropped_board_named_are_empty_for_the_next_that_names_them(
    engine: Laurels, cut_engine: Laurels, proxy: ValkeyProxy, raw: RawValkey
):
    named = {"windows": [{"period": "all_time"}], "keys": {"all_time": "drops:named"}}
    engine.define("tests/named-one", named)
    engine.submit("tests/named-one", "ada", 1)
    proxy.allow(0)
    cut_engine.drop("tests/named-one", allow_drop="all")
    assert raw.client.exists("drops:named")
    engine.define("tests/named-two", named)
    assert engine.page("tests/named-two").total == 0
    engine.submit("tests/named-two", "bob", 1)
    finish(engine)
    assert [entry.member for entry in engine.page("tests/named-two").entries] == ["bob"]
    engine.drop("tests/named-two", allow_drop="all")


def test_a_drain_that_began_before_the_drop_archives_nothing_of_the_next_board(
    engine: Laurels, fill: Callable[[], str]
):
    board = fill()
    drain = engine.engine.drain
    streams = engine.run(drain.journal_streams.of_board(BoardRef.parse(board)))
    engine.drop(board, allow_drop="all")
    engine.define(board, DEFINITION)
    engine.submit_many(board, MEMBERS)
    engine.run(drain.store.begin(streams))

    async def leased() -> object:
        async with engine.engine.postgres.writing() as connection:
            return await drain.store.lease(connection, streams)

    assert engine.run(leased()) == {}
    engine.drop(board, allow_drop="all")


async def _run(job: PeriodicJob, engine: Laurels) -> str:
    return await job.run(JobRun(engine.engine, None, _say_nothing))


async def _say_nothing(_: str) -> None:
    pass
