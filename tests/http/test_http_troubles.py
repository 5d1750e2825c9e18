"""A Valkey that refuses writes: 503 with `Retry-After` and what to do, for submissions and for `/readyz`."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import redis
from valkey_servers import running_valkey
from waiting import until

from laurels.engine import Laurels
from laurels.http.app import create_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from contextlib import AbstractContextManager

    from valkey_servers import Server

    from laurels.embedded import Endpoints

    Trouble = Callable[[Server], AbstractContextManager[None]]

BOARD = "/v1/projects/troubles/boards/arcade"


@contextmanager
def told(server: Server, there: str, back: str) -> Generator[None]:
    server.client.execute_command(*there.split())
    try:
        yield
    finally:
        server.client.execute_command(*back.split())


def too_few_replicas(server: Server) -> AbstractContextManager[None]:
    return told(server, "CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0")


def a_replica(server: Server) -> AbstractContextManager[None]:
    return told(server, "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")


def denied_calls(server: Server) -> AbstractContextManager[None]:
    return told(server, "ACL SETUSER default -fcall", "ACL SETUSER default +fcall")


def no_memory(server: Server) -> AbstractContextManager[None]:
    return told(server, "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")


@contextmanager
def no_disk(server: Server) -> Generator[None]:
    """Where its dump belongs, there is a folder."""
    (Path(server.socket).parent / "dump.rdb" / "in-the-way").mkdir(parents=True)
    with told(server, "CONFIG SET rdbcompression no", "CONFIG SET stop-writes-on-bgsave-error no"):
        server.client.execute_command("CONFIG", "SET", "save", "3600 1")
        server.client.bgsave()
        until(lambda: server.client.info("persistence")["rdb_last_bgsave_status"] == "err")
        yield


TROUBLES: dict[Trouble, str] = {
    too_few_replicas: "too few replicas are in sync: start them, or lower min-replicas-to-write",
    a_replica: "this node became a replica: wait for the failover to end",
    denied_calls: "its ACL denies a command or key that Laurels needs: grant it to the user",
    no_disk: "it cannot write to its disk: free some space there, and look at its log",
}


@pytest.fixture(scope="module")
def server() -> Generator[Server]:
    with running_valkey() as server:
        yield server


@pytest.fixture(scope="module")
async def troubled(server: Server, endpoints: Endpoints) -> AsyncGenerator[httpx.AsyncClient]:
    async with Laurels(valkey_url=server.url, postgres_url=endpoints.postgres_url, jobs=False) as laurels:
        _, key = await laurels.keys.create("troubles", ["admin"])
        transport = httpx.ASGITransport(create_app(laurels))
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://laurels.test", headers=headers
        ) as client:
            await client.put(BOARD, json={})
            yield client
            await client.delete(BOARD)


async def submitted(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post(f"{BOARD}/scores", json={"member": "ada", "score": 1})


def problem_of(answer: httpx.Response, kind: str = "unavailable") -> dict[str, Any]:
    assert (answer.status_code, answer.json()["type"]) == (503, f"/problems/{kind}"), answer.text
    assert answer.headers["retry-after"] == "1"
    return answer.json()


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_valkey_that_takes_no_writes_is_not_ready_and_says_why(
    troubled: httpx.AsyncClient, server: Server, trouble: Trouble
):
    with trouble(server):
        refused = problem_of(await submitted(troubled))
        ready = problem_of(await troubled.get("/readyz"))
    assert refused["detail"].endswith(f"Valkey refuses: {TROUBLES[trouble]}.")
    assert ready["detail"].endswith(f"Valkey refuses: {TROUBLES[trouble]}")
    assert ready["checks"]["writes"] == "refusing"
    assert (await submitted(troubled)).status_code == 200
    assert (await troubled.get("/readyz")).status_code == 200


async def test_a_valkey_without_memory_stays_ready_so_that_some_can_be_freed(
    troubled: httpx.AsyncClient, server: Server
):
    with no_memory(server):
        refused = problem_of(await submitted(troubled))
        ready = await troubled.get("/readyz")
    assert refused["detail"].endswith("it is out of memory: raise its maxmemory or keep less.")
    assert ready.status_code == 200
    assert "Valkey is out of memory: raise its maxmemory or keep less" in ready.json()["warnings"]


async def test_a_command_that_is_denied_half_way_leaves_the_outcome_unknown(
    troubled: httpx.AsyncClient, server: Server
):
    with told(server, "ACL SETUSER default -zadd", "ACL SETUSER default +zadd"):
        refused = problem_of(await submitted(troubled), "outcome-unknown")
    assert "its ACL denies a command" in refused["detail"]


async def test_a_valkey_that_takes_no_more_clients_is_not_ready(troubled: httpx.AsyncClient, server: Server):
    with told(server, "CONFIG SET maxclients 1", "CONFIG SET maxclients 1000"):
        server.client.execute_command("CLIENT", "KILL", "TYPE", "normal")
        refused = await submitted(troubled)
        problem_of(await troubled.get("/readyz"))
    assert refused.status_code == 503


async def test_a_check_that_fails_for_whatever_reason_is_no_error_of_readyz(
    troubled: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    async def fail(*_: object) -> None:
        raise redis.ResponseError("ERR of an unknown kind")

    monkeypatch.setattr("laurels.history.operator_status.requirements.takes_writes", fail)
    assert problem_of(await troubled.get("/readyz"))["checks"]["writes"] == "failing"
