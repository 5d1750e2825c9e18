"""A real Valkey Cluster on loopback, from the bundled binary."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
from supported_servers import valkey_server

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

Client = Any  # redis-py types its client only in part
SLOTS = 16_384
DEADLINE_SECONDS = 30


@contextmanager
def running_cluster(primaries: int) -> Generator[str]:
    """The URL of a cluster whose slots are spread evenly over this many primaries."""
    folder = Path(tempfile.mkdtemp(prefix="laurels-cluster-"))
    ports = _free_ports(primaries)
    servers = [_start(folder / str(port), port) for port in ports]
    clients: list[Client] = [redis.Redis(port=port) for port in ports]
    try:
        for client in clients:
            _wait_until(client.ping)
        for number, client in enumerate(clients):
            first, last = SLOTS * number // primaries, SLOTS * (number + 1) // primaries - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", ports[0])
        for client in clients:
            _wait_until(lambda client=client: _is_whole(client, primaries))
        yield f"redis+cluster://127.0.0.1:{ports[0]}"
    finally:
        for client in clients:
            client.close()
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()
        shutil.rmtree(folder)


def _is_whole(client: Client, primaries: int) -> bool:
    # redis-py parses the reply of this command only under its one-word name.
    info = client.execute_command("CLUSTER INFO")
    return (info["cluster_state"], info["cluster_size"]) == ("ok", str(primaries))


def _start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    folder.mkdir()
    options = {
        "port": port,
        "bind": "127.0.0.1",
        "cluster-enabled": "yes",
        "cluster-node-timeout": 5000,
        "save": "",
        "appendonly": "no",
        "dir": folder,
        "logfile": folder / "log",
    }
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    return subprocess.Popen([str(valkey_server()), *words])


def _free_ports(count: int) -> list[int]:
    """Ports below 55535, so that the cluster bus (port + 10000) fits too."""
    ports: list[int] = []
    # From another place in each process: two that look at once must not find the same.
    for port in range(21_000 + os.getpid() % 1000 * 30, 55_000, 7):
        with socket.socket() as one, socket.socket() as bus:
            try:
                one.bind(("127.0.0.1", port))
                bus.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError("no free ports on loopback")


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            if holds():
                return
        except redis.ConnectionError:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError("the cluster did not form")
        time.sleep(0.02)
