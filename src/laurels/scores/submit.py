"""Submits scores: turns submissions into few, atomic function calls.

A call carries many submissions. A batch is cut into calls. Single submissions that arrive while calls for
their board are in progress go out together in the next call, so there is no timer to wait for. A member's
submissions are applied in the order of their arrival.

Every submission has an id. Valkey remembers a client's id for a day or more. An id that is made here names
its call, and Valkey remembers calls for ten minutes or more. In either case a repeat does not count twice.

An answer may wait until its submission is on disk or on replicas (`Durability`). Single submissions go out
with others of the same durability, so that none waits longer than it asked; a batch waits once for many of
its calls.
"""

from __future__ import annotations

import asyncio
import secrets
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import msgspec

from laurels.errors import InvalidInput, OutcomeUnknown, Unavailable
from laurels.scores.feeds import feeds_of, for_feed
from laurels.scores.idempotency import IdempotencyKeys
from laurels.scores.payload import SubmitCall
from laurels.scores.send import CallOutcome, Sender
from laurels.scores.submission import (
    REFUSALS,
    AdmittedSubmission,
    BatchResult,
    CheckedSubmission,
    Rejected,
    ReplayedSubmit,
    Submission,
    Submitted,
    check,
    check_id,
)
from laurels.scores.waiting import SubmissionQueue, WaitingSubmission
from laurels.valkey import functions
from laurels.valkey.messages import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from laurels.boards.board import Board
    from laurels.boards.catalog import Catalog
    from laurels.boards.definition import Owner
    from laurels.boards.keys import BoardRef
    from laurels.clock import Clock
    from laurels.errors import LaurelsError
    from laurels.scores.feeds import Feeds
    from laurels.scores.rolling import Rolling
    from laurels.scores.send import LaidOut
    from laurels.scores.waiting import OnOutcome
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import Durability

# The cost limit of a call: it must not hold Valkey for 10 ms even if the machine preempts it
# (bench/stalls.py), and must run long enough to build the next call meanwhile. Below are the costs of an
# entry: written directly, read first, or also with a prefix; and the factors for boards where entries depend
# on others, and where distinct scores are counted. In each case a call takes 1 to 4 ms of CPU at a million
# members.
COST_A_CALL: Final = 1024
COST_OF_WRITING: Final = 2
COST_OF_READING: Final = 3
COST_OF_PREFIXES: Final = 5
TIMES_BY_DEPENDING: Final = 2
TIMES_BY_COUNTING: Final = 4
# How many calls of single submissions run at once: this process prepares one and reads the answers of
# another while Valkey works.
CALLS_AT_ONCE: Final = 2
# How many calls of a batch wait for the disk together: a wait takes a second if Valkey syncs every second.
CALLS_A_WAIT: Final = 200


@dataclass(slots=True)
class _Chunk:
    """A call that still fills up, the places of its submissions in the input, and their forms for each board
    that it feeds.
    """

    call: SubmitCall
    feeds: list[Board]
    places: list[int] = field(default_factory=list)
    fed: list[list[CheckedSubmission]] = field(default_factory=list)
    cost: int = 0

    def add(self, place: int, given: Submission | CheckedSubmission, now: int) -> None:
        """Raises a `Refusal` if any of the boards refuses it; then none gets it."""
        board, parts = self.call.board, self.call.parts
        index = len(parts)
        if isinstance(given, CheckedSubmission):
            checked = given.moved(board, now, index)
        else:
            checked = check(board, given, now, index)
        if self.feeds:
            given, groups = checked.given, checked.groups
            if isinstance(given.score, str):  # boards of doubles take only numbers
                given = msgspec.structs.replace(given, score=checked.score)
            self.fed.append([check(feed, for_feed(feed, given, groups), now, index) for feed in self.feeds])
        parts.append(checked)
        self.places.append(place)
        self.cost += len(checked.cuts)


class _RefusedSubmission(NamedTuple):
    """A refused submission: its place in the input, and the reason."""

    place: int
    given: Submission | CheckedSubmission | InvalidInput
    error: LaurelsError


