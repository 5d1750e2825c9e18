"""Reads the events of the seven streams: the effects of each on the users. Pure.

| stream | event | fields | effect |
| --- | --- | --- | --- |
| `x:invites.events` | sent, accepted, declined, cancelled | from, to | accepted: `from` gains an accepted invitation; `to` gains `from` as a peer |
| `x:friendships.events` | accepted, blocked, unblocked | user_a, user_b | accepted: both gain a friend |
| `x:chat.events` | msg:new | from, to | `from` has sent a message; `to` gains `from` as a sender |
| `x:roomchat.events` | msg:new | user_id | the user has sent a message |
| `x:rooms.events` | created, join, leave, mute, kick, role | user_id | created, join: the user has created or joined a room; others only touch |
| `x:activities.events` | created, started, ended | a, b, winner or meta (JSON with `winner`) | ended: both have played, the winner has won |
| `x:presence.heartbeats` | none, or any | user_id | touches |

Every effect touches its user's day. Ids are UUIDs. The time of an event is its field `at` (like
2025-10-24T12:00:00Z), or else `ts` (Unix time, in seconds or milliseconds), or else that of the entry's id.
Other fields are ignored.
"""  # noqa: E501  # a table

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from laurels.activity import valkey_keys
from laurels.errors import InvalidInput
from laurels.moments import moment_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_UUID: Final = re.compile(rb"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_UNIX_TIME: Final = re.compile(rb"\d{1,16}(?:\.\d{1,9})?")
# Smaller numbers are seconds: as seconds this is the year 5138, as milliseconds March 1973.
_MILLISECONDS_FROM: Final = 100_000_000_000
_DIGITS_OF_MILLISECONDS: Final = 13  # from 2001 to 2286
AHEAD_MILLISECONDS: Final = 60_000
"""How far in the future the time of an event may lie, because clocks differ."""

SENDER: Final = "sender"
"""Another user wrote to the user."""
ACCEPT: Final = "accept"
"""Another user accepted the user's invitation."""
TOUCH: Final = "touch"
"""The user was active."""


class BadEvent(Exception):
    """The event cannot be counted; the message says why."""


class Effect(NamedTuple):
    """What an event does to one user."""

    user: str
    what: str
    """A counter that grows by one, or `SENDER`, `ACCEPT` or `TOUCH`."""
    other: str = ""
    """The user who wrote or accepted."""


class ActivityEvent(NamedTuple):
    at: int
    """Milliseconds since 1970."""
    effects: tuple[Effect, ...]


def read_event(stream: str, added: int, fields: Mapping[bytes, bytes], now: int) -> ActivityEvent:
    """The event of an entry. `added` (from the entry's id) and `now` are milliseconds since 1970."""
    at = _moment(fields, added)
    if at > now + AHEAD_MILLISECONDS:
        raise BadEvent("at: lies in the future")
    return ActivityEvent(at, _READERS[stream](fields))


def _moment(fields: Mapping[bytes, bytes], added: int) -> int:
    if text := fields.get(b"at"):
        try:
            return moment_of(datetime.fromisoformat(text.decode())) // 1000
        except (ValueError, InvalidInput) as error:
            raise BadEvent("at: write it like 2025-10-24T12:00:00Z") from error
    if text := fields.get(b"ts"):
        if len(text) == _DIGITS_OF_MILLISECONDS and text.isdigit():
            return int(text)
        if not _UNIX_TIME.fullmatch(text):
            raise BadEvent("ts: is not Unix time in seconds or milliseconds")
        number = float(text)
        return int(number * 1000 if number < _MILLISECONDS_FROM else number)
    return added


@lru_cache(maxsize=100_000)
def _canonical(text: bytes) -> str | None:
    """The UUID in lower case; None for any other text."""
    return text.decode().lower() if _UUID.fullmatch(text) else None


def _user(fields: Mapping[bytes, bytes], name: bytes) -> str:
    user = _canonical(fields.get(name, b""))
    if user is None:
        raise BadEvent(f"{name.decode()}: is {'not a UUID' if fields.get(name) else 'missing'}")
    return user


def _two(fields: Mapping[bytes, bytes], one: bytes, other: bytes) -> tuple[str, str]:
    users = _user(fields, one), _user(fields, other)
    if users[0] == users[1]:
        raise BadEvent(f"{other.decode()}: is the same user as {one.decode()}")
    return users


def _event(fields: Mapping[bytes, bytes], known: frozenset[bytes]) -> bytes:
    event = fields.get(b"event", b"")
    if event not in known:
        names = ", ".join(sorted(name.decode() for name in known))
        raise BadEvent(f"event: is none of {names}")
    return event


def _of_invites(fields: Mapping[bytes, bytes]) -> tuple[Effect, ...]:
    if _event(fields, _INVITES) != b"accepted":
        return ()
    accepting, inviting = _two(fields, b"from", b"to")
    return Effect(accepting, "invites_accepted"), Effect(inviting, ACCEPT, accepting)


def _of_friendships(fields: Mapping[bytes, bytes]) -> tuple[Effect, ...]:
    if _event(fields, _FRIENDSHIPS) != b"accepted":
        return ()
    return tuple(Effect(user, "friends_new") for user in _two(fields, b"user_a", b"user_b"))


def _of_chat(fields: Mapping[bytes, bytes]) -> tuple[Effect, ...]:
    _event(fields, _MESSAGES)
    writer, reader = _two(fields, b"from", b"to")
    return Effect(writer, "dm_sent"), Effect(reader, SENDER, writer)


def _of_roomchat(fields: Mapping[bytes, bytes]) -> tuple[Effect, ...]:
    _event(fields, _MESSAGES)
    return (Effect(_user(fields, b"user_id"), "room_sent"),)


def _of_rooms(fields: Mapping[bytes, bytes]) -> tuple[Effect, ...]:
    event = _event(fields, _ROOMS)
    what = {b"created": "rooms_created", b"join": "rooms_joined"}.get(event, TOUCH)
    return (Effect(_user(fields, b"user_id"), what),)


def _of_activities(fields: Mapping[bytes, bytes]) -> tuple[Effect, ...]:
    if _event(fields, _ACTIVITIES) != b"ended":
        return ()
    players = _two(fields, b"a", b"b")
    played = tuple(Effect(player, "acts_played") for player in players)
    winner = _winner(fields)
    if winner is None:
        return played
    if winner not in players:
        raise BadEvent("winner: is neither a nor b")
    return *played, Effect(winner, "acts_won")


def _winner(fields: Mapping[bytes, bytes]) -> str | None:
    named = fields.get(b"winner")
    if named is None and (meta := fields.get(b"meta")):
        try:
            named = (msgspec.json.decode(meta, type=_Meta).winner or "").encode()
        except (msgspec.DecodeError, UnicodeError) as error:
            raise BadEvent(f"meta: {error}") from error
    return _user({b"winner": named}, b"winner") if named else None


def _of_heartbeats(fields: Mapping[bytes, bytes]) -> tuple[Effect, ...]:
    return (Effect(_user(fields, b"user_id"), TOUCH),)


class _Meta(msgspec.Struct):
    winner: str | None = None


_INVITES: Final = frozenset({b"sent", b"accepted", b"declined", b"cancelled"})
_FRIENDSHIPS: Final = frozenset({b"accepted", b"blocked", b"unblocked"})
_MESSAGES: Final = frozenset({b"msg:new"})
_ROOMS: Final = frozenset({b"created", b"join", b"leave", b"mute", b"kick", b"role"})
_ACTIVITIES: Final = frozenset({b"created", b"started", b"ended"})

_READERS: Final[dict[str, Callable[[Mapping[bytes, bytes]], tuple[Effect, ...]]]] = {
    valkey_keys.INVITES: _of_invites,
    valkey_keys.FRIENDSHIPS: _of_friendships,
    valkey_keys.CHAT: _of_chat,
    valkey_keys.ROOMCHAT: _of_roomchat,
    valkey_keys.ROOMS: _of_rooms,
    valkey_keys.ACTIVITIES: _of_activities,
    valkey_keys.HEARTBEATS: _of_heartbeats,
}
