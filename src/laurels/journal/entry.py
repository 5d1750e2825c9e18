"""What a call leaves in the journal: all that doing it again needs. Pure.

An entry of the stream has a `body`, msgpack of `[kind, call, now, version, content]`, and what of it was
`skipped`: the numbers, from 1, of submissions that were refused. The version is the definition's that was in
force; it tells a board from an earlier one of the same name. Where the board feeds others, these follow.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import msgspec

from laurels.moments import EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

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


class StreamId(NamedTuple):
    """The id of an entry in a stream: the millisecond in which it was added, and its number within that."""

    milliseconds: int
    seq: int

    def __str__(self) -> str:
        return f"{self.milliseconds}-{self.seq}"

    @classmethod
    def parse(cls, given: bytes) -> Self:
        milliseconds, _, seq = given.partition(b"-")
        return cls(int(milliseconds), int(seq))

    @property
    def recorded_at(self) -> datetime:
        return EPOCH + timedelta(milliseconds=self.milliseconds)


START: Final = StreamId(0, 0)


class JournalRow(msgspec.Struct, array_like=True, gc=False):
    """What a call did to one member.

    An entry of the stream holds the fields up to `metadata`. Its rows share the values of the others.
    """

    index: int
    """The place in the call, from 0."""
    given_id: str
    """The client's id; "" where Laurels made one."""
    member: bytes
    score: int | float | None = None
    """An int on int64 boards, and from 1e16 on; None where the row sets no score."""
    at: int = 0
    groups: dict[str, str] | None = None
    op: str = ""
    """The submission's own aggregate; or what `PLACE`, `MATCH` and `METADATA` say."""
    metadata: str = ""
    kind: str = ""
    call: str = ""
    now: int = 0
    stream_id: StreamId = START
    shard: int = 0

    @property
    def made_id(self) -> str:
        return f"~{self.call}.{self.index}"

    @property
    def id(self) -> str:
        return self.given_id or self.made_id


# The fields of a row in the stream. A tuple is faster to make than a `JournalRow`.
RowFields = tuple[int, str, bytes, "Score | None", "Moment", dict[str, str] | None, str, str]


class JournalEntry(msgspec.Struct, frozen=True):
    """One call, without the submissions that it refused."""

    stream_id: StreamId
    kind: str
    call: str
    now: int
    version: int
    rows: list[JournalRow]
    feeds: list[Feed]
    """The boards that receive the same submissions."""


class _Description(msgspec.Struct, array_like=True, frozen=True):
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
_rows = msgspec.msgpack.Decoder(list[JournalRow])
_member = msgspec.msgpack.Decoder(bytes)
_description = msgspec.msgpack.Decoder(_Description)


def submit_entry(
    call: str, now: Moment, version: int, rows: Sequence[RowFields], feeds: tuple[Feed, ...] = ()
) -> bytes:
    """The body of submissions that go out together."""
    body = SUBMIT, call, now, version, rows
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
    rows: list[RowFields] = [
        (index, "", member, score, moment, groups, token, metadata)
        for index, (member, score, moment, metadata) in enumerate(entries)
    ]
    return _encode((PLACE, call, now, version, rows))


def metadata_entry(
    call: str, now: Moment, version: int, windows: Iterable[Window], given: tuple[str, bytes, str]
) -> bytes:
    """The body of metadata for the entries of a member. `given`: id, member and metadata."""
    return _encode((METADATA, call, now, version, (*given, list(windows))))


def match_entry(call: str, now: Moment, version: int, rows: Sequence[RowFields]) -> bytes:
    """The body of matches that were played together."""
    return _encode((MATCH, call, now, version, rows))


def read_entry(stream_id: StreamId, fields: Mapping[bytes, bytes], shard: int = 0) -> JournalEntry:
    """An entry of a shard's stream; raises `Unreadable`."""
    body, skipped = fields.get(b"body"), fields.get(b"skipped", b"")
    if body is None:
        raise Unreadable("there is no body")
    try:
        head = _body.decode(body)
        rows = _READERS[head.kind](head)
        refused = {int(number) - 1 for number in skipped.split(b",")} if skipped else frozenset[int]()
    except KeyError as error:
        raise Unreadable(f"the kind {error} is not known") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise Unreadable(str(error)) from error
    if refused:
        rows = [row for number, row in enumerate(rows) if number not in refused]
    kind, call, now = head.kind, head.call, head.now
    for row in rows:
        row.kind, row.call, row.now, row.stream_id, row.shard = kind, call, now, stream_id, shard
    return JournalEntry(stream_id, kind, call, now, head.version, rows, head.feeds)


def _submitted(head: _Body) -> list[JournalRow]:
    return _rows.decode(head.content)


def _removed(head: _Body) -> list[JournalRow]:
    return [JournalRow(0, "", _member.decode(head.content), at=head.now)]


def _described(head: _Body) -> list[JournalRow]:
    given = _description.decode(head.content)
    return [
        JournalRow(index, given.id, given.member, None, head.now, groups, token, given.metadata)
        for index, (token, groups) in enumerate(given.windows)
    ]


_READERS: Final[dict[str, Callable[[_Body], list[JournalRow]]]] = {
    SUBMIT: _submitted,
    REMOVE: _removed,
    PLACE: _submitted,
    MATCH: _submitted,
    ERASE: _removed,
    METADATA: _described,
}
