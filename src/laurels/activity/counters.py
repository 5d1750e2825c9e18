"""The counters of one user's day, as its hash in Valkey holds them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Counters:
    """What a user did on a day. A field that is missing in the hash is 0."""

    invites_accepted: int = 0
    friends_new: int = 0
    dm_sent: int = 0
    room_sent: int = 0
    acts_played: int = 0
    acts_won: int = 0
    rooms_joined: int = 0
    rooms_created: int = 0
    uniq_senders: int = 0
    uniq_invite_accept_from: int = 0
    touched: int = 0

    @classmethod
    def of_hash(cls, held: Mapping[str, str]) -> Self:
        return cls(**{name: int(held[name]) for name in FIELDS if name in held})


FIELDS = tuple(field.name for field in fields(Counters))
CAMPUS = "campus"
"""The field that pins the day to a campus: the user's when the day was first touched."""
