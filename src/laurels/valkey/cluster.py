"""Finds the node of a cluster that has a key, while slots and primaries move.

The slots are read from any node that answers, and again when a node redirects a call, refuses it or stays
silent. A call is sent again only if the node said that it did not run it.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from redis import exceptions
from redis.crc import key_slot

from laurels.valkey.connections import UNANSWERED, ConnectionLosses, Pool
from laurels.valkey.node import Node

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

    from laurels.valkey.client import Value

# How long a node may stay silent before the slots are read from the others.
SILENT_SECONDS: Final = 5.0
# Reading the slots: nodes asked at a time, seconds for each, and seconds for all of them.
ASKED_TOGETHER: Final = 3
TOPOLOGY_SECONDS: Final = 1.0
REFRESH_SECONDS: Final = 3.0
# How long a call follows redirections, and how long it waits between two of them.
REDIRECT_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 0.02

_NOT_NOW = (exceptions.ReadOnlyError, exceptions.ClusterDownError)  # MASTERDOWN is one of the latter

# The position of the first key in commands that do not begin with one; 0 for no key.
_KEY_AT: Final[Mapping[str, int]] = {
    "PING": 0, "TIME": 0, "PUBLISH": 0, "INFO": 0, "CONFIG": 0, "XINFO": 2, "XGROUP": 2, "MEMORY": 2,
    "SINTERCARD": 2, "FCALL": 3, "FCALL_RO": 3,
}  # fmt: skip

_T = TypeVar("_T")


def key_of(words: tuple[Value, ...]) -> Value | None:
    """The key that decides which node a command goes to."""
    name = str(words[0]).upper()
    if name == "XREAD":
        return words[words.index("STREAMS") + 1]
    at = _KEY_AT.get(name, 1)
    return words[at] if at else None


class ClusterNode(Node):
    def __init__(self, host: str, port: int, pool: Pool, connections: int) -> None:
        super().__init__(pool, connections, SILENT_SECONDS)
        self.host = host
        self.port = port


class Cluster:
    """The known nodes, and the primary of each slot."""

    def __init__(self, options: dict[str, Any], connections: int) -> None:
        """`options`: for a connection to the node in the URL."""
        self._options = options
        self._connections = connections
        self.losses = ConnectionLosses()
        self._nodes: dict[tuple[str, int], ClusterNode] = {}
        self._slots: dict[int, ClusterNode] = {}
        self._first = self.node(options["host"], options.get("port", 6379))
        self.epoch = 0
        self._refreshing: asyncio.Task[None] | None = None

    def node(self, host: str, port: int) -> ClusterNode:
        if (host, port) not in self._nodes:
            options: Any = {**self._options, "host": host, "port": port}
            pool = Pool(**options).watched(self.losses)
            self._nodes[host, port] = ClusterNode(host, port, pool, self._connections)
        return self._nodes[host, port]

    def _named_by(self, redirection: Any, told_by: ClusterNode) -> ClusterNode:  # noqa: ANN401  # redis-py types its errors only in part
        return self.node(_host(redirection.host, told_by), redirection.port)

    async def primaries(self) -> list[ClusterNode]:
        await self._begin()
        return list(dict.fromkeys(self._slots[slot] for slot in sorted(self._slots)))

    async def owner(self, key: Value | None) -> ClusterNode:
        """The primary that has the key; any primary for None."""
        await self._begin()
        if key is None:
            return random.choice(list(self._slots.values()))  # noqa: S311  # no secret
        name = key if isinstance(key, bytes) else str(key).encode()
        node = self._slots.get(key_slot(name))
        if node is None:
            raise exceptions.ClusterDownError("CLUSTERDOWN no primary has the slot")
        return node

    async def on_owner(
        self,
        key: Value | None,
        converse: Callable[[ClusterNode, bool], Awaitable[_T]],
        seconds: float = SILENT_SECONDS,
    ) -> _T:
        """Calls `converse` with the node that has the key, again after each redirection or refusal that it
        raises. Its second argument says whether to send `ASKING` first.
        """
        ends = asyncio.get_running_loop().time() + REDIRECT_SECONDS
        importing: ClusterNode | None = None
        while True:
            epoch, node = self.epoch, importing
            try:
                node = node or await self.owner(key)
                async with asyncio.timeout(seconds):
                    with self.doubting(node):
                        return await converse(node, importing is not None)
            except exceptions.MovedError as moved:
                self._slots[moved.slot_id] = self._named_by(moved, node or self._first)
                self.losses.count += 1
                importing, refused = None, moved
            except exceptions.AskError as ask:
                importing, refused = self._named_by(ask, node or self._first), ask
            except exceptions.TryAgainError as error:
                refused = error
            except _NOT_NOW as error:
                importing, refused = None, error
                await self.refresh(epoch, node)
            except UNANSWERED:
                await self.refresh(epoch, node)
                raise
            if asyncio.get_running_loop().time() > ends:
                raise refused
            await asyncio.sleep(0 if isinstance(refused, exceptions.AskError) else PAUSE_SECONDS)

    @contextmanager
    def doubting(self, node: ClusterNode | None = None) -> Generator[None]:
        """Has the slots read when the block is cancelled after a while. Otherwise a process whose callers
        give up earlier than `SILENT_SECONDS` would never learn that a node was replaced.
        """
        epoch, began = self.epoch, asyncio.get_running_loop().time()
        try:
            yield
        except asyncio.CancelledError:
            if asyncio.get_running_loop().time() - began >= TOPOLOGY_SECONDS and self.epoch == epoch:
                self._reading(node)
            raise

    async def refresh(self, epoch: int, doubted: ClusterNode | None = None) -> None:
        """Reads the slots again, unless done since `epoch`. Concurrent calls share one reading."""
        if self.epoch != epoch:
            return
        await asyncio.shield(self._reading(doubted))

    def _reading(self, doubted: ClusterNode | None) -> asyncio.Task[None]:
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._read_slots(doubted))
        return self._refreshing

    async def _read_slots(self, doubted: ClusterNode | None) -> None:
        """Reads the slots from the first node that answers; asks the doubted node last."""
        nodes = list(self._nodes.values())
        random.shuffle(nodes)
        nodes.sort(key=lambda node: node is doubted)
        with suppress(TimeoutError):
            async with asyncio.timeout(REFRESH_SECONDS):
                for first in range(0, len(nodes), ASKED_TOGETHER):
                    asked = [
                        asyncio.create_task(_slots_of(node)) for node in nodes[first : first + ASKED_TOGETHER]
                    ]
                    try:
                        for answered in asyncio.as_completed(asked):
                            told_by, listed = await answered
                            if await self._learn(listed, told_by):
                                return
                    finally:
                        for task in asked:
                            task.cancel()

    async def _begin(self) -> None:
        if not self._slots:
            await self.refresh(self.epoch)
        if not self._slots:
            raise exceptions.ConnectionError(
                "no node of the cluster lists its slots (the URL of a single node begins with redis://)"
            )

    async def _learn(self, listed: list[Any], told_by: ClusterNode) -> bool:
        """Takes over the slots of a reply; False if it has none."""
        slots: dict[int, ClusterNode] = {}
        known = {told_by, self._first}
        for first, last, *shard in listed:
            primary, *replicas = [
                self.node(_host(_text(host), told_by), int(port)) for host, port, *_ in shard
            ]
            known |= {primary, *replicas}
            slots |= dict.fromkeys(range(int(first), int(last) + 1), primary)
        if not slots:
            return False
        self._slots, self.epoch = slots, self.epoch + 1
        self.losses.count += 1
        for address, node in list(self._nodes.items()):
            if node not in known:
                del self._nodes[address]
                await node.close()
        return True

    async def close(self) -> None:
        if self._refreshing:
            self._refreshing.cancel()
        for node in self._nodes.values():
            await node.close()


def _text(host: bytes | str | None) -> str:
    return host.decode() if isinstance(host, bytes) else host or ""


def _host(named: str, told_by: ClusterNode) -> str:
    """An address that a node does not know is its own."""
    return told_by.host if named in {"", "?"} else named


async def _slots_of(node: ClusterNode) -> tuple[ClusterNode, list[Any]]:
    """The slots by this node; empty if it does not answer."""
    with suppress(exceptions.RedisError, OSError):
        async with asyncio.timeout(TOPOLOGY_SECONDS):
            return node, await node.client.execute_command("CLUSTER", "SLOTS")
    return node, []
