"""The client that waits for its answers."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

import httpx

from laurels.client.operations import Operations
from laurels.client.options import LIMITS, ClientOptions, caller_of, check_address
from laurels.client.steps import Give, Lost, Pause, Reply, Send, Take

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from laurels.client.operations import Batching
    from laurels.client.steps import Flow, Step, Stream
    from laurels.errors import InvalidInput
    from laurels.scores.submission import BatchResult, Submission

P = ParamSpec("P")
Answer = TypeVar("Answer")
Item = TypeVar("Item")


class SyncClientOptions(ClientOptions, total=False):
    transport: httpx.BaseTransport | None
    """How requests travel; by default over TCP."""
    sleep: Callable[[float], None]
    """How the pauses between tries are waited."""


class _SyncDriver:
    """Performs the steps of one flow."""

    def __init__(self, http: httpx.Client, sleep: Callable[[float], None], given: Iterator[Any]) -> None:
        self._http = http
        self._sleep = sleep
        self._given = given
        self._response: httpx.Response | None = None
        self._pieces: Iterator[bytes] = iter(())

    def perform(self, step: Step) -> Reply | Lost | bytes | list[Any] | None:
        if isinstance(step, Pause):
            return self._sleep(step.seconds)
        if isinstance(step, Take):
            return list(islice(self._given, step.most))
        try:
            return self._send(step) if isinstance(step, Send) else next(self._pieces, b"")
        except (httpx.TransportError, httpx.DecodingError) as error:
            return Lost(f"{type(error).__name__} {error}".strip())

    def _send(self, step: Send) -> Reply:
        self.close()
        asked = step.request
        request = self._http.build_request(
            asked.method,
            asked.path,
            content=asked.body,
            headers=asked.headers,
            timeout=httpx.Timeout(step.timeout, read=step.silence or step.timeout),
        )
        response = self._response = self._http.send(request, stream=True)
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
            # The two know each other: without this, the request's body stays until the next collection.
            self._response.stream = httpx.ByteStream(b"")
            self._response = None


def _waiting(
    operation: Callable[Concatenate[Operations, P], Flow[Answer]],
) -> Callable[Concatenate[Client, P], Answer]:
    """The operation, run until it has its answer."""

    def wait(self: Client, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return self.run(operation(self.operations, *args, **kwargs))

    wait.__name__, wait.__doc__ = operation.__name__, operation.__doc__
    return wait


def _iterating(
    operation: Callable[Concatenate[Operations, P], Stream[Item]],
) -> Callable[Concatenate[Client, P], Generator[Item]]:
    """The operation, run as far as its items are asked for."""

    def iterate(self: Client, *args: P.args, **kwargs: P.kwargs) -> Generator[Item]:
        return self.iterate(operation(self.operations, *args, **kwargs))

    iterate.__name__, iterate.__doc__ = operation.__name__, operation.__doc__
    return iterate


class Client:
    """A Laurels server, by its address. Safe to use from several threads."""

    def __init__(self, address: str, **options: Unpack[SyncClientOptions]) -> None:
        self.operations = Operations(caller_of(options), options.get("project"))
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

    def run(self, flow: Flow[Answer], given: Iterable[Any] = ()) -> Answer:
        """Runs a flow to its end."""
        driver = _SyncDriver(self._http, self._sleep, iter(given))
        try:
            step = next(flow)
            while True:
                step = flow.send(driver.perform(step))
        except StopIteration as end:
            return end.value
        finally:
            flow.close()

    def iterate(self, stream: Stream[Item]) -> Generator[Item]:
        """Runs a flow as far as its items are asked for."""
        driver = _SyncDriver(self._http, self._sleep, iter(()))
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

    def submit_many(
        self,
        board: str,
        submissions: Iterable[Submission | InvalidInput],
        progress: Callable[[int], None] | None = None,
        **how: Unpack[Batching],
    ) -> BatchResult:
        """Many submissions; a bad one harms no other. `progress` hears how many are done.

        Millions may come from a generator: they go out in requests of at most 5,000, and only one request's
        worth is held at a time. Every one has an id before it is first sent, so none counts twice.
        """
        return self.run(self.operations.submit_many(board, progress, **how), submissions)

    define = _waiting(Operations.define)
    definition = _waiting(Operations.definition)
    drop = _waiting(Operations.drop)
    projects = _waiting(Operations.projects)
    boards = _waiting(Operations.boards)
    submit = _waiting(Operations.submit)
    match = _waiting(Operations.match)
    page = _waiting(Operations.page)
    pages = _iterating(Operations.pages)
    entries = _iterating(Operations.entries)
    standing = _waiting(Operations.standing)
    around = _waiting(Operations.around)
    among = _waiting(Operations.among)
    remove = _waiting(Operations.remove)
    set_metadata = _waiting(Operations.set_metadata)
    windows = _waiting(Operations.windows)
    percentile = _waiting(Operations.percentile)
    distribution = _waiting(Operations.distribution)
    live = _iterating(Operations.live)
    health = _waiting(Operations.health)
