"""A store that is away for a while: what can go on goes on, the rest says so, without a restart."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import httpx
from deployment import KEY, Deployment, in_thread
from load import Load

if TYPE_CHECKING:
    from pathlib import Path

# `make faults` takes a minute; longer than a key is remembered without being looked up.
OUTAGE_SECONDS = float(os.environ.get("OUTAGE_SECONDS", "8"))
BOARDS = "/v1/projects/faults/boards"


def test_without_postgres_known_boards_go_on_and_the_rest_answers_503(place: Path):
    deployment = Deployment(place, {}, ("api",))
    with (
        deployment.running(),
        httpx.Client(base_url=deployment.url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30) as http,
    ):
        own = http.post("/v1/projects/faults/keys", json={"scopes": ["submit", "read"]}).json()["key"]
        known = httpx.Headers({"Authorization": f"Bearer {own}"})
        assert http.put(f"{BOARDS}/known", json={}).status_code == 201
        assert http.post(
            f"{BOARDS}/known/scores", json={"member": "ada", "score": 1}, headers=known
        ).is_success
        with deployment.without_postgres():
            ends = time.monotonic() + OUTAGE_SECONDS
            score = 1
            while time.monotonic() < ends:
                score += 1
                sent = http.post(
                    f"{BOARDS}/known/scores", json={"member": "ada", "score": score}, headers=known
                )
                assert (sent.status_code, sent.json()["rank"]) == (200, 1)
                read = http.get(f"{BOARDS}/known/entries", headers=known)
                assert read.json()["entries"] == [{"rank": 1, "member": "ada", "score": score}]
            for refused in (
                http.put(f"{BOARDS}/new", json={}),
                http.get(f"{BOARDS}/unknown/entries"),
                http.get("/v1/projects"),
                http.get("/readyz"),
            ):
                assert refused.status_code == 503, refused.text
                assert refused.headers["content-type"] == "application/problem+json"
                assert int(refused.headers["retry-after"]) >= 1
            assert http.get("/healthz").status_code == 200
        assert http.put(f"{BOARDS}/new", json={}).status_code == 201
        assert http.get("/readyz").status_code == 200


async def test_valkey_restarted_under_load_loses_nothing_and_counts_nothing_twice(place: Path):
    deployment = Deployment(place, {}, ("api",))
    with deployment.running():
        async with deployment.clients(8) as clients:
            load = Load("sums")
            await clients[0].define(load.board, {"aggregate": "sum"})
            async with load.running(clients):
                for _ in range(3):
                    await load.until_acknowledged(200)
                    await in_thread(lambda: deployment.kill("valkey"))
                await load.until_acknowledged(200)
            page = await clients[0].page(load.board)
        assert {entry.member: entry.score for entry in page.entries} == load.sums()


async def test_with_valkey_away_requests_say_that_the_outcome_is_unknown_or_that_it_is_away(place: Path):
    deployment = Deployment(place, {}, ("api",))
    with deployment.running():
        headers = {"Authorization": f"Bearer {KEY}"}
        async with httpx.AsyncClient(base_url=deployment.url, headers=headers, timeout=30) as http:
            await http.put(f"{BOARDS}/known", json={})
            seen: set[int] = set()

            async def ask() -> None:
                while 503 not in seen:
                    submitted = await http.post(f"{BOARDS}/known/scores", json={"member": "a", "score": 1})
                    seen.add(submitted.status_code)
                    if submitted.status_code == 503:
                        assert submitted.json()["detail"]
                        assert submitted.headers["retry-after"]

            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                group.create_task(ask())
                await in_thread(lambda: deployment.kill("valkey"))
            assert seen <= {200, 503}
