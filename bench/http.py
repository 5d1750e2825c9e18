"""The service over HTTP, beside an app that does nothing and an app written in the obvious way.

Each app runs in one process of the same server, and they take turns. The client runs in another process.
"""

from __future__ import annotations

import importlib.util
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import httpx
import msgspec

from bench.ground import FOUR_WINDOWS, console, member, table, temporary_servers, verdict
from bench.loader import Seen
from laurels import Laurels, Submission

if TYPE_CHECKING:
    from collections.abc import Generator

    from laurels.embedded import Endpoints

CONNECTIONS = 32
SECONDS = 3.0
TURNS = 7
# More than the service can answer in a turn.
SUBMITS = 100_000
LINES = 50_000
KEY = "bench-key-of-the-service"
BOARD = "/v1/projects/bench/boards/four"
AUTHORIZED = {"Authorization": f"Bearer {KEY}"}
OF_BARE, OF_PLAIN, OF_ENGINE = 0.35, 2.0, 0.5

OURS = "uvicorn"
SERVERS = {
    OURS: ("-m", "bench.http_apps"),  # as the service runs it
    # Only for comparison, without a target: the service does not run on it.
    "granian": ("-m", "granian", "--factory", "--loop", "uvloop", "--no-access-log", "--log-level", "error",
                "--host", "127.0.0.1", "--interface", "asgi", "--port"),
}  # fmt: skip
APPS = {
    "bare": "bench.http_apps:bare",
    "plain": "bench.http_apps:plain",
    "laurels": "laurels.http.app:app_from_settings",
}


async def run(members: int) -> bool:
    good = True
    with temporary_servers() as urls:
        async with Laurels(valkey_url=urls.valkey_url, postgres_url=urls.postgres_url) as laurels:
            await laurels.define("bench/four", {"windows": FOUR_WINDOWS})
            await laurels.submit_many("bench/four", (Submission(member(i), i) for i in range(members)))
            for server in SERVERS:
                if importlib.util.find_spec(server):
                    good = measure_submits(server, urls, members) and good
                else:
                    console.print(f"{server} is not installed: left out", style="dim")
            with serving(OURS, "laurels", urls) as port:
                good = await measure_batches(laurels, port, members) and good
                measure_pages(port)
    return good


def measure_submits(server: str, urls: Endpoints, members: int) -> bool:
    """Each turn sends new submissions, since repeated ones would change nothing."""
    chosen = random.Random(5)  # noqa: S311  # data, not secrets
    seen: dict[str, list[Seen]] = {name: [] for name in APPS}
    with ExitStack() as running:
        ports = {name: running.enter_context(serving(server, name, urls)) for name in APPS}
        for _ in range(TURNS):
            submits = [submit(chosen, members) for _ in range(SUBMITS)]
            for name, port in ports.items():
                seen[name].append(load(port, submits))
    rates = {name: statistics.median(each.rate for each in turns) for name, turns in seen.items()}
    drawn = table(
        f"Single submits over {server}, {CONNECTIONS} connections, median of {TURNS} turns of {SECONDS:g} s",
        *("app", "requests/s", "p50 ms", "p99 ms", "Laurels is", "target", ""),
    )
    good = True
    for name, target in (("bare", OF_BARE), ("plain", OF_PLAIN), ("laurels", 0.0)):
        ratio = statistics.median(
            ours.rate / theirs.rate for ours, theirs in zip(seen["laurels"], seen[name], strict=True)
        )
        is_judged = target and server == OURS
        good = good and (ratio >= target or not is_judged)
        judged = (f"≥ {target:g}", verdict(holds=ratio >= target)) if is_judged else ("", "")
        times = (median_percentile(seen[name], share) for share in (0.5, 0.99))
        drawn.add_row(name, f"{rates[name]:,.0f}", *times, f"{ratio:.2f}", *judged)
    console.print(drawn)
    statuses = {status for turns in seen.values() for each in turns for status in each.statuses}
    if statuses != {200}:
        console.print(f"[red]some requests failed: {statuses}[/]")
    return good and statuses == {200}


def median_percentile(turns: list[Seen], share: float) -> str:
    return f"{1000 * statistics.median(each.percentile(share) for each in turns):.2f}"


