"""The journal's entries and rows, and how the stream holds them. Pure.

An entry is one call; its rows are what the call did to each member. The stream holds `body`, a msgpack array
`[kind, call, now, version, content]`, followed by the fed boards if there are any; and `skipped`, the numbers
from 1 of the submissions in it that were refused. `version` is that of the definition in force. A version
below the board's id belongs to an earlier board of the same name.
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
"""Entries placed in a window as they are, by an import. `op` is the window, `groups` the group."""
MATCH: Final = "match"
"""Players of matches: `score` is the rating, None outside of windows; `op` is the rating state."""
ERASE: Final = "erase"
"""The removal of an erased member, under its new name, from the windows that go on."""
METADATA: Final = "metadata"
"""New metadata for an entry; `op` and `groups` as for `PLACE`."""

# `label|slot`, and the group if there is one.
Window = tuple[str, dict[str, str] | None]

_encode = msgspec.msgpack.Encoder().encode


class UnreadableEntry(Exception):
    """The entry is not a journal entry, or a newer Laurels wrote it."""


class Feed(NamedTuple):
    """A fed board, and the version of its definition at that time."""

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
    """The content of a metadata entry: one member's metadata in these windows."""

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
    body = SUBMIT, call, now, version, rows
    return _encode((*body, feeds) if feeds else body)


def remove_entry(call: str, now: Moment, version: int, member: bytes) -> bytes:
    return _encode((REMOVE, call, now, version, member))


def erase_entry(call: str, now: Moment, version: int, named: bytes) -> bytes:
    """`named`: the name that replaces the erased member's."""
    return _encode((ERASE, call, now, version, named))


def place_entry(
    call: str, now: Moment, version: int, window: Window, entries: Iterable[tuple[bytes, Score, Moment, str]]
) -> bytes:
    """`entries`: member, score, moment and metadata of each."""
    token, groups = window
    rows: list[RowFields] = [
        (index, "", member, score, moment, groups, token, metadata)
        for index, (member, score, moment, metadata) in enumerate(entries)
    ]
    return _encode((PLACE, call, now, version, rows))


def metadata_entry(
    call: str, now: Moment, version: int, windows: Iterable[Window], given: tuple[str, bytes, str]
) -> bytes:
    """`given`: id, member and metadata."""
    return _encode((METADATA, call, now, version, (*given, list(windows))))


def match_entry(call: str, now: Moment, version: int, rows: Sequence[RowFields]) -> bytes:
    return _encode((MATCH, call, now, version, rows))


def read_entry(stream_id: StreamId, fields: Mapping[bytes, bytes], shard: int = 0) -> JournalEntry:
    """Decodes an entry of a shard's stream; raises `UnreadableEntry`."""
    body, skipped = fields.get(b"body"), fields.get(b"skipped", b"")
    if body is None:
        raise UnreadableEntry("the entry has no body")
    try:
        head = _body.decode(body)
        rows = _READERS[head.kind](head)
        refused = {int(number) - 1 for number in skipped.split(b",")} if skipped else frozenset[int]()
    except KeyError as error:
        raise UnreadableEntry(f"the kind {error} is unknown; a newer Laurels may have written it") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise UnreadableEntry(str(error)) from error
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
