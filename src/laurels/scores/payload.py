"""Builds the calls of `laurels_submit`: their keys, and which submissions go into which windows. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from laurels.boards.keys import GENERATIONS, WHOLE
from laurels.boards.ordering import pack_int64
from laurels.journal.entry import submit_entry
from laurels.moments import SECOND
from laurels.scores.submission import EVERYBODY
from laurels.valkey.messages import SubmitHeader, TargetHeader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laurels.boards.board import Board, Target, Targets, WindowAddress
    from laurels.journal.entry import Feed
    from laurels.moments import Moment
    from laurels.scores.submission import CheckedSubmission
    from laurels.valkey.client import Value
    from laurels.valkey.messages import Durability

# How many keys come before the keys of the windows.
BOARD_KEYS: Final = 2 + 2 * GENERATIONS


@dataclass(frozen=True, slots=True)
class Payload:
    """The keys and arguments of one call, and the windows that it writes."""

    keys: tuple[str, ...]
    header: SubmitHeader
    rest: list[Value]
    targets: tuple[Target, ...]


@dataclass(slots=True)
class SubmitCall:
    """Submissions to one board under one id, each with its place in the call; or those for one shard."""

    id: str
    board: Board
    parts: list[CheckedSubmission]
    now: Moment = 0
    shard: int = 0
    report: bool = False
    durability: Durability = "fast"
    is_confirmed_later: bool = False
    """Whether the caller waits for the durability later, by `confirm`, for several calls at once."""
    feeds: tuple[Feed, ...] = ()
    """The boards that these submissions feed."""
    feeder: int | None = None
    """For a fed board: the shard of its feeder, if the feeder has a journal."""

    def has_metadata(self) -> bool:
        return any(checked.metadata for checked in self.parts)

    def made_id(self, checked: CheckedSubmission) -> str:
        """The id for a retry of this submission."""
        return checked.id or f"~{self.id}.{checked.index}"


def lay_out(call: SubmitCall, *, metadata: bool) -> Payload:
    """The payload of a call. `metadata`: whether the board's entries may have metadata."""
    board = call.board
    count = len(call.parts)
    outline, first = _outline(call, metadata=metadata)
    definition = board.definition
    submissions, report = call.parts, call.report
    has_ids = any(checked.id for checked in submissions)
    has_ops = any(checked.op for checked in submissions)
    has_keys = any(checked.fingerprint for checked in submissions)
    header = SubmitHeader(
        shape=board.shape(metadata=metadata),
        version=board.version,
        aggregate=definition.aggregate,
        count=count,
        fast=int(not (metadata or has_ops or not board.is_fast)),
        report=int(report),
        journal=1 if definition.archive.journal else 2,
        call=call.id,
        ids=[checked.id for checked in submissions] if has_ids else [],
        calls=_made_by(call) if has_ids else [],
        ops=[checked.op for checked in submissions] if has_ops else [],
        metadata=[checked.metadata for checked in submissions] if metadata else [],
        first=first if report or definition.limits.max_change else [],
        max_change=_max_change(board),
        targets=outline.headers,
        durable=int(call.durability != "fast"),
        fed=int(call.feeder is not None),
        fingerprints=[checked.fingerprint for checked in submissions] if has_keys else [],
    )
    keys = outline.keys
    if call.feeder is not None:
        fed = board.keys.of_board(call.shard, "fed")
        keys = *keys[:BOARD_KEYS], fed, *keys[BOARD_KEYS:]
    if has_keys:
        keys = *keys[:BOARD_KEYS], *board.keys.generations(call.shard, "once"), *keys[BOARD_KEYS:]
    return Payload(keys=keys, header=header, rest=_rest(call), targets=outline.targets)


@dataclass(frozen=True, slots=True)
class _Outline:
    """The windows that a call writes, with their numbers in its header."""

    windows: dict[WindowAddress, int]
    keys: tuple[str, ...]
    targets: tuple[Target, ...]
    headers: list[TargetHeader]


class _Destination(NamedTuple):
    """Where a call goes, and when: in whole seconds, the precision of expiry."""

    board: Board
    shard: int
    second: int
    metadata: bool


