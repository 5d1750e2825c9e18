"""A real server, its stores the tests' own; each test has a project of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import httpx
import pytest
from loopback_proxy import Proxy

from laurels.client import AsyncClient, Client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from laurels.embedded import Endpoints

KEY = "for-the-tests-of-the-client"

_numbers = count(1)


@dataclass(frozen=True)
class Served:
    """Where the server answers, and a key for everything."""

    host: str
    port: int
    key: str

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.port}"


@pytest.fixture(scope="session")
def served(endpoints: Endpoints) -> Generator[Served]:
    environment = os.environ | {
        "LAURELS_VALKEY_URL": endpoints.valkey_url,
        "LAURELS_POSTGRES_URL": endpoints.postgres_url,
        "LAURELS_BOOTSTRAP_KEY": KEY,
        "LAURELS_LOG_LEVEL": "error",
    }
    command = [sys.executable, "-m", "uvicorn", "--factory", "laurels.http.app:app_from_settings"]
    # The socket takes connections from here on; the server answers them once it is there.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        descriptor = listener.fileno()
        with subprocess.Popen(
            [*command, "--fd", str(descriptor), "--no-access-log", "--log-level", "error"],
            env=environment,
            pass_fds=[descriptor],
        ) as server:
            served = Served(host, port, KEY)
            httpx.get(f"{served.address}/readyz", timeout=100)  # answers when it has started
            yield served
            server.send_signal(signal.SIGTERM)


@pytest.fixture
def project() -> str:
    return f"client-{next(_numbers)}"


@pytest.fixture
def client(served: Served, project: str) -> Generator[Client]:
    with Client(served.address, key=served.key, project=project) as client:
        yield client


@pytest.fixture
async def async_client(served: Served, project: str) -> AsyncGenerator[AsyncClient]:
    async with AsyncClient(served.address, key=served.key, project=project) as client:
        yield client


@pytest.fixture
def proxy(served: Served) -> Generator[Proxy]:
    """Between the client and the server, and up to no good when it is told."""
    with Proxy(served.host, served.port) as proxy:
        yield proxy


@pytest.fixture
def pauses() -> list[float]:
    """The pauses between tries, in seconds; the tests do not wait for them."""
    return []


@pytest.fixture
def unsteady(served: Served, project: str, proxy: Proxy, pauses: list[float]) -> Generator[Client]:
    """A client behind the proxy."""
    with Client(proxy.address, key=served.key, project=project, sleep=pauses.append) as client:
        yield client


@pytest.fixture
def board(client: Client) -> str:
    """A board that sums, so that what counts twice shows."""
    client.define("arcade", {"aggregate": "sum", "windows": [{"period": "daily"}, {"period": "all_time"}]})
    return "arcade"
