"""`laurels load`: submits a file of scores, of any size, to a board."""

import codecs
import csv
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TypeVar

import msgspec
import typer

from laurels.boards.ordering import number_in
from laurels.cli.options import BoardName, DataDir, Json, parse_time
from laurels.cli.output import grouped, printable, table
from laurels.cli.session import CommandSession
from laurels.errors import InvalidInput
from laurels.scores.submission import Submission
from laurels.wording import of_msgspec

if TYPE_CHECKING:
    from collections.abc import Generator

    from laurels import Laurels

# The same limit as in the API.
LINE_BYTES = 2**20
SHOWN = 20
"""How many refusals the table shows; `--json` has them all."""


class RefusedLine(msgspec.Struct, frozen=True):
    """A refused submission: its place among the submissions, its line in the file, and the reason."""

    index: int
    line: int
    detail: str


class Loaded(msgspec.Struct, frozen=True):
    accepted: int
    rejected: list[RefusedLine]


Given = TypeVar("Given")

_decoder = msgspec.json.Decoder(Submission)


def load(
    board: BoardName,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A .csv or NDJSON file, or - for NDJSON on stdin.")
    ],
    *,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Submit a file of scores to a board. The exit code is 1 if any line was refused."""
    session = CommandSession(data_dir, as_json=json)

    async def send(laurels: "Laurels") -> Loaded:
        with opened(file) as (stream, size), session.output.counting(f"Loading {board}") as progress:
            numbers = array("Q")
            lines = _csv_lines(stream) if file.endswith(".csv") else _json_lines(stream)
            result = await laurels.submit_many(
                board,
                _numbered(lines, numbers),
                progress=lambda done: progress(done, _estimate(done, stream, size)),
            )
        refused = [RefusedLine(each.index, numbers[each.index], each.detail) for each in result.rejected]
        return Loaded(result.accepted, refused)

    result = session.run(send)
    session.show(result, f"{grouped(result.accepted)} accepted, {grouped(len(result.rejected))} refused")
    if result.rejected and not json:
        picture = table(">line", "why", title=f"Refused (the first {SHOWN} at most)")
        for refusal in result.rejected[:SHOWN]:
            picture.add_row(grouped(refusal.line), printable(refusal.detail))
        session.output.console.print(picture)
    if result.rejected:
        raise typer.Exit(1)


def _numbered(
    lines: Iterator[tuple[int, Submission | InvalidInput]], numbers: "array[int]"
) -> Iterator[Submission | InvalidInput]:
    """The submissions; their line numbers are appended to `numbers`."""
    for number, submission in lines:
        numbers.append(number)
        yield submission


def _estimate(done: int, stream: BinaryIO, size: int) -> int:
    """How many submissions the file has, estimated from its size and the part that was read."""
    return round(done * size / stream.tell()) if size and stream.tell() else done


@contextmanager
def opened(file: str) -> "Generator[tuple[BinaryIO, int]]":
    """The file and its size in bytes; 0 if unknown."""
    if file == "-":
        yield sys.stdin.buffer, 0
        return
    path = Path(file)
    try:
        with path.open("rb") as stream:
            yield stream, path.stat().st_size
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from error


def _json_lines(stream: BinaryIO) -> Iterator[tuple[int, Submission | InvalidInput]]:
    """One submission a line, as in the batch route."""
    for number, line in enumerate(lines_of(stream), 1):
        if line.strip():
            yield number, json_line(line, _decoder)


def json_line(line: bytes, decoder: msgspec.json.Decoder[Given]) -> Given | InvalidInput:
    """What a line of NDJSON has, or why it is refused."""
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        wrong = of_msgspec(error, decoder.type)
        return InvalidInput.at(wrong.field, wrong.detail)
    except UnicodeDecodeError:
        return InvalidInput("not UTF-8")
    except (msgspec.DecodeError, RecursionError) as error:
        is_long = len(line) > LINE_BYTES
        return InvalidInput(f"a line has at most {LINE_BYTES} bytes" if is_long else str(error))


def lines_of(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a file. A line that is too long is cut one byte after the limit."""
    mark = codecs.BOM_UTF8  # some programs begin a file with it
    while line := stream.readline(LINE_BYTES + 1):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = stream.readline(LINE_BYTES)
        yield line.removeprefix(mark)
        mark = b""


def _csv_lines(stream: BinaryIO) -> Iterator[tuple[int, Submission | InvalidInput]]:
    """Columns member and score, optionally at and id; every other column is a group dimension."""
    # Bytes that are not UTF-8 become lone surrogates, which the check of the member refuses.
    rows = csv.reader((line.decode("utf-8", "surrogateescape") for line in lines_of(stream)), strict=True)
    columns = [name.strip() for name in next(rows, list[str]())]
    if not {"member", "score"} <= set(columns):
        raise InvalidInput("the first line must name the columns, member and score among them")
    while True:
        try:
            row = next(rows, None)
            if row is None:
                return
            if row:
                yield rows.line_num, _submission_of(_by_column(columns, row))
        except (InvalidInput, ValueError, csv.Error) as error:
            yield rows.line_num, InvalidInput(str(error))


def _by_column(columns: list[str], row: list[str]) -> dict[str, str]:
    if len(row) != len(columns):
        raise InvalidInput(f"has {len(row)} values, but there are {len(columns)} columns")
    return dict(zip(columns, row, strict=True))


def _submission_of(row: dict[str, str]) -> Submission:
    at, identity = row.pop("at", ""), row.pop("id", "")
    return Submission(
        row.pop("member"),
        number_in(row.pop("score").strip()),
        at=parse_time(at, "at") if at else None,
        groups={name: value for name, value in row.items() if value} or None,
        id=identity or None,
    )
