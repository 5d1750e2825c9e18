"""Replays journal rows on a shadow board, by calls of `laurels_submit` and the other functions of the hot
path.

So no rule of scoring is repeated here. Time passes as the rows say: a window is deleted when the replay comes
to the moment at which the live board deleted it. So the shadow board never holds much more than the live one
does.
"""

from __future__ import annotations

import asyncio
import heapq
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final

import msgspec

from laurels.boards.board import Target, WindowAddress
from laurels.boards.keys import WHOLE, Cut
from laurels.boards.retention import PARTS, WINDOWS_A_CALL, target_at
from laurels.journal.entry import ERASE, MATCH, METADATA, PLACE, REMOVE, SUBMIT
from laurels.journal.member_fold import goes_on_without
from laurels.moments import DAY, MILLISECOND, SECOND
from laurels.scores.payload import SubmitCall, lay_out
from laurels.scores.rolling import fold_days
from laurels.scores.submission import EVERYBODY, MADE_ID, CheckedSubmission, Submission, cuts_of
from laurels.scores.submit import cuts_a_call
from laurels.valkey import functions, hashes, keyspace, sets
from laurels.valkey.chunked_delete import ChunkedDelete
from laurels.valkey.messages import MetadataHeader, PlaceHeader, RemoveHeader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from laurels.boards.board import Board
    from laurels.journal.entry import JournalRow
    from laurels.journal.shadow_board import ShadowBoard
    from laurels.moments import Moment
    from laurels.valkey.client import Valkey, Value
    from laurels.valkey.command import Command
    from laurels.valkey.messages import Shape

# The keys of a shadow board expire after this many seconds, unless the replay prolongs their life, this
# often.
LIFE_SECONDS: Final = 3600
PROLONG_SECONDS: Final = 600.0
# How old ids and calls may be for the live board to remember them, and for how many seconds it does.
IDS_KEPT: Final = 2 * DAY
CALLS_KEPT: Final = 1200 * SECOND
MEMORY_SECONDS: Final = 2 * DAY // SECOND
# Calls are compared within twice this.
CALL_BUCKET: Final = 600 * SECOND
_NOTHING: Final = Submission("", 0)


@dataclass(slots=True)
class _SubmitGroup:
    """Submissions for one call. Their moments are so close that they write the same windows."""

    now: Moment
    recorded: Moment
    """By Valkey's clock."""
    cost: int = 0
    parts: list[CheckedSubmission] = field(default_factory=list[CheckedSubmission])
    calls: set[str] = field(default_factory=set[str])
    states: dict[bytes, str] = field(default_factory=dict[bytes, str])
    """The players' rating states after their matches."""
    matches: set[str] = field(default_factory=set[str])
    """The ids that clients gave to matches."""


