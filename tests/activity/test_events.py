from __future__ import annotations

from datetime import UTC, datetime

import pytest

from laurels.activity import valkey_keys
from laurels.activity.events import ACCEPT, SENDER, TOUCH, BadEvent, Effect, read_event

ADA, BOB = "0a0a0a0a-0000-4000-8000-00000000000a", "0b0b0b0b-0000-4000-8000-00000000000b"
EVE = "0e0e0e0e-0000-4000-8000-00000000000e"
ADDED = 1_761_300_000_000
NOW = ADDED + 1000


def read(stream: str, **fields: str) -> list[Effect]:
    return list(event(stream, **fields)[1])


def event(stream: str, **fields: str) -> tuple[int, tuple[Effect, ...]]:
    named = {name.rstrip("_").encode(): value.encode() for name, value in fields.items()}
    return read_event(stream, ADDED, named, NOW)


@pytest.mark.parametrize(
    ("stream", "fields", "effects"),
    [
        (
            valkey_keys.INVITES,
            {"event": "accepted", "from": ADA, "to": BOB},
            [Effect(ADA, "invites_accepted"), Effect(BOB, ACCEPT, ADA)],
        ),
        (valkey_keys.INVITES, {"event": "sent", "from": ADA, "to": BOB}, []),
        (valkey_keys.INVITES, {"event": "declined"}, []),
        (valkey_keys.INVITES, {"event": "cancelled"}, []),
        (
            valkey_keys.FRIENDSHIPS,
            {"event": "accepted", "user_a": ADA, "user_b": BOB},
            [Effect(ADA, "friends_new"), Effect(BOB, "friends_new")],
        ),
        (valkey_keys.FRIENDSHIPS, {"event": "blocked", "user_a": ADA, "user_b": BOB}, []),
        (valkey_keys.FRIENDSHIPS, {"event": "unblocked"}, []),
        (
            valkey_keys.CHAT,
            {"event": "msg:new", "convo_id": "c", "from": ADA, "to": BOB},
            [Effect(ADA, "dm_sent"), Effect(BOB, SENDER, ADA)],
        ),
        (
            valkey_keys.ROOMCHAT,
            {"event": "msg:new", "room_id": "r", "user_id": ADA},
            [Effect(ADA, "room_sent")],
        ),
        (valkey_keys.ROOMS, {"event": "created", "user_id": ADA}, [Effect(ADA, "rooms_created")]),
        (valkey_keys.ROOMS, {"event": "join", "user_id": ADA}, [Effect(ADA, "rooms_joined")]),
        *[
            (valkey_keys.ROOMS, {"event": event, "user_id": ADA}, [Effect(ADA, TOUCH)])
            for event in ("leave", "mute", "kick", "role")
        ],
        (
            valkey_keys.ACTIVITIES,
            {"event": "ended", "kind": "chess", "a": ADA, "b": BOB},
            [Effect(ADA, "acts_played"), Effect(BOB, "acts_played")],
        ),
        (
            valkey_keys.ACTIVITIES,
            {"event": "ended", "a": ADA, "b": BOB, "winner": BOB},
            [Effect(ADA, "acts_played"), Effect(BOB, "acts_played"), Effect(BOB, "acts_won")],
        ),
        (
            valkey_keys.ACTIVITIES,
            {"event": "ended", "a": ADA, "b": BOB, "meta": f'{{"winner":"{ADA}","rounds":3}}'},
            [Effect(ADA, "acts_played"), Effect(BOB, "acts_played"), Effect(ADA, "acts_won")],
        ),
        (
            valkey_keys.ACTIVITIES,
            {"event": "ended", "a": ADA, "b": BOB, "meta": '{"winner":null}'},
            [Effect(ADA, "acts_played"), Effect(BOB, "acts_played")],
        ),
        (valkey_keys.ACTIVITIES, {"event": "created"}, []),
        (valkey_keys.ACTIVITIES, {"event": "started"}, []),
        (valkey_keys.HEARTBEATS, {"user_id": ADA}, [Effect(ADA, TOUCH)]),
    ],
)
def test_each_event_has_its_effects(stream: str, fields: dict[str, str], effects: list[Effect]):
    assert read(stream, **fields) == effects


@pytest.mark.parametrize(
    ("stream", "fields", "reason"),
    [
        (valkey_keys.CHAT, {}, "event: is none of msg:new"),
        (valkey_keys.CHAT, {"event": "msg:edit"}, "event: is none of msg:new"),
        (valkey_keys.CHAT, {"event": "msg:new", "to": BOB}, "from: is missing"),
        (valkey_keys.CHAT, {"event": "msg:new", "from": "ada", "to": BOB}, "from: is not a UUID"),
        (valkey_keys.CHAT, {"event": "msg:new", "from": f"{{{ADA}}}", "to": BOB}, "from: is not a UUID"),
        (
            valkey_keys.CHAT,
            {"event": "msg:new", "from": ADA, "to": ADA.upper()},
            "to: is the same user as from",
        ),
        (
            valkey_keys.ACTIVITIES,
            {"event": "ended", "a": ADA, "b": BOB, "winner": EVE},
            "winner: is neither a nor b",
        ),
        (valkey_keys.ACTIVITIES, {"event": "ended", "a": ADA, "b": BOB, "meta": "{"}, "meta: "),
        (valkey_keys.ACTIVITIES, {"event": "ended", "a": ADA, "b": BOB, "meta": '{"winner":3}'}, "meta: "),
        (valkey_keys.HEARTBEATS, {}, "user_id: is missing"),
        (valkey_keys.HEARTBEATS, {"user_id": ADA, "at": "noon"}, "at: write it like 2025-10-24T12:00:00Z"),
        (valkey_keys.HEARTBEATS, {"user_id": ADA, "at": "2025-10-24T12:00:00"}, "at: write it like"),
        (valkey_keys.HEARTBEATS, {"user_id": ADA, "ts": "-5"}, "ts: is not Unix time"),
        (valkey_keys.HEARTBEATS, {"user_id": ADA, "ts": "1e9"}, "ts: is not Unix time"),
        (valkey_keys.HEARTBEATS, {"user_id": ADA, "ts": str(NOW + 60_001)}, "at: lies in the future"),
    ],
)
def test_a_bad_event_says_what_is_wrong(stream: str, fields: dict[str, str], reason: str):
    with pytest.raises(BadEvent) as refused:
        read(stream, **fields)
    assert str(refused.value).startswith(reason)


def test_ids_in_upper_case_are_the_same():
    assert read(valkey_keys.HEARTBEATS, user_id=ADA.upper()) == [Effect(ADA, TOUCH)]


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({}, ADDED),
        ({"ts": "1761300000"}, 1_761_300_000_000),
        ({"ts": "1761300000.25"}, 1_761_300_000_250),
        ({"ts": "1761300000250"}, 1_761_300_000_250),
        ({"at": "2025-10-24T10:00:00Z"}, int(datetime(2025, 10, 24, 10, tzinfo=UTC).timestamp() * 1000)),
        ({"at": "2025-10-24T10:00:00+13:00", "ts": "5"}, 1_761_253_200_000),
        ({"ts": str(NOW + 60_000)}, NOW + 60_000),
    ],
)
def test_an_event_happened_when_it_says_or_else_when_it_was_added(fields: dict[str, str], at: int):
    assert event(valkey_keys.HEARTBEATS, user_id=ADA, **fields)[0] == at


def test_every_stream_is_read():
    for stream in valkey_keys.STREAMS:
        with pytest.raises(BadEvent):
            read(stream)
