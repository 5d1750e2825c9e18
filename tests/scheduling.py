"""Which tests share a process, and which of them begin first, where several processes share the tests."""

from __future__ import annotations

from typing import Final

from xdist.scheduler import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]

TOGETHER: Final = {"cli", "client", "web"}
"""Rooms whose servers take longer to start than most of their tests take."""

LONGEST: Final = (
    "web",
    "cli",
    "tests/faults/test_kills.py",
    "tests/valkey/test_cluster.py",
    "tests/history/test_archived_windows.py",
    "tests/scores/test_oracle.py",
    "tests/faults/test_failovers.py",
    "tests/docs/test_snippets.py",
    "tests/http/test_http_fuzz.py",
    "tests/faults/test_outages.py",
    "tests/history/test_snapshots.py",
    "tests/http/test_http_framings.py",
    "tests/faults/test_troubles.py",
    "tests/journal/test_rebuild.py",
    "tests/journal/test_drain.py",
    "tests/boards/test_drops.py",
    "tests/activity/test_finalize.py",
    "tests/embedded/test_embedded_silence.py",
)
"""A process that begins one of these last would end minutes after the others.

Those of faults and of the cluster mostly wait: they begin one by one, between those that compute.
"""


def scope_of(nodeid: str) -> str:
    """A room or a file: its tests run in one process, one after the other."""
    path = nodeid.partition("::")[0]
    room = path.split("/")[1]
    return room if room in TOGETHER else path


def place_of(nodeid: str) -> int:
    scope = scope_of(nodeid)
    return LONGEST.index(scope) if scope in LONGEST else len(LONGEST)


class RoomScheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
