"""Sends a call to the shards of a board, and again if the board's definition changed meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, cast

from laurels.boards.keys import WHOLE
from laurels.boards.ordering import Position
from laurels.errors import InvalidInput, KeyTaken, OutcomeUnknown, Unavailable
from laurels.scores.idempotency import in_flight, key_reused
from laurels.scores.payload import confirm_keys, lay_out
from laurels.scores.shards import ShardedWindow
from laurels.scores.submission import REFUSALS, check
from laurels.valkey import functions
from laurels.valkey.functions import DefinitionChanged, MetadataKept
from laurels.valkey.messages import Report

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from laurels.boards.board import WindowAddress
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.clock import Clock
    from laurels.errors import LaurelsError
    from laurels.scores.payload import Payload, SubmitCall
    from laurels.scores.submission import CheckedSubmission
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import Durability

REASONS: Final = {
    "range": "the total would leave the range of the board's scores",
    "max_change": "moves the entry by more than the board's max_change",
}


LaidOut = list[tuple["SubmitCall", "Payload"]]


@dataclass(slots=True)
class CallOutcome:
    """The outcome of a call's submissions, by their place in the call."""

    refused: dict[int, LaurelsError] = field(default_factory=dict)
    reports: dict[int, Report | bytes] = field(default_factory=dict)
    replayed: set[int] = field(default_factory=set)
    """Those whose requests were answered before; the report is from then."""
    unconfirmed: list[SubmitCall] = field(default_factory=list)
    """The parts that ran, and that the caller must confirm."""


class Sender:
    """Sends calls."""

    def __init__(self, valkey: Valkey, catalog: Catalog, clock: Clock) -> None:
        self._valkey = valkey
        self._catalog = catalog
        self._clock = clock

    def lay_out(self, call: SubmitCall) -> LaidOut:
        """Builds the call for each shard: all the work that can be done before sending."""
        call.now = self._clock()
        if call.board.keys.shards == 1:
            return [(call, self._payload(call))]
        by_shard: dict[int, list[CheckedSubmission]] = {}
        for checked in call.parts:
            by_shard.setdefault(call.board.keys.shard_of(checked.member), []).append(checked)
        of_shards = [replace(call, shard=shard, parts=parts) for shard, parts in by_shard.items()]
        return [(each, self._payload(each)) for each in of_shards]

    async def send(self, call: SubmitCall, laid_out: LaidOut | None = None) -> CallOutcome:
        """Sends the call to all its shards at the same time."""
        outcome = CallOutcome()
        to_shards = (laid_out or self.lay_out(call)) if call.parts else []
        if len(to_shards) == 1:
            await self._send_to_shard(*to_shards[0], outcome)
        elif to_shards:
            await _all_or_unknown([self._send_to_shard(*each, outcome) for each in to_shards])
        if call.report and call.board.keys.shards > 1:
            await self._count_elsewhere(call, outcome)
        return outcome

    def _payload(self, call: SubmitCall) -> Payload:
        return lay_out(call, metadata=self._catalog.has_metadata(call.board) or call.has_metadata())

    async def confirm(self, calls: list[SubmitCall], durability: Durability) -> None:
        """Waits until all of these have this durability, once for each shard; else raises `OutcomeUnknown`.

        Also checks that Valkey still has the calls: a node that took over or restarted may have lost them.
        """
        by_shard: dict[tuple[BoardRef, int], list[SubmitCall]] = {}
        for call in calls:
            by_shard.setdefault((call.board.ref, call.shard), []).append(call)

        async def confirm(of_shard: list[SubmitCall]) -> None:
            ids = [call.id for call in of_shard]
            missing = await functions.confirm(self._valkey, confirm_keys(of_shard), ids, durability)
            if missing:
                raise OutcomeUnknown(f"Valkey lost {missing} of {len(ids)} calls before they were durable")

        await asyncio.gather(*map(confirm, by_shard.values()))

    async def _send_to_shard(self, call: SubmitCall, payload: Payload, outcome: CallOutcome) -> None:
        durability = "fast" if call.is_confirmed_later else call.durability
        while True:
            try:
                await self._catalog.register(call.board, call.shard, payload.targets, call.now)
                reply = await functions.submit(
                    self._valkey, payload.keys, payload.header, payload.rest, durability
                )
                break
            except MetadataKept:
                self._catalog.note_metadata(call.board)
            except DefinitionChanged as changed:
                call = await self._checked_again(call, changed, outcome)
            except KeyTaken as error:
                call = _without(call, error, outcome)
            if not call.parts:
                return
            payload = self._payload(call)
        if call.is_confirmed_later:
            outcome.unconfirmed.append(call)
        for number, why in reply.refused.items():
            part = call.parts[number]
            if why == "answered":
                outcome.replayed.add(part.index)
            elif refusal := _refusal(part, why):
                outcome.refused[part.index] = refusal
        outcome.reports.update(zip((part.index for part in call.parts), reply.reports, strict=False))

    async def _checked_again(
        self, call: SubmitCall, changed: DefinitionChanged, outcome: CallOutcome
    ) -> SubmitCall:
        """The call under the current definition, without the submissions that this refuses."""
        board = await self._catalog.refresh(call.board.ref, changed.known)
        board.require_writer(call.board.owner)
        if board.keys.shards != call.board.keys.shards:
            raise Unavailable(f"{board.ref} has just been defined with another number of shards; try again")
        now, is_fed = self._clock(), call.feeder is not None
        good: list[CheckedSubmission] = []
        for part in call.parts:
            try:
                # The feeder has judged the lateness already.
                good.append(check(board, part.given, part.moment if is_fed else now, part.index))
            except REFUSALS as error:
                outcome.refused[part.index] = error
        return replace(call, board=board, now=now, parts=good)

    async def _count_elsewhere(self, call: SubmitCall, outcome: CallOutcome) -> None:
        """Adds the counts of the other shards to the ranks that each shard reported within itself."""
        board = call.board
        asked: dict[WindowAddress, list[tuple[int, str, Position]]] = {}
        for part in call.parts:
            report = outcome.reports.get(part.index)
            address = board.targets(part.moment, self._clock(), WHOLE).reported
            if isinstance(report, Report) and address:
                for rank, place in (("rank", report.place), ("previous_rank", report.previous_place)):
                    if place:
                        asked.setdefault(address, []).append((part.index, rank, Position(place, part.member)))
        for address, questions in asked.items():
            window = ShardedWindow(self._valkey, board, address)
            counts = await window.better_elsewhere([position for _, _, position in questions])
            for (index, rank, _), count in zip(questions, counts, strict=True):
                report = cast("Report", outcome.reports[index])
                within = report.rank if rank == "rank" else report.previous_rank
                outcome.reports[index] = report._replace(**{rank: within + count})