def _outline(call: SubmitCall, *, metadata: bool) -> tuple[_Outline, list[int]]:
    """The windows of a call; and for each submission, the number of the window to report, 0 for none."""
    parts = call.parts
    destination = _Destination(call.board, call.shard, call.now // SECOND, metadata)
    if parts and all(each.cuts is EVERYBODY for each in parts):
        targets = call.board.targets(parts[0].moment, call.now, WHOLE)
        if all(targets.holds(each.moment, call.now) for each in parts):
            outline = _outline_for_all(destination, targets)
            return outline, [outline.windows[targets.reported] if targets.reported else 0] * len(parts)
    chosen, reported = _choose(call)
    outline = _outlined(destination, chosen, len(parts))
    return outline, [outline.windows[address] if address else 0 for address in reported]


# Most calls within a second have the same outline, and it is most of the work.
@lru_cache(maxsize=1024)
def _outline_for_all(destination: _Destination, targets: Targets) -> _Outline:
    return _outlined(destination, _by_target({targets: []}), 0)


def _outlined(destination: _Destination, chosen: dict[Target, list[int]], count: int) -> _Outline:
    board, now = destination.board, destination.second * SECOND
    windows: dict[WindowAddress, int] = {}
    for target in chosen:
        windows.setdefault(target.address, len(windows) + 1)
    for target in chosen:
        for day in target.days:
            windows.setdefault(day, len(windows) + 1)
    headers = [
        TargetHeader(
            window=windows[target.address],
            chosen=0 if len(numbers) == count else sorted(numbers),
            seconds=target.seconds_to_live(now),
            how=target.zoned.how,
            base=windows[target.base] if target.base else 0,
            days=[windows[day] for day in target.days],
            op=board.fold_op(target.zoned),
        )
        for target, numbers in chosen.items()
    ]
    keys = list(_board_keys(board, destination.shard))
    for address in windows:
        keys += board.keys.parts(board.window_key(destination.shard, address), metadata=destination.metadata)
    return _Outline(windows, tuple(keys), tuple(chosen), headers)


def _choose(call: SubmitCall) -> tuple[dict[Target, list[int]], list[WindowAddress | None]]:
    """Which submissions touch which window, with computed windows after those that they follow; and for each
    submission the window to report.
    """
    together: dict[Targets, list[int]] = {}
    reported: list[WindowAddress | None] = []
    targets_of, now = call.board.targets, call.now
    moment, cuts, same_targets, own = None, (), list[list[int]](), None
    for number, checked in enumerate(call.parts, 1):
        if checked.moment != moment or checked.cuts is not cuts:
            moment, cuts = checked.moment, checked.cuts
            targets = [targets_of(moment, now, cut) for cut in cuts]
            same_targets = [together.setdefault(each, []) for each in targets]
            own = targets[0].reported  # the whole board is the first cut
        for numbers in same_targets:
            numbers.append(number)
        reported.append(own)
    return _by_target(together), reported


def _by_target(together: dict[Targets, list[int]]) -> dict[Target, list[int]]:
    """The submissions by target. A sum comes once for each window that it follows: Monday's submissions
    move the week by Monday's change.
    """
    firsts: dict[tuple[WindowAddress, WindowAddress | None], Target] = {}
    chosen: dict[Target, list[int]] = {}
    for targets, numbers in together.items():
        for target in targets.windows:
            first = firsts.setdefault((target.address, target.base), target)
            chosen.setdefault(first, []).extend(numbers)
    return dict(sorted(chosen.items(), key=lambda each: each[0].zoned.how != "direct"))


def _board_keys(board: Board, shard: int) -> Iterable[str]:
    keys = board.keys
    own = keys.of_board(shard, "board"), keys.of_board(shard, "journal")
    return *own, *keys.generations(shard, "ids"), *keys.generations(shard, "calls")


def confirm_keys(calls: Iterable[SubmitCall]) -> list[str]:
    """The keys where Valkey remembers these calls, which are of one shard of a board."""
    keys: dict[str, None] = {}
    for call in calls:
        keys[call.board.keys.of_board(call.shard, "board")] = None
        keys |= dict.fromkeys(call.board.keys.generations(call.shard, "calls"))
    return list(keys)


def _rest(call: SubmitCall) -> list[Value]:
    ordering, submissions = call.board.ordering, call.parts
    moments = b"".join(pack_int64(checked.moment) for checked in submissions) if ordering.timed else b""
    rest: list[Value] = [_journal_entry(call), moments]
    place = ordering.score_place
    for checked in submissions:
        rest.append(place(checked.score))
        rest.append(checked.member)
    return rest


def _journal_entry(call: SubmitCall) -> bytes:
    """The entry for the journal; empty for a board without one."""
    board = call.board
    if not board.definition.archive.journal:
        return b""
    parts = [
        (each.index, each.id, each.member, each.score, each.moment, each.groups, each.op, each.metadata)
        for each in call.parts
    ]
    return submit_entry(call.id, call.now, board.version, parts, call.feeds)


def fed_call(call: str, shard: int) -> str:
    """The name, on fed boards, of a call to one shard of their feeder."""
    return f"{call}/{shard}"


def _made_by(call: SubmitCall) -> list[str]:
    """For each submission, the name on this board of the call that made its id, or ""."""
    made = [checked.made_by for checked in call.parts]
    feeder = call.feeder
    return made if feeder is None else [maker and fed_call(maker, feeder) for maker in made]


def _max_change(board: Board) -> float | tuple[int, int]:
    limit = board.definition.limits.max_change
    if limit is None:
        return 0
    return divmod(int(limit), 2**32) if board.ordering.int64 else float(limit)
