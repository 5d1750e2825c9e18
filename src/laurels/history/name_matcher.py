"""Whether a text names a member, as a whole word: a member called `a` is not in every text. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator


class NameMatcher:
    """Finds the name of one member in texts and in JSON."""

    def __init__(self, member: str) -> None:
        self._word = re.compile(rf"(?<![^\W_]){re.escape(member)}(?![^\W_])")
        self.forms = {
            member,
            msgspec.json.encode(member)[1:-1].decode(),
            json.dumps(member)[1:-1],
        }
        """The forms of the name in JSON."""

    def in_text(self, text: str) -> bool:
        return self._word.search(text) is not None

    def in_json(self, written: str | bytes) -> bool:
        """Whether a key, string or number names the member; invalid JSON is treated as text."""
        try:
            value = msgspec.json.decode(written)
        except (msgspec.DecodeError, UnicodeDecodeError):
            text = written if isinstance(written, str) else written.decode(errors="replace")
            return self.in_text(text)
        return any(self.in_text(text) for text in _texts(value))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, held in cast("dict[str, object]", value).items():
            yield name
            yield from _texts(held)
    elif isinstance(value, list):
        for held in cast("list[object]", value):
            yield from _texts(held)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
