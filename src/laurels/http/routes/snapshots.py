"""Snapshots: the archived tables of a board, and their entries."""

from typing import Final

from msgspec import structs

from laurels.history.records import SnapshotList, SnapshotPage
from laurels.http.authentication import Call
from laurels.http.operation import BOARD, Routes
from laurels.http.parameters import SnapshotParameters, SnapshotsParameters

routes = Routes("snapshots")

SNAPSHOT: Final = {
    "id": "4aa2809d-be96-5b7b-9a31-ecf697ddf33f",
    "period": "weekly",
    "slot": "2025-w43",
    "group": "",
    "taken_for": "2025-10-27T00:00:00Z",
    "taken_at": "2025-10-28T00:00:02Z",
    "starts_at": "2025-10-20T00:00:00Z",
    "ends_at": "2025-10-27T00:00:00Z",
    "total": 250,
    "kept": 100,
}


@routes.get(f"{BOARD}/snapshots", scope="read", cached=True, example={"snapshots": [SNAPSHOT], "next": None})
async def read_snapshots(call: Call, query: SnapshotsParameters) -> SnapshotList:
    """List the board's archived tables, newest first."""
    return await call.laurels.snapshots(call.board, **structs.asdict(query))


@routes.get(
    f"{BOARD}/snapshots/{{snapshot:segment}}",
    scope="read",
    cached=True,
    example={
        "project": "acme",
        "board": "arcade",
        "snapshot": SNAPSHOT,
        "total": 250,
        "entries": [{"rank": 1, "member": "ada", "score": 1200}, {"rank": 2, "member": "bob", "score": 800}],
        "next": None,
    },
)
async def read_snapshot(call: Call, snapshot: str, query: SnapshotParameters) -> SnapshotPage:
    """Read a page of an archived table."""
    return await call.laurels.snapshot(call.board, snapshot, **structs.asdict(query))