@dataclass(slots=True)
class _BatchProgress:
    """The options of a batch, and its results so far."""

    durability: Durability
    progress: Callable[[int], None] | None = None
    accepted: int = 0
    refused: list[_RefusedSubmission] = field(default_factory=list)
    unconfirmed: list[SubmitCall] = field(default_factory=list)
    confirmed: int = 0
    """How many of the accepted have the requested durability."""

    def report(self) -> None:
        if self.progress:
            self.progress(self.accepted + len(self.refused))


class Submitter:
    """Sends submissions to the boards of the catalog."""

    def __init__(
        self, valkey: Valkey, catalog: Catalog, rolling: Rolling, feeds: Feeds, clock: Clock
    ) -> None:
        self._valkey = valkey
        self._idempotency_keys = IdempotencyKeys(valkey, catalog)
        self._feeds = feeds
        self._sender = Sender(valkey, catalog, clock)
        self._catalog = catalog
        self._rolling = rolling
        self._clock = clock
        self._queues: dict[tuple[BoardRef, Durability], SubmissionQueue] = {}
        self._senders: set[asyncio.Task[None]] = set()
        self._owner: Owner | None = None

    def acting_for(self, owner: Owner) -> Self:
        """A submitter for a flow, which may write to the boards that it owns."""
        flow = copy(self)
        flow._owner = owner  # noqa: SLF001  # its own class
        return flow

    async def submit(self, ref: BoardRef, given: Submission, durability: Durability = "fast") -> Submitted:
        """Submits one score, and returns where the member stands."""
        board = await self._catalog.board(ref)
        board.require_writer(self._owner)
        if isinstance(given, AdmittedSubmission) and given.fingerprint and board.keys.shards > 1:
            return await self._submit_once(ref, given, durability)
        try:
            checked = check(board, given, self._clock())
        except REFUSALS:  # another process may have changed the definition
            board = await self._catalog.in_force(ref)
            checked = check(board, given, self._clock())
        answer: asyncio.Future[Submitted] = asyncio.get_running_loop().create_future()
        self._queue(WaitingSubmission(checked, board, partial(_settle, answer)), durability)
        return await answer

    async def _submit_once(
        self, ref: BoardRef, given: AdmittedSubmission, durability: Durability
    ) -> Submitted:
        """Submits to a board with shards, where each would have idempotency keys of its own."""
        fingerprint, given.fingerprint = given.fingerprint, ""
        async with self._idempotency_keys.claim(ref, check_id(given.id or ""), fingerprint) as claim:
            if claim.answer is not None:
                claim.check()
                await self.confirm(ref, durability)
                return _replayed(claim.answer)
            submitted = await self.submit(ref, given, durability)
            claim.answer = msgspec.json.encode(submitted)
            return submitted

    def prepare(
        self, ref: BoardRef, given: Submission, durability: Durability
    ) -> Callable[[OnOutcome], None] | None:
        """Like `submit`, without waiting: returns a function that submits, and later passes on the outcome.
        None if this process does not know that the submission is valid.
        """
        board = self._catalog.known(ref)
        if board is None or board.owner != self._owner:
            return None
        try:
            checked = check(board, given, self._clock())
        except REFUSALS:
            return None
        if checked.fingerprint and board.keys.shards > 1:
            return None
        return lambda on_outcome: self._queue(WaitingSubmission(checked, board, on_outcome), durability)

    def _queue(self, waiting: WaitingSubmission, durability: Durability) -> None:
        ref = waiting.board.ref
        queue = self._queues.get((ref, durability))
        if queue is None:
            queue = self._queues[ref, durability] = SubmissionQueue()
        queue.waiting.append(waiting)
        if queue.calls < CALLS_AT_ONCE and queue.waiting[0].checked.member not in queue.members:
            queue.calls += 1
            sender = asyncio.create_task(self._send_waiting(ref, queue, durability))
            self._senders.add(sender)
            sender.add_done_callback(self._senders.discard)

    async def submit_many(
        self,
        ref: BoardRef,
        given: Iterable[Submission | InvalidInput],
        progress: Callable[[int], None] | None = None,
        durability: Durability = "fast",
    ) -> BatchResult:
        """Submits many scores. A refused or unreadable one does not affect the others. `progress` receives
        how many are done.

        The next call is built while Valkey works on one, but only one call runs at a time, which keeps the
        order of a member's submissions.
        """
        board = await self._catalog.board(ref)
        board.require_writer(self._owner)
        batch = _BatchProgress(durability, progress)
        try:
            await self._submit_all(board, enumerate(given), batch)
            if batch.refused and (changed := await self._catalog.in_force(ref)) is not board:
                # Another process had changed the definition: the current one decides.
                again, batch.refused, batch.progress = batch.refused, [], None
                await self._submit_all(changed, ((each.place, each.given) for each in again), batch)
        except Unavailable as error:
            raise _cut_off(error, batch.confirmed) from error
        refused = sorted(batch.refused, key=lambda each: each.place)
        return BatchResult(batch.accepted, [Rejected(each.place, each.error.detail) for each in refused])

    async def confirm(self, ref: BoardRef, durability: Durability) -> None:
        """Waits until all earlier writes to the board, of any process, have this durability."""
        board = await self._catalog.board(ref)
        shards = range(board.keys.shards)
        keys = [board.keys.of_board(shard, "board") for shard in shards]
        await asyncio.gather(*(functions.confirm(self._valkey, (key,), (), durability) for key in keys))

    async def _submit_all(
        self,
        board: Board,
        given: Iterable[tuple[int, Submission | CheckedSubmission | InvalidInput]],
        batch: _BatchProgress,
    ) -> None:
        feeds = await self._catalog.feeds(board)
        is_durable = batch.durability != "fast"
        under_way: asyncio.Task[None] | None = None
        for chunk in self._chunks(board, feeds, given, batch.refused):
            chunk.call.durability, chunk.call.is_confirmed_later = batch.durability, is_durable
            laid_out = self._sender.lay_out(chunk.call)
            if under_way:
                await under_way
                batch.report()
            under_way = asyncio.create_task(self._carry_batch(chunk, laid_out, batch))
            await asyncio.sleep(0)
        if under_way:
            await under_way
        await self._confirm(batch)
        batch.report()

    async def _carry_batch(self, chunk: _Chunk, laid_out: LaidOut, batch: _BatchProgress) -> None:
        call = chunk.call
        outcome = await self._sender.send(call, laid_out)
        await self._feed(chunk, outcome)
        batch.unconfirmed += outcome.unconfirmed
        for index, error in outcome.refused.items():
            batch.refused.append(_RefusedSubmission(chunk.places[index], call.parts[index].given, error))
        batch.accepted += len(call.parts) - len(outcome.refused)
        if not call.is_confirmed_later or len(batch.unconfirmed) >= CALLS_A_WAIT:
            await self._confirm(batch)

    async def _confirm(self, batch: _BatchProgress) -> None:
        await self._sender.confirm(batch.unconfirmed, batch.durability)
        batch.unconfirmed.clear()
        batch.confirmed = batch.accepted

    async def _feed(self, chunk: _Chunk, outcome: CallOutcome) -> None:
        self._rolling.prepare(chunk.call.board, self._clock())
        if chunk.feeds:
            await self._feeds.carry(chunk.call, chunk.feeds, chunk.fed, outcome)

    async def _send_waiting(self, ref: BoardRef, queue: SubmissionQueue, durability: Durability) -> None:
        try:
            while taken := queue.take():
                try:
                    await self._send_together(ref, taken, durability)
                except Exception as error:  # noqa: BLE001  # every waiting caller must get an answer
                    for waiting in taken:
                        waiting.on_outcome(error)
                finally:
                    queue.release(taken)
        finally:
            queue.calls -= 1
            if not queue.calls and not queue.waiting:
                del self._queues[ref, durability]

    async def _send_together(
        self, ref: BoardRef, taken: list[WaitingSubmission], durability: Durability
    ) -> None:
        board = await self._catalog.board(ref)
        feeds = await self._catalog.feeds(board)
        refused: list[_RefusedSubmission] = []
        given = enumerate(
            waiting.checked if waiting.board is board else waiting.checked.given for waiting in taken
        )
        for chunk in self._chunks(board, feeds, given, refused):
            call = chunk.call
            call.report, call.durability = True, durability
            try:
                outcome = await self._sender.send(call)
                await self._feed(chunk, outcome)
            except OutcomeUnknown as error:
                for place, checked in zip(chunk.places, call.parts, strict=True):
                    taken[place].on_outcome(OutcomeUnknown.after(error, retry_with=call.made_id(checked)))
                continue
            for place, checked in zip(chunk.places, call.parts, strict=True):
                refusal = outcome.refused.get(checked.index)
                taken[place].on_outcome(refusal or _submitted(call, checked, outcome))
        for each in refused:  # valid when it joined the queue, but time has passed or the definition changed
            taken[each.place].on_outcome(each.error)

    def _chunks(
        self,
        board: Board,
        feeds: list[Board],
        given: Iterable[tuple[int, Submission | CheckedSubmission | InvalidInput]],
        refused: list[_RefusedSubmission],
    ) -> Iterator[_Chunk]:
        """The valid submissions, cut into calls that cost no more than `COST_A_CALL`."""
        room, fed = min(map(cuts_a_call, (board, *feeds))), feeds_of(feeds)

        def begun() -> _Chunk:
            return _Chunk(SubmitCall(secrets.token_urlsafe(16), board, [], feeds=fed), feeds)

        chunk = begun()
        now = self._clock()
        for place, submission in given:
            try:
                if isinstance(submission, InvalidInput):
                    raise submission
                chunk.add(place, submission, now)
            except REFUSALS as error:
                refused.append(_RefusedSubmission(place, submission, error))
                continue
            if chunk.cost >= room:
                yield chunk
                chunk = begun()
                now = self._clock()
        if chunk.places:
            yield chunk


