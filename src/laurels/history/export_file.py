"""The file format of exports: a manifest, entries line by line, and a checksum at the end. Pure.

Each line is a JSON document. The first is the manifest. Then each board has a line with its definition, each
of its windows a line, and each entry a line, best first. The last line has the number of lines before it and
the SHA-256 of their bytes, newlines included. A file whose last line is missing or differs is refused.
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
    format: str
    version: int
    boards: list[str]
    made_at: str


class BoardLine(msgspec.Struct, frozen=True, tag_field="line", tag="board"):
    """Starts a board: the windows that follow are its own."""

    board: str
    definition: dict[str, Any]


class WindowLine(msgspec.Struct, frozen=True, tag_field="line", tag="window"):
    """Starts a window, or a group of it: the entries that follow are its own."""

    period: str
    slot: str
    groups: dict[str, str]


class EntryLine(msgspec.Struct, frozen=True, tag_field="line", tag="entry", omit_defaults=True):
    """One entry. The score is text, so that it loses no digit; metadata is the JSON that was given. `at`, in
    microseconds, is there if it decides ties.
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
    """Encodes the lines, and counts them for the last one."""

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
    """The lines of a file, except the last one. Raises `InvalidInput` if they do not match its checksum."""
    digest = hashlib.sha256()
    count = entries = 0
    ending: Ending | None = None
    for encoded in lines:
        if ending is not None:
            raise InvalidInput("there are lines after the checksum of the export; the file is damaged")
        try:
            line = _decode(encoded)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidInput(f"line {count + 1} is not a line of an export: {error}") from error
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
        raise InvalidInput("the checksum does not match the file; it is damaged")


def _check_place(line: Line, before: int) -> None:
    if isinstance(line, Manifest) != (before == 0):
        raise InvalidInput("the file does not start with a manifest; it is not an export of Laurels")
    if isinstance(line, Manifest) and (line.format, line.version) != (FORMAT, FORMAT_VERSION):
        raise InvalidInput(
            f"the file is version {line.version} of {line.format!r}; Laurels reads version 1 of {FORMAT!r}"
        )
