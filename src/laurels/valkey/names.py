"""The key prefixes and names in Valkey that belong to Laurels. No key template may produce one. Pure."""

from __future__ import annotations

from typing import Final

# Keys of a board besides its windows: `lb:{project/board}:NAME` or `…:NAME:DETAIL`. No window may have such a
# name.
BOARD_NAMES: Final = frozenset(
    {
        "board",
        "built",
        "calls",
        "cuts",
        "dead",
        "fed",
        "ids",
        "index",
        "journal",
        "once",
        "ratings",
        "windows",
    }
)

BOARD: Final = "lb:{"
REBUILD: Final = "rebuild-"
"""Prefix of the keys of a shadow board: `rebuild-TOKEN:lb:{…`."""

SESSION: Final = "laurels:session:"
NONCE: Final = "laurels:nonce:"
LIMIT: Final = "laurels:limit"
DISCARDED: Final = "laurels:discarded"
JOURNALS: Final = "laurels:journals"
DEAD_LETTERS: Final = "laurels:dead-letters"
WINDOWS: Final = "laurels:windows"
REVOCATIONS: Final = "laurels:withdrawals"
"""A pub/sub channel, not a key."""

PEOPLE: Final = "laurels:people:"
"""A token of each project's people, new after every change."""

EVENTS: Final = "x:"
CAMPUS_DAY: Final = "lb:day:"
CAMPUS_CURSORS: Final = "lb:cursors:"
CAMPUS_CHANGED: Final = "lb:changed:"
CAMPUS_PARKED: Final = "lb:parked:"
CAMPUS_DEAD: Final = "lb:dead:"
CAMPUS_WORKERS: Final = "lb:workers"
CAMPUS_WINDOW: Final = "lb:z:"
"""Windows of the campus boards."""
USER_CAMPUS: Final = "user:campus:"
STREAK: Final = "streak:"
CAMPUS_TAG: Final = "{campus:"
"""Prefix of a user's keys on a cluster."""

LEADERS: Final = "/leaders/"
"""`/leaders/GAME/…` belongs to the project GAME."""

RESERVED: Final = (
    BOARD,
    REBUILD,
    "laurels:",
    EVENTS,
    CAMPUS_DAY,
    CAMPUS_CURSORS,
    CAMPUS_CHANGED,
    CAMPUS_PARKED,
    CAMPUS_DEAD,
    CAMPUS_WORKERS,
    USER_CAMPUS,
    STREAK,
    CAMPUS_TAG,
)
"""Prefixes that no template may produce. `CAMPUS_WINDOW` and `LEADERS` each belong to one project."""
