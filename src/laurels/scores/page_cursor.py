"""Cursors: where a page ended, bound to its board, window and definition. Pure."""

from __future__ import annotations

import base64
import math
import struct
from typing import TYPE_CHECKING, Literal

import msgspec

from laurels.arguments import Start  # noqa: TC001  # msgspec reads the annotations
from laurels.boards.keys import parse_cut
from laurels.boards.ordering import Position
from laurels.errors import InvalidInput, StaleCursor

if TYPE_CHECKING:
    from laurels.boards.board import Board, WindowAddress

Direction = Literal["after", "before"]


class _PageCursor(msgspec.Struct, array_like=True, frozen=True):
    board: str
    version: int
    label: str
    slot: str
    cut: str
    start: Start
    direction: Direction
    place: bytes
    member: bytes


class Cursor(msgspec.Struct, frozen=True):
    """The window of a page, the end that it starts from, and the position to continue from."""

    label: str
    slot: str
    cut: str
    start: Start
    direction: Direction
    position: Position


def write_cursor(
    board: Board, address: WindowAddress, start: Start, direction: Direction, position: Position
) -> str:
    contents = _PageCursor(
        str(board.ref),
        board.version,
        address.label,
        address.slot,
        str(address.cut),
        start,
        direction,
        position.place,
        position.member,
    )
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(contents)).rstrip(b"=").decode()


def read_cursor(board: Board, text: str) -> Cursor:
    """Raises `StaleCursor` unless the cursor was made for the board as it is now."""
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        contents = msgspec.msgpack.decode(packed, type=_PageCursor)
    except (msgspec.DecodeError, ValueError) as error:
        raise _no_cursor() from error
    if (contents.board, contents.version) != (str(board.ref), board.version):
        raise StaleCursor.at(
            "cursor", "belongs to another board, or is older than the definition; start without it"
        )
    try:
        cut = parse_cut(contents.cut, board.definition)
        board.zoned_window(contents.label, cut).calendar.parse(contents.slot)
        place = _place(board, contents.place)
    except (InvalidInput, ValueError, struct.error) as error:
        raise _no_cursor() from error
    return Cursor(
        contents.label,
        contents.slot,
        contents.cut,
        contents.start,
        contents.direction,
        Position(place, contents.member),
    )


def _place(board: Board, written: bytes) -> bytes:
    """The place as a page writes it. Raises ValueError for a place that Valkey cannot read."""
    score, moment = board.ordering.parse_place(written)
    if not math.isfinite(score):
        raise ValueError(written)
    return board.ordering.place(score, moment)


def _no_cursor() -> StaleCursor:
    return StaleCursor.at("cursor", "is not from a page; start without it")
