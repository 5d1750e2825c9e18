"""Exports as files: a manifest, entries line by line, and at the end what they come to. Pure.

Each line is a JSON document. The first is the manifest; then, for each board its definition, for each of its
windows a head, and its entries, best first; the last tells how many lines there are before it, and the
SHA-256 of their bytes, newlines included. A file whose last line is missing or disagrees is not taken.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FORMAT: Final = "laurels-export"
FORMAT_VERSION: Final = 1


class Manifest(msgspec.Struct, frozen=True, tag_field="line", tag="manifest"):
    """What a file holds."""

    format: str
    version: int
    boards: list[str]
    made_at: str


class BoardLine(msgspec.Struct, frozen=True, tag_field="line", tag="board"):
    """The windows that follow are this board's."""

    board: str
    definition: dict[str, Any]


class WindowLine(msgspec.Struct, frozen=True, tag_field="line", tag="window"):
    """The entries that follow are this window's, of everybody or of a group."""

    period: str
    slot: str
    groups: dict[str, str]


class EntryLine(msgspec.Struct, frozen=True, tag_field="line", tag="entry", omit_defaults=True):
    """Scores are text, so that none loses a digit, and so are metadata: the JSON that was given. `at`, in
    microseconds, is there where it decides ties.
    """

    member: str
    score: str
    rank: int
    at: int | None = None
    metadata: str = ""


class Ending(msgspec.Struct, frozen=True, tag_field="line", tag="end"):
    lines: int
    entries: int
    sha256: str


Line = Manifest | BoardLine | WindowLine | EntryLine | Ending
_decode = msgspec.json.Decoder(Line).decode
_encode = msgspec.json.Encoder().encode


class ExportWriter:
    """Makes the lines, and counts them."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._lines = 0
        self.entries = 0

    def line(self, line: Line) -> bytes:
        encoded = _encode(line) + b"\n"
        self._digest.update(encoded)
        self._lines += 1
        self.entries += isinstance(line, EntryLine)
        return encoded

    def ending(self) -> bytes:
        return _encode(Ending(self._lines, self.entries, self._digest.hexdigest())) + b"\n"


def read(lines: Iterable[bytes]) -> Iterator[Manifest | BoardLine | WindowLine | EntryLine]:
    """The lines of a file but its last, which is compared with them; raises `InvalidInput`."""
    digest = hashlib.sha256()
    count = entries = 0
    ending: Ending | None = None
    for encoded in lines:
        if ending is not None:
            raise InvalidInput("something follows the last line of the export; the file is damaged")
        try:
            line = _decode(encoded)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidInput(f"line {count + 1} is not one of an export: {error}") from error
        if isinstance(line, Ending):
            ending = line
            continue
        _check_place(line, count)
        digest.update(encoded)
        count += 1
        entries += isinstance(line, EntryLine)
        yield line
    if ending is None:
        raise InvalidInput("the file ends too early: its last line, with the checksum, is missing")
    if (ending.lines, ending.entries, ending.sha256) != (count, entries, digest.hexdigest()):
        raise InvalidInput("the checksum does not fit what is in the file; it is damaged")


def _check_place(line: Line, before: int) -> None:
    if isinstance(line, Manifest) != (before == 0):
        raise InvalidInput("the first line of an export is its manifest; this is no export of Laurels")
    if isinstance(line, Manifest) and (line.format, line.version) != (FORMAT, FORMAT_VERSION):
        raise InvalidInput(
            f"this is version {line.version} of {line.format!r}; here, 1 of {FORMAT!r} is read"
        )
