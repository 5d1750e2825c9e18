"""Windows: which there are, and how the scores of one are spread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from laurels.boards.windows import WindowInfo  # noqa: TC001  # msgspec reads the annotations
from laurels.errors import InvalidInput
from laurels.http.encoding import cached_answer
from laurels.http.operation import Operations
from laurels.http.parameters import DistributionParameters, WindowParameters, WindowsParameters
from laurels.scores.results import Distribution, Percentile

if TYPE_CHECKING:
    from starlette.responses import Response

    from laurels.http.authentication import Call

operations = Operations("windows")


class Windows(msgspec.Struct, frozen=True):
    """The windows that can be asked for, newest first."""

    windows: list[WindowInfo]


@operations.add(
    "GET",
    "/windows",
    "read",
    WindowsParameters,
    answer=Windows,
    example={
        "windows": [
            {
                "period": "daily",
                "slot": "2025-10-24",
                "starts_at": "2025-10-24T00:00:00Z",
                "ends_at": "2025-10-25T00:00:00Z",
                "entries": 2,
            }
        ]
    },
)
async def read_windows(call: Call, asked: WindowsParameters) -> Response:
    """List the windows that can be asked for, newest first."""

    async def list_windows() -> Windows:
        where = {"period": asked.period, "group": asked.group}
        return Windows(await call.laurels.windows(call.board, **where, limit=asked.limit))

    return await cached_answer(call, list_windows)


@operations.add(
    "GET",
    "/percentile/{p:segment}",
    "read",
    WindowParameters,
    answer=Percentile,
    example={"percentile": 0.9, "score": 1200, "total": 250},
)
async def read_percentile(call: Call, asked: WindowParameters) -> Response:
    """Read the score at a percentile.

    The score that this share of the entries, from 0 to 1, are no better than: at 1 the best, at 0 the worst.
    """
    given: str = call.request.path_params["p"]
    try:
        share = float(given)
    except ValueError as error:
        raise InvalidInput.at("p", f"must be a number from 0 to 1, not {given!r}") from error
    percentile = call.laurels.percentile
    return await cached_answer(call, lambda: percentile(call.board, share, **asked.where()))


@operations.add(
    "GET",
    "/distribution",
    "read",
    DistributionParameters,
    answer=Distribution,
    example={
        "total": 3,
        "buckets": [{"low": 800, "high": 1000, "count": 1}, {"low": 1000, "high": 1200, "count": 2}],
    },
)
async def read_distribution(call: Call, asked: DistributionParameters) -> Response:
    """Read a histogram of the scores.

    Buckets of equal width, from the lowest score to the highest. Each holds its `low`; the last also `high`.
    """
    distribution = call.laurels.distribution
    return await cached_answer(call, lambda: distribution(call.board, asked.buckets, **asked.where()))
