"""The connection to Valkey: one node or a cluster, by URL; and our functions, loaded on every primary."""

from __future__ import annotations

import asyncio
import random
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any, cast

import hiredis
import redis.asyncio as redis
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from laurels.errors import OutcomeUnknown, StartupError, Unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Sequence

    from laurels.valkey.messages import Durability

Value = str | bytes | int | float
Reply = Any  # what Valkey answers: nested lists of bytes and integers, given a shape by `functions`

LIBRARY = "laurels"
# In this order: a file uses what stands in those before it.
_FILES = (
    "values.lua", "layouts.lua", "memory.lua", "submit.lua", "match.lua", "read.lua",
    "board.lua", "journal.lua", "once.lua", "rebuild.lua", "activity.lua",
    "index.lua", "discard.lua", "permissions.lua",
)  # fmt: skip

# hiredis types it for one word.
_pack = cast("Callable[[tuple[Value, ...]], bytes]", hiredis.pack_command)  # pyright: ignore[reportUnknownMemberType]

# What a connection to a node of a cluster has in common with one to that node alone.
_OF_A_CONNECTION = frozenset(
    {"host", "port", "username", "password", "credential_provider", "socket_connect_timeout"}
)

CONNECT_SECONDS = 5
ANSWER_SECONDS = 30
# More would only wait within Valkey, which does one thing at a time.
CONNECTIONS = 100
# Reads that block wait for something else: each for its board.
MOST_BLOCKING = 5_000
# How long the disk and the replicas may take, each.
WAIT_SECONDS = 5
# How long a channel may be silent before we ask whether it is still there, and then wait for the answer.
SILENCE_SECONDS = 5


def library_code() -> str:
    """The function library as it is loaded. It says `redis.call`: only Valkey has `server.call` as well."""
    folder = resources.files("laurels.valkey") / "lua"
    return f"#!lua name={LIBRARY}\n" + "\n".join((folder / name).read_text() for name in _FILES)


