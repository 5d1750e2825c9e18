"""Laurels over HTTP: `Client`, and `AsyncClient` for asyncio.

>>> from laurels.client import Client, Submission
>>> client = Client(address, key=key, project="examples")

The operations are those of `laurels.Laurels`, with the same names, arguments and results. A board without a
project is one of the client's.

>>> client.define("client", {"windows": [{"period": "all_time"}, {"period": "daily", "keep": 30}]}).created
True
>>> first = client.submit("client", "ada", 1200)
>>> first.rank, first.applied
(1, True)

`submit_many` takes any iterable, however long; a refused submission does not affect the others.

>>> scores = [("bob", 1500), ("eve", 1200), ("joe", "many")]
>>> result = client.submit_many("client", (Submission(member, score) for member, score in scores))
>>> result.accepted, result.rejected[0].detail
(2, 'score: must be a number, not a string')

What is long is asked for a page at a time.

>>> [(entry.rank, entry.member, entry.score) for entry in client.entries("client", limit=2)]
[(1, 'bob', 1500), (2, 'eve', 1200), (2, 'ada', 1200)]

Errors are those of `laurels.errors`.

>>> client.standing("client", "zoe")  # doctest: +IGNORE_EXCEPTION_DETAIL
Traceback (most recent call last):
laurels.errors.NotFound: examples/client: 'zoe' has no entry in all_time (request 5d1b…)
>>> client.drop("client", allow_drop="all")
>>> client.close()
"""

from laurels.boards.definition import BoardDefinition, StoredBoard, Window
from laurels.client.async_client import AsyncClient
from laurels.client.errors import NotUnderstood, Refused, Unreachable
from laurels.client.operations import Health
from laurels.client.retries import Retries
from laurels.client.sync_client import Client
from laurels.scores.submission import Submission
from laurels.scores.view_diff import Change, Moved, Snapshot, Update

__all__ = [
    "AsyncClient",
    "BoardDefinition",
    "Change",
    "Client",
    "Health",
    "Moved",
    "NotUnderstood",
    "Refused",
    "Retries",
    "Snapshot",
    "StoredBoard",
    "Submission",
    "Unreachable",
    "Update",
    "Window",
]
