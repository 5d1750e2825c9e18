"""Every name in Valkey that is Laurels' own: keys are made of these, and no template may meet one. Pure."""

from __future__ import annotations

from typing import Final

# What a board keeps beside its windows, as `lb:{project/board}:NAME` or `…:NAME:DETAIL`; so no window has
# such a name.
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
"""Before the keys of a board that is being rebuilt: `rebuild-TOKEN:lb:{…`."""

SESSION: Final = "laurels:session:"
NONCE: Final = "laurels:nonce:"
LIMIT: Final = "laurels:limit"
DISCARDED: Final = "laurels:discarded"
REVOCATIONS: Final = "laurels:withdrawals"
"""A channel of publish and subscribe, not a key."""

EVENTS: Final = "x:"
CAMPUS_DAY: Final = "lb:day:"
CAMPUS_CURSORS: Final = "lb:cursors:"
CAMPUS_CHANGED: Final = "lb:changed:"
CAMPUS_PARKED: Final = "lb:parked:"
CAMPUS_DEAD: Final = "lb:dead:"
CAMPUS_WORKERS: Final = "lb:workers"
CAMPUS_WINDOW: Final = "lb:z:"
"""Windows of the boards that the campus flow owns."""
USER_CAMPUS: Final = "user:campus:"
STREAK: Final = "streak:"
CAMPUS_TAG: Final = "{campus:"
"""Before a user's keys on a cluster."""

LEADERS: Final = "/leaders/"
"""`/leaders/GAME/…` belongs to the project GAME."""

RESERVED: Final = (
    BOARD,
    REBUILD,
    "laurels:",
    "{laurels:",  # limits, which have a hash tag
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
"""Prefixes that no board's windows may have. `CAMPUS_WINDOW` and `LEADERS` have one owner each."""
