"""Windows: the list of them, and how the scores of one are distributed."""

from msgspec import Struct, structs

from laurels.boards.windows import WindowInfo
from laurels.errors import InvalidInput
from laurels.http.authentication import Call
from laurels.http.operation import BOARD, Routes
from laurels.http.parameters import DistributionParameters, WindowsParameters
from laurels.scores.page_query import WindowQuery
from laurels.scores.results import Distribution, Percentile

routes = Routes("windows")


class Windows(Struct, frozen=True):
    """The windows that can be read, newest first."""

    windows: list[WindowInfo]


@routes.get(
    f"{BOARD}/windows",
    scope="read",
    cached=True,
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
async def read_windows(call: Call, query: WindowsParameters) -> Windows:
    """List the windows that can be read, newest first."""
    return Windows(await call.laurels.windows(call.board, **structs.asdict(query)))


@routes.get(
    f"{BOARD}/percentile/{{p:segment}}",
    scope="read",
    cached=True,
    example={"percentile": 0.9, "score": 1200, "total": 250},
)
async def read_percentile(call: Call, p: str, query: WindowQuery) -> Percentile:
    """Read the score at a percentile.

    This share of the entries, from 0 to 1, is no better than the score: at 1 it is the best, at 0 the worst.
    """
    try:
        share = float(p)
    except ValueError as error:
        raise InvalidInput.at("p", f"must be a number from 0 to 1, not {p!r}") from error
    return await call.laurels.percentile(call.board, share, **query.in_window())


@routes.get(
    f"{BOARD}/distribution",
    scope="read",
    cached=True,
    example={
        "total": 3,
        "buckets": [{"low": 800, "high": 1000, "count": 1}, {"low": 1000, "high": 1200, "count": 2}],
    },
)
async def read_distribution(call: Call, query: DistributionParameters) -> Distribution:
    """Read a histogram of the scores.

    Buckets of equal width from the lowest score to the highest. Each has its `low`, the last also its `high`.
    """
    return await call.laurels.distribution(call.board, query.buckets, **query.in_window())
