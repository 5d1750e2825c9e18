"""Reads files of people and places, and shows what became of them.

A name that ends in .csv is CSV, any other NDJSON.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Generic

import msgspec
import typer

from laurels.cli.load import RefusedLine, json_line, lines_of, opened
from laurels.cli.output import grouped, printable, table
from laurels.errors import InvalidInput
from laurels.people.csv_rows import CsvRows
from laurels.people.records import Record, checked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from laurels.cli.session import CommandSession
    from laurels.engine import Laurels
    from laurels.people.operations import Directory
    from laurels.scores.submission import BatchResult

SHOWN = 20
"""How many refusals the table shows; `--json` has them all."""


class Imported(msgspec.Struct, frozen=True):
    """The result of an import. `dry_run`: whether nothing was written."""

    accepted: int
    rejected: list[RefusedLine]
    ignored: list[str]
    """Columns that no field has."""
    dry_run: bool


class RecordFile(Generic[Record]):
    def __init__(self, file: str, kind: type[Record], columns: Iterable[str]) -> None:
        self._file = file
        self._kind = kind
        self._columns = dict(map(_column, columns))
        self._numbers = array("Q")
        self.ignored: list[str] = []

    def put(
        self, session: CommandSession, directory: Callable[[Laurels], Directory[Record]], project: str
    ) -> Imported:
        """Imports the file."""

        async def work(laurels: Laurels) -> BatchResult:
            return await self._read(session, lambda given: directory(laurels).put_many(project, given))

        return self._imported(session.run(work), dry_run=False)

    async def _read(
        self,
        session: CommandSession,
        put: Callable[[Iterable[Record | InvalidInput]], Awaitable[BatchResult]],
    ) -> BatchResult:
        with opened(self._file) as (stream, size), session.output.counting(f"Reading {self._file}") as tell:
            lines = enumerate(lines_of(stream), 1)

            def given() -> Iterator[Record | InvalidInput]:
                for done, (number, record) in enumerate(self._records(lines), 1):
                    self._numbers.append(number)
                    if done % 1000 == 0:
                        tell(done, round(done * size / stream.tell()) if size else done)
                    yield record

            return await put(given())

    def check(self, session: CommandSession) -> Imported:
        """Reads the file and writes nothing."""
        from laurels.scores.submission import BatchResult, Rejected  # noqa: PLC0415  # slow to load

        accepted, rejected = 0, list[Rejected]()
        with opened(self._file) as (stream, _):
            for index, (number, record) in enumerate(self._records(enumerate(lines_of(stream), 1))):
                self._numbers.append(number)
                try:
                    _raise(record)
                    accepted += 1
                except InvalidInput as error:
                    rejected.append(Rejected(index, error.detail))
        del session
        return self._imported(BatchResult(accepted, rejected), dry_run=True)

    def _records(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, Record | InvalidInput]]:
        """What each line has, with the number of the line in the file."""
        if not self._file.endswith(".csv"):
            decode = msgspec.json.Decoder(self._kind)
            for number, line in lines:
                if line.strip():
                    yield number, json_line(line, decode)
            return
        rows = CsvRows(self._kind, self._columns)
        for _, line in lines:
            for index, record in rows.feed(line.removesuffix(b"\n")):
                yield index + 2, record
        for index, record in rows.end():
            yield index + 2, record
        self.ignored = rows.ignored

    def _imported(self, result: BatchResult, *, dry_run: bool) -> Imported:
        refused = [
            RefusedLine(each.index, self._numbers[each.index], each.detail) for each in result.rejected
        ]
        return Imported(result.accepted, refused, self.ignored, dry_run)


def show(session: CommandSession, imported: Imported) -> None:
    """Shows the result; the exit code is 1 if any line was refused."""
    done = "would be accepted" if imported.dry_run else "accepted"
    text = f"{grouped(imported.accepted)} {done}, {grouped(len(imported.rejected))} refused"
    if imported.ignored:
        text += f"; ignored columns: {', '.join(imported.ignored)}"
    session.show(imported, text)
    if imported.rejected and not session.output.as_json:
        picture = table(">line", "why", title=f"Refused (the first {SHOWN} at most)")
        for refusal in imported.rejected[:SHOWN]:
            picture.add_row(grouped(refusal.line), printable(refusal.detail))
        session.output.console.print(picture)
    if imported.rejected:
        raise typer.Exit(1)


def _raise(record: Record | InvalidInput) -> None:
    if isinstance(record, InvalidInput):
        raise record
    checked(record)


def _column(written: str) -> tuple[str, str]:
    field, separator, column = written.partition("=")
    if not (field and separator and column):
        raise InvalidInput.at("--column", f"write it as FIELD=COLUMN, not {written!r}")
    return field, column