def _refusal(part: CheckedSubmission, why: str) -> LaurelsError | None:
    """None for a duplicate, which is answered with the present entry."""
    if why in REASONS:
        return InvalidInput.at("score", REASONS[why])
    if why == "busy":
        return in_flight(part.id)
    return key_reused(part.id) if why == "other" else None


def _without(call: SubmitCall, taken: KeyTaken, outcome: CallOutcome) -> SubmitCall:
    """The call without the submissions to a window whose key another program uses; these are refused."""
    board, window = call.board, taken.key.partition("|")[0]
    good: list[CheckedSubmission] = []
    for part in call.parts:
        written = (board.targets(part.moment, call.now, cut).windows for cut in part.cuts)
        addresses = {
            address for targets in written for target in targets for address in (target.address, *target.days)
        }
        if any(board.window_key(call.shard, address) == window for address in addresses):
            outcome.refused[part.index] = taken
        else:
            good.append(part)
    if len(good) == len(call.parts):
        raise taken
    return replace(call, parts=good)


async def _all_or_unknown(sends: list[Coroutine[None, None, None]]) -> None:
    """Waits for all of them. If only some failed, the outcome of the call is unknown."""
    failed = [each for each in await asyncio.gather(*sends, return_exceptions=True) if each]
    if not failed:
        return
    error = failed[0]
    if len(failed) < len(sends) and isinstance(error, Unavailable):
        detail = f"some shards counted it, others may not have: {error.detail}"
        raise OutcomeUnknown.after(error, detail) from error
    raise error
