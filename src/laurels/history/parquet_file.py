"""Exports as Parquet: each line of `export_file` is a row, and the rows give back the same bytes.

The manifest and the last line are in the file's metadata (`laurels.manifest`, `laurels.end`); each board,
window and entry is a row. So the checksum of the lines holds here too. The row of an entry repeats its board
and window, for queries of the file. Writing and reading hold one row group in memory, and Parquet's footer,
about 2 KiB a row group.

pyarrow is imported only when a file is written or read.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import msgspec

from laurels.boards.ordering import whole
from laurels.errors import InvalidInput
from laurels.history.export_file import BoardLine, Ending, EntryLine, Line, Manifest, WindowLine

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

ENDING: Final = ".parquet"
MANIFEST_KEY: Final = "laurels.manifest"
END_KEY: Final = "laurels.end"
ROWS: Final = 50_000  # most rows of a row group
BYTES: Final = 16 * 2**20  # most bytes of a row group's lines, so that long metadata does not fill the memory
BATCH: Final = 1000
# Columns whose lowest and highest values are in the footer; those of other columns are long and useless.
SEARCHED: Final = ["line", "board", "period", "slot", "member", "score_int64", "score_double", "rank", "at"]

_decode = msgspec.json.Decoder(Line).decode
_encode = msgspec.json.Encoder().encode


class ParquetLines:
    """Writes the lines of an export as rows."""

    def __init__(self, stream: BinaryIO) -> None:
        self._arrow, self._parquet = _pyarrow()
        self._schema = _schema(self._arrow)
        self._file = self._parquet.ParquetWriter(
            stream, self._schema, compression="zstd", write_statistics=SEARCHED, write_page_checksum=True
        )
        self._rows = _Rows()
        self._bytes = 0

    def write(self, encoded: bytes) -> None:
        line = _decode(encoded)
        if isinstance(line, Manifest):
            self._file.add_key_value_metadata({MANIFEST_KEY: encoded})
        elif isinstance(line, Ending):
            self._flush()
            self._file.add_key_value_metadata({END_KEY: encoded})
        else:
            self._rows.add(line)
            self._bytes += len(encoded)
            if len(self._rows) >= ROWS or self._bytes >= BYTES:
                self._flush()

    def close(self) -> None:
        self._file.close()

    def _flush(self) -> None:
        if len(self._rows):
            batch = self._arrow.RecordBatch.from_pydict(self._rows.columns, self._schema)
            self._file.write_batch(batch, ROWS)
        self._rows.clear()
        self._bytes = 0


@contextmanager
def writing(stream: BinaryIO) -> Generator[ParquetLines]:
    lines = ParquetLines(stream)
    try:
        yield lines
    finally:
        lines.close()


def read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of the export. Raises `InvalidInput` if the file is damaged or not an export."""
    arrow, parquet = _pyarrow()
    try:
        file = parquet.ParquetFile(stream, pre_buffer=False, page_checksum_verification=True)
        about: dict[bytes, bytes] = file.metadata.metadata or {}
        if MANIFEST_KEY.encode() not in about or not file.schema_arrow.equals(_schema(arrow)):
            raise InvalidInput("the file is Parquet, but not an export of Laurels")
        yield about[MANIFEST_KEY.encode()]
        head = _Head()
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(BATCH, row_groups=[group]):
                moments = batch.column("at").cast(arrow.int64()).to_pylist()
                for row in zip(*({**batch.to_pydict(), "at": moments}).values(), strict=True):
                    yield _encode(head.line(_Row(*row))) + b"\n"
        if END_KEY.encode() in about:
            yield about[END_KEY.encode()]
    except (arrow.ArrowException, OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        first = str(error).partition("\n")[0]
        raise InvalidInput(f"the Parquet file is damaged or ends too early: {first}") from error


class _Row(msgspec.Struct, frozen=True):
    """The columns. Scores of int64 boards have a column of their own, so that all scores are exact."""

    line: str
    board: str | None = None
    definition: str | None = None
    period: str | None = None
    slot: str | None = None
    groups: list[tuple[str, str]] | None = None
    member: str | None = None
    score_int64: int | None = None
    score_double: float | None = None
    rank: int | None = None
    at: int | None = None
    metadata: str | None = None


def _schema(arrow: Any) -> Any:  # noqa: ANN401  # see _pyarrow
    text, int64 = arrow.string(), arrow.int64()
    types = {
        "groups": arrow.map_(text, text),
        "score_int64": int64,
        "score_double": arrow.float64(),
        "rank": int64,
        "at": arrow.timestamp("us", tz="UTC"),
    }
    return arrow.schema([(name, types.get(name, text)) for name in _Row.__struct_fields__])


class _Rows:
    """Collects rows to write, column by column."""

    def __init__(self) -> None:
        self.columns: dict[str, list[object]] = {}
        self.clear()
        self._head = _Row("")
        self._int64 = False

    def __len__(self) -> int:
        return len(self.columns["line"])

    def clear(self) -> None:
        self.columns = {name: [] for name in _Row.__struct_fields__}

    def add(self, line: BoardLine | WindowLine | EntryLine) -> None:
        for name, value in msgspec.structs.asdict(self._row(line)).items():
            self.columns[name].append(value)

    def _row(self, line: BoardLine | WindowLine | EntryLine) -> _Row:
        head = self._head
        if isinstance(line, BoardLine):
            self._int64 = line.definition.get("score") == "int64"
            self._head = _Row("board", line.board)
            return _Row("board", line.board, _encode(line.definition).decode())
        if isinstance(line, WindowLine):
            groups = list(line.groups.items())
            self._head = _Row("window", head.board, None, line.period, line.slot, groups)
            return self._head
        return msgspec.structs.replace(
            head,
            line="entry",
            member=line.member,
            score_int64=int(line.score) if self._int64 else None,
            score_double=None if self._int64 else float(line.score),
            rank=line.rank,
            at=line.at,
            metadata=line.metadata or None,
        )


class _Head:
    """Turns rows back into lines, and checks that each follows its own board and window. Missing values
    become empty; the checksum then fails.
    """

    def __init__(self) -> None:
        self._board: str | None = None
        self._window = _window(_Row(""))

    def line(self, row: _Row) -> BoardLine | WindowLine | EntryLine:
        if row.line == "board":
            self._board, self._window = row.board, _window(row)
            return BoardLine(row.board or "", msgspec.json.decode(row.definition or "", type=dict[str, Any]))
        if row.line == "window" and row.board == self._board:
            self._window = _window(row)
            return WindowLine(row.period or "", row.slot or "", dict(row.groups or ()))
        if row.line == "entry" and row.board == self._board and _window(row) == self._window:
            score = whole(row.score_double or 0.0) if row.score_int64 is None else row.score_int64
            return EntryLine(row.member or "", repr(score), row.rank or 0, row.at, row.metadata or "")
        raise InvalidInput(
            "a row belongs to another board or window than the rows before it; the file is damaged"
        )


def _window(row: _Row) -> tuple[object, ...]:
    return row.period, row.slot, row.groups


def _pyarrow() -> tuple[Any, Any]:
    """The module pyarrow and its `parquet`. They have no types, so they and their objects are Any."""
    try:
        import pyarrow.parquet  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]  # optional, no stubs
    except ImportError as error:
        raise InvalidInput("Parquet needs pyarrow: pip install pyarrow") from error
    return pyarrow, pyarrow.parquet
