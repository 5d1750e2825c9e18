"""The connection to Valkey: one node or a cluster, by URL; and our functions, loaded on every primary."""

from __future__ import annotations

import asyncio
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
    from collections.abc import Callable, Generator, Sequence

Value = str | bytes | int | float
Reply = Any  # what Valkey answers: nested lists of bytes and integers, given a shape by `functions`

LIBRARY = "laurels"
# In this order: a file uses what stands in those before it.
_FILES = ("values.lua", "layouts.lua", "submit.lua", "read.lua", "board.lua")

# hiredis types it for one word.
_pack = cast("Callable[[tuple[Value, ...]], bytes]", hiredis.pack_command)  # pyright: ignore[reportUnknownMemberType]

CONNECT_SECONDS = 5
ANSWER_SECONDS = 30


def library_code() -> str:
    """The function library as it is loaded."""
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


class Valkey:
    """A pool of connections. Nothing is sent twice behind the caller's back: a score could count twice."""

    def __init__(self, url: str) -> None:
        self.is_cluster = url.startswith(("redis+cluster://", "rediss+cluster://"))
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
            # Our own is cheaper: redis-py's makes a task of every send.
            socket_timeout=None,
            retry=Retry(NoBackoff(), 0),
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def command(self, *words: Value) -> Reply:
        """A command that reads, or whose repetition changes nothing."""
        with _translated(writing=False):
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._client.execute_command(*words)

    async def read(self, function: str, keys: Sequence[str], args: Sequence[Value]) -> Reply:
        with _translated(writing=False):
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._call("FCALL_RO", function, keys, args)

    async def write(self, function: str, keys: Sequence[str], args: Sequence[Value]) -> Reply:
        with _translated(writing=True):
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._call("FCALL", function, keys, args)

    async def _call(self, how: str, function: str, keys: Sequence[str], args: Sequence[Value]) -> Reply:
        words = (how, function, len(keys), *keys, *args)
        try:
            return await self._execute(words)
        except exceptions.ResponseError as error:
            if "Function not found" not in str(error):
                raise
        await self.load_functions()
        return await self._execute(words)

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

    async def info(self, section: str) -> dict[str, str]:
        """A section of INFO; of the first primary on a cluster."""
        node = (await self._primaries())[0]
        with _translated(writing=False):
            answer = await node.execute_command("INFO", section)
        return {str(name): str(value) for name, value in answer.items()}