async def measure_batches(laurels: Laurels, port: int, members: int) -> bool:
    """Compares lines sent to the service with as many values passed to an engine in this process. They are
    different submissions, since repeated ones would change nothing.
    """
    chosen = random.Random(6)  # noqa: S311  # data, not secrets

    def batch() -> list[Submission]:
        return [
            Submission(member(chosen.randrange(members)), chosen.randrange(9_000_000)) for _ in range(LINES)
        ]

    engine: list[float] = []
    service: list[float] = []
    headers = {**AUTHORIZED, "Content-Type": "application/x-ndjson"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
        for _ in range(TURNS):
            values, lines = batch(), b"\n".join(map(msgspec.json.encode, batch()))
            began = time.perf_counter()
            await laurels.submit_many("bench/four", values)
            engine.append(LINES / (time.perf_counter() - began))
            began = time.perf_counter()
            answer = await client.post(f"{BOARD}/scores/batch", content=lines)
            service.append(LINES / (time.perf_counter() - began))
            if answer.json() != {"accepted": LINES, "rejected": []}:
                raise RuntimeError(answer.text)
    ratio = statistics.median(service) / statistics.median(engine)
    drawn = table(
        f"Batches of {LINES:,} lines, median of {TURNS}", *("way", "submissions/s", "ratio", "target", "")
    )
    drawn.add_row("engine in process", f"{statistics.median(engine):,.0f}")
    judged = (f"{ratio:.2f}", f"≥ {OF_ENGINE}", verdict(holds=ratio >= OF_ENGINE))
    drawn.add_row("NDJSON over HTTP", f"{statistics.median(service):,.0f}", *judged)
    console.print(drawn)
    return ratio >= OF_ENGINE


def measure_pages(port: int) -> None:
    page = httpx.get(f"http://127.0.0.1:{port}{BOARD}/entries", headers=AUTHORIZED)
    requests = {
        "200, whole": request("GET", f"{BOARD}/entries"),
        "304, ETag": request("GET", f"{BOARD}/entries", header=f"If-None-Match: {page.headers['etag']}"),
    }
    drawn = table("Top 100", "answer", "requests/s", "p50 ms", "p99 ms")
    for name, sent in requests.items():
        seen = load(port, [sent])
        times = (median_percentile([seen], share) for share in (0.5, 0.99))
        drawn.add_row(name, f"{seen.rate:,.0f}", *times)
    console.print(drawn)


def submit(chosen: random.Random, members: int) -> bytes:
    body = {"member": member(chosen.randrange(members)), "score": chosen.randrange(9_000_000)}
    return request("POST", f"{BOARD}/scores", msgspec.json.encode(body))


def request(method: str, path: str, body: bytes = b"", header: str = "") -> bytes:
    head = [
        f"{method} {path} HTTP/1.1",
        "Host: bench",
        *(f"{name}: {AUTHORIZED[name]}" for name in AUTHORIZED),
    ]
    if body:
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    if header:
        head.append(header)
    return "\r\n".join((*head, "", "")).encode() + body


def load(port: int, requests: list[bytes]) -> Seen:
    words = (sys.executable, "-m", "bench.loader", "127.0.0.1", str(port), str(SECONDS), str(CONNECTIONS))
    answer = subprocess.run(words, input=msgspec.msgpack.encode(requests), stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(answer.stdout, type=Seen)


@contextmanager
def serving(server: str, app: str, urls: Endpoints) -> Generator[int]:
    """Runs the app on the server; yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    environment = os.environ | {
        "BENCH_VALKEY_URL": urls.valkey_url,
        "BENCH_KEY": KEY,
        "LAURELS_VALKEY_URL": urls.valkey_url,
        "LAURELS_POSTGRES_URL": urls.postgres_url,
        "LAURELS_BOOTSTRAP_KEY": KEY,
        "LAURELS_LOG_LEVEL": "warning",
    }
    process = subprocess.Popen((sys.executable, *SERVERS[server], str(port), APPS[app]), env=environment)
    try:
        wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            httpx.get(f"http://127.0.0.1:{port}/healthz")
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"nothing answers on port {port}")