def cuts_a_call(board: Board) -> int:
    """How many submissions fit one call; each counts once for every cut where it is ranked."""
    cost = COST_OF_PREFIXES if board.ordering.prefixed else COST_OF_READING
    if board.is_fast:
        cost = COST_OF_WRITING
    if not board.is_direct:
        cost *= TIMES_BY_DEPENDING
    if board.definition.dense:
        cost *= TIMES_BY_COUNTING
    cost *= board.writes_per_cut
    return max(1, COST_A_CALL // cost)


def _cut_off(error: Unavailable, accepted: int) -> Unavailable:
    """The error of a batch. Its outcome is unknown if any submissions have surely counted (`accepted`)."""
    if accepted and not isinstance(error, OutcomeUnknown):
        error = OutcomeUnknown.after(error)
    if accepted:
        error.detail += f"; {accepted} submissions before these counted"
    error.accepted = accepted
    return error


def _settle(waiting: asyncio.Future[Submitted], outcome: Submitted | Exception) -> None:
    if waiting.done():  # the caller has gone
        return
    if isinstance(outcome, Exception):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)


def _submitted(call: SubmitCall, checked: CheckedSubmission, outcome: CallOutcome) -> Submitted:
    report = outcome.reports[checked.index]
    if not isinstance(report, Report):
        return _replayed(report)
    parse, place, previous = call.board.ordering.parse_placed_score, report.place, report.previous_place
    score = parse(place) if place else None
    kind = ReplayedSubmit if checked.index in outcome.replayed else Submitted
    return kind(
        member=checked.given.member,
        score=score,
        previous_score=score if previous == place else parse(previous) if previous else None,
        rank=report.rank + 1 or None,
        previous_rank=report.previous_rank + 1 or None,
        applied=bool(report.applied),
        id=call.made_id(checked),
    )


def _replayed(response: bytes) -> ReplayedSubmit:
    """From the JSON of an answer, where scores of int64 boards may be strings."""
    return msgspec.json.decode(response, type=ReplayedSubmit, strict=False)
