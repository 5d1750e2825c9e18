"""How submissions are laid out for `laurels_submit`: which windows, which of them, in what order. Pure."""

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
    from laurels.scores.submission import Checked
    from laurels.valkey.client import Value
# The keys of a call before its windows.
BOARD_KEYS: Final = 2 + 2 * GENERATIONS


@dataclass(frozen=True, slots=True)
class Message:
    """One call: its keys, its header, and what follows it; and the windows that it writes."""

    keys: tuple[str, ...]
    header: SubmitHeader
    rest: list[Value]
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class Parcel:
    """Submissions that go to one shard of a board in one call, each with its place in that call."""

    board: Board
    shard: int
    call: str
    now: Moment
    parts: list[Checked]
    report: bool
    is_durable: bool = False
    """Whether it must be known later that the call ran."""
    feeds: tuple[Feed, ...] = ()
    """The boards that receive these submissions too."""
    feeder: int | None = None
    """The shard of the board that feeds this one, where that has a journal; None for a board's own calls."""

    def has_metadata(self) -> bool:
        return any(checked.metadata for checked in self.parts)


def lay_out(parcel: Parcel, *, metadata: bool) -> Message:
    """The call for a parcel. `metadata`: whether the board's entries may have some."""
    board = parcel.board
    count = len(parcel.parts)
    outline, first = _outline(parcel, metadata=metadata)
    definition = board.definition
    submissions, report = parcel.parts, parcel.report
    has_ids = any(checked.id for checked in submissions)
    has_ops = any(checked.op for checked in submissions)
    header = SubmitHeader(
        shape=board.shape(metadata=metadata),
        version=board.version,
        aggregate=definition.aggregate,
        count=count,
        fast=int(not (metadata or has_ops or not board.is_fast)),
        report=int(report),
        journal=1 if definition.archive.journal else 2,
        call=parcel.call,
        ids=[checked.id for checked in submissions] if has_ids else [],
        calls=_made_by(parcel) if has_ids else [],
        ops=[checked.op for checked in submissions] if has_ops else [],
        metadata=[checked.metadata for checked in submissions] if metadata else [],
        first=first if report or definition.limits.max_change else [],
        max_change=_max_change(board),
        targets=outline.headers,
        durable=int(parcel.is_durable),
        fed=int(parcel.feeder is not None),
    )
    keys = outline.keys
    if parcel.feeder is not None:
        fed = board.keys.of_board(parcel.shard, "fed")
        keys = *keys[:BOARD_KEYS], fed, *keys[BOARD_KEYS:]
    return Message(keys=keys, header=header, rest=_rest(parcel), targets=outline.targets)


@dataclass(frozen=True, slots=True)
class _Outline:
    """The windows that a call writes, by the numbers under which its header speaks of them."""

    windows: dict[WindowAddress, int]
    keys: tuple[str, ...]
    targets: tuple[Target, ...]
    headers: list[TargetHeader]


class _Whither(NamedTuple):
    """Where a call goes, and when: to the second, which is as exact as what expires."""

    board: Board
    shard: int
    second: int
    metadata: bool


def _outline(parcel: Parcel, *, metadata: bool) -> tuple[_Outline, list[int]]:
    """And for each submission, the number of the window that its answer speaks of; 0 for none."""
    parts = parcel.parts
    whither = _Whither(parcel.board, parcel.shard, parcel.now // SECOND, metadata)
    if parts and all(each.cuts is EVERYBODY for each in parts):
        targets = parcel.board.targets(parts[0].moment, parcel.now, WHOLE)
        if all(targets.holds(each.moment, parcel.now) for each in parts):
            outline = _outline_for_all(whither, targets)
            return outline, [outline.windows[targets.reported] if targets.reported else 0] * len(parts)
    chosen, reported = _choose(parcel)
    outline = _outlined(whither, chosen, len(parts))
    return outline, [outline.windows[address] if address else 0 for address in reported]


# Most calls of a second are alike in this, and it is most of the work.
@lru_cache(maxsize=1024)
def _outline_for_all(whither: _Whither, targets: Targets) -> _Outline:
    return _outlined(whither, _by_target({targets: []}), 0)


def _outlined(whither: _Whither, chosen: dict[Target, list[int]], count: int) -> _Outline:
    board, now = whither.board, whither.second * SECOND
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
    keys = *_board_keys(board, whither.shard), *_window_keys(whither, windows)
    return _Outline(windows, keys, tuple(chosen), headers)


def _choose(parcel: Parcel) -> tuple[dict[Target, list[int]], list[WindowAddress | None]]:
    """Which submissions touch which window, each window after those that it is computed from; and what each
    submission's answer speaks of.
    """
    together: dict[Targets, list[int]] = {}
    reported: list[WindowAddress | None] = []
    targets_of, now = parcel.board.targets, parcel.now
    moment, cuts, alike, own = None, (), list[list[int]](), None
    for number, checked in enumerate(parcel.parts, 1):
        if checked.moment != moment or checked.cuts is not cuts:
            moment, cuts = checked.moment, checked.cuts
            targets = [targets_of(moment, now, cut) for cut in cuts]
            alike = [together.setdefault(each, []) for each in targets]
            own = targets[0].reported  # the whole board is the first cut
        for numbers in alike:
            numbers.append(number)
        reported.append(own)
    return _by_target(together), reported


def _by_target(together: dict[Targets, list[int]]) -> dict[Target, list[int]]:
    """A sum stands once for each window that it follows: those of Monday move the week by Monday's change."""
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


def confirm_keys(parcels: Iterable[Parcel]) -> list[str]:
    """Where Valkey remembers that these ran; they are of one shard of a board."""
    keys: dict[str, None] = {}
    for parcel in parcels:
        keys[parcel.board.keys.of_board(parcel.shard, "board")] = None
        keys |= dict.fromkeys(parcel.board.keys.generations(parcel.shard, "calls"))
    return list(keys)


def _window_keys(whither: _Whither, windows: Iterable[WindowAddress]) -> Iterable[str]:
    board = whither.board
    for address in windows:
        yield from board.keys.parts(board.window_key(whither.shard, address), metadata=whither.metadata)


def _rest(parcel: Parcel) -> list[Value]:
    ordering, submissions = parcel.board.ordering, parcel.parts
    moments = b"".join(pack_int64(checked.moment) for checked in submissions) if ordering.timed else b""
    rest: list[Value] = [_journal_entry(parcel), moments]
    place = ordering.score_place
    for checked in submissions:
        rest.append(place(checked.score))
        rest.append(checked.member)
    return rest


def _journal_entry(parcel: Parcel) -> bytes:
    """None for a board without a journal."""
    board = parcel.board
    if not board.definition.archive.journal:
        return b""
    parts = [
        (each.index, each.id, each.member, each.score, each.moment, each.groups, each.op, each.metadata)
        for each in parcel.parts
    ]
    return submit_entry(parcel.call, parcel.now, board.version, parts, parcel.feeds)


def fed_call(call: str, shard: int) -> str:
    """What a call to one shard of a feeder is called on the boards that it feeds."""
    return f"{call}/{shard}"


def _made_by(parcel: Parcel) -> list[str]:
    """For each submission the call that made its id, as this board knows it; or ""."""
    made = [checked.made_by for checked in parcel.parts]
    feeder = parcel.feeder
    return made if feeder is None else [call and fed_call(call, feeder) for call in made]


def _max_change(board: Board) -> float | tuple[int, int]:
    limit = board.definition.limits.max_change
    if limit is None:
        return 0
    return divmod(int(limit), 2**32) if board.ordering.int64 else float(limit)
