"""Takes submissions: one, or a batch."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from starlette.responses import Response

from laurels.access import signatures
from laurels.access.players import PlayerSubmission
from laurels.errors import Forbidden, InvalidInput, LaurelsError, OutcomeUnknown, Unavailable
from laurels.http import body, idempotency_key
from laurels.http.authentication import Call
from laurels.http.durability import DOCUMENTED, durability_of
from laurels.http.encoding import JsonResponse, encode, encode_for
from laurels.http.idempotency_key import REPLAY, Fingerprint, claim, key_of, replayed, with_key
from laurels.http.operation import BOARD, Body, Routes
from laurels.http.problems import Malformed
from laurels.scores.submission import Rejected, ReplayedSubmit, Submission, Submitted

if TYPE_CHECKING:
    from laurels.valkey.messages import Durability

# How much of a batch goes to the engine at once.
CHUNK_SUBMISSIONS: Final = 2000
CHUNK_BYTES: Final = 2**20
# How many submissions are decoded before other tasks may run.
PAUSE_SUBMISSIONS: Final = 200
# A body of many short bad lines must not get an answer of gigabytes.
MOST_LISTED: Final = 10_000
# A detail may quote what was sent.
LONGEST_DETAIL: Final = 500
# Limits of the rejections that are stored for a repeated request.
MOST_KEPT: Final = 100
KEPT_BYTES: Final = 2**14

Given: TypeAlias = "tuple[int, bytes | None]"

_submission = msgspec.json.Decoder(Submission)
_players_submission = msgspec.json.Decoder(PlayerSubmission)

routes = Routes("scores")

EXAMPLE: Final = {
    "member": "ada",
    "score": 1200,
    "at": "2025-10-24T12:00:00Z",
    "groups": {"country": "BR"},
    "metadata": {"level": 7},
}


class BatchAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many submissions were accepted, and those that were rejected, by their index from 0."""

    accepted: int
    rejected: list[Rejected]
    rejected_total: int = 0
    """How many were rejected, if more than are listed."""


def decode_submission(call: Call, sent: bytes) -> Submission:
    """A submission; one from a player is for that player only."""
    player = call.principal.player
    if player is None:
        return body.decode(sent, _submission)
    return player.submission(body.decode(sent, _players_submission))


def decode_single(call: Call, sent: bytes) -> Submission:
    """A submission by itself, whose id may be in `Idempotency-Key`."""
    given, key = decode_submission(call, sent), key_of(call.request)
    return given if key is None else with_key(given, key, Fingerprint.whole(call, sent))


@routes.post(
    f"{BOARD}/scores",
    scope="submit",
    body=Body(EXAMPLE),
    decode=decode_single,
    takes_players=True,
    example={
        "member": "ada",
        "score": 1200,
        "previous_score": 900,
        "rank": 1,
        "previous_rank": 4,
        "applied": True,
        "id": "~YmTlp2hAyYd2xkGXiXXz1A.0",
    },
    headers={**signatures.DOCUMENTED, **DOCUMENTED, **idempotency_key.DOCUMENTED},
    problems=(409,),
)
async def submit(call: Call, given: Submission) -> Submitted | Response:
    """Submit a score.

    The answer is about the board's first window. `applied` is false if the score did not change the entry or
    the id was seen before; the answer then has the entry's current values. Ids are remembered for at least 24
    hours.
    """
    durability = durability_of(call.request)
    player, given_id = call.principal.player, given.id
    if player is None or given_id is None:
        submitted = await call.laurels.send(call.board, given, durability)
    else:
        given.id = player.own_id(given_id)
        try:
            submitted = await call.laurels.send(call.board, given, durability)
        except OutcomeUnknown as error:
            raise OutcomeUnknown.after(error, retry_with=given_id) from error
        submitted = msgspec.structs.replace(submitted, id=given_id)
    if not isinstance(submitted, ReplayedSubmit):
        return submitted
    return JsonResponse(await encode_for(call, submitted, has_scores=True), REPLAY)


SUBMIT: Final = routes.operations[-1]


