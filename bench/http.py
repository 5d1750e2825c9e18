"""The service over HTTP, as `laurels serve` starts it, beside an app that does nothing on the same server.

wrk sends new scores to a board with four windows over 32 connections, unless another number is given. Each
kind of request has its turn with both apps; a ratio is that of the rates in one turn. The default log has its
turns beside a service that logs warnings only.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import msgspec

from bench.ground import member
from bench.results import CannotMeasure, Results, Row, Tail, judged
from laurels.access import players

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

KEY = "bench-key-of-the-service"
PROJECT = "/v1/projects/bench"
FOUR_WINDOWS = [{"period": period} for period in ("daily", "weekly", "monthly", "all_time")]
BOARDS = 1000
PLAYERS = 2000  # each may send 20 requests a second
LINES = 50_000
SECONDS = 2
TURNS = 3
CONNECTIONS = 32
MANY_CONNECTIONS = 256

# The least share of the bare app's rate.
OF_BARE = {
    "submit": 0.55,
    "submit by token": 0.3,
    "submit with Idempotency-Key": 0.3,
    "page of 10": 0.5,
    "page of 10, many boards": 0.35,
    "standing": 0.45,
    "around": None,
    "among 100": None,
}
# p99 by p50, at most; the rate with many connections by that with few, at least; and the rate with the
# default log by that with the log at `warning`.
TAIL, OF_FEW, OF_QUIET = 5.0, 0.9, 0.9
COMPARED = ("submit", "page of 10", "standing")
SHARES = ("p50", "p99", "p999")
WITHOUT_WRK = "wrk is missing: install it (apt install wrk, brew install wrk)"

_runs = count(int(time.time()))


class Seen(msgspec.Struct):
    """What wrk saw in one turn; times in seconds."""

    requests: int
    seconds: float
    failed: int
    p50: float
    p99: float
    p999: float

    @property
    def rate(self) -> float:
        return self.requests / self.seconds


async def run(members: int) -> Results:
    if shutil.which("wrk") is None:
        raise CannotMeasure(WITHOUT_WRK)
    with ExitStack() as servers:
        folder = servers.enter_context(temporary_folder())
        bare = servers.enter_context(bare_app())
        service = servers.enter_context(serving(folder / "data"))
        tokens = folder / "tokens"
        fill(service, members, tokens, many_boards=BOARDS)
        load = Load(members, tokens)
        rows = [*measure_kinds(load, bare, service), *measure_connections(load, service)]
    with ExitStack() as servers:
        folder = servers.enter_context(temporary_folder())
        tokens = folder / "tokens"
        quiet = servers.enter_context(serving(folder / "quiet", LAURELS_LOG_LEVEL="warning"))
        usual = servers.enter_context(serving(folder / "usual"))
        for port in (quiet, usual):
            fill(port, members // 10, tokens)
        return Results([*rows, *measure_log(Load(members // 10, tokens), quiet, usual)])


class Load:
    """Runs wrk."""

    def __init__(self, members: int, tokens: Path) -> None:
        self._members = members
        self._tokens = tokens

    def __call__(self, port: int, kind: str, connections: int = CONNECTIONS, seconds: int = SECONDS) -> Seen:
        environment = os.environ | {
            "KIND": kind,
            "KEY": KEY,
            "MEMBERS": str(self._members),
            "BOARDS": str(BOARDS),
            "TOKENS": str(self._tokens),
            "RUN": str(next(_runs)),
        }
        script = Path(__file__).with_name("requests.lua")
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script)]
        ran = subprocess.run(
            (*command, f"http://127.0.0.1:{port}"),
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return msgspec.json.decode(ran.stdout.partition("RESULT ")[2], type=Seen)


def measure_kinds(load: Load, bare: int, service: int) -> list[Row]:
    seen: dict[str, list[tuple[Seen, Seen]]] = {kind: [] for kind in OF_BARE}
    for kind in OF_BARE:
        load(service, kind, seconds=1)  # warm
    for _ in range(TURNS):
        for kind in OF_BARE:
            seen[kind].append((load(bare, kind), load(service, kind)))
    rows: list[Row] = []
    for kind, target in OF_BARE.items():
        ours = [each for _, each in seen[kind]]
        row = compared(kind, ours, ("bare app", [other for other, _ in seen[kind]]), target)
        tail = statistics.median(each.p99 / each.p50 for each in ours)
        holds = row.holds is not False and tail <= TAIL and not any(each.failed for each in ours)
        bound = ", ".join(filter(None, (row.target, f"p99 ≤ {TAIL:g} p50")))
        rows.append(replace(row, target=bound, holds=holds))
    return rows


def measure_connections(load: Load, service: int) -> list[Row]:
    rows: list[Row] = []
    for kind in COMPARED:
        turns = [(load(service, kind), load(service, kind, MANY_CONNECTIONS)) for _ in range(TURNS)]
        few, many = [few for few, _ in turns], [many for _, many in turns]
        what = f"{kind}, {MANY_CONNECTIONS} connections"
        rows.append(compared(what, many, (f"{CONNECTIONS} connections", few), OF_FEW))
    return rows


def measure_log(load: Load, quiet: int, usual: int) -> list[Row]:
    rows: list[Row] = []
    for kind in COMPARED:
        for port in (quiet, usual):
            load(port, kind, seconds=1)
        turns = [(load(quiet, kind), load(usual, kind)) for _ in range(TURNS)]
        others, ours = [other for other, _ in turns], [ours for _, ours in turns]
        rows.append(compared(f"{kind}, default log", ours, ("log at warning", others), OF_QUIET))
    return rows


def compared(what: str, ours: list[Seen], other: tuple[str, list[Seen]], least: float | None) -> Row:
    """Medians over the turns; the ratio is that of the rates in one turn."""
    name, others = other
    ratio = statistics.median(each.rate / beside.rate for each, beside in zip(ours, others, strict=True))
    return Row(
        what,
        f"{statistics.median(each.rate for each in ours):,.0f}/s",
        f"{name}: {statistics.median(each.rate for each in others):,.0f}/s",
        ratio,
        *judged(ratio, least=least),
        Tail(*(1000 * statistics.median(getattr(each, share) for each in ours) for share in SHARES)),
    )


def fill(port: int, members: int, tokens: Path, many_boards: int = 0) -> None:
    """Gives every member a score, and some players tokens."""
    chosen = random.Random(1)  # noqa: S311  # data, not secrets
    with httpx.Client(
        base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {KEY}"}, timeout=300
    ) as client:
        boards = {"four": {"windows": FOUR_WINDOWS, "player_writes": True}}
        boards |= {f"b{number}": {"windows": FOUR_WINDOWS[::3]} for number in range(many_boards)}
        for name, definition in boards.items():
            client.put(f"{PROJECT}/boards/{name}", json=definition).raise_for_status()
        for number in range(many_boards):
            batch = [{"member": member(i), "score": chosen.randrange(9_000_000)} for i in range(20)]
            client.post(f"{PROJECT}/boards/b{number}/scores/batch", json=batch).raise_for_status()
        for first in range(0, members, LINES):
            lines = (
                {"member": member(i), "score": chosen.randrange(9_000_000)}
                for i in range(first, min(first + LINES, members))
            )
            client.post(
                f"{PROJECT}/boards/four/scores/batch",
                content=b"\n".join(map(msgspec.json.encode, lines)),
                headers={"Content-Type": "application/x-ndjson"},
            ).raise_for_status()
        secret = client.post(f"{PROJECT}/secrets", json={"use": "players"}).json()["secret"]
    claims = {"project": "bench", "aud": "laurels", "exp": int(time.time()) + 86_400}
    tokens.write_text("\n".join(players.signed({**claims, "sub": member(i)}, secret) for i in range(PLAYERS)))


@contextmanager
def temporary_folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="laurels-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # root's servers run as another user, which needs access
        yield folder


def serving(data_dir: Path, **settings: str) -> AbstractContextManager[int]:
    """Runs the service with default settings; its port."""
    port = free_port()
    command = [sys.executable, "-m", "laurels.cli", "serve", "--port", str(port), "--data-dir", str(data_dir)]
    return running(port, [*command, "--json"], {"LAURELS_BOOTSTRAP_KEY": KEY, **settings})


def bare_app() -> AbstractContextManager[int]:
    """Runs an app that reads the body and answers with a constant, on the service's server; its port."""
    port = free_port()
    return running(port, [sys.executable, "-m", "bench.http_apps", str(port), "bench.http_apps:bare"], {})


@contextmanager
def running(port: int, command: list[str], settings: dict[str, str]) -> Generator[int]:
    with subprocess.Popen(
        command, env=os.environ | settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_for(port, process)
            yield port
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
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
