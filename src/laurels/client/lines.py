"""Many submissions, as lines of JSON, in requests of bounded size.

Each request is repeated as a whole until it is answered, its submissions under the same ids, so a connection
that breaks midway loses nothing and counts nothing twice. No more is held than one request's worth.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping  # noqa: TC003  # the fields of a dataclass
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
import zstandard

from laurels.client.decoding import decoded
from laurels.client.steps import Request, Take
from laurels.errors import InvalidInput, LaurelsError
from laurels.scores.submission import BatchResult, Rejected, Submission

if TYPE_CHECKING:
    from laurels.client.call import Caller
    from laurels.client.steps import Flow

Compression: TypeAlias = Literal["gzip", "zstd"]

# What one request carries at most, before it is compressed; the server takes 64 MiB.
SUBMISSIONS: Final = 5000
BYTES: Final = 4 * 2**20
# How many are taken from the caller at once.
TAKEN: Final = 100

LINES: Final = "application/x-ndjson"

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True)
class Batch:
    """How a batch is sent, and who hears of it."""

    id: str
    compress: Compression | None = None
    progress: Callable[[int], None] | None = None
    durability: Mapping[str, str] = field(default_factory=dict[str, str])
    """The header that asks for it, if any."""

    def headers(self) -> dict[str, str]:
        coded = {"Content-Encoding": self.compress} if self.compress else {}
        return {"Content-Type": LINES, **coded, **self.durability}

    def packed(self, body: bytes) -> bytes:
        if self.compress == "zstd":
            return zstandard.ZstdCompressor().compress(body)
        return gzip.compress(body, 6, mtime=0) if self.compress else body


@dataclass
class _LineChunk:
    """The lines of one request, and the place of each in the whole batch."""

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
        self._chunk = _LineChunk()
        self._place = 0
        self._accepted = 0
        self._rejected: list[Rejected] = []

    def send_all(self) -> Flow[BatchResult]:
        taken: list[Submission | InvalidInput]
        while taken := (yield Take(TAKEN)):
            for given in taken:
                self._add(given)
                if self._chunk.is_full:
                    yield from self._send()
        yield from self._send()
        return BatchResult(self._accepted, sorted(self._rejected, key=lambda rejected: rejected.index))

    def _add(self, given: Submission | InvalidInput) -> None:
        try:
            if isinstance(given, InvalidInput):
                raise given
            self._chunk.add(self._place, given, self._batch)
        except InvalidInput as error:
            self._rejected.append(Rejected(self._place, error.detail))
        self._place += 1

    def _send(self) -> Flow[None]:
        if self._chunk.places:
            result = yield from self._sent(self._chunk)
            self._accepted += result.accepted
            for each in result.rejected:
                self._rejected.append(Rejected(self._chunk.places[each.index], each.detail))
            self._chunk = _LineChunk()
        if self._batch.progress:
            self._batch.progress(self._place)

    def _sent(self, chunk: _LineChunk) -> Flow[BatchResult]:
        body = self._batch.packed(bytes(chunk.body))
        request = Request("POST", self._path, body=body, headers=self._batch.headers())
        try:
            return decoded(
                (yield from self._caller.call(request, id=self._batch.id, signed=True)), BatchResult
            )
        except LaurelsError as error:
            error.add_note(
                f"the {chunk.places[0]} submissions before these are done; "
                f"repeat the batch with id={self._batch.id!r}, and nothing counts twice"
            )
            raise


def submit(caller: Caller, path: str, batch: Batch) -> Flow[BatchResult]:
    """What became of everything that the caller gives; `rejected` counts from the first of it."""
    return _Sending(caller, path, batch).send_all()
