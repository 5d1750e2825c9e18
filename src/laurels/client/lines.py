"""Many submissions, as lines of JSON, in requests of bounded size.

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
    """The iterator that gives the submissions."""
    id: str
    compress: Compression | None = None
    progress: Callable[[int], None] | None = None
    durability: Mapping[str, str] = field(default_factory=dict[str, str])
    """The header that asks for it, or nothing."""

    def headers(self) -> dict[str, str]:
        coded = {"Content-Encoding": self.compress} if self.compress else {}
        return {"Content-Type": LINES, **coded, **self.durability}

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

    def add(self, place: int, given: Submission, batch: Batch) -> None:
        if given.id is None:
            given = msgspec.structs.replace(given, id=f"{batch.id}.{place}")
        try:
            line = _encoder.encode(given)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"cannot be written as JSON: {error}") from error
        self.body += line
        self.body += b"\n"
        self.places.append(place)


class _Sending:
    def __init__(self, caller: Caller, path: str, batch: Batch) -> None:
        self._caller = caller
        self._path = path
        self._batch = batch
        self._part = _BatchRequest()
        self._place = 0
        self._accepted = 0
        self._rejected: list[Rejected] = []

    def send_all(self) -> Flow[BatchResult]:
        taken: list[Submission | InvalidInput]
        while taken := (yield Take(self._batch.items, TAKEN)):
            for given in taken:
                self._add(given)
                if self._part.is_full:
                    yield from self._send()
        yield from self._send()
        return BatchResult(self._accepted, sorted(self._rejected, key=lambda rejected: rejected.index))

    def _add(self, given: Submission | InvalidInput) -> None:
        try:
            if isinstance(given, InvalidInput):
                raise given
            self._part.add(self._place, given, self._batch)
        except InvalidInput as error:
            self._rejected.append(Rejected(self._place, error.detail))
        self._place += 1

    def _send(self) -> Flow[None]:
        if self._part.places:
            result = yield from self._sent(self._part)
            self._accepted += result.accepted
            for each in result.rejected:
                self._rejected.append(Rejected(self._part.places[each.index], each.detail))
            self._part = _BatchRequest()
        if self._batch.progress:
            self._batch.progress(self._place)

    def _sent(self, part: _BatchRequest) -> Flow[BatchResult]:
        body = self._batch.packed(bytes(part.body))
        request = Request("POST", self._path, body=body, headers=self._batch.headers())
        try:
            return decoded(
                (yield from self._caller.call(request, id=self._batch.id, signed=True)), BatchResult
            )
        except LaurelsError as error:
            error.add_note(
                f"the {part.places[0]} submissions before these are done; "
                f"repeat the batch with id={self._batch.id!r}, and nothing counts twice"
            )
            raise


def submit(caller: Caller, path: str, batch: Batch) -> Flow[BatchResult]:
    """Sends all submissions. Each of `rejected` has its place among all of them."""
    return _Sending(caller, path, batch).send_all()
