"""The client whose answers are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

import httpx

from laurels.client.operations import Operations
from laurels.client.options import LIMITS, ClientOptions, caller_of, check_address
from laurels.client.steps import Give, Lost, Pause, Reply, Send, Take

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Iterator

    from laurels.client.operations import Batching
    from laurels.client.steps import Flow, Step, Stream
    from laurels.errors import InvalidInput
    from laurels.scores.submission import BatchResult, Submission

P = ParamSpec("P")
Answer = TypeVar("Answer")
Item = TypeVar("Item")


class AsyncClientOptions(ClientOptions, total=False):
    transport: httpx.AsyncBaseTransport | None
    """How requests travel; by default over TCP."""
    sleep: Callable[[float], Awaitable[None]]
    """How the pauses between tries are waited."""


class _AsyncDriver:
    """Performs the steps of one flow."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        sleep: Callable[[float], Awaitable[None]],
        given: Iterator[Any] | AsyncIterator[Any],
    ) -> None:
        self._http = http
        self._sleep = sleep
        self._given = given
        self._response: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None

    async def perform(self, step: Step) -> Reply | Lost | bytes | list[Any] | None:
        if isinstance(step, Pause):
            return await self._sleep(step.seconds)
        if isinstance(step, Take):
            return await self._take(step.most)
        try:
            return await (self._send(step) if isinstance(step, Send) else self._read())
        except (httpx.TransportError, httpx.DecodingError) as error:
            return Lost(f"{type(error).__name__} {error}".strip())

    async def _take(self, most: int) -> list[Any]:
        if not isinstance(self._given, AsyncIterator):
            return list(islice(self._given, most))
        taken: list[Any] = []
        while len(taken) < most:
            try:
                taken.append(await anext(self._given))
            except StopAsyncIteration:
                break
        return taken

    async def _read(self) -> bytes:
        return await anext(self._pieces, b"") if self._pieces else b""

    async def _send(self, step: Send) -> Reply:
        await self.close()
        asked = step.request
        request = self._http.build_request(
            asked.method,
            asked.path,
            content=asked.body,
            headers=asked.headers,
            timeout=httpx.Timeout(step.timeout, read=step.silence or step.timeout),
        )
        response = self._response = await self._http.send(request, stream=True)
        if step.silence and response.is_success:
            self._pieces = response.aiter_bytes()
            return Reply(response.status_code, response.headers, b"")
        try:
            return Reply(response.status_code, response.headers, await response.aread())
        finally:
            await self.close()

    async def close(self) -> None:
        if self._response is not None:
            await self._response.aclose()
            # The two know each other: without this, the request's body stays until the next collection.
            self._response.stream = httpx.ByteStream(b"")
            self._response = None


def _awaiting(
    operation: Callable[Concatenate[Operations, P], Flow[Answer]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, Answer]]:
    """The operation, run until it has its answer."""

    async def wait(self: AsyncClient, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return await self.run(operation(self.operations, *args, **kwargs))

    wait.__name__, wait.__doc__ = operation.__name__, operation.__doc__
    return wait


def _iterating(
    operation: Callable[Concatenate[Operations, P], Stream[Item]],
) -> Callable[Concatenate[AsyncClient, P], AsyncGenerator[Item]]:
    """The operation, run as far as its items are asked for."""

    def iterate(self: AsyncClient, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[Item]:
        return self.iterate(operation(self.operations, *args, **kwargs))

    iterate.__name__, iterate.__doc__ = operation.__name__, operation.__doc__
    return iterate


class AsyncClient:
    """A Laurels server, by its address, for asyncio. Safe to use from several tasks."""

    def __init__(self, address: str, **options: Unpack[AsyncClientOptions]) -> None:
        self.operations = Operations(caller_of(options), options.get("project"))
        self._http = httpx.AsyncClient(
            base_url=check_address(address), limits=LIMITS, transport=options.get("transport")
        )
        self._sleep = options.get("sleep", asyncio.sleep)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def run(self, flow: Flow[Answer], given: Iterable[Any] | AsyncIterable[Any] = ()) -> Answer:
        """Runs a flow to its end."""
        driver = _AsyncDriver(
            self._http, self._sleep, aiter(given) if isinstance(given, AsyncIterable) else iter(given)
        )
        try:
            step = next(flow)
            while True:
                step = flow.send(await driver.perform(step))
        except StopIteration as end:
            return end.value
        finally:
            flow.close()

    async def iterate(self, stream: Stream[Item]) -> AsyncGenerator[Item]:
        """Runs a flow as far as its items are asked for."""
        driver = _AsyncDriver(self._http, self._sleep, iter(()))
        try:
            step = next(stream)
            while True:
                if isinstance(step, Give):
                    yield step.item
                    step = next(stream)
                else:
                    step = stream.send(await driver.perform(step))
        except StopIteration:
            return
        finally:
            await driver.close()
            stream.close()

    async def submit_many(
        self,
        board: str,
        submissions: Iterable[Submission | InvalidInput] | AsyncIterable[Submission | InvalidInput],
        progress: Callable[[int], None] | None = None,
        **how: Unpack[Batching],
    ) -> BatchResult:
        """Many submissions; a bad one harms no other. `progress` hears how many are done.

        Millions may come from a generator, async or not: they go out in requests of at most 5,000, and only
        one request's worth is held at a time. Every one has an id before it is first sent, so none counts
        twice.
        """
        return await self.run(self.operations.submit_many(board, progress, **how), submissions)

    define = _awaiting(Operations.define)
    definition = _awaiting(Operations.definition)
    drop = _awaiting(Operations.drop)
    projects = _awaiting(Operations.projects)
    boards = _awaiting(Operations.boards)
    submit = _awaiting(Operations.submit)
    match = _awaiting(Operations.match)
    page = _awaiting(Operations.page)
    pages = _iterating(Operations.pages)
    entries = _iterating(Operations.entries)
    standing = _awaiting(Operations.standing)
    around = _awaiting(Operations.around)
    among = _awaiting(Operations.among)
    remove = _awaiting(Operations.remove)
    set_metadata = _awaiting(Operations.set_metadata)
    windows = _awaiting(Operations.windows)
    percentile = _awaiting(Operations.percentile)
    distribution = _awaiting(Operations.distribution)
    live = _iterating(Operations.live)
    health = _awaiting(Operations.health)
