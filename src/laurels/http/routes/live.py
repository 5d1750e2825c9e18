"""Sends the changes of a board as server-sent events."""

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Final, Literal
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from laurels.engine import Laurels
from laurels.errors import Forbidden, LaurelsError, Unauthorized
from laurels.http.authentication import Call, Keyring, admit
from laurels.http.encoding import with_exact_scores
from laurels.http.operation import BOARD, Routes
from laurels.http.problems import encode_problem
from laurels.scores.live import Follower, View
from laurels.scores.page_query import PAGE_LIMIT, EntriesQuery, PageQuery
from laurels.scores.view_diff import Snapshot, Update

# How often a stream without updates sends a comment, and the key is checked again. After a revocation, the
# key is checked before the next update.
HEARTBEAT_SECONDS: Final = 15.0
# How long clients wait before they reconnect.
RETRY_MILLISECONDS: Final = 1000

MEDIA_TYPE: Final = "text/event-stream"
HEARTBEAT: Final = b": still here\n\n"

routes = Routes("live")

_encode = msgspec.json.Encoder().encode
# Each update is encoded once for all followers.
_encoded: WeakKeyDictionary[Update, bytes] = WeakKeyDictionary()

EXAMPLE: Final = """retry: 1000

id: 5f3a9c0e8b7d6a12-7
event: snapshot
data: {"project":"acme","board":"arcade","period":"daily","slot":"2025-10-24",\
"starts_at":"2025-10-24T00:00:00Z","ends_at":"2025-10-25T00:00:00Z","next_reset_at":"2025-10-25T00:00:00Z",\
"total":1,"entries":[{"rank":1,"member":"ada","score":1200}],"next":null,"previous":null}

id: 5f3a9c0e8b7d6a12-8
event: change
data: {"total":2,"entries":[{"rank":1,"member":"bob","score":1500,"previous_rank":null},\
{"rank":2,"member":"ada","score":1200,"previous_rank":1}],"left":[]}

"""


class LiveEvent(msgspec.Struct):
    """One event of a stream. `data` is JSON, of the form that the operation describes."""

    id: Annotated[str, Meta(description="Send it as `Last-Event-ID` to continue after it.")] | UnsetType = (
        UNSET
    )
    event: Annotated[str, Meta(description="The kind of event.")] | UnsetType = UNSET
    data: str | UnsetType = UNSET
    retry: Annotated[int, Meta(description="Milliseconds to wait before reconnecting.")] | UnsetType = UNSET


class LiveParameters(EntriesQuery, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT, description="How many of the best entries.")] = 100
    member: Annotated[str | None, Meta(description="A member whose standing is added.", examples=["ada"])] = (
        None
    )
    last_event_id: Annotated[
        str | None, Meta(description="The same as the header, for clients that cannot send it.")
    ] = None


@routes.get(
    f"{BOARD}/live",
    scope="read",
    answer=LiveEvent,
    media_type=MEDIA_TYPE,
    example=EXAMPLE,
    headers={"Last-Event-ID": "The id of the last event received: the stream continues after it."},
    problems=(404,),
)
async def follow_live(call: Call, query: LiveParameters) -> Response:
    """Follow the best of a window.

    The first event is a `snapshot`, the page as `/entries` returns it. Each `change`, at most four a second,
    has the entries whose rank, score or metadata changed, with their `previous_rank`, the members that `left`
    the best, and `total`. With `member`, both have its standing too, null while it has no entry.

    Another snapshot comes when the next window begins, when the definition changes, and for clients that lag
    behind. With a `slot`, the stream stays in that window. `Last-Event-ID` continues after that event if this
    process still has it; otherwise the stream begins with a snapshot. `end` has a problem and is the last
    event: the board or the window was dropped, or the key is no longer in force.
    """
    keyring: Keyring = call.request.app.state.keyring
    generation = keyring.generation
    page = PageQuery.of({**query.in_window(), "limit": query.limit, "people": query.people})
    view = View(call.ref, page, query.member)
    last_id = call.request.headers.get("last-event-id", query.last_event_id)
    return EventStream(call, await call.laurels.live.follow(view, last_id), generation)


class EventStream(Response):
    """Sends a follower's updates until they end, the client leaves or its key is revoked."""

    def __init__(self, call: Call, follower: Follower, generation: int) -> None:
        """`generation`: the keyring's at admission; when it changes, the key is checked again."""
        super().__init__(media_type=MEDIA_TYPE, headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._call = call
        self._follower = follower
        self._generation = generation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.create_task(self._leave_with(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if not scope["state"].get("is_head"):
                async for piece in self._pieces():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            leaving.cancel()
            self._follower.leave()

    async def _leave_with(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._follower.leave()

    async def _pieces(self) -> AsyncGenerator[bytes]:
        clock = asyncio.get_running_loop().time
        keyring: Keyring = self._call.request.app.state.keyring
        yield b"retry: %d\n\n" % RETRY_MILLISECONDS
        heartbeat = clock() + HEARTBEAT_SECONDS
        try:
            while (update := await self._next(heartbeat)) is not None:
                if keyring.generation != self._generation or clock() >= heartbeat:
                    self._generation, heartbeat = keyring.generation, clock() + HEARTBEAT_SECONDS
                    await self._check()
                yield await self._event(update) if update else HEARTBEAT
        except LaurelsError as error:
            yield self._end(error)

    async def _next(self, heartbeat: float) -> Update | Literal[False] | None:
        """The next update; False if none comes before the heartbeat, None after the last one."""
        try:
            async with asyncio.timeout_at(heartbeat):
                return await anext(self._follower)
        except TimeoutError:
            return False
        except StopAsyncIteration:
            return None

    async def _check(self) -> None:
        """Raises `Unauthorized` or `Forbidden` if a request with the same key would now be refused."""
        try:
            await admit(self._call.request, "read")
        except (Unauthorized, Forbidden):
            raise
        except LaurelsError:  # the stream goes on if a store does not answer or a limit is reached
            pass

    async def _event(self, update: Update) -> bytes:
        event = _encoded.get(update)
        if event is None:
            value = update.value
            definition = await self._call.laurels.definition(self._call.board)
            data = _encode(with_exact_scores(value) if definition.score == "int64" else value)
            name = b"snapshot" if isinstance(value, Snapshot) else b"change"
            event = b"id: %s\nevent: %s\ndata: %s\n\n" % (update.id.encode(), name, data)
            _encoded[update] = event
        return event

    def _end(self, error: LaurelsError) -> bytes:
        return b"event: end\ndata: %s\n\n" % encode_problem(self._call.request.scope, error)


@contextmanager
def ended_by_signals(laurels: Laurels) -> Generator[None]:
    """Ends all streams on SIGTERM and SIGINT: the server waits for them, and they do not end by themselves.

    Wraps the server's own signal handlers, which still run.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def around(handler: Callable[[int, FrameType | None], object]) -> Callable[[int, FrameType | None], None]:
        def end_streams(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(laurels.live.stop)
            handler(number, frame)

        return end_streams

    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, around(handler))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
