"""Watches a view of a board."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from laurels.client.decoding import parsed
from laurels.client.errors import NotUnderstood, error_for, error_of, problem_of
from laurels.client.events import EventReader
from laurels.client.retries import Tries, asked_pause, is_passing
from laurels.client.steps import Give, Lost, Pause, Read, Send
from laurels.scores.view_diff import Change, Snapshot, Update

if TYPE_CHECKING:
    from laurels.client.call import Caller
    from laurels.client.events import ServerSentEvent
    from laurels.client.steps import Reply, Request, Stream

# Seconds without a byte after which a connection counts as broken: three heartbeats of the server.
SILENCE: Final = 45.0
EVENT_STREAM: Final = {"Accept": "text/event-stream", "Cache-Control": "no-store"}


def watch(caller: Caller, request: Request, last_id: str | None) -> Stream[Update]:
    """Connects, and reconnects after the last event whenever the connection breaks."""
    tries, reader = Tries(caller.retries), EventReader(last_id or "")
    while True:
        request_id = uuid4().hex
        resumed = {"Last-Event-ID": reader.last_id} if reader.last_id else {}
        asked = replace(request, headers={**EVENT_STREAM, **resumed})
        reply: Reply | Lost = yield Send(caller.dressed(asked, request_id), caller.timeout, SILENCE)
        if isinstance(reply, Lost) or reply.status != 200:
            error = error_of(reply, request_id)
            if not is_passing(reply):
                raise error
            yield Pause(tries.pause(error, asked_pause(reply)))
            continue
        reader.begin()
        piece: bytes | Lost
        while (piece := (yield Read())) and not isinstance(piece, Lost):
            tries.begin()
            for event in reader.feed(piece):
                update = _update_of(event)
                if update is not None:
                    yield Give(update)
        error = error_of(piece or Lost("the server ended the stream"), request_id)
        yield Pause(tries.pause(error, reader.retry_seconds))


def _update_of(event: ServerSentEvent) -> Update | None:
    """None for an event that this version does not know. Raises the error that ends the stream."""
    if event.name == "snapshot":
        return Update(event.id, parsed(event.data, Snapshot))
    if event.name == "change":
        return Update(event.id, parsed(event.data, Change))
    if event.name == "end":
        problem = problem_of(event.data)
        raise error_for(problem) if problem else NotUnderstood("the stream ended without a reason")
    return None
