"""Sends a call to the shards of a board, and again if the board's definition changed meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from laurels.boards.keys import WHOLE
from laurels.boards.ordering import Position
from laurels.errors import InvalidInput, KeyTaken, OutcomeUnknown, Unavailable
from laurels.scores.payload import Parcel, confirm_keys, lay_out
from laurels.scores.shards import ShardedWindow
from laurels.scores.submission import check
from laurels.valkey import functions
from laurels.valkey.functions import DefinitionChanged, MetadataKept

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from laurels.boards.board import Board, WindowAddress
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.clock import Clock
    from laurels.journal.entry import Feed
    from laurels.scores.payload import Message
    from laurels.scores.submission import Checked
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import Durability, Report

REFUSALS: Final = {
    "range": "the total would leave the range of the board's scores",
    "max_change": "moves the entry by more than the board's max_change",
}


LaidOut = list[tuple[Parcel, "Message"]]


@dataclass(slots=True)
class CallOutcome:
    """The outcome of a call's submissions, by their place in the call."""

    refused: dict[int, InvalidInput | KeyTaken] = field(default_factory=dict)
    reports: dict[int, Report] = field(default_factory=dict)
    unconfirmed: list[Parcel] = field(default_factory=list)
    """The parts that ran, and that the caller must confirm."""


@dataclass(frozen=True, slots=True)
class SubmitCall:
    """Submissions to one board under one id."""

    id: str
    board: Board
    parts: list[Checked]
    report: bool
    durability: Durability = "fast"
    is_confirmed_later: bool = False
    """Whether the caller waits for the durability later, by `confirm`, for several calls at once."""
    feeds: tuple[Feed, ...] = ()
    """The boards that these submissions feed."""
    feeder: int | None = None
    """For a fed board: the shard of its feeder, if the feeder has a journal."""