@routes.post(
    f"{BOARD}/scores/batch",
    scope="submit",
    body=Body(
        [EXAMPLE, {"member": "bob", "score": 800}],
        {body.LINES: '{"member":"ada","score":1200}\n{"member":"bob","score":800}\n'},
        list[Submission],
    ),
    takes_players=True,
    most_bytes=body.BATCH_BYTES,
    answer=BatchAnswer,
    example={"accepted": 1, "rejected": [{"index": 1, "detail": "score: must be a number, not a string"}]},
    headers={
        **signatures.DOCUMENTED,
        **DOCUMENTED,
        "Idempotency-Key": "Gives each submission without an `id` the id `KEY.INDEX`. It identifies this "
        "batch only: the same batch sent again gets the same answer, with `Idempotency-Replayed: true`.",
    },
    problems=(409,),
)
async def submit_batch(call: Call) -> Response:
    """Submit many scores.

    Send a JSON array, or lines of JSON, which are read and applied as they arrive. A rejected submission does
    not affect the others. Empty lines are skipped, but the index counts them. The answer lists the first
    10,000 rejections; if there are more, `rejected_total` says how many.

    A batch that fails midway (damaged, too large, too slow) gets a problem; its `accepted` says how many
    submissions counted.
    """
    await call.laurels.definition(call.board)  # raises before the body is read, if there is no such board
    is_lines = body.media_type(call.request, body.JSON, body.LINES) == body.LINES
    decoder = body.decoder_of(call.request)
    key = key_of(call.request)
    raw = body.raw_pieces(call.request, body.BATCH_BYTES)
    if key is None:
        pieces = body.decoded_pieces(decoder, raw, body.BATCH_BYTES)
        return JsonResponse(encode(await _Batch(call).submit(_given(pieces, is_lines=is_lines))))
    async with claim(call, key) as claimed:
        fingerprint = Fingerprint.begun(call)
        raw = fingerprint.of(raw)
        if claimed.is_done:
            async for _piece in raw:
                pass
            claimed.fingerprint = str(fingerprint)
            await call.laurels.confirm(call.board, durability_of(call.request))
            return replayed(claimed)
        pieces = body.decoded_pieces(decoder, raw, body.BATCH_BYTES)
        result = await _Batch(call, key).submit(_given(pieces, is_lines=is_lines))
        claimed.fingerprint = str(fingerprint)
        claimed.answer = encode(_kept(result))
        return JsonResponse(encode(result))


def _kept(result: BatchAnswer) -> BatchAnswer:
    """The part of the answer that is stored for a repeated request."""
    total = result.rejected_total or len(result.rejected)
    size = 0
    for count, rejected in enumerate(result.rejected):
        size += len(rejected.detail) * 4
        if size > KEPT_BYTES or count >= MOST_KEPT:
            return BatchAnswer(result.accepted, result.rejected[:count], total)
    return result


async def _given(pieces: AsyncGenerator[bytes], *, is_lines: bool) -> AsyncGenerator[Iterable[Given]]:
    """The submissions as sent, with their indexes, as they arrive."""
    if not is_lines:
        async with aclosing(pieces):
            whole = b"".join([piece async for piece in pieces])
        yield enumerate(body.elements(whole))
        return
    index = 0
    async with aclosing(body.read_lines(pieces)) as some:
        async for lines in some:
            yield [
                (place, line)
                for place, line in enumerate(lines, index)
                if line is None or (not line.isspace() and line)
            ]
            index += len(lines)


class _Batch:
    """Sends the submissions of a batch in chunks, and collects the results."""

    def __init__(self, call: Call, key: str | None = None) -> None:
        self._call = call
        self._key = key
        self._durability: Durability | None = durability_of(call.request)
        self._accepted = 0
        self._rejected: list[Rejected] = []
        self._rejected_total = 0
        self._chunk: list[Submission] = []
        self._indexes: list[int] = []

    async def submit(self, given: AsyncGenerator[Iterable[Given]]) -> BatchAnswer:
        try:
            async with aclosing(given):
                await self._submit(given)
        except LaurelsError:
            self._call.request.scope["state"]["accepted"] = self._accepted
            raise
        listed = sorted(self._rejected, key=lambda rejected: rejected.index)
        return BatchAnswer(
            self._accepted, listed, self._rejected_total if self._rejected_total > len(listed) else 0
        )

    async def _submit(self, given: AsyncGenerator[Iterable[Given]]) -> None:
        size = 0
        async for some in given:
            for count, (index, encoded) in enumerate(some, 1):
                if count % PAUSE_SUBMISSIONS == 0:
                    await asyncio.sleep(0)
                try:
                    submission = self._decoded(index, encoded)
                except (InvalidInput, Malformed, Forbidden) as error:
                    self._reject(index, error.detail)
                    continue
                self._chunk.append(submission)
                self._indexes.append(index)
                size += len(encoded or b"")
                if len(self._chunk) >= CHUNK_SUBMISSIONS or size >= CHUNK_BYTES:
                    await self._send()
                    size = 0
        await self._send()

    def _decoded(self, index: int, encoded: bytes | None) -> Submission:
        if encoded is None:
            raise Malformed(f"a line has at most {body.LINE_BYTES} bytes")
        player = self._call.principal.player
        submission = decode_submission(self._call, encoded)
        if self._key and submission.id is None:
            submission.id = f"{self._key}.{index}"
        if player and submission.id:
            submission.id = player.own_id(submission.id)
        return submission

    async def _send(self) -> None:
        try:
            result = await self._call.laurels.submit_many(
                self._call.board, self._chunk, durability=self._durability
            )
        except Unavailable as error:
            before, self._accepted = self._accepted, self._accepted + error.accepted
            if before:
                detail = f"{error.detail}; so did {before} in earlier parts"
                raise OutcomeUnknown.after(error, detail) from error
            raise
        self._accepted += result.accepted
        for rejected in result.rejected:
            self._reject(self._indexes[rejected.index], rejected.detail)
        self._chunk.clear()
        self._indexes.clear()

    def _reject(self, index: int, detail: str) -> None:
        self._rejected_total += 1
        if len(self._rejected) < MOST_LISTED:
            self._rejected.append(Rejected(index, detail[:LONGEST_DETAIL]))
