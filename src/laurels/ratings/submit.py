"""Applies matches: computes the ratings and writes them, without losing an update of a player's rating.

Ratings are computed from the players' last known states, and written by one call that compares these states
first. If one has changed, the call writes nothing and returns the present states, and the ratings are
computed again. Matches that arrive while a call for their board is under way are batched in the next one, in
order. So matches of the same player do not conflict within a process.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from laurels.boards.ordering import whole
from laurels.errors import InvalidInput, KeyTaken, OutcomeUnknown, Unavailable
from laurels.journal.entry import match_entry
from laurels.ratings.match import Match, Matched, RatedPlayer, check_match
from laurels.ratings.sheet import KnownRatings, Sheet
from laurels.scores.payload import BOARD_KEYS, SubmitCall, lay_out
from laurels.scores.send import Sender
from laurels.scores.submission import MADE_ID
from laurels.scores.submit import cuts_a_call
from laurels.valkey import functions
from laurels.valkey.functions import DefinitionChanged, MetadataKept
from laurels.valkey.messages import MatchHeader, StaleStates

if TYPE_CHECKING:
    from laurels.boards.board import Board
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.clock import Clock
    from laurels.moments import Moment
    from laurels.ratings.match import CheckedMatch
    from laurels.ratings.systems import RatingChange
    from laurels.scores.rolling import Rolling
    from laurels.scores.submission import CheckedSubmission
    from laurels.valkey.client import Valkey, Value
    from laurels.valkey.messages import Durability, PlayerRanks

# Attempts of a call. One fails only if another process has applied a match of the same players.
ATTEMPTS: Final = 1000
# Players whose last states are cached, so that most calls need no read before.
MOST_REMEMBERED: Final = 100_000
# Each match writes its entries separately, to report its ranks, which costs twice as much as together.
COST_OF_ORDER: Final = 2

_Waiting = tuple[Match, "asyncio.Future[Matched]"]


@dataclass(slots=True)
class _MatchQueue:
    """Matches of one board that wait for the next call."""

    waiting: deque[_Waiting] = field(default_factory=deque[_Waiting])
    is_sending: bool = False


@dataclass(slots=True)
class _MatchCall:
    """The matches of one call, and the future of each."""

    board: Board
    now: Moment
    id: str
    matches: list[CheckedMatch]
    answers: list[asyncio.Future[Matched]]


class MatchSubmitter:
    """Applies matches. Concurrent matches of a board share calls."""

    def __init__(self, valkey: Valkey, catalog: Catalog, rolling: Rolling, clock: Clock) -> None:
        self._valkey = valkey
        self._sender = Sender(valkey, catalog, clock)
        self._catalog = catalog
        self._rolling = rolling
        self._clock = clock
        self._queues: dict[tuple[BoardRef, Durability], _MatchQueue] = {}
        self._senders: set[asyncio.Task[None]] = set()
        self._states: dict[tuple[BoardRef, bytes], bytes] = {}

    async def play(self, ref: BoardRef, given: Match, durability: Durability = "fast") -> Matched:
        """Applies a match, and returns the players' new ratings and ranks."""
        board = await self._catalog.board(ref)
        board.require_writer(None)
        try:
            check_match(board, given, self._clock(), "")
        except InvalidInput:  # maybe by an outdated definition
            check_match(await self._catalog.in_force(ref), given, self._clock(), "")
        queue = self._queues.setdefault((ref, durability), _MatchQueue())
        answer: asyncio.Future[Matched] = asyncio.get_running_loop().create_future()
        queue.waiting.append((given, answer))
        if not queue.is_sending:
            queue.is_sending = True
            sender = asyncio.create_task(self._send_waiting(ref, queue, durability))
            self._senders.add(sender)
            sender.add_done_callback(self._senders.discard)
        return await answer

    async def _send_waiting(self, ref: BoardRef, queue: _MatchQueue, durability: Durability) -> None:
        try:
            while queue.waiting:
                taken = [queue.waiting.popleft()]
                try:
                    room = _players_a_call(await self._catalog.board(ref)) - len(taken[0][0].players)
                    while queue.waiting and room >= len(queue.waiting[0][0].players):
                        taken.append(queue.waiting.popleft())
                        room -= len(taken[-1][0].players)
                    await self._send(ref, taken, durability)
                except Exception as error:  # noqa: BLE001  # every waiting caller gets the error
                    for _, answer in taken:
                        _answer(answer, error)
        finally:
            queue.is_sending = False
            if not queue.waiting:
                del self._queues[ref, durability]

    async def _send(self, ref: BoardRef, taken: list[_Waiting], durability: Durability) -> None:
        """Sends matches together; or one by one, if another program has a key that some of them need."""
        try:
            await self._send_together(ref, taken, durability)
        except KeyTaken:
            if len(taken) == 1:
                raise
            for each in taken:
                try:
                    await self._send_together(ref, [each], durability)
                except KeyTaken as error:
                    _answer(each[1], error)

    async def _send_together(self, ref: BoardRef, taken: list[_Waiting], durability: Durability) -> None:
        call = self._checked(await self._catalog.board(ref), taken)
        known = self._known_states(call)
        for _ in range(ATTEMPTS):
            if not call.matches:
                return
            try:
                sheet, reply = await self._attempt(call, known, durability)
            except MetadataKept:
                self._catalog.note_metadata(call.board)
                continue
            except DefinitionChanged as changed:
                call = self._checked(await self._catalog.refresh(ref, changed.known), taken)
                known = self._known_states(call)
                continue
            except OutcomeUnknown as error:
                for played, answer in zip(call.matches, call.answers, strict=True):
                    _answer(answer, OutcomeUnknown.after(error, retry_with=played.id))
                return
            if not isinstance(reply, StaleStates):
                self._remember(ref, sheet)
                self._rolling.prepare(call.board, call.now)
                _answer_all(call, sheet, reply)
                return
            members = dict.fromkeys(part.member for played in call.matches for part in played.parts)
            known = KnownRatings(
                dict(zip(members, reply.states, strict=True)), list(map(bool, reply.repeated))
            )
        raise Unavailable(f"{ref}: other matches changed the players' ratings on every attempt; try again")

    def _checked(self, board: Board, taken: list[_Waiting]) -> _MatchCall:
        """The valid matches; fails the futures of the others."""
        board.require_writer(None)
        call = _MatchCall(board, self._clock(), secrets.token_urlsafe(16), [], [])
        index = 0
        for given, answer in taken:
            if answer.done():  # refused before, or its caller was cancelled
                continue
            try:
                call.matches.append(check_match(board, given, call.now, call.id, index))
            except InvalidInput as error:
                _answer(answer, error)
                continue
            call.answers.append(answer)
            index += len(given.players)
        return call

    def _known_states(self, call: _MatchCall) -> KnownRatings:
        """The last states that this process knows; b"" for others."""
        members = {part.member for played in call.matches for part in played.parts}
        states = {member: self._states.get((call.board.ref, member), b"") for member in members}
        return KnownRatings(states, [False] * len(call.matches))

    def _remember(self, ref: BoardRef, sheet: Sheet) -> None:
        if len(self._states) > MOST_REMEMBERED:
            self._states.clear()
        for member, state in sheet.changed.items():
            self._states[ref, member] = state

    async def _attempt(
        self, call: _MatchCall, known: KnownRatings, durability: Durability
    ) -> tuple[Sheet, list[PlayerRanks] | StaleStates]:
        board = call.board
        rating = board.definition.rating
        if rating is None:  # never for a valid match
            raise InvalidInput.at("players", "the board takes scores, not matches")
        sheet = Sheet.of(rating, call.matches, known)
        sent = SubmitCall(call.id, board, sheet.parts, call.now, report=True, durability=durability)
        metadata = self._catalog.has_metadata(board) or sent.has_metadata()
        payload = lay_out(sent, metadata=metadata)
        await self._catalog.register(board, 0, payload.targets, call.now)
        ratings = board.keys.of_board(0, "ratings")
        keys = [*payload.keys[:BOARD_KEYS], ratings, *payload.keys[BOARD_KEYS:]]
        entry = b""
        if board.definition.archive.journal:
            entry = match_entry(call.id, call.now, board.version, sheet.journal)
        rest: list[Value] = [entry, *payload.rest[1:]]
        for member in dict.fromkeys(part.member for part in sheet.parts):
            rest += (member, known.states.get(member, b""), sheet.changed.get(member, b""))
        given = [played.given.id or "" for played in call.matches]
        header = msgspec.structs.asdict(payload.header)
        header["ids"], header["calls"] = given, [_made_by(each) for each in given]
        asked = MatchHeader(
            **header,
            sizes=[len(played.parts) for played in call.matches],
            skip=sheet.skip,
            repeated=list(map(int, known.repeated)),
        )
        reply = await functions.match(self._valkey, keys, asked, rest)
        if durability != "fast" and not isinstance(reply, StaleStates):
            await self._sender.confirm([sent], durability)
        return sheet, reply


