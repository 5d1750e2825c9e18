"""The connections to Valkey, one node or a cluster, and the function library on every primary."""

from __future__ import annotations

import asyncio
import re
from contextlib import nullcontext, suppress
from importlib import resources
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, cast

from redis import exceptions
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from laurels.errors import OutcomeUnknown, StartupError
from laurels.valkey.announcements import Announcer
from laurels.valkey.cluster import SILENT_SECONDS, Cluster, key_of
from laurels.valkey.command import pairs
from laurels.valkey.connections import UNANSWERED, WAIT_SECONDS, WAITS, ConnectionLosses, Pool
from laurels.valkey.node import Node
from laurels.valkey.refusals import log_wrong_type, taken_key, translated

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from laurels.valkey.command import Command
    from laurels.valkey.messages import Durability

Value = str | bytes | int | float
Reply = Any  # nested lists of bytes and integers; `functions` gives them types


Result = TypeVar("Result")

LIBRARY = "laurels"
# In this order: a file uses the locals of those before it.
_FILES = (
    "values.lua", "layout.lua", "convert.lua", "generations.lua", "idempotency.lua", "submit.lua",
    "match.lua", "metadata.lua", "read.lua", "board.lua", "journal.lua", "rebuild.lua", "activity.lua",
    "index.lua", "discard.lua", "announcements.lua", "permissions.lua", "limits.lua",
)  # fmt: skip

CONNECT_SECONDS = 5
ANSWER_SECONDS = 30
# For commands that block a connection: waits for the disk and for replicas.
CONNECTIONS = 100
# Blocking reads of live boards.
MOST_BLOCKING = 5_000
# Commands sent in one round trip.
COMMANDS_TOGETHER = 1000
# Keys that one SCAN looks at: some 0.2 ms.
SCANNED_AT_ONCE = 1000
# How long a channel may be silent before it is pinged, and how long the answer to that may take.
SILENCE_SECONDS = 5

_OPTIONS: dict[str, Any] = {
    "socket_connect_timeout": CONNECT_SECONDS,
    # The pool would refuse commands beyond its limit; `Valkey` lets them wait instead.
    "max_connections": 2**31,
    # redis-py makes a task of every send to time it out; our timeouts are cheaper.
    "socket_timeout": None,
    "retry": Retry(NoBackoff(), 0),
}
# A function found a key of another program: the key's place in KEYS, and its type (lua/layout.lua).
_TAKEN = re.compile(r"TAKEN (\d+) (\w+)")
_REDIRECTED = (
    exceptions.AskError,  # MOVED is one too
    exceptions.TryAgainError,
    exceptions.ReadOnlyError,
    exceptions.ClusterDownError,
)


def library_code() -> str:
    """The source of the function library. It says `redis.call`, because Redis has no `server.call`."""
    folder = resources.files("laurels.valkey") / "lua"
    return f"#!lua name={LIBRARY}\n" + "\n".join((folder / name).read_text() for name in _FILES)


def _has(kind: type[Exception], replies: list[Reply]) -> bool:
    """Whether one of the replies is such an error. A loop, which is the quickest for the usual one reply."""
    for reply in replies:  # noqa: SIM110
        if isinstance(reply, kind):
            return True
    return False


def _checked(reply: Reply, words: tuple[Value, ...]) -> Reply:
    """The reply to a function call; raises an error reply."""
    if isinstance(reply, Exception):
        if taken := _TAKEN.match(str(reply)):
            raise taken_key(str(words[2 + int(taken[1])]), taken[2]) from reply
        raise reply
    return reply


def _lacks_function(reply: Reply) -> bool:
    return isinstance(reply, exceptions.ResponseError) and "Function not found" in str(reply)


def _raise_redirection(reply: Reply) -> None:
    if isinstance(reply, _REDIRECTED):
        raise reply


