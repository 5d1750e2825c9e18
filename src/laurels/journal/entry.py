"""What a call leaves in the journal: all that doing it again needs. Pure.

An entry of the stream has a `body`, msgpack of `[kind, call, now, version, content]`, and what of it was
`skipped`: the numbers, from 1, of submissions that were refused. The version is the definition's that was in
force; it tells a board from an earlier one of the same name. Where the board feeds others, these follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from laurels.boards.ordering import Score
    from laurels.moments import Moment

SUBMIT: Final = "submit"
REMOVE: Final = "remove"
PLACE: Final = "place"
"""Entries that were given to a window as they are: imported."""
MATCH: Final = "match"
"""Players of matches: of each its rating as the score, None where it enters no window; and as `op`, the state
that it is left in.
"""
ERASE: Final = "erase"
"""As a removal, of who lost its name, from the windows that go on."""
METADATA: Final = "metadata"
"""Entries that were given other metadata: `op` is the window, `groups` the group, as of what was placed."""

# `label|slot`, and the group if any.
Window = tuple[str, dict[str, str] | None]

_encode = msgspec.msgpack.Encoder().encode


class Unreadable(Exception):
    """An entry that is none of ours, or of a version to come."""


class Feed(NamedTuple):
    """A board that is fed, and the version of its definition at that time."""

    board: str
    version: int


class Part(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a call did to one member."""

    index: int
    """Its place in its call."""
    id: str
    """As the client gave it; "" where it was made: `~CALL.INDEX`."""
    member: bytes
    score: int | float | None = None
    moment: int = 0
    groups: dict[str, str] | None = None
    op: str = ""
    metadata: str = ""


# The fields of a `Part`, which a tuple carries faster.
PartFields = tuple[int, str, bytes, "Score | None", "Moment", dict[str, str] | None, str, str]


class Recorded(msgspec.Struct, frozen=True):
    """One call, without what was refused of it."""

    kind: str
    call: str
    now: int
    version: int
    parts: list[Part]
    feeds: list[Feed]
    """The boards that receive the same submissions."""


class _Described(msgspec.Struct, array_like=True, frozen=True):
    """What a metadata entry holds: a member, its metadata in these windows, and the id of the call."""

    id: str
    member: bytes
    metadata: str
    windows: list[Window]


class _Body(msgspec.Struct, array_like=True, frozen=True):
    kind: str
    call: str
    now: int
    version: int
    content: msgspec.Raw
    feeds: list[Feed] = []


_body = msgspec.msgpack.Decoder(_Body)
_parts = msgspec.msgpack.Decoder(list[Part])
_member = msgspec.msgpack.Decoder(bytes)
_described = msgspec.msgpack.Decoder(_Described)


def submit_entry(
    call: str, now: Moment, version: int, parts: Sequence[PartFields], feeds: tuple[Feed, ...] = ()
) -> bytes:
    """The body of submissions that go out together."""
    body = SUBMIT, call, now, version, parts
    return _encode((*body, feeds) if feeds else body)


def remove_entry(call: str, now: Moment, version: int, member: bytes) -> bytes:
    """The body of a removal."""
    return _encode((REMOVE, call, now, version, member))


def erase_entry(call: str, now: Moment, version: int, named: bytes) -> bytes:
    """The body of an erasure: it tells only the name that stands for the member from now on."""
    return _encode((ERASE, call, now, version, named))


def place_entry(
    call: str, now: Moment, version: int, window: Window, entries: Iterable[tuple[bytes, Score, Moment, str]]
) -> bytes:
    """The body of entries placed in a window: member, score, moment and metadata of each."""
    token, groups = window
    parts: list[PartFields] = [
        (index, "", member, score, moment, groups, token, metadata)
        for index, (member, score, moment, metadata) in enumerate(entries)
    ]
    return _encode((PLACE, call, now, version, parts))


def metadata_entry(
    call: str, now: Moment, version: int, windows: Iterable[Window], given: tuple[str, bytes, str]
) -> bytes:
    """The body of metadata for the entries of a member. `given`: id, member and metadata."""
    return _encode((METADATA, call, now, version, (*given, list(windows))))


def match_entry(call: str, now: Moment, version: int, parts: Iterable[Part]) -> bytes:
    """The body of matches that were played together."""
    return _encode((MATCH, call, now, version, list(parts)))


def read_entry(body: bytes, skipped: bytes) -> Recorded:
    """What an entry tells; raises `Unreadable`."""
    try:
        head = _body.decode(body)
        parts = _READERS[head.kind](head)
        refused = {int(number) - 1 for number in skipped.split(b",")} if skipped else frozenset[int]()
    except KeyError as error:
        raise Unreadable(f"the kind {error} is not known") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise Unreadable(str(error)) from error
    if refused:
        parts = [part for number, part in enumerate(parts) if number not in refused]
    return Recorded(head.kind, head.call, head.now, head.version, list(parts), head.feeds)


def _submitted(head: _Body) -> list[Part]:
    return _parts.decode(head.content)


def _removed(head: _Body) -> Iterable[Part]:
    return [Part(0, "", _member.decode(head.content), moment=head.now)]


def _given_metadata(head: _Body) -> Iterable[Part]:
    told = _described.decode(head.content)
    return [
        Part(index, told.id, told.member, None, head.now, groups, token, told.metadata)
        for index, (token, groups) in enumerate(told.windows)
    ]


_READERS: Final[dict[str, Callable[[_Body], Iterable[Part]]]] = {
    SUBMIT: _submitted,
    REMOVE: _removed,
    PLACE: _submitted,
    MATCH: _submitted,
    ERASE: _removed,
    METADATA: _given_metadata,
}