class Courier:
    """Delivers calls."""

    def __init__(self, valkey: Valkey, catalog: Catalog, clock: Clock) -> None:
        self._valkey = valkey
        self._catalog = catalog
        self._clock = clock

    def lay_out(self, call: SubmitCall) -> LaidOut:
        """Builds the call for each shard: all the work that can be done before sending."""
        board, now = call.board, self._clock()
        by_shard: dict[int, list[Checked]] = {}
        if board.keys.shards == 1:
            by_shard[0] = call.parts
        else:
            for checked in call.parts:
                by_shard.setdefault(board.keys.shard_of(checked.member), []).append(checked)
        is_durable = call.durability != "fast"
        parcels = [
            Parcel(board, shard, call.id, now, parts, call.report, is_durable, call.feeds, call.feeder)
            for shard, parts in by_shard.items()
        ]
        return [(parcel, self._message(parcel)) for parcel in parcels]

    async def deliver(self, call: SubmitCall, laid_out: LaidOut | None = None) -> CallOutcome:
        """Sends the call to all its shards at the same time."""
        outcome = CallOutcome()
        parcels = (laid_out or self.lay_out(call)) if call.parts else []
        if len(parcels) == 1:
            await self._send(call, *parcels[0], outcome)
        elif parcels:
            await _all_or_unknown([self._send(call, *each, outcome) for each in parcels])
        if call.report and call.board.keys.shards > 1:
            await self._count_elsewhere(call, outcome)
        return outcome

    def _message(self, parcel: Parcel) -> Message:
        return lay_out(parcel, metadata=self._catalog.has_metadata(parcel.board) or parcel.has_metadata())

    async def confirm(self, parcels: list[Parcel], durability: Durability) -> None:
        """Waits until all of these have this durability, once for each shard; else raises `OutcomeUnknown`.

        Also checks that Valkey still has the calls: a node that took over or restarted may have lost them.
        """
        by_shard: dict[tuple[BoardRef, int], list[Parcel]] = {}
        for parcel in parcels:
            by_shard.setdefault((parcel.board.ref, parcel.shard), []).append(parcel)

        async def confirm(of_shard: list[Parcel]) -> None:
            calls = [parcel.call for parcel in of_shard]
            missing = await functions.confirm(self._valkey, confirm_keys(of_shard), calls, durability)
            if missing:
                raise OutcomeUnknown(f"Valkey lost {missing} of {len(calls)} calls before they were durable")

        await asyncio.gather(*map(confirm, by_shard.values()))

    async def _send(self, call: SubmitCall, parcel: Parcel, message: Message, outcome: CallOutcome) -> None:
        durability = "fast" if call.is_confirmed_later else call.durability
        while True:
            try:
                await self._catalog.register(parcel.board, parcel.shard, message.targets, parcel.now)
                reply = await functions.submit(
                    self._valkey, message.keys, message.header, message.rest, durability
                )
                break
            except MetadataKept:
                self._catalog.note_metadata(parcel.board)
            except DefinitionChanged as changed:
                parcel = await self._checked_again(parcel, changed, outcome)
            except KeyTaken as error:
                parcel = _without(parcel, error, outcome)
            if not parcel.parts:
                return
            message = self._message(parcel)
        if call.is_confirmed_later:
            outcome.unconfirmed.append(parcel)
        for number, why in reply.refused.items():
            if why in REFUSALS:
                outcome.refused[parcel.parts[number].index] = InvalidInput.at("score", REFUSALS[why])
        outcome.reports.update(zip((part.index for part in parcel.parts), reply.reports, strict=False))

    async def _checked_again(
        self, parcel: Parcel, changed: DefinitionChanged, outcome: CallOutcome
    ) -> Parcel:
        """The parcel under the current definition, without the submissions that this refuses."""
        board = await self._catalog.refresh(parcel.board.ref, changed.known)
        board.require_writer(parcel.board.owner)
        if board.keys.shards != parcel.board.keys.shards:
            raise Unavailable(f"{board.ref} has just been defined with another number of shards; try again")
        now, is_fed = self._clock(), parcel.feeder is not None
        good: list[Checked] = []
        for part in parcel.parts:
            try:
                # The feeder has judged the lateness already.
                good.append(check(board, part.given, part.moment if is_fed else now, part.index))
            except InvalidInput as error:
                outcome.refused[part.index] = error
        return replace(parcel, board=board, now=now, parts=good)

    async def _count_elsewhere(self, call: SubmitCall, outcome: CallOutcome) -> None:
        """Adds the counts of the other shards to the ranks that each shard reported within itself."""
        board = call.board
        asked: dict[WindowAddress, list[tuple[int, str, Position]]] = {}
        for part in call.parts:
            report = outcome.reports.get(part.index)
            address = board.targets(part.moment, self._clock(), WHOLE).reported
            if report and address:
                for rank, place in (("rank", report.place), ("previous_rank", report.previous_place)):
                    if place:
                        asked.setdefault(address, []).append((part.index, rank, Position(place, part.member)))
        for address, questions in asked.items():
            window = ShardedWindow(self._valkey, board, address)
            counts = await window.better_elsewhere([position for _, _, position in questions])
            for (index, rank, _), count in zip(questions, counts, strict=True):
                report = outcome.reports[index]
                within = report.rank if rank == "rank" else report.previous_rank
                outcome.reports[index] = report._replace(**{rank: within + count})


def _without(parcel: Parcel, taken: KeyTaken, outcome: CallOutcome) -> Parcel:
    """The parcel without the submissions to a window whose key another program uses; these are refused."""
    board, window = parcel.board, taken.key.partition("|")[0]
    good: list[Checked] = []
    for part in parcel.parts:
        written = (board.targets(part.moment, parcel.now, cut).windows for cut in part.cuts)
        addresses = {
            address for targets in written for target in targets for address in (target.address, *target.days)
        }
        if any(board.window_key(parcel.shard, address) == window for address in addresses):
            outcome.refused[part.index] = taken
        else:
            good.append(part)
    if len(good) == len(parcel.parts):
        raise taken
    return replace(parcel, parts=good)


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
