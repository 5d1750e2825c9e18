"""Many submissions, people or places, as lines of JSON, in requests of bounded size.

The client repeats each request as a whole, with the same ids, until it is answered. So a connection that
breaks midway loses nothing and counts nothing twice. Memory holds one request at a time.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping  # noqa: TC003  # the fields of a dataclass
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
import zstandard

from laurels.client.decoding import decoded
from laurels.client.steps import Request, Take
from laurels.errors import InvalidInput, LaurelsError
from laurels.scores.submission import BatchResult, Rejected, Submission

if TYPE_CHECKING:
    from laurels.arguments import Compression
    from laurels.client.call import Caller
    from laurels.client.steps import Flow

# The most that one request carries, before compression; the server takes 64 MiB.
SUBMISSIONS: Final = 5000
BYTES: Final = 4 * 2**20
# How many the flow takes from the caller at once.
TAKEN: Final = 100

LINES: Final = "application/x-ndjson"

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True)
class Batch:
    """A batch, and how it is sent."""

    items: Any
    """The iterator that gives them."""
    id: str | None
    """Of a batch of submissions, each of which needs an id."""
    compress: Compression | None = None
    progress: Callable[[int], None] | None = None
    durability: Mapping[str, str] = field(default_factory=dict[str, str])
    """The header that asks for it, or nothing."""

    def headers(self) -> dict[str, str]:
        coded = {"Content-Encoding": self.compress} if self.compress else {}
        return {"Content-Type": LINES, **coded, **self.durability}

    def report(self, done: int) -> None:
        if self.progress:
            self.progress(done)

    def packed(self, body: bytes) -> bytes:
        if self.compress == "zstd":
            return zstandard.ZstdCompressor().compress(body)
        return gzip.compress(body, 6, mtime=0) if self.compress else body


@dataclass
class _BatchRequest:
    """The lines of one request, and the place of each in the batch."""

    body: bytearray = field(default_factory=bytearray)
    places: list[int] = field(default_factory=list[int])

    @property
    def is_full(self) -> bool:
        return len(self.places) >= SUBMISSIONS or len(self.body) >= BYTES

    def add(self, place: int, given: msgspec.Struct | InvalidInput, batch: Batch) -> None:
        if isinstance(given, InvalidInput):
            raise given
        if isinstance(given, Submission) and given.id is None:
            given = msgspec.structs.replace(given, id=f"{batch.id}.{place}")
        try:
            line = _encoder.encode(given)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"cannot be written as JSON: {error}") from error
        self.body += line
        self.body += b"\n"
        self.places.append(place)


def send(caller: Caller, path: str, batch: Batch) -> Flow[BatchResult]:
    """Sends all of them. Each of `rejected` has its place among them."""
    part, place, accepted, rejected = _BatchRequest(), 0, 0, list[Rejected]()
    taken: list[msgspec.Struct | InvalidInput]
    while taken := (yield Take(batch.items, TAKEN)):
        for given in taken:
            try:
                part.add(place, given, batch)
            except InvalidInput as error:
                rejected.append(Rejected(place, error.detail))
            place += 1
            if part.is_full:
                accepted += yield from _send(caller, path, batch, part, rejected)
                part = _BatchRequest()
                batch.report(place)
    if part.places:
        accepted += yield from _send(caller, path, batch, part, rejected)
    batch.report(place)
    return BatchResult(accepted, sorted(rejected, key=lambda each: each.index))


def _send(
    caller: Caller, path: str, batch: Batch, part: _BatchRequest, rejected: list[Rejected]
) -> Flow[int]:
    """Adds to `rejected`; returns how many were accepted."""
    request = Request("POST", path, batch.packed(bytes(part.body)), batch.headers())
    try:
        call = caller.call(request, id=batch.id, signed=batch.id is not None)
        result = decoded((yield from call), BatchResult)
    except LaurelsError as error:
        again = f" with id={batch.id!r}, and nothing counts twice" if batch.id else ""
        error.add_note(f"the {part.places[0]} before these are done; repeat the batch{again}")
        raise
    rejected += (Rejected(part.places[each.index], each.detail) for each in result.rejected)
    return result.accepted
