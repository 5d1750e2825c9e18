"""How submissions are laid out for `laurels_submit`: which windows, which of them, in what order. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from laurels.boards.journal import submit_entry
from laurels.boards.ordering import pack_int64
from laurels.moments import DAY, SECOND
from laurels.valkey.messages import SubmitHeader, TargetHeader, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laurels.boards.board import Address, Board, Target, Touched
    from laurels.boards.submission import Checked
    from laurels.moments import Moment
    from laurels.valkey.client import Value

CALL_BUCKET: Final = 600 * SECOND


@dataclass(frozen=True, slots=True)
class Message:
    """One call: its keys, its header, and what follows it; and the windows that it writes."""

    keys: list[str]
    header: SubmitHeader
    rest: list[Value]
    targets: list[Target]


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

    def has_metadata(self) -> bool:
        return any(checked.metadata for checked in self.parts)


def lay_out(parcel: Parcel, *, metadata: bool) -> Message:
    """The call for a parcel. `metadata`: whether the board's entries may have some."""
    board = parcel.board
    chosen, reported = _choose(parcel)
    windows: dict[Address, int] = {}
    for target in chosen:
        windows.setdefault(target.address, len(windows) + 1)
    for target in chosen:
        for day in target.days:
            windows.setdefault(day, len(windows) + 1)
    count = len(parcel.parts)
    definition = board.definition
    submissions, report = parcel.parts, parcel.report
    needs_first = report or bool(definition.limits.max_change)
    has_ids = any(checked.id for checked in submissions)
    has_ops = any(checked.op for checked in submissions)
    header = SubmitHeader(
        shape=shape_of(board.ordering, dense=definition.dense, metadata=metadata),
        version=board.version,
        aggregate=definition.aggregate,
        count=count,
        fast=int(not (report or metadata or has_ops or not board.is_fast)),
        report=int(report),
        journal=1 if definition.archive.journal else 2,
        call=parcel.call,
        ids=[checked.id for checked in submissions] if has_ids else [],
        calls=[checked.made_by for checked in submissions] if has_ids else [],
        ops=[checked.op for checked in submissions] if has_ops else [],
        metadata=[checked.metadata for checked in submissions] if metadata else [],
        first=[windows[address] if address else 0 for address in reported] if needs_first else [],
        max_change=_max_change(board),
        targets=[
            TargetHeader(
                window=windows[target.address],
                chosen=0 if len(numbers) == count else sorted(numbers),
                seconds=target.seconds_to_live(parcel.now),
                how=target.pane.how,
                base=windows[target.base] if target.base else 0,
                days=[windows[day] for day in target.days],
                op=board.fold_op(target.pane),
            )
            for target, numbers in chosen.items()
        ],
        durable=int(parcel.is_durable),
    )
    return Message(
        keys=[*_board_keys(parcel), *_window_keys(parcel, windows, metadata=metadata)],
        header=header,
        rest=_rest(parcel),
        targets=list(chosen),
    )


def _choose(parcel: Parcel) -> tuple[dict[Target, list[int]], list[Address | None]]:
    """Which submissions touch which window, each window after those that it is computed from.

    A sum stands once for each window that it follows: those of Monday move the week by Monday's change.
    """
    together: dict[Touched, list[int]] = {}
    reported: list[Address | None] = []
    touch, now = parcel.board.touched, parcel.now
    moment, cuts, alike, own = None, (), list[list[int]](), None
    for number, checked in enumerate(parcel.parts, 1):
        if checked.moment != moment or checked.cuts is not cuts:
            moment, cuts = checked.moment, checked.cuts
            touched = [touch(moment, now, cut) for cut in cuts]
            alike = [together.setdefault(each, []) for each in touched]
            own = touched[0].reported  # the whole board is the first cut
        for numbers in alike:
            numbers.append(number)
        reported.append(own)
    firsts: dict[tuple[Address, Address | None], Target] = {}
    chosen: dict[Target, list[int]] = {}
    for touched, numbers in together.items():
        for target in touched.targets:
            first = firsts.setdefault((target.address, target.base), target)
            chosen.setdefault(first, []).extend(numbers)
    return dict(sorted(chosen.items(), key=lambda each: each[0].pane.how != "direct")), reported


def _board_keys(parcel: Parcel) -> Iterable[str]:
    day, bucket = parcel.now // DAY, parcel.now // CALL_BUCKET
    names = ("board", "journal", f"ids:{day}", f"ids:{day - 1}", f"calls:{bucket}", f"calls:{bucket - 1}")
    return (parcel.board.keys.of_board(parcel.shard, name) for name in names)


def confirm_keys(parcels: Iterable[Parcel]) -> list[str]:
    """Where Valkey remembers that these ran; they are of one shard of a board."""
    keys: dict[str, None] = {}
    for parcel in parcels:
        keys[parcel.board.keys.of_board(parcel.shard, "board")] = None
        keys[parcel.board.keys.of_board(parcel.shard, f"calls:{parcel.now // CALL_BUCKET}")] = None
    return list(keys)


def _window_keys(parcel: Parcel, windows: Iterable[Address], *, metadata: bool) -> Iterable[str]:
    board = parcel.board
    for address in windows:
        yield from board.keys.parts(board.window_key(parcel.shard, address), metadata=metadata)


def _rest(parcel: Parcel) -> list[Value]:
    ordering, submissions = parcel.board.ordering, parcel.parts
    moments = b"".join(pack_int64(checked.moment) for checked in submissions) if ordering.timed else b""
    rest: list[Value] = [submit_entry(parcel), moments]
    place = ordering.score_place
    for checked in submissions:
        rest.append(place(checked.score))
        rest.append(checked.member)
    return rest


def _max_change(board: Board) -> float | tuple[int, int]:
    limit = board.definition.limits.max_change
    if limit is None:
        return 0
    return divmod(int(limit), 2**32) if board.ordering.int64 else float(limit)
