"""What may become of the primaries of a cluster. Each fault ends with the cluster whole again."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from valkey_cluster import holder, move_slot
from waiting import until

if TYPE_CHECKING:
    import random

    from valkey_cluster import ClusterServer

THAW_SECONDS = 1.0


class Faults:
    def __init__(self, servers: list[ClusterServer], chance: random.Random, slots: list[int]) -> None:
        """`slots`: those that the load writes to."""
        self._servers = servers
        self._chance = chance
        self._slots = slots

    def happen(self, fault: str) -> None:
        slot = self._chance.choice(self._slots)
        primary = self._owner(slot)
        if fault == "move":
            target = self._chance.choice([each for each in self._primaries() if each is not primary])
            move_slot(slot, primary, target, self._servers)
        else:
            {"kill": self._kill, "freeze": self._freeze, "planned": self._plan}[fault](primary)
        until(self._is_whole)

    def _kill(self, primary: ClusterServer) -> None:
        replica = self._replica_of(primary)
        primary.process.kill()
        primary.process.wait()
        until(replica.is_primary)
        primary.start()

    def _freeze(self, primary: ClusterServer) -> None:
        replica = self._replica_of(primary)
        primary.process.send_signal(signal.SIGSTOP)
        until(replica.is_primary)
        thaw = time.monotonic() + THAW_SECONDS
        until(lambda: time.monotonic() >= thaw)
        primary.process.send_signal(signal.SIGCONT)

    def _plan(self, primary: ClusterServer) -> None:
        replica = self._replica_of(primary)
        replica.client.execute_command("CLUSTER", "FAILOVER")
        until(replica.is_primary)

    def _primaries(self) -> list[ClusterServer]:
        return [server for server in self._servers if server.is_primary()]

    def _owner(self, slot: int) -> ClusterServer:
        port = holder(slot, self._servers[0])
        return next(server for server in self._servers if server.port == port)

    def _replica_of(self, primary: ClusterServer) -> ClusterServer:
        name = primary.name
        listed = self._servers[0].client.execute_command("CLUSTER", "REPLICAS", name)
        return next(
            server for server in self._servers if any(f":{server.port}@" in str(row) for row in listed)
        )

    def _is_whole(self) -> bool:
        """Every primary has a replica in sync, and all nodes agree on who has the slots of the load."""
        for server in self._servers:
            role = server.client.execute_command("ROLE")
            if (role[0] == b"master" and not role[2]) or (role[0] == b"slave" and role[3] != b"connected"):
                return False
        views = {tuple(holder(slot, server) for slot in self._slots) for server in self._servers}
        return len(views) == 1
