"""The flow of live updates alone: what it makes of events, and how it comes back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from laurels.client import Change, NotUnderstood, Retries, Snapshot, Unreachable
from laurels.client.call import Caller
from laurels.client.operations import ClientOperations
from laurels.client.steps import Give, Lost, Pause, Read, Reply, Send
from laurels.errors import LaurelsError, NotFound, Unauthorized
from laurels.scores.results import Standing

if TYPE_CHECKING:
    from laurels.client import Update

PAGE: dict[str, Any] = {
    "project": "arcade", "board": "b", "period": "all_time", "slot": "", "starts_at": None, "ends_at": None,
    "next_reset_at": None, "total": 1, "entries": [{"rank": 1, "member": "ada", "score": 5}], "next": None,
    "previous": None,
}  # fmt: skip
CHANGE = {
    "total": 2,
    "entries": [{"rank": 1, "member": "bob", "score": "9007199254740993", "previous_rank": None}],
    "left": ["eve"],
}
GONE = {
    "type": "/problems/not-found",
    "title": "Not found",
    "status": 404,
    "detail": "there is no board arcade/b",
}
OPENED = Reply(200, {}, b"")


def event(name: str, content: object, id: str = "") -> bytes:  # noqa: A002  # as the standard calls it
    return f"id: {id}\nevent: {name}\ndata: {json.dumps(content)}\n\n".encode()


class Watched:
    """The updates of a flow that is played with these replies, to its end or as long as there are any."""

    def __init__(self, *replies: Reply | Lost | bytes, last_id: str | None = None, **retries: Any) -> None:  # noqa: ANN401  # fields of Retries
        self.updates: list[Update] = []
        self.sent: list[Send] = []
        self.pauses: list[float] = []
        self.error: LaurelsError | None = None
        self.now = 0.0
        patience = Retries(chance=lambda: 1.0, clock=lambda: self.now, **retries)
        flow = ClientOperations(Caller("key", retries=patience), "arcade").watch(
            "b", limit=10, member="ada", last_id=last_id
        )
        waiting = list(replies)
        try:
            step = next(flow)
            while True:
                reply = None
                if isinstance(step, Give):
                    self.updates.append(step.item)
                elif isinstance(step, Pause):
                    self.pauses.append(step.seconds)
                    self.now += step.seconds
                elif isinstance(step, Send | Read):
                    if not waiting:
                        return
                    reply = waiting.pop(0)
                    assert isinstance(reply, bytes) == isinstance(step, Read) or isinstance(reply, Lost)
                    if isinstance(step, Send):
                        self.sent.append(step)
                step = flow.send(reply)
        except StopIteration:
            assert waiting == []
        except LaurelsError as error:
            self.error = error
        finally:
            flow.close()


def test_updates_have_types():
    watched = Watched(OPENED, event("snapshot", PAGE, "a.1") + event("change", CHANGE, "a.2"))
    snapshot, change = (update.value for update in watched.updates)
    assert [update.id for update in watched.updates] == ["a.1", "a.2"]
    assert isinstance(snapshot, Snapshot)
    assert (snapshot.total, snapshot.entries[0].member) == (1, "ada")
    assert isinstance(change, Change)
    assert (change.total, change.left) == (2, ["eve"])
    assert change.entries[0].score == 2**53 + 1
    assert change.entries[0].previous_rank is None


def test_who_is_followed_stands_in_every_update_that_concerns_them():
    standing = {"member": "ada", "score": 5, "rank": 1, "ordinal": 1, "percentile": 1.0, "total": 1}
    watched = Watched(
        OPENED,
        event("snapshot", {**PAGE, "member": standing}) + event("change", {**CHANGE, "member": None}),
        event("change", CHANGE),
    )
    first, *others = (update.value.member for update in watched.updates)
    assert isinstance(first, Standing)
    assert others == [None, msgspec.UNSET]


def test_the_view_is_asked_for():
    (sent,) = Watched(OPENED).sent
    assert sent.request.path == "/v1/projects/arcade/boards/b/live?limit=10&member=ada"
    assert sent.request.headers["Accept"] == "text/event-stream"
    assert "Last-Event-ID" not in sent.request.headers


@pytest.mark.parametrize("broken", [b"", Lost("ReadError")])
def test_a_broken_connection_goes_on_where_it_broke(broken: bytes | Lost):
    watched = Watched(
        OPENED,
        b"retry: 2000\n" + event("snapshot", PAGE, "a.1"),
        broken,
        OPENED,
        event("change", CHANGE, "a.2"),
    )
    assert [type(update.value) for update in watched.updates] == [Snapshot, Change]
    assert watched.sent[1].request.headers["Last-Event-ID"] == "a.1"
    assert watched.pauses == [2.1]


def test_a_watch_begins_after_the_update_that_is_named():
    watched = Watched(OPENED, event("change", CHANGE, "a.8"), last_id="a.7")
    assert watched.sent[0].request.headers["Last-Event-ID"] == "a.7"
    assert "last_id" not in watched.sent[0].request.path


def test_who_is_away_for_a_while_is_waited_for():
    away = [Lost("ConnectError"), Reply(503, {"retry-after": "1"}, b""), Reply(502, {}, b"")] * 5
    watched = Watched(*away, OPENED, event("snapshot", PAGE), longest_pause=1.0)
    assert len(watched.updates) == 1
    assert len(watched.pauses) == 15


def test_who_stays_away_is_given_up():
    watched = Watched(*[Lost("ConnectError")] * 100, deadline=10.0, longest_pause=2.0)
    assert isinstance(watched.error, Unreachable)
    assert 8.0 <= watched.now < 10.0


def test_time_counts_from_the_last_sign_of_life():
    away = [Lost("ConnectError")] * 3
    watched = Watched(*away, OPENED, b": heartbeat\n\n", *away, *away, deadline=10.0, first_pause=1.0)
    assert isinstance(watched.error, Unreachable)
    assert watched.pauses == [1.0, 2.0, 4.0, 1.0, 2.0, 4.0]


def test_what_is_refused_is_an_error():
    refused = {**GONE, "type": "/problems/unauthorized", "status": 401}
    watched = Watched(Reply(401, {}, json.dumps(refused).encode()))
    assert isinstance(watched.error, Unauthorized)


def test_the_end_says_why_and_is_the_last():
    watched = Watched(OPENED, event("snapshot", PAGE) + event("end", GONE) + event("snapshot", PAGE))
    assert len(watched.updates) == 1
    assert isinstance(watched.error, NotFound)
    assert "arcade/b" in str(watched.error)


def test_events_that_are_not_known_yet_are_passed_over():
    watched = Watched(OPENED, event("weather", {"rain": True}) + event("snapshot", PAGE))
    assert len(watched.updates) == 1


def test_events_of_another_shape_are_an_error():
    assert isinstance(Watched(OPENED, event("change", {"rain": True})).error, NotUnderstood)
