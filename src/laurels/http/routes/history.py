"""History: where a member stood in windows that ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.history.records import History
from laurels.http.encoding import cached_answer
from laurels.http.operation import Operations
from laurels.http.parameters import HistoryParameters

if TYPE_CHECKING:
    from starlette.responses import Response

    from laurels.http.authentication import Call

operations = Operations("entries")


@operations.add(
    "GET",
    "/entries/{member:member}/history",
    "read",
    HistoryParameters,
    answer=History,
    example={
        "member": "ada",
        "period": "daily",
        "windows": [
            {
                "slot": "2025-10-23",
                "starts_at": "2025-10-23T00:00:00Z",
                "ends_at": "2025-10-24T00:00:00Z",
                "score": 1200,
                "rank": 1,
                "total": 250,
                "source": "snapshot",
            }
        ],
        "next": None,
    },
)
async def read_history(call: Call, asked: HistoryParameters) -> Response:
    """Read where a member stood in windows that ended, newest first.

    `source` says what tells it: the live window, its snapshot, or the journal, recounted. An answer may have
    fewer windows than `limit`, even none, and still a `next`.
    """
    member: str = call.request.path_params["member"]
    where = {"period": asked.period, "group": asked.group}
    history = call.laurels.history
    return await cached_answer(
        call, lambda: history(call.board, member, **where, limit=asked.limit, cursor=asked.cursor)
    )
