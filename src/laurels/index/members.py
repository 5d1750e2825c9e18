"""A primary key as the member of a board: text whose bytes sort as the keys do.

- integers: 19 digits, `0000000000000000042`; a negative n is a minus and 10^19 + n, so that -2 is before -1
- text: as it is, by its UTF-8 bytes (PostgreSQL's `COLLATE "C"`); an empty text is a NUL, which no text in
  PostgreSQL can contain
- UUIDs and dates: as PostgreSQL writes them
- several columns: their texts, joined by NUL
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from uuid import UUID

import msgspec

from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

Kind = Literal["integer", "text", "uuid", "date"]
Key = Any
"""A primary key as users write it: a value, or a tuple for several columns."""

WIDTH: Final = 19
LEAST: Final = -(2**63)
GREATEST: Final = 2**63 - 1
SEPARATOR: Final = "\0"

_ONE_INTEGER: Final = ("integer",)

_columns = msgspec.json.Decoder(list[str])


@dataclass(frozen=True)
class MemberCodec:
    """The members of one table."""

    kinds: tuple[Kind, ...]
    names: tuple[str, ...]
    """The key's columns."""
    text_uuids: tuple[bool, ...]
    """Which columns are UUIDs that the model has as text."""

    def of_key(self, key: Key) -> str:
        """The member of a record; raises `InvalidInput` for an impossible key."""
        values = self._values(key)
        parts = [
            self._part(kind, name, value)
            for kind, name, value in zip(self.kinds, self.names, values, strict=True)
        ]
        return _joined(parts)

    def of_text(self, stored: str) -> str:
        """The member of a key in the outbox: the text of one column, or a JSON list of several."""
        texts = [stored] if len(self.kinds) == 1 else _columns.decode(stored)
        return _joined(
            [
                _written(int(text)) if kind == "integer" else text
                for kind, text in zip(self.kinds, texts, strict=True)
            ]
        )

    def key(self, member: str) -> Key:
        """The key of a member."""
        if self.kinds == _ONE_INTEGER:
            return _read(member)
        values = tuple(self._texts(member))
        return values[0] if len(values) == 1 else values

    def _texts(self, member: str) -> list[Any]:
        found: list[Any] = []
        for kind, part, is_text in zip(
            self.kinds, _split(member, len(self.kinds)), self.text_uuids, strict=True
        ):
            match kind:
                case "integer":
                    found.append(_read(part))
                case "uuid":
                    found.append(part if is_text else UUID(part))
                case "date":
                    found.append(date.fromisoformat(part))
                case "text":
                    found.append(part)
        return found

    def _values(self, key: Key) -> tuple[Any, ...]:
        values = tuple(cast("Sequence[Any]", key)) if isinstance(key, tuple | list) else (key,)
        if len(values) != len(self.kinds):
            raise InvalidInput.at(
                "key",
                f"the primary key has {len(self.kinds)} columns ({', '.join(self.names)}), not {len(values)}",
            )
        return values

    def _part(self, kind: Kind, name: str, value: object) -> str:
        match kind:
            case "integer":
                if isinstance(value, int) and not isinstance(value, bool) and LEAST <= value <= GREATEST:
                    return _written(value)
            case "uuid":
                try:
                    return str(value if isinstance(value, UUID) else UUID(str(value)))
                except ValueError:
                    pass
            case "date":
                if isinstance(value, date):
                    return date(value.year, value.month, value.day).isoformat()
            case "text":
                if isinstance(value, str) and SEPARATOR not in value:
                    return value
        raise InvalidInput.at("key", f"{name} is a column of {kind}s, which cannot hold {value!r}")


def _joined(parts: list[str]) -> str:
    return SEPARATOR.join(parts) or SEPARATOR


def _split(member: str, count: int) -> list[str]:
    return [""] if count == 1 and member == SEPARATOR else member.split(SEPARATOR)


def _written(number: int) -> str:
    return f"{number:0{WIDTH}d}" if number >= 0 else f"-{10**WIDTH + number:0{WIDTH}d}"


def _read(part: str) -> int:
    number = int(part)
    return number if number >= 0 else -number - 10**WIDTH
