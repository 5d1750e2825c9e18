"""Server-sent events, read from bytes as they arrive. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    name: str
    data: str
    id: str
    """The last id so far: of this event or an earlier one."""


class EventReader:
    r"""Bytes in, events out, however the bytes are cut.

    >>> reader = EventReader()
    >>> list(reader.feed(b'id: 7\nevent: change\ndata: {"total"'))
    []
    >>> list(reader.feed(b': 3}\n\n: a comment\n'))
    [ServerSentEvent(name='change', data='{"total": 3}', id='7')]
    """

    def __init__(self, last_id: str = "") -> None:
        self.retry_seconds = 0.0
        """How long the server wants its clients to wait before they reconnect."""
        self.last_id = last_id
        """Of the last event; kept when the connection breaks."""
        self.begin()

    def begin(self) -> None:
        """Drops the unfinished event of the connection before."""
        self._rest = b""
        self._name = ""
        self._data: list[str] = []
        self._id = self.last_id

    def feed(self, piece: bytes) -> Iterator[ServerSentEvent]:
        *lines, self._rest = self._cut(self._rest + piece)
        for line in lines:
            if line:
                self._read(line.decode("utf-8", "replace"))
                continue
            self.last_id = self._id
            if self._data:
                yield ServerSentEvent(self._name or "message", "\n".join(self._data), self._id)
            self._name, self._data = "", []

    @staticmethod
    def _cut(given: bytes) -> list[bytes]:
        # A carriage return at the very end may be half of a line end.
        held = b"\r" if given.endswith(b"\r") else b""
        *lines, last = _LINE_END.split(given.removesuffix(b"\r"))
        return [*lines, last + held]

    def _read(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_seconds = int(value) / 1000
