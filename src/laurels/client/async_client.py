"""The client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

import httpx

from laurels.arguments import runs
from laurels.client.operations import ClientOperations
from laurels.client.options import ClientOptions, caller_of, check_address
from laurels.client.steps import Give, Lost, Pause, Reply, Send, Take, giving
from laurels.client.transport import BROKEN, LIMITS, forget_request, lost_by, request_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator

    from laurels.client.steps import Flow, Step, Stream

P = ParamSpec("P")
Answer = TypeVar("Answer")
Item = TypeVar("Item")


class AsyncClientOptions(ClientOptions, total=False):
    transport: httpx.AsyncBaseTransport | None
    """How requests travel; by default over TCP."""
    sleep: Callable[[float], Awaitable[None]]
    """Waits between tries."""


class _AsyncDriver:
    """Performs the steps of one flow."""

    def __init__(self, http: httpx.AsyncClient, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._http = http
        self._sleep = sleep
        self._response: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None

    async def perform(self, step: Step) -> Reply | Lost | bytes | list[Any] | None:
        if isinstance(step, Pause):
            return await self._sleep(step.seconds)
        if isinstance(step, Take):
            return await _taken(step)
        try:
            return await (self._send(step) if isinstance(step, Send) else self._read())
        except BROKEN as error:
            return lost_by(error)

    async def _read(self) -> bytes:
        return await anext(self._pieces, b"") if self._pieces else b""

    async def _send(self, step: Send) -> Reply:
        await self.close()
        response = self._response = await self._http.send(request_of(self._http, step), stream=True)
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
            forget_request(self._response)
            self._response = None


async def _taken(step: Take) -> list[Any]:
    items: AsyncIterator[Any] | Iterator[Any] = step.items
    if not isinstance(items, AsyncIterator):
        return list(islice(items, step.most))
    taken: list[Any] = []
    while len(taken) < step.most:
        try:
            taken.append(await anext(items))
        except StopAsyncIteration:
            break
    return taken


def _answering(
    operation: Callable[Concatenate[ClientOperations, P], Flow[Answer]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, Answer]]:
    @runs(operation)
    async def run(self: AsyncClient, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return await self.run(operation(self.operations, *args, **kwargs))

    return run


def _iterating(
    operation: Callable[Concatenate[ClientOperations, P], Stream[Item]],
) -> Callable[Concatenate[AsyncClient, P], AsyncGenerator[Item]]:
    @runs(operation, "AsyncGenerator[{}]")
    def iterate(self: AsyncClient, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[Item]:
        return self.iterate(operation(self.operations, *args, **kwargs))

    return iterate


class AsyncClient:
    """A Laurels server, by its address, for asyncio. Safe to use from several tasks."""

    def __init__(self, address: str, **options: Unpack[AsyncClientOptions]) -> None:
        self.operations = ClientOperations(caller_of(options), options.get("project"))
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

    async def run(self, flow: Flow[Answer]) -> Answer:
        """Runs a flow to its end."""
        (answer,) = [item async for item in self.iterate(giving(flow))]
        return answer

    async def iterate(self, stream: Stream[Item]) -> AsyncGenerator[Item]:
        """Runs a flow as far as its items are asked for."""
        driver = _AsyncDriver(self._http, self._sleep)
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

    define = _answering(ClientOperations.define)
    define_many = _answering(ClientOperations.define_many)
    preview = _answering(ClientOperations.preview)
    definition = _answering(ClientOperations.definition)
    drop = _answering(ClientOperations.drop)
    projects = _answering(ClientOperations.projects)
    boards = _answering(ClientOperations.boards)
    submit = _answering(ClientOperations.submit)
    submit_many = _answering(ClientOperations.submit_many)
    match = _answering(ClientOperations.match)
    page = _answering(ClientOperations.page)
    pages = _iterating(ClientOperations.pages)
    entries = _iterating(ClientOperations.entries)
    watch = _iterating(ClientOperations.watch)
    standing = _answering(ClientOperations.standing)
    around = _answering(ClientOperations.around)
    among = _answering(ClientOperations.among)
    percentile = _answering(ClientOperations.percentile)
    distribution = _answering(ClientOperations.distribution)
    windows = _answering(ClientOperations.windows)
    history = _answering(ClientOperations.history)
    snapshots = _answering(ClientOperations.snapshots)
    snapshot = _answering(ClientOperations.snapshot)
    set_metadata = _answering(ClientOperations.set_metadata)
    remove = _answering(ClientOperations.remove)
    put_person = _answering(ClientOperations.put_person)
    put_people = _answering(ClientOperations.put_people)
    person = _answering(ClientOperations.person)
    people = _answering(ClientOperations.people)
    remove_person = _answering(ClientOperations.remove_person)
    put_place = _answering(ClientOperations.put_place)
    put_places = _answering(ClientOperations.put_places)
    place = _answering(ClientOperations.place)
    places = _answering(ClientOperations.places)
    remove_place = _answering(ClientOperations.remove_place)
    export_member = _answering(ClientOperations.export_member)
    erase = _answering(ClientOperations.erase)
    jobs = _answering(ClientOperations.jobs)
    request_job = _answering(ClientOperations.request_job)
    health = _answering(ClientOperations.health)
