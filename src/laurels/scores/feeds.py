"""Feeds: a board passes its submissions on to other boards, at once; the drain completes what was cut off.

A submission counts on its own board first, then on each fed board, in separate calls. A process or a node
may fail between the two. Therefore the feeder's journal names the boards that each call feeds, and a fed
board remembers the names of the calls that it ran until the drain has looked. The drain sends missing calls
again under the same name, and a fed board runs each name once.

Without a journal on the feeder there is no completion: only the submission's own call feeds other boards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from laurels.boards.keys import BoardRef
from laurels.boards.ordering import whole
from laurels.errors import InvalidInput, LaurelsError, NotFound, OutcomeUnknown, Unavailable
from laurels.journal.entry import Feed
from laurels.logs import get_logger
from laurels.moments import datetime_of
from laurels.scores.payload import SubmitCall, fed_call
from laurels.scores.send import Sender
from laurels.scores.submission import Submission, check
from laurels.valkey import functions, sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from laurels.boards.board import Board
    from laurels.boards.catalog import Catalog
    from laurels.clock import Clock
    from laurels.journal.entry import JournalEntry, JournalRow
    from laurels.scores.rolling import Rolling
    from laurels.scores.send import CallOutcome
    from laurels.scores.submission import CheckedSubmission
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import Durability

log = get_logger("laurels.boards")


class Feeds:
    """Passes submissions on to fed boards."""

    def __init__(
        self, valkey: Valkey, catalog: Catalog, rolling: Rolling, clock: Clock, durability: Durability
    ) -> None:
        """`durability`: that of completed calls, and of the archive."""
        self._valkey = valkey
        self._catalog = catalog
        self._rolling = rolling
        self._clock = clock
        self.durability: Durability = durability
        self._sender = Sender(valkey, catalog, clock)

    async def carry(
        self,
        call: SubmitCall,
        feeds: Sequence[Board],
        fed: Sequence[Sequence[CheckedSubmission]],
        outcome: CallOutcome,
    ) -> None:
        """Sends what the board accepted to the boards that it feeds, with the same durability.

        `fed`: for each submission, its form for each fed board.
        """
        for number, feed in enumerate(feeds):
            parts = [each[number] for each in fed if each[number].index not in outcome.refused]
            for part_call in _calls(call, feed, parts):
                try:
                    fed_outcome = await self._sender.send(part_call)
                except Unavailable as error:
                    detail = f"{call.board.ref} counted it, but perhaps not yet {feed.ref}: {error.detail}"
                    raise OutcomeUnknown.after(error, detail) from error
                outcome.unconfirmed += fed_outcome.unconfirmed
                _log_refusals(part_call, fed_outcome)
            self._rolling.prepare(feed, self._clock())

    async def complete(self, shard: int, entries: Sequence[JournalEntry]) -> list[JournalEntry]:
        """Sends fed boards the calls of one shard of their feeder that they have not run. Returns the calls
        that a fed board may still miss.
        """
        incomplete: list[JournalEntry] = []
        for feed, calls in _by_feed(entries).items():
            left = calls
            try:
                board = await self._catalog.board(BoardRef.parse(feed.board))
                left = await self._missing(board, shard, calls)
                counted = [each for each in calls if each not in left]
                if left and not await self._exists(feed):
                    left = []
                while left:
                    await self._complete_one(board, shard, left[0])
                    left = left[1:]
                await self._confirm(board, shard, counted)
            except NotFound:
                continue  # dropped meanwhile
            except Unavailable as error:
                log.warning("fed board not completed yet; will retry", fed=feed.board, detail=error.detail)
                incomplete += left or calls
            except LaurelsError as error:
                log.error("fed board refuses its feeder's submissions", fed=feed.board, detail=error.detail)  # noqa: TRY400  # the traceback adds nothing
        return incomplete

    async def forget(self, shard: int, entries: Iterable[JournalEntry]) -> None:
        """Removes the names of these calls from the fed boards, once the journal no longer has them."""
        for feed, calls in _by_feed(entries).items():
            try:
                board = await self._catalog.board(BoardRef.parse(feed.board))
            except NotFound:
                continue
            names = [fed_call(each.call, shard) for each in calls]
            await self._valkey.run_all(sets.remove(key, names) for key in _fed_keys(board))

    async def _missing(self, board: Board, shard: int, calls: list[JournalEntry]) -> list[JournalEntry]:
        names = [fed_call(each.call, shard) for each in calls]
        known = await self._valkey.run_all(sets.are_members(key, names) for key in _fed_keys(board))
        shard_of = board.keys.shard_of
        return [
            each
            for number, each in enumerate(calls)
            if not all(known[shard_of(row.member)][number] for row in each.rows)
        ]

    async def _exists(self, feed: Feed) -> bool:
        """Whether the fed board still exists; a newer board of the same name does not count."""
        board_id = await self._catalog.id_of(BoardRef.parse(feed.board))
        return board_id is not None and board_id <= feed.version

    async def _complete_one(self, board: Board, shard: int, entry: JournalEntry) -> None:
        call = SubmitCall(fed_call(entry.call, shard), board, [], durability=self.durability, feeder=shard)
        for row in entry.rows:
            try:
                call.parts.append(_checked(board, row))
            except InvalidInput as error:
                _log_refusal(call, row.index, error)
        _log_refusals(call, await self._sender.send(call))
        self._rolling.prepare(board, self._clock())

    async def _confirm(self, board: Board, shard: int, counted: list[JournalEntry]) -> None:
        """Waits until calls that counted before are durable. Their own call may have failed to confirm that,
        and another node may have taken over since.
        """
        if self.durability == "fast":
            return
        for own in range(board.keys.shards):
            names = [
                fed_call(each.call, shard)
                for each in counted
                if any(board.keys.shard_of(row.member) == own for row in each.rows)
            ]
            keys = board.keys.of_board(own, "board"), board.keys.of_board(own, "fed")
            if names and await functions.confirm(self._valkey, keys, names, self.durability):
                raise Unavailable(f"{board.ref} lost submissions of its feeder; they are sent again")


def feeds_of(boards: Iterable[Board]) -> tuple[Feed, ...]:
    return tuple(Feed(str(board.ref), board.version) for board in boards)


def for_feed(feed: Board, given: Submission, groups: Mapping[str, str] | None) -> Submission:
    """The submission for a fed board: with only the groups and the `op` that this board takes.

    `groups`: those that the feeder ranked it in.
    """
    return Submission(
        given.member,
        given.score,
        at=given.at,
        groups={name: value for name, value in (groups or {}).items() if name in feed.dimensions} or None,
        id=given.id,
        op=given.op if feed.definition.allow_op else None,
        metadata=given.metadata,
    )


def _calls(call: SubmitCall, feed: Board, parts: list[CheckedSubmission]) -> Iterable[SubmitCall]:
    """One call for each shard of the feeder, since each shard has its own journal."""
    if not call.board.definition.archive.journal:
        yield replace(call, board=feed, parts=parts, report=False, feeds=())
        return
    by_shard: dict[int, list[CheckedSubmission]] = {}
    for part in parts:
        by_shard.setdefault(call.board.keys.shard_of(part.member), []).append(part)
    for shard, some in by_shard.items():
        name = fed_call(call.id, shard)
        yield replace(call, id=name, board=feed, parts=some, report=False, feeds=(), feeder=shard)


def _by_feed(entries: Iterable[JournalEntry]) -> dict[Feed, list[JournalEntry]]:
    calls: dict[Feed, list[JournalEntry]] = {}
    for each in entries:
        for feed in each.feeds:
            calls.setdefault(feed, []).append(each)
    return calls


def _checked(board: Board, row: JournalRow) -> CheckedSubmission:
    """A submission as its feeder recorded it. The feeder judged its lateness when it came."""
    given = Submission(
        member=row.member.decode(),
        score=whole(row.score) if isinstance(row.score, float) else row.score or 0,
        at=datetime_of(row.at),
        groups=row.groups,
        id=row.id,
        op=row.op or None,
        metadata=msgspec.json.decode(row.metadata) if row.metadata else None,
    )
    return check(board, for_feed(board, given, given.groups), row.at, row.index)


def _fed_keys(board: Board) -> list[str]:
    return [board.keys.of_board(shard, "fed") for shard in range(board.keys.shards)]


def _log_refusals(call: SubmitCall, outcome: CallOutcome) -> None:
    for index, refusal in outcome.refused.items():
        _log_refusal(call, index, refusal)


def _log_refusal(call: SubmitCall, index: int, refusal: LaurelsError) -> None:
    log.warning(
        "fed board refused a submission that its feeder counted",
        fed=str(call.board.ref),
        call=call.id,
        index=index,
        why=refusal.detail,
    )