def _players_a_call(board: Board) -> int:
    """How many players fit one call, if each is in every group."""
    return cuts_a_call(board) // ((1 + len(board.definition.groups)) * COST_OF_ORDER)


def _made_by(given: str) -> str:
    made = MADE_ID.fullmatch(given)
    return made[1] if made else ""


def _answer_all(call: _MatchCall, sheet: Sheet, ranks: list[PlayerRanks]) -> None:
    told = iter(ranks)
    for played, answer, outcomes, is_repeated in zip(
        call.matches, call.answers, sheet.outcomes, sheet.known.repeated, strict=True
    ):
        players = [
            _rated_player(sheet, part, outcome, next(told))
            for part, outcome in zip(played.parts, outcomes, strict=True)
        ]
        _answer(answer, Matched(played.id, not is_repeated, players))


def _rated_player(
    sheet: Sheet, part: CheckedSubmission, outcome: RatingChange, ranks: PlayerRanks
) -> RatedPlayer:
    after = outcome.after
    return RatedPlayer(
        member=part.given.member,
        rating=whole(after.rating),
        previous_rating=whole(outcome.before.rating),
        change=whole(outcome.change),
        rank=ranks.rank + 1 or None,
        previous_rank=ranks.previous_rank + 1 or None,
        games=after.games,
        provisional=sheet.is_provisional(after),
        deviation=after.deviation or msgspec.UNSET,
    )


def _answer(waiting: asyncio.Future[Matched], outcome: Matched | Exception) -> None:
    if waiting.done():  # the caller was cancelled
        return
    if isinstance(outcome, Exception):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)
