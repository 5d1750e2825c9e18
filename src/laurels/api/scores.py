"""Scores on their way in: one, or many."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import msgspec

from laurels.api import body
from laurels.api.answers import answer
from laurels.api.operation import Body, Operations
from laurels.api.problems import Malformed
from laurels.boards.submission import Rejected, Submission, Submitted
from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from laurels.api.auth import Call
    from laurels.api.parameters import NoParameters

# What of a batch is on its way to the engine at once.
CHUNK_SUBMISSIONS: Final = 2000
CHUNK_BYTES: Final = 2**20
# A body of nothing but line ends must not become an answer of gigabytes.
MOST_LISTED: Final = 10_000

operations = Operations("scores")

_submission = msgspec.json.Decoder(Submission)
_elements = msgspec.json.Decoder(list[msgspec.Raw])

EXAMPLE: Final = {
    "member": "ada",
    "score": 1200,
    "at": "2025-10-24T12:00:00Z",
    "groups": {"country": "BR"},
    "metadata": {"level": 7},
}


class BatchAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many submissions were accepted, and each that was not, by its index from 0."""

    accepted: int
    rejected: list[Rejected]
    rejected_total: int = 0
    """How many there were, when they are more than are listed."""


@operations.add(
    "POST",
    "/scores",
    "submit",
    body=Body(Submission, EXAMPLE),
    answer=Submitted,
    example={
        "member": "ada",
        "score": 1200,
        "previous_score": 900,
        "rank": 1,
        "previous_rank": 4,
        "applied": True,
        "id": "~YmTlp2hAyYd2xkGXiXXz1A.0",
    },
    headers={"Idempotency-Key": "Another way to give the `id`."},
    problems=(400, 413, 415),
)
async def submit(call: Call, _: NoParameters) -> Response:
    """Submit a score.

    The answer is about the board's first window. `applied` is false when the score did not change the entry,
    or when the id was seen before; then the entry's present values come back. Ids are remembered for at least
    24 hours.
    """
    given = await body.read_json(call.request, _submission)
    if key := _idempotency_key(call.request):
        if given.id not in (None, key):
            raise InvalidInput.at("id", "is not the id that the header Idempotency-Key gives")
        given.id = key
    submitted = await call.laurels.submit(
        call.board,
        given.member,
        given.score,
        at=given.at,
        groups=given.groups,
        id=given.id,
        op=given.op,
        metadata=given.metadata,
    )
    return await answer(call, submitted)


@operations.add(
    "POST",
    "/scores/batch",
    "submit",
    body=Body(
        list[Submission],
        [EXAMPLE, {"member": "bob", "score": 800}],
        (body.JSON, body.LINES),
        '{"member":"ada","score":1200}\n{"member":"bob","score":800}\n',
    ),
    answer=BatchAnswer,
    example={"accepted": 1, "rejected": [{"index": 1, "detail": "score: must be a number, not a string"}]},
    headers={"Idempotency-Key": "Gives each submission without an `id` of its own the id `KEY.INDEX`."},
    problems=(400, 413, 415),
)
async def submit_batch(call: Call, _: NoParameters) -> Response:
    """Submit many scores.

    A JSON array; or lines of JSON, which are read and applied as they arrive. A bad one harms no other. Empty
    lines are skipped, but the index counts them. The first 10,000 that are rejected are listed; if there are
    more, `rejected_total` says how many.
    """
    await call.laurels.definition(call.board)  # before anything is read: there is such a board
    is_lines = body.media_type(call.request, body.JSON, body.LINES) == body.LINES
    batch = _Batch(call, _idempotency_key(call.request))
    async with aclosing(_lines(call.request) if is_lines else _array(call.request)) as given:
        return await answer(call, await batch.submit(given))


async def _array(request: Request) -> AsyncGenerator[tuple[int, bytes | None]]:
    for index, element in enumerate(body.decode(await body.read(request, body.BATCH_BYTES), _elements)):
        yield index, bytes(element)


async def _lines(request: Request) -> AsyncGenerator[tuple[int, bytes | None]]:
    index = 0
    async with aclosing(body.read_lines(request)) as lines:
        async for line in lines:
            if line is None or line.strip():
                yield index, line
            index += 1


class _Batch:
    """Submissions on their way, a chunk at a time, and what became of them."""

    def __init__(self, call: Call, key: str | None) -> None:
        self._call = call
        self._key = key
        self._accepted = 0
        self._rejected: list[Rejected] = []
        self._rejected_total = 0
        self._chunk: list[Submission] = []
        self._indexes: list[int] = []

    async def submit(self, given: AsyncIterator[tuple[int, bytes | None]]) -> BatchAnswer:
        size = 0
        async for index, encoded in given:
            try:
                submission = self._decoded(index, encoded)
            except (InvalidInput, Malformed) as error:
                self._reject(index, error.detail)
                continue
            self._chunk.append(submission)
            self._indexes.append(index)
            size += len(encoded or b"")
            if len(self._chunk) >= CHUNK_SUBMISSIONS or size >= CHUNK_BYTES:
                await self._send()
                size = 0
        await self._send()
        listed = sorted(self._rejected, key=lambda rejected: rejected.index)
        return BatchAnswer(
            self._accepted, listed, self._rejected_total if self._rejected_total > len(listed) else 0
        )

    def _decoded(self, index: int, encoded: bytes | None) -> Submission:
        if encoded is None:
            raise Malformed(f"a line has at most {body.LINE_BYTES} bytes")
        submission = body.decode(encoded, _submission)
        if self._key and submission.id is None:
            submission.id = f"{self._key}.{index}"
        return submission

    async def _send(self) -> None:
        result = await self._call.laurels.submit_many(self._call.board, self._chunk)
        self._accepted += result.accepted
        for rejected in result.rejected:
            self._reject(self._indexes[rejected.index], rejected.detail)
        self._chunk.clear()
        self._indexes.clear()

    def _reject(self, index: int, detail: str) -> None:
        self._rejected_total += 1
        if len(self._rejected) < MOST_LISTED:
            self._rejected.append(Rejected(index, detail))


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not (key and key.isascii()):
        raise InvalidInput.at("Idempotency-Key", "must be 1 or more ASCII characters")
    return key
