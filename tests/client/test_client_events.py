"""Server-sent events, as the standard has them."""

from __future__ import annotations

import pytest

from laurels.client.events import EventReader, ServerSentEvent

STREAM = (
    b": hello\r\nretry: 1500\r\n\r\n"
    b'id: a.1\nevent: snapshot\ndata: {"total": 1}\n\n'
    b"data:one\rdata: two\r\r"
    b": heartbeat\n\n"
    b"event: change\nid: a.2\nunknown: x\ndata: \xc3\xa9\r\n\r\n"
    b"event: half"
)
EVENTS = [
    ServerSentEvent("snapshot", '{"total": 1}', "a.1"),
    ServerSentEvent("message", "one\ntwo", "a.1"),
    ServerSentEvent("change", "é", "a.2"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_read_however_the_bytes_are_cut(size: int):
    reader = EventReader()
    pieces = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]
    assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS
    assert reader.retry_seconds == 1.5
    assert reader.last_id == "a.2"


def test_what_a_connection_left_half_said_is_forgotten():
    reader = EventReader()
    assert list(reader.feed(b"id: 1\ndata: x\n\nid: 2\ndata: half")) == [ServerSentEvent("message", "x", "1")]
    reader.begin()
    assert reader.last_id == "1"
    assert list(reader.feed(b"data: y\n\n")) == [ServerSentEvent("message", "y", "1")]


def test_ids_with_nul_and_retries_that_are_no_number_are_ignored():
    reader = EventReader()
    assert list(reader.feed(b"id: a\0b\nretry: soon\ndata: x\n\n")) == [ServerSentEvent("message", "x", "")]
    assert reader.retry_seconds == 0.0
