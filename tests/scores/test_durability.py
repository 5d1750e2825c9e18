"""What an answer waits for: on real servers, with and without an append-only file and replicas."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import redis
from places import fast_place, folder_that_anybody_may_pass
from supported_servers import lacks_waitaof
from valkey_servers import running_valkey
from waiting import until

from laurels import Submission
from laurels.errors import InvalidInput, OutcomeUnknown, StartupError
from laurels.sync import Laurels
from laurels.valkey import client as valkey_client
from laurels.valkey.client import Valkey

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from valkey_servers import Server

    from laurels.embedded import Endpoints
    from laurels.valkey.messages import Durability

    NewBoard = Callable[..., str]

pytestmark = pytest.mark.skipif(lacks_waitaof(), reason="durability `fsync` needs Redis 7.2 or Valkey")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def always() -> Generator[Server]:
    """A Valkey that has every write on disk before it answers."""
    with running_valkey(appendonly="yes", appendfsync="always") as server:
        yield server


@pytest.fixture(scope="module")
def every_second() -> Generator[Server]:
    with running_valkey(appendonly="yes", appendfsync="everysec") as server:
        yield server


@pytest.fixture(scope="module")
def without_file() -> Generator[Server]:
    with running_valkey() as server:
        yield server


@contextmanager
def opened(server: Server, endpoints: Endpoints, **options: Any) -> Generator[Laurels]:  # noqa: ANN401  # of Laurels
    with Laurels(valkey_url=server.url, postgres_url=endpoints.postgres_url, **options) as laurels:
        yield laurels


def new_board(laurels: Laurels, **definition: object) -> str:
    board = f"durability/board-{next(_numbers)}"
    laurels.define(board, definition)
    return board


def waits(server: Server) -> int:
    """How many waits for the disk it was asked for."""
    told = server.client.info("commandstats").get("cmdstat_waitaof")
    return told["calls"] if told else 0


@pytest.mark.parametrize("durability", ["fast", "fsync"])
def test_only_what_asks_for_it_waits(always: Server, endpoints: Endpoints, durability: Durability):
    with opened(always, endpoints) as laurels:
        board = new_board(laurels)
        before = waits(always)
        laurels.submit(board, "ada", 1, durability=durability)
        laurels.submit_many(board, [Submission("bob", 2)], durability=durability)
        assert laurels.set_metadata(board, "ada", {"n": 1}, durability=durability).applied
        assert laurels.remove(board, "ada", durability=durability)
        assert waits(always) - before == (4 if durability == "fsync" else 0)


def test_the_deployment_says_what_holds_unless_the_request_does(always: Server, endpoints: Endpoints):
    with opened(always, endpoints, durability="fsync") as laurels:
        board = new_board(laurels)
        before = waits(always)
        laurels.submit(board, "ada", 1)
        assert waits(always) == before + 1
        laurels.submit(board, "ada", 2, durability="fast")
        assert waits(always) == before + 1


def test_a_batch_waits_once_for_many_calls(always: Server, endpoints: Endpoints):
    with opened(always, endpoints) as laurels:
        board = new_board(laurels)
        before = waits(always)
        many = [Submission(f"m{number}", number) for number in range(5000)]
        assert laurels.submit_many(board, many, durability="fsync").accepted == 5000
        assert always.client.xlen(f"lb:{{{board}}}:journal") > 5
        assert waits(always) == before + 1


def test_single_submissions_that_go_out_together_wait_together(always: Server, endpoints: Endpoints):
    with opened(always, endpoints) as laurels:
        board = new_board(laurels)
        before = waits(always)

        async def submit_all() -> None:
            engine = laurels.engine
            await asyncio.gather(
                *(engine.submit(board, f"m{number}", number, durability="fsync") for number in range(100))
            )

        laurels.run(submit_all())
        assert waits(always) - before <= 3
        assert laurels.page(board).total == 100


def test_boards_that_are_fed_wait_as_well(always: Server, endpoints: Endpoints):
    with opened(always, endpoints) as laurels:
        fed = new_board(laurels)
        board = new_board(laurels, feeds=[fed])
        before = waits(always)
        laurels.submit(board, "ada", 1, durability="fsync")
        assert waits(always) == before + 2
        laurels.submit_many(board, [Submission("bob", 1)], durability="fsync")
        assert waits(always) == before + 4


def test_what_does_not_reach_the_disk_in_time_leaves_the_outcome_unknown(
    endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(valkey_client, "WAIT_SECONDS", 0.2)
    with running_valkey(appendonly="yes", appendfsync="no") as server, opened(server, endpoints) as laurels:
        board = new_board(laurels)
        with pytest.raises(OutcomeUnknown, match="did not have the write on disk within") as caught:
            laurels.submit(board, "ada", 1, durability="fsync")
        assert caught.value.retry_with is not None
        with pytest.raises(OutcomeUnknown, match="did not have the write on disk within"):
            laurels.submit_many(board, [Submission("bob", 1)], durability="fsync")
        server.client.config_set("appendfsync", "always")
        again = laurels.submit(board, "ada", 1, id=caught.value.retry_with, durability="fsync")
        assert (again.applied, again.score) == (False, 1)


def test_a_repeated_id_waits_for_the_first_time_it_was_written(every_second: Server, endpoints: Endpoints):
    with opened(every_second, endpoints) as laurels, opened(every_second, endpoints) as other:
        board = new_board(laurels)
        other.define(board)
        laurels.submit(board, "ada", 1, id="one", durability="fast")
        offset = every_second.client.info("replication")["master_repl_offset"]
        again = other.submit(board, "ada", 1, id="one", durability="fsync")
        assert not again.applied
        # It wrote something itself, without which its connection would have had nothing to wait for.
        assert every_second.client.info("replication")["master_repl_offset"] > offset

        def writes_nothing() -> bool:
            offset = every_second.client.info("replication")["master_repl_offset"]
            assert laurels.submit(board, "ada", 1, id="one").applied is False
            return every_second.client.info("replication")["master_repl_offset"] == offset

        until(writes_nothing)  # once the announcements of the first are written


def test_metadata_whose_id_was_seen_writes_something_too(every_second: Server, endpoints: Endpoints):
    with opened(every_second, endpoints) as laurels:
        board = new_board(laurels, archive={"journal": False})
        laurels.submit(board, "ada", 1)
        laurels.set_metadata(board, "ada", {"n": 1}, id="one")
        offset = every_second.client.info("replication")["master_repl_offset"]
        assert not laurels.set_metadata(board, "ada", {"n": 1}, id="one", durability="fsync").applied
        assert every_second.client.info("replication")["master_repl_offset"] > offset


def test_a_removal_repeated_writes_something_too(every_second: Server, endpoints: Endpoints):
    with opened(every_second, endpoints) as laurels:
        board = new_board(laurels, archive={"journal": False})
        laurels.submit(board, "ada", 1)
        laurels.remove(board, "ada")
        offset = every_second.client.info("replication")["master_repl_offset"]
        assert not laurels.remove(board, "ada", durability="fsync")
        assert every_second.client.info("replication")["master_repl_offset"] > offset


class TestWithoutAnAppendOnlyFile:
    def test_a_deployment_that_wants_it_does_not_start(self, without_file: Server, endpoints: Endpoints):
        with (
            pytest.raises(StartupError, match="durability is 'fsync', but Valkey keeps no append-only file"),
            opened(without_file, endpoints, durability="fsync"),
        ):
            pass

    def test_a_request_that_wants_it_is_told_that_it_is_not_so(
        self, without_file: Server, endpoints: Endpoints
    ):
        with opened(without_file, endpoints) as laurels:
            board = new_board(laurels)
            with pytest.raises(OutcomeUnknown, match="set `appendonly yes`") as caught:
                laurels.submit(board, "ada", 1, durability="fsync")
            assert caught.value.retry_with is not None
            assert laurels.standing(board, "ada").score == 1
            with pytest.raises(OutcomeUnknown):
                laurels.submit_many(board, [Submission("bob", 1)], durability="fsync")
            with pytest.raises(OutcomeUnknown) as unknown:
                laurels.set_metadata(board, "ada", {"n": 1}, durability="fsync")
            assert unknown.value.retry_with is not None
            again = laurels.set_metadata(board, "ada", {"n": 2}, id=unknown.value.retry_with)
            assert (again.applied, laurels.standing(board, "ada").metadata) == (False, {"n": 1})
            with pytest.raises(OutcomeUnknown):
                laurels.remove(board, "ada", durability="fsync")


@pytest.fixture(scope="module")
def primary() -> Generator[tuple[Server, Server]]:
    """A primary and its replica."""
    with ExitStack() as stack:
        port = _free_port()
        primary = stack.enter_context(
            running_valkey(
                port=str(port),
                bind="127.0.0.1",
                appendonly="yes",
                appendfsync="always",
                repl_diskless_sync_delay="0",
            )
        )
        replica = stack.enter_context(running_valkey(replicaof=f"127.0.0.1 {port}"))
        until(lambda: replica.client.info("replication")["master_link_status"] == "up")
        until(lambda: primary.client.info("replication")["connected_slaves"] == 1)
        yield primary, replica


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class TestReplicas:
    def test_have_what_was_answered(self, primary: tuple[Server, Server], endpoints: Endpoints):
        server, replica = primary
        with opened(server, endpoints, durability="replicated") as laurels:
            board = new_board(laurels)
            laurels.submit(board, "ada", 1)
            assert replica.client.zscore(f"lb:{{{board}}}:all_time", "ada") == 1
            laurels.submit_many(board, [Submission(f"m{number}", number) for number in range(500)])
            assert replica.client.zcard(f"lb:{{{board}}}:all_time") == 501

    def test_that_do_not_answer_leave_the_outcome_unknown(
        self, primary: tuple[Server, Server], endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch
    ):
        server, replica = primary
        monkeypatch.setattr(valkey_client, "WAIT_SECONDS", 0.2)
        with opened(server, endpoints) as laurels:
            board = new_board(laurels)
            os.kill(replica.process.pid, signal.SIGSTOP)
            try:
                with pytest.raises(OutcomeUnknown, match="0 of 1 replicas had the write within"):
                    laurels.submit(board, "ada", 1, id="one", durability="replicated")
                with pytest.raises(OutcomeUnknown, match="0 of 1 replicas"):
                    laurels.submit_many(board, [Submission("bob", 1, id="two")], durability="replicated")
                laurels.submit(board, "eve", 1, durability="fsync")
            finally:
                os.kill(replica.process.pid, signal.SIGCONT)
            until(lambda: replica.client.zcard(f"lb:{{{board}}}:all_time") == 3)
            assert not laurels.submit(board, "ada", 1, id="one", durability="replicated").applied

    def test_that_are_too_few_keep_a_deployment_from_starting(
        self, primary: tuple[Server, Server], endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch
    ):
        server, _ = primary
        monkeypatch.setenv("LAURELS_REPLICAS", "2")
        with (
            pytest.raises(StartupError, match="has 1 replicas connected, not 2"),
            opened(server, endpoints, durability="replicated"),
        ):
            pass


def test_calls_that_valkey_lost_leave_the_outcome_unknown(
    always: Server, endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch
):
    """As when a replica takes over that had not got them: it would wait for its disk all the same."""
    with opened(always, endpoints) as laurels:
        board = new_board(laurels)
        write = Valkey.write

        async def forgetful(self: Valkey, function: str, *args: Any) -> Any:  # noqa: ANN401  # as it is
            if function == "laurels_confirm":
                for key in always.client.keys(f"lb:{{{board}}}:calls:*"):
                    always.client.delete(key)
            return await write(self, function, *args)

        monkeypatch.setattr(Valkey, "write", forgetful)
        with pytest.raises(OutcomeUnknown, match="lost 1 of 1 calls"):
            laurels.submit_many(board, [Submission("ada", 1)], durability="fsync")


def test_on_a_cluster_the_node_of_the_board_waits(endpoints: Endpoints, aof_cluster_url: str):
    with Laurels(valkey_url=aof_cluster_url, postgres_url=endpoints.postgres_url) as laurels:
        for shards in (1, 3):
            board = new_board(laurels, shards=shards)
            assert laurels.submit(board, "ada", 1, durability="fsync").applied
            many = [Submission(f"m{number}", number) for number in range(300)]
            assert laurels.submit_many(board, many, durability="fsync").accepted == 300
            assert laurels.remove(board, "ada", durability="fsync")
            assert laurels.page(board).total == 300
            with pytest.raises(OutcomeUnknown, match="0 of 1 replicas"):
                laurels.submit(board, "ada", 1, durability="replicated")


@pytest.fixture
def aof_cluster_url(cluster_url: str, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """The cluster, with append-only files for a while."""
    monkeypatch.setattr(valkey_client, "WAIT_SECONDS", 1)
    client: Any = redis.RedisCluster
    cluster = client.from_url(cluster_url.replace("redis+cluster", "redis"))

    def configure(name: str, value: str) -> None:
        for node in cluster.get_primaries():
            cluster.execute_command("CONFIG", "SET", name, value, target_nodes=node)

    configure("appendfsync", "always")
    configure("appendonly", "yes")
    for node in cluster.get_primaries():
        until(
            lambda node=node: (
                cluster.execute_command("INFO", "persistence", target_nodes=node)["aof_rewrite_in_progress"]
                == 0
            )
        )
    yield cluster_url
    configure("appendonly", "no")
    cluster.close()


def test_an_unknown_word_is_refused(always: Server, endpoints: Endpoints):
    with opened(always, endpoints) as laurels:
        board = new_board(laurels)
        wrong: Any = "eventually"
        with pytest.raises(InvalidInput, match="durability: must be fast, fsync or replicated"):
            laurels.submit(board, "ada", 1, durability=wrong)


def test_an_embedded_valkey_has_every_write_on_disk_when_the_deployment_asks_for_it():
    with folder_that_anybody_may_pass(fast_place()) as folder:
        with Laurels(data_dir=folder / "data", durability="fsync", jobs=False) as laurels:
            told = laurels.run(laurels.engine.valkey.command("CONFIG", "GET", "appendfsync"))
            assert told == {b"appendfsync": b"always"}
            board = new_board(laurels)
            assert laurels.submit(board, "ada", 1).applied
        with Laurels(data_dir=folder / "data", jobs=False) as laurels:
            told = laurels.run(laurels.engine.valkey.command("CONFIG", "GET", "appendfsync"))
            assert told == {b"appendfsync": b"everysec"}
            assert laurels.standing(board, "ada").score == 1
