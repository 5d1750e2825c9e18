"""The client that blocks."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

import httpx

from laurels.arguments import runs
from laurels.client.operations import ClientOperations
from laurels.client.options import ClientOptions, caller_of, check_address
from laurels.client.steps import Give, Lost, Pause, Reply, Send, Take, giving
from laurels.client.transport import BROKEN, LIMITS, forget_request, lost_by, request_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from laurels.client.steps import Flow, Step, Stream

P = ParamSpec("P")
Answer = TypeVar("Answer")
Item = TypeVar("Item")


class SyncClientOptions(ClientOptions, total=False):
    transport: httpx.BaseTransport | None
    """How requests travel; by default over TCP."""
    sleep: Callable[[float], None]
    """Waits between tries."""


class _SyncDriver:
    """Performs the steps of one flow."""

    def __init__(self, http: httpx.Client, sleep: Callable[[float], None]) -> None:
        self._http = http
        self._sleep = sleep
        self._response: httpx.Response | None = None
        self._pieces: Iterator[bytes] = iter(())

    def perform(self, step: Step) -> Reply | Lost | bytes | list[Any] | None:
        if isinstance(step, Pause):
            return self._sleep(step.seconds)
        if isinstance(step, Take):
            return list(islice(step.items, step.most))
        try:
            return self._send(step) if isinstance(step, Send) else next(self._pieces, b"")
        except BROKEN as error:
            return lost_by(error)

    def _send(self, step: Send) -> Reply:
        self.close()
        response = self._response = self._http.send(request_of(self._http, step), stream=True)
        if step.silence and response.is_success:
            self._pieces = response.iter_bytes()
            return Reply(response.status_code, response.headers, b"")
        try:
            return Reply(response.status_code, response.headers, response.read())
        finally:
            self.close()

    def close(self) -> None:
        if self._response is not None:
            self._response.close()
            forget_request(self._response)
            self._response = None


def _answering(
    operation: Callable[Concatenate[ClientOperations, P], Flow[Answer]],
) -> Callable[Concatenate[Client, P], Answer]:
    @runs(operation)
    def run(self: Client, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return self.run(operation(self.operations, *args, **kwargs))

    return run


def _iterating(
    operation: Callable[Concatenate[ClientOperations, P], Stream[Item]],
) -> Callable[Concatenate[Client, P], Generator[Item]]:
    @runs(operation, "Generator[{}]")
    def iterate(self: Client, *args: P.args, **kwargs: P.kwargs) -> Generator[Item]:
        return self.iterate(operation(self.operations, *args, **kwargs))

    return iterate


class Client:
    """A Laurels server, by its address. Safe to use from several threads."""

    def __init__(self, address: str, **options: Unpack[SyncClientOptions]) -> None:
        self.operations = ClientOperations(caller_of(options), options.get("project"))
        self._http = httpx.Client(
            base_url=check_address(address), limits=LIMITS, transport=options.get("transport")
        )
        self._sleep = options.get("sleep", time.sleep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def run(self, flow: Flow[Answer]) -> Answer:
        """Runs a flow to its end."""
        (answer,) = self.iterate(giving(flow))
        return answer

    def iterate(self, stream: Stream[Item]) -> Generator[Item]:
        """Runs a flow as far as its items are asked for."""
        driver = _SyncDriver(self._http, self._sleep)
        try:
            step = next(stream)
            while True:
                if isinstance(step, Give):
                    yield step.item
                    step = next(stream)
                else:
                    step = stream.send(driver.perform(step))
        except StopIteration:
            return
        finally:
            driver.close()
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