@contextmanager
def _translated(*, writing: bool) -> Generator[None]:
    try:
        yield
    except (exceptions.BusyLoadingError, exceptions.ReadOnlyError, exceptions.ClusterDownError) as error:
        raise Unavailable(f"Valkey cannot answer yet: {error}") from error
    except (exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
        if writing:
            raise OutcomeUnknown(
                f"Valkey stopped answering, so it may or may not have counted ({error})"
            ) from error
        raise Unavailable(f"Valkey does not answer: {error}") from error
    except exceptions.OutOfMemoryError as error:
        raise Unavailable(f"Valkey is out of memory: raise its maxmemory or keep less ({error})") from error


def _fields(answer: dict[bytes, bytes] | list[bytes]) -> dict[bytes, bytes]:
    """A map as RESP3 sends it, or the flat list that RESP2 makes of it."""
    return answer if isinstance(answer, dict) else dict(zip(answer[::2], answer[1::2], strict=True))


def stream_entries(answer: Reply) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """What XRANGE answered: ids and fields, whichever way the client read them."""
    return [(name, _fields(fields)) for name, fields in answer or ()]


async def _reply(connection: Any) -> Reply:  # noqa: ANN401  # redis-py types its connections only in part
    try:
        return await connection.read_response()
    except exceptions.ResponseError as error:
        return error


async def _converse(connection: Any, commands: Sequence[tuple[Value, ...]]) -> list[Reply]:  # noqa: ANN401  # as above
    is_read = False
    try:
        await connection.send_packed_command(b"".join(map(_pack, commands)))
        replies = [await _reply(connection) for _ in commands]
        is_read = True
        return replies
    finally:
        if not is_read:  # what was not read would be taken for the next answer
            await connection.disconnect()


class Valkey:
    """A pool of connections. Nothing is sent twice behind the caller's back: a score could count twice."""

    def __init__(self, url: str, *, replicas: int = 1, connections: int = CONNECTIONS) -> None:
        """`replicas`: how many must have what is written `replicated`. `connections`: how many commands are
        under way at once; the next wait for one of them to end.
        """
        self._url = url
        self._replicas = replicas
        self.is_cluster = url.startswith(("redis+cluster://", "rediss+cluster://"))
        self._turns = asyncio.Semaphore(connections)
        address = url.replace("+cluster://", "://", 1)
        try:
            self._client = self._connect(address)
        except (ValueError, exceptions.RedisError) as error:
            raise StartupError(f"the Valkey URL cannot be used: {error}") from error

    def _connect(self, address: str) -> Any:  # noqa: ANN401  # redis-py types its clients only in part
        client: Any = redis.RedisCluster if self.is_cluster else redis.Redis
        return client.from_url(
            address,
            socket_connect_timeout=CONNECT_SECONDS,
            # No limit of its own: it would refuse those beyond it, where ours lets them wait.
            max_connections=2**31,
            # Our own is cheaper: redis-py's makes a task of every send.
            socket_timeout=None,
            retry=Retry(NoBackoff(), 0),
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def command(self, *words: Value) -> Reply:
        """A command that reads, or whose repetition changes nothing."""
        with _translated(writing=False):
            async with asyncio.timeout(ANSWER_SECONDS), self._turns:
                return await self._client.execute_command(*words)

    async def commands(self, commands: Sequence[tuple[Value, ...]]) -> list[Reply]:
        """Commands as `command` takes them, in as few round trips as there are nodes. The first that fails
        raises, after all were done.
        """
        if not commands:
            return []
        with _translated(writing=False):
            async with asyncio.timeout(ANSWER_SECONDS), self._turns:
                if self.is_cluster:
                    pipeline = self._client.pipeline()
                    for words in commands:
                        pipeline.execute_command(*words)
                    return await pipeline.execute()
                replies = await self._exchange(commands)
            for reply in replies:
                if isinstance(reply, Exception):
                    raise reply
            return replies

    async def read(self, function: str, keys: Sequence[str], args: Sequence[Value]) -> Reply:
        with _translated(writing=False):
            async with asyncio.timeout(ANSWER_SECONDS), self._turns:
                return await self._call("FCALL_RO", function, keys, args)

    async def write(
        self,
        function: str,
        keys: Sequence[str],
        args: Sequence[Value],
        durability: Durability = "fast",
    ) -> Reply:
        """Raises `OutcomeUnknown` also when it was written, but not as durably as was asked for."""
        with _translated(writing=True):
            async with asyncio.timeout(ANSWER_SECONDS), self._turns:
                if durability == "fast":
                    return await self._call("FCALL", function, keys, args)
                return await self._call_and_wait(function, keys, args, durability)

    async def _call(self, how: str, function: str, keys: Sequence[str], args: Sequence[Value]) -> Reply:
        words = (how, function, len(keys), *keys, *args)
        try:
            return await self._execute(words)
        except exceptions.ResponseError as error:
            if "Function not found" not in str(error):
                raise
        await self.load_functions()
        return await self._execute(words)

    async def _call_and_wait(
        self, function: str, keys: Sequence[str], args: Sequence[Value], durability: Durability
    ) -> Reply:
        """The wait goes down the connection that wrote, right behind: it covers that connection's writes."""
        milliseconds = int(WAIT_SECONDS * 1000)
        commands: list[tuple[Value, ...]] = [
            ("FCALL", function, len(keys), *keys, *args),
            ("WAITAOF", 1, 0, milliseconds),
        ]
        if durability == "replicated":
            commands.append(("WAIT", self._replicas, milliseconds))
        reply, *waited = await self._exchange(commands, keys[0])
        if isinstance(reply, exceptions.ResponseError) and "Function not found" in str(reply):
            await self.load_functions()
            reply, *waited = await self._exchange(commands, keys[0])
        if isinstance(reply, exceptions.AskError | exceptions.TryAgainError):
            raise Unavailable("the cluster is moving this board to another node; try again")
        if isinstance(reply, Exception):
            raise reply
        self._check_waited(*waited)
        return reply

    def _check_waited(self, on_disk: Reply, on_replicas: Reply = None) -> None:
        if isinstance(on_disk, Exception):
            raise OutcomeUnknown(
                f"Valkey has it, but cannot say when it is on disk: set `appendonly yes` there ({on_disk})"
            )
        if on_disk[0] < 1:
            raise OutcomeUnknown(f"Valkey did not have it on disk within {WAIT_SECONDS} s")
        if isinstance(on_replicas, int) and on_replicas < self._replicas:
            raise OutcomeUnknown(f"{on_replicas} of {self._replicas} replicas had it within {WAIT_SECONDS} s")

    async def _execute(self, words: tuple[Value, ...]) -> Reply:
        """The same as the client's own, but packed in C: a call may have hundreds of words."""
        if self.is_cluster:
            return await self._client.execute_command(*words)
        pool = self._client.connection_pool
        connection = await pool.get_connection()
        try:
            await connection.send_packed_command(_pack(words))
            return await connection.read_response()
        except (exceptions.ConnectionError, exceptions.TimeoutError):
            await connection.disconnect()
            raise
        finally:
            await pool.release(connection)

    async def _exchange(self, commands: Sequence[tuple[Value, ...]], key: str = "") -> list[Reply]:
        """Down one connection to one node, on a cluster the key's; packed in C. Errors are answers too."""
        if self.is_cluster:
            return await self._exchange_in_cluster(commands, key)
        pool = self._client.connection_pool
        connection = await pool.get_connection()
        try:
            return await _converse(connection, commands)
        finally:
            await pool.release(connection)

    async def _exchange_in_cluster(self, commands: Sequence[tuple[Value, ...]], key: str) -> list[Reply]:
        while True:
            await self._client.initialize()
            node = self._client.get_node_from_key(key)
            connection = node.acquire_connection()
            try:
                await node.disconnect_if_needed(connection)
                replies = await _converse(connection, commands)
            except exceptions.ConnectionError:
                await self._client.aclose()  # who has the key now is asked again
                raise
            finally:
                node.release(connection)
            if isinstance(replies[0], exceptions.ReadOnlyError):
                await self._client.aclose()
            if not isinstance(replies[0], exceptions.MovedError):
                return replies
            await self._client.nodes_manager.move_slot(replies[0])

    async def load_functions(self) -> None:
        """Load the library where it is missing or differs from this version's."""
        code = library_code()
        for node in await self._primaries():
            if await self._loaded_code(node) != code:
                with _translated(writing=False):
                    await node.execute_command("FUNCTION", "LOAD", "REPLACE", code)

    async def functions_are_current(self) -> bool:
        """Whether every primary has the library as this version has it."""
        code = library_code()
        return all([await self._loaded_code(node) == code for node in await self._primaries()])

    async def load_missing_functions(self) -> None:
        """Load the library where there is none at all, as on a Valkey that took the place of another."""
        for node in await self._primaries():
            if await self._loaded_code(node) is None:
                await self.load_functions()

    async def _loaded_code(self, node: Any) -> str | None:  # noqa: ANN401  # a node client, or one of a cluster's nodes
        with _translated(writing=False):
            listed = await node.execute_command("FUNCTION", "LIST", "LIBRARYNAME", LIBRARY, "WITHCODE")
        for library in listed:
            return _fields(library)[b"library_code"].decode()
        return None

    async def _primaries(self) -> list[Any]:
        with _translated(writing=False):
            if isinstance(self._client, redis.RedisCluster):
                await self._client.initialize()
                return list(self._client.get_primaries())
            return [self._client]

    async def ask_primaries(self, *words: Value) -> list[Reply]:
        """What each primary answers; a refusal is an answer too."""
        replies: list[Reply] = []
        for node in await self._primaries():
            with _translated(writing=False):
                try:
                    replies.append(await node.execute_command(*words))
                except exceptions.ResponseError as error:
                    replies.append(error)
        return replies

    async def publish(self, channel: str, message: str) -> None:
        """To whoever listens at this moment; on a cluster, through whichever node."""
        await self.command("PUBLISH", channel, message)

    async def listen(self, channel: str) -> AsyncGenerator[str | None]:
        """What is published there. None comes first: from then on nothing is missed, until it raises."""
        client = await self._client_of_one_node()
        pubsub = client.pubsub()
        try:
            with _translated(writing=False):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await pubsub.subscribe(channel)
            is_asked = False
            while True:
                with _translated(writing=False):
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
            if self.is_cluster:
                await client.aclose()

    async def _client_of_one_node(self) -> Any:  # noqa: ANN401  # as `_connect`
        """Of a cluster, any: what is published on one node comes to all. redis-py's own choice hangs."""
        if not self.is_cluster:
            return self._client
        node = random.choice(await self._primaries())  # noqa: S311  # no secret
        given = {
            name: value
            for name, value in node.connection_kwargs.items()
            if name in _OF_A_CONNECTION or name.startswith("ssl_")
        }
        retry = Retry(NoBackoff(), 0)
        pool = redis.ConnectionPool(node.connection_class, **given, retry=retry)
        return redis.Redis.from_pool(pool)

    def apart(self) -> Valkey:
        """The same server by connections of its own: for reads that block, and would keep others waiting."""
        return Valkey(self._url, connections=MOST_BLOCKING)

    async def scan_hash(self, key: str, cursor: bytes, count: int) -> tuple[bytes, list[tuple[bytes, bytes]]]:
        """The next cursor, `0` at the end; and some fields with their values."""
        following, listed = await self.command("HSCAN", key, cursor, "COUNT", count)
        return str(int(following)).encode(), list(_fields(listed).items())

    async def scores(self, key: str, count: int) -> AsyncGenerator[list[tuple[bytes, float]]]:
        """Members and scores of any sorted set, some at a time, in no order; one may come twice."""
        cursor = b"0"
        while True:
            with _translated(writing=False):
                following, listed = await self.command("ZSCAN", key, cursor, "COUNT", count)
            if listed and not isinstance(listed[0], tuple | list):
                listed = list(zip(listed[::2], listed[1::2], strict=True))
            yield [(member, float(score)) for member, score in listed]
            cursor = str(int(following)).encode()
            if cursor == b"0":
                return

    async def added(self, streams: Sequence[str]) -> list[int]:
        """How many entries each stream ever had, also when they were trimmed; 0 where there is none."""
        while True:
            are_there = await self.commands([("EXISTS", stream) for stream in streams])
            there = [stream for stream, is_there in zip(streams, are_there, strict=True) if is_there]
            try:
                told = await self.commands([("XINFO", "STREAM", stream) for stream in there])
            except exceptions.ResponseError as error:
                if "no such key" not in str(error):
                    raise
                continue  # one was dropped meanwhile
            counts = {
                stream: int(_fields(each)[b"entries-added"]) for stream, each in zip(there, told, strict=True)
            }
            return [counts.get(stream, 0) for stream in streams]

    async def newest(self, stream: str) -> str:
        """The id of the last entry that the stream ever had, also when it was trimmed; none had `0-0`."""
        try:
            told = await self.command("XINFO", "STREAM", stream)
        except exceptions.ResponseError as error:
            if "no such key" not in str(error):
                raise
            return "0-0"
        return _fields(told)[b"last-generated-id"].decode()

    async def wait_for_entry(self, stream: str, after: str, seconds: float) -> None:
        """Returns once the stream has an entry after this one, or when the time is over."""
        milliseconds = max(1, int(seconds * 1000))
        await self.command("XREAD", "COUNT", 1, "BLOCK", milliseconds, "STREAMS", stream, after)

    async def now(self) -> int:
        """Its clock, in microseconds since 1970; of the first primary on a cluster."""
        node = (await self._primaries())[0]
        with _translated(writing=False):
            seconds, microseconds = await node.execute_command("TIME")
        return int(seconds) * 1_000_000 + int(microseconds)

    async def info(self, section: str) -> dict[str, str]:
        """A section of INFO; of the first primary on a cluster."""
        return (await self.infos(section))[0]

    async def infos(self, section: str) -> list[dict[str, str]]:
        """The same of every primary."""
        with _translated(writing=False):
            answers = [await node.execute_command("INFO", section) for node in await self._primaries()]
        return [{str(name): str(value) for name, value in answer.items()} for answer in answers]
