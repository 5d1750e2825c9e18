from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest
from places import fast_place, folder_that_anybody_may_pass

from laurels import embedded
from laurels.engine import Laurels
from laurels.http.app import create_app
from laurels.http.routes import health
from laurels.journal.streams import Backlog

if TYPE_CHECKING:
    from collections.abc import Generator

    from httpx import AsyncClient


async def test_a_process_that_lives_says_so(anybody: AsyncClient):
    answer = await anybody.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_process_that_can_answer_is_ready(anybody: AsyncClient):
    answer = await anybody.get("/readyz")
    checks = dict.fromkeys(health.CHECKS, "ok")
    ready = answer.json()
    assert (answer.status_code, ready["status"], ready["checks"]) == (200, "ready", checks)


async def test_other_functions_or_tables_than_this_versions_are_not_ready(
    anybody: AsyncClient, laurels: Laurels, monkeypatch: pytest.MonkeyPatch
):
    async def are_not_current() -> bool:
        return False

    monkeypatch.setattr(laurels.valkey, "functions_are_current", are_not_current)
    monkeypatch.setattr(health, "expected_revision", lambda: "r9999")
    answer = await anybody.get("/readyz")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    problem = answer.json()
    assert problem["detail"] == "functions is outdated, migrations is outdated"
    assert problem["checks"] == {
        "valkey": "ok",
        "functions": "outdated",
        "writes": "ok",
        "postgres": "ok",
        "migrations": "outdated",
    }


async def test_metrics_are_for_prometheus(anybody: AsyncClient):
    await anybody.get("/healthz")
    answer = await anybody.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert 'laurels_http_requests_total{method="GET",route="/healthz",status="200"}' in answer.text


@pytest.fixture
def own_servers() -> Generator[embedded.EmbeddedServers]:
    """Servers that the test may stop."""
    with folder_that_anybody_may_pass(fast_place()) as folder, embedded.start(folder / "data") as servers:
        yield servers


async def test_without_its_stores_a_process_lives_but_is_not_ready(own_servers: embedded.EmbeddedServers):
    endpoints = own_servers.endpoints
    async with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as laurels:
        _, key = await laurels.keys.create("acme", ["admin"])
        transport = httpx.ASGITransport(create_app(laurels))
        async with httpx.AsyncClient(transport=transport, base_url="http://laurels.test") as client:
            client.headers["Authorization"] = f"Bearer {key}"
            board = "/v1/projects/acme/boards/arcade"
            assert (await client.put(board, json={})).status_code == 201
            assert (await client.get("/readyz")).status_code == 200
            own_servers.stop()
            assert (await client.get("/healthz")).status_code == 200
            ready = await client.get("/readyz")
            assert ready.status_code == 503
            assert ready.json()["checks"] == dict.fromkeys(health.CHECKS, "unreachable")
            assert "sock" not in ready.text
            read = await client.get(f"{board}/entries")
            assert (read.status_code, read.json()["type"]) == (503, "/problems/unavailable")
            listed = await client.get("/v1/projects")
            assert (listed.status_code, listed.json()["type"]) == (503, "/problems/unavailable")
            written = await client.post(f"{board}/scores", json={"member": "ada", "score": 1})
            assert written.status_code == 503
            assert "sock" not in read.text + listed.text + written.text


async def test_a_journal_that_falls_behind_is_a_warning(
    anybody: AsyncClient, laurels: Laurels, monkeypatch: pytest.MonkeyPatch
):
    async def behind() -> Backlog:
        return Backlog(calls=7, bytes=300 * 2**20, age_seconds=61.0)

    monkeypatch.setattr(laurels.drain.journal_streams, "recent_backlog", behind)
    answer = await anybody.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["warnings"] == [
        "the journal is 61 s behind (7 calls)",
        "300 MiB of Valkey's memory wait to be archived",
    ]


async def test_the_metrics_tell_of_the_journal(client: AsyncClient, laurels: Laurels, board: str):
    await laurels.journal_drained()
    await client.post(f"{board}/scores", json={"member": "ada", "score": 1})
    await laurels.drain.journal_streams.backlog()
    assert metric(await client.get("/metrics"), "laurels_journal_backlog_calls") == 1
    told = await client.get("/metrics")
    before = metric(told, "laurels_journal_rows_total")
    letters = metric(told, "laurels_journal_dead_letters_total")  # of other tests
    await laurels.journal_drained()
    await laurels.drain.journal_streams.backlog()
    after = await client.get("/metrics")
    assert metric(after, "laurels_journal_rows_total") == before + 1
    assert metric(after, "laurels_journal_backlog_calls") == 0
    assert metric(after, "laurels_journal_watermark_age_seconds") == 0
    assert metric(after, "laurels_journal_dead_letters_total") == letters


def metric(answer: httpx.Response, name: str) -> float:
    (line,) = [line for line in answer.text.splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[1])