class Replay:
    """Replays the rows of one shard, in order."""

    def __init__(
        self, valkey: Valkey, live: Board, made: ShadowBoard, shard: int, *, remembers: bool
    ) -> None:
        """`remembers`: whether the live board is given the ids and calls back."""
        self._valkey = valkey
        self._large_keys = ChunkedDelete(valkey)
        self._live = live
        self._made = made
        self._shard = shard
        self._now = made.now
        self._remembers = remembers
        self.written: dict[WindowAddress, Target] = {}
        """The windows of the shadow board."""
        self.complete: set[WindowAddress] = set()
        """The rolling windows that are computed from all their days."""
        self.has_metadata = False
        self.doubled = 0
        """Rows under an id that an earlier row had: Valkey had forgotten it."""
        self.refused = 0
        self._room = cuts_a_call(made)
        self._together: _SubmitGroup | None = None
        self._placing: dict[bytes, JournalRow] = {}
        self._describing: list[JournalRow] = []
        """The rows of one metadata call."""
        self._cuts: dict[tuple[tuple[str, str], ...], tuple[Cut, ...]] = {}
        self._latest: Moment = 0
        self._ends: list[tuple[Moment, int, WindowAddress]] = []
        self._numbers = count()
        self._ran: dict[int, set[str]] = {}
        self._prolonged = asyncio.get_running_loop().time()

    async def begin(self) -> None:
        key = self._key("board")
        await functions.adopt(self._valkey, (key,), self._made.version)
        await self._valkey.run(keyspace.expire(key, LIFE_SECONDS))

    async def apply(self, rows: Iterable[JournalRow]) -> None:
        for row in rows:
            if row.kind in {SUBMIT, MATCH}:
                await self._flush_placed()
                await self._flush_described()
                await self._submit(row)
            elif row.kind == PLACE:
                await self._flush_submitted()
                await self._flush_described()
                await self._place(row)
            elif row.kind == METADATA:
                await self._flush_submitted()
                await self._flush_placed()
                await self._describe(row)
            elif row.kind in {REMOVE, ERASE}:
                await self.flush()
                await self._advance_clock(row.now)
                await self._remove(row)

    async def finish(self) -> None:
        """Applies the rows that wait, and completes rolling windows up to tomorrow's."""
        await self.flush()
        await self._advance_clock(self._now)
        for address, target in list(self.written.items()):
            if target.zoned.how == "direct":
                await self._complete(address, target)
            elif target.zoned.how == "fold" and self._is_without_days(target):
                self.complete.add(address)

    async def flush(self) -> None:
        await self._flush_submitted()
        await self._flush_placed()
        await self._flush_described()

    async def _flush_submitted(self) -> None:
        together, self._together = self._together, None
        if together is None:
            return
        await self._advance_clock(together.now)
        ids = {*together.matches, *(part.id for part in together.parts if part.id)}
        await self._remember(together.now, ids, together.calls)
        await self._rate(together)
        call = SubmitCall("~", self._made, together.parts, together.now, self._shard)
        payload = lay_out(call, metadata=self.has_metadata)
        if not payload.targets:
            return
        header = payload.header
        header.journal = 0
        header.replayed = together.recorded // SECOND
        for target in header.targets:
            target.seconds = LIFE_SECONDS
        reply = await functions.submit(self._valkey, payload.keys, header, payload.rest)
        for why in reply.refused.values():
            self.doubled += why == "duplicate"
            self.refused += why != "duplicate"
        for target in payload.targets:
            self._track(target)

    async def abandon(self) -> None:
        """Deletes the shadow board."""
        for address in list(self.written):
            await self._unlink(address)
        await self._large_keys.discard(*self._of_board())

    def keys_of(self, board: Board, address: WindowAddress) -> list[str]:
        key = board.window_key(self._shard, address)
        return [f"{key}{part}" for part in PARTS]

    async def _submit(self, row: JournalRow) -> None:
        if row.kind == SUBMIT and self._has_run(row):
            self.doubled += 1
            return
        cuts = self._cuts_of(row.groups)
        if self._together and not self._fits(self._together, row, cuts):
            await self.flush()
        together = self._together = self._together or _SubmitGroup(row.now, _recorded(row))
        self.has_metadata = self.has_metadata or bool(row.metadata)
        if row.kind == MATCH:
            row = _of_match(row, together)
        if row.score is not None:
            together.parts.append(
                CheckedSubmission(
                    given=_NOTHING,
                    index=len(together.parts),
                    member=row.member,
                    score=int(row.score) if self._made.ordering.int64 else float(row.score),
                    moment=row.at,
                    groups=None,
                    cuts=cuts,
                    id=row.given_id,
                    op=row.op,
                    metadata=row.metadata,
                )
            )
        together.calls.add(row.call)
        bucket = _recorded(row) // CALL_BUCKET
        if bucket not in self._ran:
            self._ran = {each: calls for each, calls in self._ran.items() if each >= bucket - 1}
        self._ran.setdefault(bucket, set()).add(row.call)
        together.cost += len(cuts)
        if together.cost >= self._room:
            await self.flush()

    async def _rate(self, together: _SubmitGroup) -> None:
        if together.states:
            key = self._key("ratings")
            await self._valkey.run_all([hashes.put(key, together.states), keyspace.expire(key, LIFE_SECONDS)])

    def _has_run(self, row: JournalRow) -> bool:
        """Whether the row repeats one of an earlier call that Valkey remembered at that time."""
        made = MADE_ID.fullmatch(row.given_id)
        bucket = _recorded(row) // CALL_BUCKET
        return (
            made is not None
            and row.given_id != row.made_id
            and any(made[1] in self._ran.get(each, ()) for each in (bucket, bucket - 1))
        )

    def _fits(self, together: _SubmitGroup, row: JournalRow, cuts: tuple[Cut, ...]) -> bool:
        if row.now == together.now:
            return True
        if _recorded(row) // CALL_BUCKET != together.recorded // CALL_BUCKET:
            return False
        targets = self._made.targets
        return all(targets(row.at, together.now, cut).holds(row.at, row.now) for cut in cuts)

    def _cuts_of(self, groups: dict[str, str] | None) -> tuple[Cut, ...]:
        if not groups:
            return EVERYBODY
        named = tuple(groups.items())
        if named not in self._cuts:
            if len(self._cuts) > 100_000:
                self._cuts.clear()
            self._cuts[named] = (WHOLE, *cuts_of(self._made, groups))
        return self._cuts[named]

    async def _remember(self, now: Moment, ids: Collection[str], calls: Collection[str] = ()) -> None:
        """Gives the live board the ids and calls back that it would know today."""
        if not self._remembers or now < self._now - IDS_KEPT:
            return
        keys = self._live.keys
        named = {"ids": ids, "calls": calls if now >= self._now - CALLS_KEPT else ()}
        states = await self._valkey.run(hashes.get_many(keys.of_board(self._shard, "board"), named))
        commands: list[Command[int]] = []
        for (name, values), state in zip(named.items(), states, strict=True):
            if values:
                key = keys.generations(self._shard, name)[int(state.split()[0]) if state else 0]
                commands += [sets.add(key, values), keyspace.expire(key, MEMORY_SECONDS, if_persistent=True)]
        await self._valkey.run_all(commands)

    async def _remove(self, row: JournalRow) -> None:
        """Takes the member out of every window; an erased member stays where it was renamed."""
        header = RemoveHeader(self._shape(), self._made.version, journal=0, rated=int(self._made.is_rated))
        windows = [
            address
            for address, target in self.written.items()
            if row.kind == REMOVE or goes_on_without(self._made, target.zoned, target.slot, row.now)
        ]
        for first in range(0, max(len(windows), header.rated), WINDOWS_A_CALL):
            keys = [self._key("board"), self._key("journal")]
            if header.rated:
                keys.append(self._key("ratings"))
            for address in windows[first : first + WINDOWS_A_CALL]:
                keys += self._parts(address)
            await functions.remove(self._valkey, keys, header, (b"", row.member))

    async def _place(self, row: JournalRow) -> None:
        placing = self._placing
        if placing:
            first = next(iter(placing.values()))
            is_alike = (row.op, row.groups, row.now) == (first.op, first.groups, first.now)
            if not is_alike or row.member in placing or len(placing) >= self._room:
                await self._flush_placed()
        self._placing[row.member] = row

    async def _flush_placed(self) -> None:
        rows, self._placing = list(self._placing.values()), {}
        target = placed(self._made, rows[0].op, rows[0].groups) if rows else None
        if target is None or not self._made.is_wanted(target.zoned, target.slot):
            return
        await self._advance_clock(rows[0].now)
        self.has_metadata = True
        ordering = self._made.ordering
        header = PlaceHeader(
            self._shape(), self._made.version, 0, LIFE_SECONDS, [row.metadata for row in rows]
        )
        rest: list[Value] = [b""]
        for row in rows:
            score = int(row.score or 0) if ordering.int64 else float(row.score or 0)
            rest += (ordering.place(score, row.at), row.member)
        keys = (self._key("board"), self._key("journal"), *self._parts(target.address))
        await functions.place(self._valkey, keys, header, rest)
        self._track(target)

    async def _describe(self, row: JournalRow) -> None:
        if self._describing and row.call != self._describing[0].call:
            await self._flush_described()
        self._describing.append(row)

    async def _flush_described(self) -> None:
        rows, self._describing = self._describing, []
        if not rows:
            return
        first = rows[0]
        await self._advance_clock(first.now)
        targets = [placed(self._made, row.op, row.groups) for row in rows]
        addresses = [each.address for each in targets if each and each.address in self.written]
        self.has_metadata = self.has_metadata or bool(first.metadata)
        header = MetadataHeader(
            shape=self._shape(),
            version=self._made.version,
            journal=0,
            id=first.given_id,
            remember=int(bool(first.given_id)),
            metadata=first.metadata,
            seconds=[LIFE_SECONDS] * len(addresses),
            replayed=_recorded(first) // SECOND,
        )
        keys = [self._key("board"), self._key("journal")]
        keys += self._made.keys.generations(self._shard, "ids")
        for address in addresses:
            keys += self._parts(address)
        if await functions.set_metadata(self._valkey, keys, header, (b"", first.member)) is None:
            self.doubled += len(rows)
        if first.given_id:
            await self._remember(first.now, {first.given_id})

    def _track(self, target: Target) -> None:
        if target.address in self.written:
            return
        self.written[target.address] = target
        until = target.zoned.held_until(target.slot)
        if until is not None:
            heapq.heappush(self._ends, (until, next(self._numbers), target.address))

    async def _advance_clock(self, now: Moment) -> None:
        """Deletes the windows that were over by then, once the rolling windows of their days are complete."""
        self._latest = max(self._latest, now)
        while self._ends and self._ends[0][0] <= self._latest:
            *_, address = heapq.heappop(self._ends)
            target = self.written.get(address)
            if target:
                await self._complete(address, target)
                await self._unlink(address)
        await self._prolong()

    async def _complete(self, day: WindowAddress, target: Target) -> None:
        """Computes the rolling windows of a day, up to tomorrow's."""
        for zoned, slot in self._made.made_of(target.zoned, target.slot):
            address = WindowAddress(zoned.label, slot.text, day.cut)
            tomorrow = zoned.calendar.following(zoned.calendar.at(self._now))
            has_begun = tomorrow is None or (slot.starts or 0) <= (tomorrow.starts or 0)
            if address not in self.complete and has_begun and self._made.is_kept(zoned, slot):
                rolling = Target(address, slot, zoned)
                await fold_days(self._valkey, self._made, self._shard, rolling, LIFE_SECONDS)
                self._track(rolling)
                self.complete.add(address)

    def _is_without_days(self, target: Target) -> bool:
        """Whether a day of the rolling window is deleted, so that placed entries stay as they are."""
        days, zoned = target.zoned.base, target.zoned
        if days is None:
            return False
        oldest = days.held_until(days.calendar.parse(zoned.calendar.days(target.slot)[0]))
        return oldest is not None and self._now >= oldest

    async def _unlink(self, address: WindowAddress) -> None:
        await self._large_keys.discard(*self.keys_of(self._made, address))
        del self.written[address]

    async def _prolong(self) -> None:
        if asyncio.get_running_loop().time() < self._prolonged + PROLONG_SECONDS:
            return
        self._prolonged = asyncio.get_running_loop().time()
        keys = [key for address in self.written for key in self.keys_of(self._made, address)]
        keys += self._of_board()
        await self._valkey.run_all(keyspace.expire(key, LIFE_SECONDS) for key in keys)

    def _parts(self, address: WindowAddress) -> tuple[str, ...]:
        return self._made.keys.parts(self._made.window_key(self._shard, address), metadata=True)

    def _shape(self) -> Shape:
        return self._made.shape(metadata=True)

    def _of_board(self) -> list[str]:
        keys, shard = self._made.keys, self._shard
        memory = (*keys.generations(shard, "ids"), *keys.generations(shard, "calls"))
        return [self._key("board"), self._key("ratings"), *memory]

    def _key(self, name: str) -> str:
        return self._made.keys.of_board(self._shard, name)


def _recorded(row: JournalRow) -> Moment:
    return row.stream_id.milliseconds * MILLISECOND


def placed(board: Board, token: str, groups: dict[str, str] | None) -> Target | None:
    """The ranked list that an entry was placed in; None if the board no longer has it."""
    cut = Cut(tuple(groups), tuple(groups.values())) if groups else WHOLE
    label, _, text = token.partition("|")
    return target_at(board, WindowAddress(label, text, cut))


def _of_match(row: JournalRow, together: _SubmitGroup) -> JournalRow:
    """The submission of a rating, without the id, which all players of the match share; records the state."""
    together.states[row.member] = row.op
    if not row.id.startswith(f"~{row.call}."):
        together.matches.add(row.id)
    return msgspec.structs.replace(row, given_id="", op="")
