"""Takes snapshots: scans windows a few hundred entries at a time, and copies the entries to PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from laurels.boards.board import WindowAddress
from laurels.boards.keys import BoardRef, parse_cut
from laurels.errors import InvalidInput, LaurelsError, NotFound
from laurels.history.snapshot_policy import due_moment, is_due, is_wanted, policies
from laurels.history.store.snapshots import RankOrder, SnapshotFrame, SnapshotIdentity, SnapshotRow
from laurels.logs import get_logger
from laurels.moments import datetime_of, moment_of
from laurels.postgres.tables import WITH_SNAPSHOTS
from laurels.scores.shards import ShardedWindow
from laurels.valkey.functions import DefinitionChanged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from laurels.boards.board import Board, ZonedWindow
    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import Cut
    from laurels.boards.retention import Retention
    from laurels.boards.store import BoardStore
    from laurels.boards.windows import Slot
    from laurels.clock import Clock
    from laurels.history.snapshot_policy import SnapshotPolicy
    from laurels.history.store.snapshots import SnapshotStore
    from laurels.moments import Moment
    from laurels.scores.rolling import Rolling
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import EntryReply

# Up to this many top entries are read in one call, at one moment; more are taken from a scan of the window.
TOP_IN_ONE_CALL: Final = 1000

log = get_logger("laurels.history")


async def _no_progress(_: str) -> None:
    pass


@dataclass
class SnapshotRound:
    """The result of a round of snapshots."""

    snapshots: int = 0
    entries: int = 0
    missed: int = 0

    def __str__(self) -> str:
        missed = f", {self.missed} missed" if self.missed else ""
        return f"{self.snapshots} snapshots of {self.entries} entries{missed}"


@dataclass(frozen=True)
class _DueSnapshot:
    policy: SnapshotPolicy
    zoned: ZonedWindow
    slot: Slot
    cut: Cut
    moment: Moment


@dataclass(frozen=True)
class SnapshotTaker:
    """Takes the snapshots that boards ask for."""

    valkey: Valkey
    catalog: Catalog
    boards: BoardStore
    store: SnapshotStore
    retention: Retention
    rolling: Rolling
    clock: Clock

    async def take_due(
        self, previous: Moment | None, tell: Callable[[str], Awaitable[None]] = _no_progress
    ) -> SnapshotRound:
        """Takes all snapshots of all boards that are due since `previous`.

        An error of one board does not stop the others; it is raised at the end.
        """
        taken, failures = SnapshotRound(), list[str]()
        for digest, example in (await self.boards.definitions(WITH_SNAPSHOTS)).items():
            board, now = self.catalog.compile(example), self.clock()
            if not any(is_due(board, policy, previous, now) for policy in policies(board)):
                continue
            for stored in await self.boards.matching(WITH_SNAPSHOTS, digest):
                ref = BoardRef(stored.project, stored.board)
                try:
                    await self.take_of(ref, stored.id, previous, taken)
                    await tell(f"{ref}: {taken}")
                except NotFound:
                    continue  # dropped meanwhile
                except LaurelsError as error:
                    log.warning(
                        "snapshot failed; the next run retries it", board=str(ref), error=error.detail
                    )
                    failures.append(f"{ref}: {error.detail}")
        if failures:
            raise LaurelsError(f"{len(failures)} boards failed; the first: {failures[0]}")
        return taken

    async def take_of(
        self, ref: BoardRef, board_id: int, previous: Moment | None = None, taken: SnapshotRound | None = None
    ) -> None:
        """Takes the snapshots of one board that are due."""
        taken = taken or SnapshotRound()
        while True:
            board = await self.catalog.in_force(ref)
            try:
                for policy in policies(board):
                    await self._follow(board, board_id, policy, previous, taken)
            except DefinitionChanged as changed:
                await self.catalog.refresh(ref, changed.known)
            else:
                return

    async def _follow(
        self,
        board: Board,
        board_id: int,
        policy: SnapshotPolicy,
        previous: Moment | None,
        taken: SnapshotRound,
    ) -> None:
        now = self.clock()
        known = await self.store.taken(board_id, policy.period)
        async for wanted in self._wanted(board, policy, previous, now):
            slot, moment = wanted.slot, wanted.moment
            before = known.get((slot.text, str(wanted.cut), datetime_of(moment)))
            taken_at = None if before is None else moment_of(before)
            if not is_wanted(board, slot, taken_at, now):
                continue
            until = wanted.zoned.held_until(slot)
            if until is not None and now >= until:
                if before is None:
                    taken.missed += 1
                    log.warning(
                        "window expired before its snapshot was taken", board=str(board.ref), slot=slot.text
                    )
                continue
            taken.entries += await self._take(board, board_id, wanted, now)
            taken.snapshots += 1

    async def _wanted(
        self, board: Board, policy: SnapshotPolicy, previous: Moment | None, now: Moment
    ) -> AsyncIterator[_DueSnapshot]:
        """The due snapshots of written windows, whole and by group, oldest first."""
        slots: dict[str, set[str]] = {}
        for shard in range(board.keys.shards):
            for label, text in await self.retention.written(board, shard):
                if label == policy.period:
                    cuts = slots.setdefault(text, set())
                    cuts.update(await self.retention.cuts(board, shard, label, text))
        found: list[_DueSnapshot] = []
        for text, names in slots.items():
            for name in ("", *sorted(names)):
                try:
                    cut = parse_cut(name, board.definition)
                    zoned = board.zoned_window(policy.period, cut)
                    slot = zoned.calendar.parse(text)
                except (
                    InvalidInput
                ):  # of an earlier definition, or an hour that only another zone's clock shows
                    continue
                moment = due_moment(policy, zoned, slot, previous, now)
                if moment is not None:
                    found.append(_DueSnapshot(policy, zoned, slot, cut, moment))
        for wanted in sorted(found, key=lambda each: each.moment):
            yield wanted

    async def _take(self, board: Board, board_id: int, wanted: _DueSnapshot, now: Moment) -> int:
        """Takes one snapshot, and returns how many entries it has."""
        policy, zoned, slot, cut = wanted.policy, wanted.zoned, wanted.slot, wanted.cut
        if zoned.how == "fold":
            await self.rolling.ensure(board, zoned, slot)
        window = ShardedWindow(self.valkey, board, WindowAddress(zoned.label, slot.text, cut))
        identity = SnapshotIdentity(board_id, zoned.label, slot.text, str(cut), datetime_of(wanted.moment))
        frame = SnapshotFrame(datetime_of(now), slot.starts_at, slot.ends_at, policy.top)
        total, rows = None, _rows(board, window.scan())
        if policy.top is not None and policy.top <= TOP_IN_ONE_CALL:
            reply = await window.from_start(0, policy.top)
            total, rows = reply.total, _rows(board, _once(reply.entries))
        made = await self.store.put(identity, frame, order_of(board), rows, total)
        return made.entries


def order_of(board: Board) -> RankOrder:
    return RankOrder(board.ordering.descending, board.ordering.ties)


async def _rows(
    board: Board, listed: AsyncIterator[list[EntryReply]]
) -> AsyncIterator[Sequence[SnapshotRow]]:
    parse = board.ordering.parse_place
    async for some in listed:
        yield [SnapshotRow(each.member, *parse(each.place), each.metadata.decode()) for each in some]


async def _once(listed: list[EntryReply]) -> AsyncIterator[list[EntryReply]]:
    yield listed
