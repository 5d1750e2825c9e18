"""A whole deployment whose processes can be killed one by one: Valkey, PostgreSQL, the API, a worker."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Literal

import anyio
import httpx
import psycopg
import redis
from waiting import until

from laurels import embedded
from laurels.client import AsyncClient, Retries

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from pathlib import Path

Part = Literal["valkey", "postgres", "api", "worker"]
PARTS: tuple[Part, ...] = ("valkey", "postgres", "api", "worker")
KEY = "key-of-a-deployment-that-is-killed"
DEADLINE = 60.0
PATIENT = Retries(attempts=1000, deadline=120.0, first_pause=0.05, longest_pause=0.5)
ONCE = Retries(attempts=1)


class Deployment:
    """What runs now. The embedded servers are started again by their supervisor, the others by `kill`."""

    def __init__(
        self, folder: Path, settings: dict[str, str], parts: tuple[Part, ...], valkey_url: str | None = None
    ) -> None:
        """`valkey_url`: of a Valkey that is not embedded."""
        self._folder = folder
        self._external = embedded.ExternalServers(valkey_url=valkey_url)
        self._settings = settings
        self._parts = parts
        self._processes: dict[Part, subprocess.Popen[bytes]] = {}
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port: int = free.getsockname()[1]

    @property
    def data(self) -> Path:
        """Where the embedded servers keep their data."""
        return self._folder / "data"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @contextmanager
    def running(self) -> Generator[Deployment]:
        with embedded.start(self.data, external=self._external) as self.servers:
            try:
                for part in self._parts:
                    self._start(part)
                with httpx.Client(base_url=self.url) as http:
                    until(lambda: _is_ready(http))
                yield self
            finally:
                for process in self._processes.values():
                    process.send_signal(signal.SIGTERM)
                for process in self._processes.values():
                    process.wait(DEADLINE)

    @asynccontextmanager
    async def clients(self, count: int, retries: Retries = PATIENT) -> AsyncGenerator[list[AsyncClient]]:
        async with AsyncExitStack() as opened:
            yield [
                await opened.enter_async_context(
                    AsyncClient(self.url, key=KEY, project="faults", retries=retries)
                )
                for _ in range(count)
            ]

    def log(self, part: Part) -> str:
        return (self._folder / f"{part}.log").read_text()

    def kill(self, part: Part) -> None:
        """With SIGKILL; returns when it is up again."""
        if part in self._processes:
            self._processes[part].kill()
            self._processes[part].wait(DEADLINE)
            self._start(part)
            return
        killed = self.servers.pids[part]
        os.kill(killed, signal.SIGKILL)
        until(lambda: self.servers.pids.get(part, killed) != killed)

    @contextmanager
    def without_postgres(self) -> Generator[None]:
        """Stopped in good order, and started again at the end: meanwhile its supervisor is held back."""
        pids = self.servers.pids
        os.kill(pids["supervisor"], signal.SIGSTOP)
        try:
            os.kill(pids["postgres"], signal.SIGINT)
            until(lambda: not self._postgres_answers())
            yield
        finally:
            os.kill(pids["supervisor"], signal.SIGCONT)
        until(self._postgres_answers)

    def _postgres_answers(self) -> bool:
        url = self.servers.endpoints.postgres_url.replace("postgresql+psycopg://", "postgresql://")
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            return False
        return True

    def raw(self) -> redis.Redis:
        """As any client sees Valkey."""
        url = self.servers.endpoints.valkey_url
        client: Any = redis.RedisCluster if "+cluster" in url else redis.Redis
        return client.from_url(url.replace("+cluster", ""))

    def _start(self, part: Part) -> None:
        if part not in ("api", "worker"):
            return
        words = ["worker"] if part == "worker" else ["serve", "--no-jobs", "--port", str(self._port)]
        ours = {name: value for name, value in os.environ.items() if not name.startswith("LAURELS_")}
        environment = ours | self._settings | {
            "LAURELS_VALKEY_URL": self.servers.endpoints.valkey_url,
            "LAURELS_POSTGRES_URL": self.servers.endpoints.postgres_url,
            "LAURELS_BOOTSTRAP_KEY": KEY,
        }  # fmt: skip
        with (self._folder / f"{part}.log").open("ab") as log:
            self._processes[part] = subprocess.Popen(
                [sys.executable, "-m", "laurels.cli", *words],
                stdout=log,
                stderr=log,
                env=environment,
                cwd="/",
            )


async def in_thread(work: Callable[[], None]) -> None:
    """So that the load goes on meanwhile."""
    await anyio.to_thread.run_sync(work)


def _is_ready(http: httpx.Client) -> bool:
    try:
        return http.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False