class Valkey:
    """Connections to one node or a cluster. A call that may have run is never sent again."""

    def __init__(
        self,
        url: str,
        *,
        replicas: int = 1,
        connections: int = CONNECTIONS,
        durability: Durability = "fast",
    ) -> None:
        """`replicas`: how many must have a `replicated` write. `connections`: how many commands may block at
        once on each node; further ones wait. `durability`: of the background flows' writes.
        """
        self.durability: Durability = durability
        self.announcer = Announcer(self)
        self._url = url
        self._replicas = replicas
        self.is_cluster = url.startswith(("redis+cluster://", "rediss+cluster://"))
        self._cluster: Cluster | None = None
        address = url.replace("+cluster://", "://", 1)
        try:
            if self.is_cluster:
                self._cluster = Cluster({"host": "localhost", **parse_url(address), **_OPTIONS}, connections)
            else:
                self._pool: Pool = cast("Any", Pool).from_url(address, **_OPTIONS).watched(ConnectionLosses())
                self._node = Node(self._pool, connections, ANSWER_SECONDS)
        except (ValueError, exceptions.RedisError) as error:
            raise StartupError(f"the Valkey URL cannot be used: {error}") from error

    @property
    def losses(self) -> int:
        """A counter that grows whenever unconfirmed writes may have been lost."""
        return (self._cluster or self._pool).losses.count

    async def close(self) -> None:
        await self.announcer.close()
        await (self._cluster or self._node).close()

    async def run(self, command: Command[Result]) -> Result:
        return command.parse(await self.command(*command.words))

    async def run_all(self, commands: Iterable[Command[Result]]) -> list[Result]:
        """The results, in order. Commands are sent a thousand at a time; if some of these fail, all of them
        were sent, and the first error is raised.
        """
        results: list[Result] = []
        coming = iter(commands)
        while together := list(islice(coming, COMMANDS_TOGETHER)):
            replies = await self.commands([command.words for command in together])
            results += [command.parse(reply) for command, reply in zip(together, replies, strict=True)]
        return results

    async def command(self, *words: Value, wait: float = 0) -> Reply:
        """Runs a command that may be repeated without harm. `wait`: how many seconds it may block."""
        with translated(writing=False, words=words):
            (reply,) = await self._exchange([words], blocks_for=wait)
            if isinstance(reply, Exception):
                raise reply
            return reply

    async def commands(self, commands: Sequence[tuple[Value, ...]]) -> list[Reply]:
        """Runs commands as `command` does, in one round trip to each node; then raises the first error."""
        if not commands:
            return []
        with translated(writing=False):
            cluster = self._cluster
            replies = await (self._scatter(cluster, commands) if cluster else self._exchange(commands))
            for words, reply in zip(commands, replies, strict=True):
                if isinstance(reply, Exception):
                    log_wrong_type(str(reply), words)
                    raise reply
            return replies

    async def _scatter(self, cluster: Cluster, commands: Sequence[tuple[Value, ...]]) -> list[Reply]:
        """Sends each command to the node of its key, and follows redirections one by one."""
        by_node: dict[Node, list[int]] = {}
        for number, words in enumerate(commands):
            by_node.setdefault(await cluster.owner(key_of(words)), []).append(number)

        async def ask(numbers: list[int]) -> list[Reply]:
            return await self._exchange([commands[number] for number in numbers])

        answers = await asyncio.gather(*map(ask, by_node.values()))
        replies: dict[int, Reply] = {}
        for numbers, answered in zip(by_node.values(), answers, strict=True):
            replies |= zip(numbers, answered, strict=True)
        for number, reply in replies.items():
            if isinstance(reply, _REDIRECTED):
                (replies[number],) = await self._exchange([commands[number]])
        return [replies[number] for number in range(len(commands))]

    async def read(self, function: str, keys: Sequence[str], args: Sequence[Value]) -> Reply:
        words = ("FCALL_RO", function, len(keys), *keys, *args)
        with translated(writing=False, words=words):
            (reply,) = await self._exchange([words])
            return _checked(reply, words)

    async def write(
        self,
        function: str,
        keys: Sequence[str],
        args: Sequence[Value],
        durability: Durability = "fast",
    ) -> Reply:
        """Raises `OutcomeUnknown` also for a write that is not known to be as durable as asked for."""
        words = ("FCALL", function, len(keys), *keys, *args)
        with translated(writing=True, words=words):
            return await self._call(words, durability)

    async def _call(self, words: tuple[Value, ...], durability: Durability = "fast") -> Reply:
        """Sends the waits right after the call, on the same connection, whose writes they cover."""
        milliseconds = int(WAIT_SECONDS * 1000)
        commands: list[tuple[Value, ...]] = [words]
        if durability != "fast":
            commands.append(("WAITAOF", 1, 0, milliseconds))
        if durability == "replicated":
            commands.append(("WAIT", self._replicas, milliseconds))
        reply, *waited = await self._exchange(commands)
        _checked(reply, words)
        if durability != "fast":
            self._check_on_disk(waited[0])
        if durability == "replicated":
            await self._check_on_replicas(words, waited[1])
        return reply

    def _check_on_disk(self, reply: Reply) -> None:
        if isinstance(reply, Exception):
            raise OutcomeUnknown(
                f"Valkey cannot say when the write is on disk: set `appendonly yes` there ({reply})"
            )
        if not (isinstance(reply, list) and reply and isinstance(reply[0], int) and reply[0] >= 1):
            raise OutcomeUnknown(f"Valkey did not have the write on disk within {WAIT_SECONDS} s ({reply!r})")

    async def _check_on_replicas(self, words: tuple[Value, ...], reply: Reply) -> None:
        """Raises unless enough replicas had the write; reads the slots again, as the node may be replaced."""
        if isinstance(reply, int) and reply >= self._replicas:
            return
        if self._cluster:
            with suppress(exceptions.ClusterError, *UNANSWERED):
                await self._cluster.refresh(self._cluster.epoch, await self._cluster.owner(key_of(words)))
        had = reply if isinstance(reply, int) else f"not {self._replicas}, but {reply!r}"
        raise OutcomeUnknown(f"{had} of {self._replicas} replicas had the write within {WAIT_SECONDS} s")

    async def _exchange(self, commands: Sequence[tuple[Value, ...]], *, blocks_for: float = 0) -> list[Reply]:
        """Sends commands one behind the other to one node; on a cluster, to that of the first command's key.
        Returns error replies instead of raising them.
        """
        if self._cluster is None:
            replies = await self._converse(self._node, commands, blocks_for)
            if _has(exceptions.ReadOnlyError, replies):
                await self._node.renew()  # it became a replica, and the URL may lead to the new primary
            return replies

        async def ask(node: Node, asking: bool) -> list[Reply]:  # noqa: FBT001  # as `on_owner` calls it
            replies = await self._converse(node, commands, blocks_for, asking=asking)
            if len(commands) == 1 or commands[1][0] in WAITS:
                _raise_redirection(replies[0])
            return replies

        waits = blocks_for + WAIT_SECONDS * sum(words[0] in WAITS for words in commands)
        return await self._cluster.on_owner(key_of(commands[0]), ask, SILENT_SECONDS + waits)

    @staticmethod
    async def _converse(
        node: Node, commands: Sequence[tuple[Value, ...]], blocks_for: float, *, asking: bool = False
    ) -> list[Reply]:
        """The replies of one node. Loads the function library where it is missing."""
        replies = await node.exchange(commands, blocks_for=blocks_for, asking=asking)
        if _has(exceptions.ResponseError, replies) and any(map(_lacks_function, replies)):
            await node.load_functions(library_code())
            replies = await node.exchange(commands, blocks_for=blocks_for, asking=asking)
        for reply in replies:
            if isinstance(reply, exceptions.ConnectionError):  # such as LOADING
                raise reply
        return replies

    async def load_functions(self) -> None:
        """Loads the library where it is missing, or has another source than this version's."""
        code = library_code()
        for node in await self._primaries():
            if await self._loaded_code(node) != code:
                await self._ask(node, "FUNCTION", "LOAD", "REPLACE", code)

    async def functions_are_current(self) -> bool:
        """Whether every primary has this version's library."""
        code = library_code()
        return all([await self._loaded_code(node) == code for node in await self._primaries()])

    async def load_missing_functions(self) -> None:
        """Loads the library on primaries without one, such as a new Valkey in the place of another."""
        for node in await self._primaries():
            if await self._loaded_code(node) is None:
                await self.load_functions()

    async def _loaded_code(self, node: Any) -> str | None:  # noqa: ANN401  # a client of one node
        for library in await self._ask(node, "FUNCTION", "LIST", "LIBRARYNAME", LIBRARY, "WITHCODE"):
            return dict(pairs(library))[b"library_code"].decode()
        return None

    async def _ask(self, node: Any, *words: Value) -> Reply:  # noqa: ANN401  # as above
        """Runs a command on this primary."""
        with translated(writing=False):
            return await self._ask_in_time(node, *words)

    async def _ask_in_time(self, node: Any, *words: Value) -> Reply:  # noqa: ANN401  # as above
        try:
            async with asyncio.timeout(SILENT_SECONDS if self._cluster else ANSWER_SECONDS):
                with self._cluster.doubting() if self._cluster else nullcontext():
                    return await node.execute_command(*words)
        except UNANSWERED:
            if self._cluster:
                await self._cluster.refresh(self._cluster.epoch)
            raise

    async def _primaries(self) -> list[Any]:
        with translated(writing=False):
            return (
                [node.client for node in await self._cluster.primaries()]
                if self._cluster
                else [self._node.client]
            )

    async def ask_primaries(self, *words: Value) -> list[Reply]:
        """The reply of each primary; an error reply is returned, not raised."""
        replies: list[Reply] = []
        for node in await self._primaries():
            with translated(writing=False):
                try:
                    replies.append(await self._ask_in_time(node, *words))
                except exceptions.ResponseError as error:
                    replies.append(error)
        return replies

    async def publish(self, channel: str, message: str) -> None:
        """Publishes to the present subscribers; on a cluster, through any node."""
        await self.command("PUBLISH", channel, message)

    async def listen(self, channel: str) -> AsyncGenerator[str | None]:
        """Yields None once subscribed, then every message. Misses none of them until it raises."""
        # A cluster passes messages on to all nodes.
        node = await self._cluster.owner(None) if self._cluster else self._node
        pubsub = node.client.pubsub()
        try:
            with translated(writing=False):
                async with asyncio.timeout(SILENCE_SECONDS):
                    await pubsub.subscribe(channel)
            is_asked = False
            while True:
                with translated(writing=False):
                    message = await pubsub.get_message(timeout=SILENCE_SECONDS)
                    if message is None and is_asked:
                        raise exceptions.ConnectionError("no answer on the channel")
                    if message is None:
                        await pubsub.ping()
                is_asked = message is None
                if message and message["type"] == "subscribe":
                    yield None
                elif message and message["type"] == "message":
                    yield message["data"].decode()
        finally:
            await pubsub.aclose()

    def apart(self) -> Valkey:
        """A client of the same server with connections of its own, for blocking reads."""
        return Valkey(self._url, connections=MOST_BLOCKING)

    async def scan(self, command: str, key: str, count: int) -> AsyncGenerator[Reply]:
        """Yields what HSCAN, SSCAN or ZSCAN lists of one key, about `count` entries at a time."""
        cursor: Value = 0
        while True:
            following, listed = await self.command(command, key, cursor, "COUNT", count)
            yield listed
            cursor = int(following)
            if cursor == 0:
                return

    async def keys_like(self, pattern: str) -> AsyncGenerator[list[str]]:
        """Yields the keys that match a glob, some at a time, in no order; one may come twice. Leaves out keys
        that are not UTF-8, which are never Laurels' own.
        """
        for node in await self._primaries():
            cursor = b"0"
            while True:
                words = ("SCAN", cursor, "MATCH", pattern, "COUNT", SCANNED_AT_ONCE)
                following, keys = await self._ask(node, *words)
                yield [text for key in keys if (text := key.decode(errors="ignore")).encode() == key]
                cursor = str(int(following)).encode()
                if cursor == b"0":
                    break

    async def now(self) -> int:
        """Valkey's clock, in microseconds since 1970; on a cluster, that of the first primary."""
        seconds, microseconds = await self._ask((await self._primaries())[0], "TIME")
        return int(seconds) * 1_000_000 + int(microseconds)

    async def info(self, section: str) -> dict[str, str]:
        """A section of INFO; on a cluster, of the first primary."""
        return (await self.infos(section))[0]

    async def infos(self, section: str) -> list[dict[str, str]]:
        """A section of INFO of every primary."""
        answers = [await self._ask(node, "INFO", section) for node in await self._primaries()]
        return [{str(name): str(value) for name, value in answer.items()} for answer in answers]
