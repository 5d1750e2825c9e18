"""Cursors of lists: where a page ended, bound to its query. Pure."""

from __future__ import annotations

import base64

import msgspec

from laurels.errors import StaleCursor

Question = tuple[str, ...]
Place = tuple[int | str, ...]


class _ListCursor(msgspec.Struct, array_like=True, frozen=True):
    question: Question
    place: Place


def write_list_cursor(question: Question, place: Place) -> str:
    contents = msgspec.msgpack.encode(_ListCursor(question, place))
    return base64.urlsafe_b64encode(contents).rstrip(b"=").decode()


def read_list_cursor(question: Question, text: str, shape: tuple[type, ...]) -> Place:
    """The place in the cursor. Raises `StaleCursor` if the cursor belongs to another query."""
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        contents = msgspec.msgpack.decode(packed, type=_ListCursor)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StaleCursor.at("cursor", "is not from a page of a list; start without it") from error
    if contents.question != question or tuple(map(type, contents.place)) != shape:
        raise StaleCursor.at("cursor", "belongs to another list; start without it")
    return contents.place
