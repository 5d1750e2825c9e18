"""Snapshots: which archived tables there are, and what stands in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from laurels.history.records import SnapshotList, SnapshotPage
from laurels.http.encoding import cached_answer
from laurels.http.operation import Operations
from laurels.http.parameters import SnapshotParameters, SnapshotsParameters

if TYPE_CHECKING:
    from starlette.responses import Response

    from laurels.http.authentication import Call

operations = Operations("snapshots")

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


@operations.add(
    "GET",
    "/snapshots",
    "read",
    SnapshotsParameters,
    answer=SnapshotList,
    example={"snapshots": [SNAPSHOT], "next": None},
)
async def read_snapshots(call: Call, asked: SnapshotsParameters) -> Response:
    """List the board's archived tables, newest first."""
    where = {"period": asked.period, "group": asked.group}
    snapshots = call.laurels.snapshots
    return await cached_answer(
        call, lambda: snapshots(call.board, **where, limit=asked.limit, cursor=asked.cursor)
    )


@operations.add(
    "GET",
    "/snapshots/{snapshot:segment}",
    "read",
    SnapshotParameters,
    answer=SnapshotPage,
    example={
        "project": "acme",
        "board": "arcade",
        "snapshot": SNAPSHOT,
        "total": 250,
        "entries": [{"rank": 1, "member": "ada", "score": 1200}, {"rank": 2, "member": "bob", "score": 800}],
        "next": None,
    },
)
async def read_snapshot(call: Call, asked: SnapshotParameters) -> Response:
    """Read a page of an archived table."""
    snapshot: str = call.request.path_params["snapshot"]
    read = call.laurels.snapshot
    return await cached_answer(
        call, lambda: read(call.board, snapshot, limit=asked.limit, cursor=asked.cursor)
    )
