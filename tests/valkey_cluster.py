"""A real Valkey Cluster on loopback, from the bundled binary."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
from supported_servers import valkey_server
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Generator

Client = Any  # redis-py types its client only in part
SLOTS = 16_384
DEADLINE_SECONDS = 30


@dataclass
class ClusterServer:
    """One node: its process, a client of its own, and the name that the cluster knows it by."""

    port: int
    folder: Path
    options: dict[str, str]
    client: Client
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        options = {
            "port": self.port,
            "bind": "127.0.0.1",
            "cluster-enabled": "yes",
            "cluster-node-timeout": 5000,
            "repl-diskless-sync-delay": 0,
            "save": "",
            "appendonly": "no",
            "dir": self.folder,
            "logfile": self.folder / "log",
            **self.options,
        }
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        self.process = subprocess.Popen([str(valkey_server()), *words])

    @property
    def name(self) -> str:
        return self.client.execute_command("CLUSTER", "MYID").decode()

    def is_primary(self) -> bool:
        return self.client.execute_command("ROLE")[0] == b"master"


@contextmanager
def running_cluster(primaries: int) -> Generator[str]:
    """The URL of a cluster whose slots are spread evenly over this many primaries."""
    with cluster_servers(primaries) as servers:
        yield cluster_url(servers)


def cluster_url(servers: list[ClusterServer]) -> str:
    return f"redis+cluster://127.0.0.1:{servers[0].port}"


@contextmanager
def cluster_servers(primaries: int, replicas: int = 0, **options: str) -> Generator[list[ClusterServer]]:
    """The nodes of a cluster: the primaries, then as many replicas of each of them in turn.

    `cluster_node_timeout="1500"` is an option `cluster-node-timeout 1500`.
    """
    given = {name.replace("_", "-"): value for name, value in options.items()}
    folder = Path(tempfile.mkdtemp(prefix="laurels-cluster-"))
    ports = _free_ports(primaries * (1 + replicas))
    servers = [
        ClusterServer(port, folder / str(port), given, redis.Redis(port=port, socket_timeout=5))
        for port in ports
    ]
    for server in servers:
        server.start()
    try:
        for server in servers:
            until(server.client.ping)
        for number, server in enumerate(servers):
            if number < primaries:
                first, last = SLOTS * number // primaries, SLOTS * (number + 1) // primaries - 1
                server.client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            server.client.execute_command("CLUSTER", "MEET", "127.0.0.1", ports[0])
        for server in servers:
            until(lambda server=server: _is_whole(server.client, primaries, len(servers)))
        for number, server in enumerate(servers[primaries:]):
            server.client.execute_command("CLUSTER", "REPLICATE", servers[number % primaries].name)
            until(lambda server=server: b"connected" in server.client.execute_command("ROLE"))
        yield servers
    finally:
        for server in servers:
            server.client.close()
            server.process.kill()  # Redis 7.0 does not exit while it writes its first append-only file
        for server in servers:
            server.process.wait()
        shutil.rmtree(folder)


def _is_whole(client: Client, primaries: int, nodes: int) -> bool:
    # redis-py parses the reply of this command only under its one-word name.
    info = client.execute_command("CLUSTER INFO")
    told = info["cluster_state"], info["cluster_size"], info["cluster_known_nodes"]
    return told == ("ok", str(primaries), str(nodes))


def move_slot(slot: int, source: ClusterServer, target: ClusterServer, servers: list[ClusterServer]) -> None:
    """With all its keys, a few at a time; returns when all nodes know it."""
    target.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", source.name)
    source.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", target.name)
    while keys := source.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 5):
        source.client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
    for server in (target, source, *(each for each in servers if each.is_primary())):
        server.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", target.name)
    until(lambda: all(holder(slot, server) == target.port for server in servers))


def holder(slot: int, told_by: ClusterServer) -> int | None:
    """The port of the primary that has the slot."""
    for first, last, (_, port, *_), *_ in told_by.client.execute_command("CLUSTER", "SLOTS"):
        if first <= slot <= last:
            return port
    return None


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
