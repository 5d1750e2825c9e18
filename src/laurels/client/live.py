"""What changes in a view of a board, as it changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import uuid4

import msgspec

from laurels.client.decoding import parsed
from laurels.client.errors import NotUnderstood, error_for, error_of, problem_of
from laurels.client.events import EventReader
from laurels.client.retries import Tries, asked_pause, is_passing
from laurels.client.steps import Give, Lost, Pause, Read, Send
from laurels.errors import LaurelsError  # noqa: TC001  # a field's type
from laurels.scores.view_diff import Change, Snapshot

if TYPE_CHECKING:
    from laurels.client.call import Caller
    from laurels.client.events import Event
    from laurels.client.steps import Reply, Request, Stream

# Seconds without a byte until a connection counts as broken: three of the server's heartbeats.
SILENCE: Final = 45.0
EVENT_STREAM: Final = {"Accept": "text/event-stream", "Cache-Control": "no-store"}


class End(msgspec.Struct, frozen=True):
    """There is nothing more to come, and why: the board was dropped, or the key is no longer in force."""

    error: LaurelsError


Update: TypeAlias = Snapshot | Change | End


def watch(caller: Caller, request: Request) -> Stream[Update]:
    """Connects, and again whenever the connection breaks, from the last event on."""
    tries, reader = Tries(caller.retries), EventReader()
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
                update = update_of(event)
                if update is None:
                    continue
                yield Give(update)
                if isinstance(update, End):
                    return
        error = error_of(piece or Lost("the server ended the stream"), request_id)
        yield Pause(tries.pause(error, reader.retry_seconds))


def update_of(event: Event) -> Update | None:
    """What the event tells; None for one that this version does not know."""
    if event.name == "snapshot":
        return parsed(event.data, Snapshot)
    if event.name == "change":
        return parsed(event.data, Change)
    if event.name == "end":
        problem = problem_of(event.data)
        return End(error_for(problem) if problem else NotUnderstood("the stream ended without a reason"))
    return None
