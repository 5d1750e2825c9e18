"""The keys of activity in Valkey, and the names of the streams. Pure.

    x:invites.events … x:presence.heartbeats   the seven streams of events
    x:lb.dead                                  dead letters: events that could not be read, and why

    lb:day:20251024:user:USER                  hash: the counters of a user's day (`counters.py`)
    lb:day:20251024:uniq_senders:USER          set: the users who wrote to the user
    lb:day:20251024:uniq_accept_from:USER      set: the users who accepted the user's invitations
    lb:day:20251024:seconds:USER               hash: second -> messages sent in it, `dm` or `dm room`
    lb:day:20251024:campus:CAMPUS:users:SHARD  set: the users whose day is pinned to that campus
    user:campus:USER                           string: the id of the user's campus
    streak:USER                                hash: current, best, last_active_ymd

    lb:cursors:SHARD                           hash: stream -> the last entry applied to these users;
                                               `changes`, the number of the last mark;
                                               `late:STREAM`, effects that came after their day had expired
    lb:changed:SHARD                           sorted set: `20251024:USER` -> number of the last change
    lb:parked:SHARD                            set: users with parked effects, because their campus is unknown
    lb:parked:of:USER                          list: the parked effects of a user
    lb:workers                                 sorted set: worker -> when it last reported, in Unix ms

Users fall into a fixed number of shards. One node uses the names above. A cluster puts the user's shard
before each, as in `{campus:17}lb:day:20251024:user:USER`, so that one call can change all keys of a shard.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Final

from laurels.valkey.names import (
    CAMPUS_CHANGED,
    CAMPUS_CURSORS,
    CAMPUS_DAY,
    CAMPUS_DEAD,
    CAMPUS_PARKED,
    CAMPUS_TAG,
    CAMPUS_WORKERS,
    EVENTS,
    STREAK,
    USER_CAMPUS,
)

SHARDS: Final = 32
"""Never change it on a Valkey that holds activity: each shard has cursors of its own."""

INVITES: Final = f"{EVENTS}invites.events"
FRIENDSHIPS: Final = f"{EVENTS}friendships.events"
CHAT: Final = f"{EVENTS}chat.events"
ROOMCHAT: Final = f"{EVENTS}roomchat.events"
ROOMS: Final = f"{EVENTS}rooms.events"
ACTIVITIES: Final = f"{EVENTS}activities.events"
HEARTBEATS: Final = f"{EVENTS}presence.heartbeats"
STREAMS: Final = (INVITES, FRIENDSHIPS, CHAT, ROOMCHAT, ROOMS, ACTIVITIES, HEARTBEATS)
GROUP: Final = "laurels"

DEAD: Final = f"{EVENTS}lb.dead"
DEAD_CURSORS: Final = f"{CAMPUS_DEAD}{{{DEAD}}}"
"""Hash: stream -> its last entry among the dead letters; in the hash slot of the dead letters."""
WORKERS: Final = CAMPUS_WORKERS


@lru_cache(maxsize=100_000)
def shard_of(user: str) -> int:
    """`user`: a UUID in lower case."""
    return zlib.crc32(user.encode()) % SHARDS


class ActivityKeys:
    def __init__(self, *, cluster: bool) -> None:
        self._tags = [f"{CAMPUS_TAG}{shard}}}" if cluster else "" for shard in range(SHARDS)]

    def _of_user(self, user: str) -> str:
        return self._tags[shard_of(user)]

    def counters(self, ymd: int, user: str) -> str:
        return f"{self._of_user(user)}{CAMPUS_DAY}{ymd}:user:{user}"

    def senders(self, ymd: int, user: str) -> str:
        return f"{self._of_user(user)}{CAMPUS_DAY}{ymd}:uniq_senders:{user}"

    def accepts(self, ymd: int, user: str) -> str:
        return f"{self._of_user(user)}{CAMPUS_DAY}{ymd}:uniq_accept_from:{user}"

    def seconds(self, ymd: int, user: str) -> str:
        return f"{self._of_user(user)}{CAMPUS_DAY}{ymd}:seconds:{user}"

    def campus_of(self, user: str) -> str:
        return f"{self._of_user(user)}{USER_CAMPUS}{user}"

    def streak(self, user: str) -> str:
        return f"{self._of_user(user)}{STREAK}{user}"

    def parked_of(self, user: str) -> str:
        return f"{self._of_user(user)}{CAMPUS_PARKED}of:{user}"

    def campus_users(self, shard: int, ymd: int, campus: str) -> str:
        """The users of one shard whose day belongs to the campus."""
        return f"{self._tags[shard]}{CAMPUS_DAY}{ymd}:campus:{campus}:users:{shard}"

    def cursors(self, shard: int) -> str:
        return f"{self._tags[shard]}{CAMPUS_CURSORS}{shard}"

    def changed(self, shard: int) -> str:
        return f"{self._tags[shard]}{CAMPUS_CHANGED}{shard}"

    def parked(self, shard: int) -> str:
        return f"{self._tags[shard]}{CAMPUS_PARKED}{shard}"
