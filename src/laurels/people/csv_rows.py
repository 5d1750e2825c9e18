"""Reads people and places from CSV, as lines arrive. Pure.

The first line names the columns. A quoted value may span lines; a quote that is never closed costs its own
line, not those after it.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Final, Generic

from laurels.errors import InvalidInput
from laurels.people.records import Record, record_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# How many lines a quoted value may span.
MOST_LINES: Final = 100
# Names that exports of other programs give the columns.
SYNONYMS: Final = {
    "user_id": "id",
    "member": "id",
    "handle": "name",
    "display_name": "name",
    "username": "name",
    "avatar": "avatar_url",
    "campus": "place",
    "campus_id": "place",
    "place_id": "place",
    "tz": "timezone",
    "time_zone": "timezone",
}


class CsvRows(Generic[Record]):
    """Turns lines into records, each with the number of its first line: 0 is the line after the header."""

    def __init__(self, kind: type[Record], columns: Mapping[str, str] | None = None) -> None:
        """`columns`: the column of the file for each field that another column than its own has."""
        self._kind = kind
        self._given = dict(columns or {})
        self._fields: list[str | None] | None = None
        self._number = -1
        self._open: list[str] = []
        self.ignored: list[str] = []
        """The columns that no field takes."""

    def feed(self, line: bytes | None) -> Iterator[tuple[int, Record | InvalidInput]]:
        """The records that this line completes; None is a line that is too long."""
        if self._fields is None:
            self._fields = self._header(line)
            return
        self._number += 1
        if line is None:
            yield from self._given_up()
            yield self._number, InvalidInput("the line is too long")
            return
        try:
            text = line.decode()
        except UnicodeDecodeError:
            yield from self._given_up()
            yield self._number, InvalidInput("not UTF-8")
            return
        if not text.strip() and not self._open:
            return
        self._open.append(text.rstrip("\r"))
        values = _values(self._open)
        if values is not None:
            first, self._open = self._number - len(self._open) + 1, []
            yield first, self._record(values)
        elif len(self._open) >= MOST_LINES:
            yield from self._given_up()

    def end(self) -> Iterator[tuple[int, Record | InvalidInput]]:
        """The records of lines that wait for the end of a quoted value."""
        if self._fields is None:
            raise InvalidInput("the first line must name the columns, id among them")
        yield from self._given_up()

    def _given_up(self) -> Iterator[tuple[int, Record | InvalidInput]]:
        """The first open line is refused; each that follows is read by itself."""
        waiting, self._open = self._open, []
        first = self._number - len(waiting) + 1
        for number, text in enumerate(waiting, first):
            if not text.strip():
                continue
            values = _values([text])
            if values is None:
                yield number, InvalidInput("a quote is not closed")
            else:
                yield number, self._record(values)

    def _header(self, line: bytes | None) -> list[str | None]:
        """The field of each column; None if no field takes it."""
        try:
            names = _values([(line or b"").decode("utf-8-sig").rstrip("\r")])
        except UnicodeDecodeError as error:
            raise InvalidInput("the first line is not UTF-8") from error
        if isinstance(names, InvalidInput) or names is None:
            raise InvalidInput("the first line must name the columns, id among them")
        names = [name.strip() for name in names]
        column_of = self._columns_of([name for name in names if name])
        if "id" not in column_of:
            listed = ", ".join(names)
            raise InvalidInput(f"the first line must name the columns, id among them; it has: {listed}")
        field_of = {column: field for field, column in column_of.items()}
        self.ignored = [name for name in names if name not in field_of]
        return [field_of.get(name) for name in names]

    def _columns_of(self, names: list[str]) -> dict[str, str]:
        """The column of each field: as given, by its own name, or by a synonym."""
        fields = self._kind.__struct_fields__
        found = dict(self._given)
        for field, column in found.items():
            if field not in fields:
                raise InvalidInput.at("column", f"there is no field {field}; there are: {', '.join(fields)}")
            if column not in names:
                raise InvalidInput.at(
                    "column", f"there is no column {column!r}; there are: {', '.join(names)}"
                )
        own = [(name.lower(), name) for name in names]
        known = [(SYNONYMS[name], column) for name, column in own if name in SYNONYMS]
        for field, column in (*own, *known):
            if field in fields and field not in found and column not in found.values():
                found[field] = column
        return found

    def _record(self, values: list[str] | InvalidInput) -> Record | InvalidInput:
        if isinstance(values, InvalidInput):
            return values
        fields = self._fields or []
        if len(values) != len(fields):
            return InvalidInput(f"has {len(values)} values, but there are {len(fields)} columns")
        given = {field: value.strip() or None for field, value in zip(fields, values, strict=True) if field}
        try:
            return record_of(self._kind, {**given, "id": given["id"] or ""})
        except InvalidInput as error:
            return error


def _values(lines: list[str]) -> list[str] | InvalidInput | None:
    """The values of a row; None if a quoted value goes on in the next line."""
    try:
        return next(csv.reader(["\n".join(lines)], strict=True), list[str]())
    except csv.Error as error:
        return None if "unexpected end of data" in str(error) else InvalidInput(f"not CSV: {error}")
