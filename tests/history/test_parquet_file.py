"""Boards as Parquet: the same lines again, or nothing."""

from __future__ import annotations

import io
import json
import random
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]  # it has none
import pyarrow.parquet as pq  # pyright: ignore[reportMissingTypeStubs]  # as above
import pytest

from laurels.errors import InvalidInput
from laurels.history import parquet_file
from laurels.history.export_file import (
    FORMAT,
    FORMAT_VERSION,
    BoardLine,
    EntryLine,
    ExportWriter,
    Manifest,
    WindowLine,
    read,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from laurels.clock import FixedClock
    from laurels.engine import Laurels

    NewBoard = Callable[..., Awaitable[str]]

arrow: Any = pa
parquet: Any = pq

WINDOWS = [
    {"period": "daily", "keep": 4},
    {"period": "rolling", "days": 2, "keep": 2},
    {"period": "all_time"},
]
MEMBERS = ["a", "é\n", "x:y", "🏆", '"', "\u0000", "\U0010ffff", "\ufeff", "null", "~"]
DOUBLES = [0.1 + 0.2, -5e-324, 1.7976931348623157e308, -(2.0**53), 1e16, 7, 0, -1.5]
INTEGERS = [2**63 - 1, -(2**63), 2**53 + 1, 0, -1]


async def play(laurels: Laurels, board: str, clock: FixedClock, scores: list[Any]) -> None:
    chosen = random.Random(1)  # noqa: S311  # data, not secrets
    for number, member in enumerate(MEMBERS * 3):
        await laurels.submit(
            board,
            member,
            chosen.choice(scores),
            groups=chosen.choice([None, {"country": "B,=%R", "team": "é"}]),
            metadata=chosen.choice([None, {"n": number, "s": "\u0000", "deep": [1.0, {"é": None}]}]),
        )
        clock.advance(timedelta(hours=chosen.choice([0, 1, 7]), microseconds=1))


async def lines_of(laurels: Laurels, *boards: str) -> list[bytes]:
    return [line async for line in laurels.export(boards)]


def packed(lines: Iterable[bytes]) -> bytes:
    stream = io.BytesIO()
    with parquet_file.writing(stream) as file:
        for line in lines:
            file.write(line)
    return stream.getvalue()


def unpacked(file: bytes) -> list[bytes]:
    return list(parquet_file.read_lines(io.BytesIO(file)))


def reader(file: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: parquet_file.read_lines(io.BytesIO(file))


async def pages(laurels: Laurels, board: str) -> list[Any]:
    seen: list[Any] = []
    for group in (None, "country=B%2C%3D%25R", "country=B%2C%3D%25R,team=é"):
        for window in await laurels.windows(board, group=group):
            page = await laurels.page(
                board, period=window.period, slot=window.slot or None, group=group, limit=1000
            )
            seen.append((window.period, window.slot, group, page.total, page.entries))
    return seen


@pytest.mark.parametrize(
    ("definition", "scores"),
    [
        ({"ties": "earliest", "shards": 3}, DOUBLES),
        ({"ties": "earliest", "score": "int64", "aggregate": "last"}, INTEGERS),
        ({"ties": "member", "score": "int64", "order": "asc"}, INTEGERS),
        ({"dense": True, "order": "asc", "aggregate": "last"}, DOUBLES),
    ],
)
async def test_a_board_comes_back_as_from_ndjson(
    laurels: Laurels, new_board: NewBoard, clock: FixedClock, definition: dict[str, Any], scores: list[Any]
):
    board = await new_board(windows=WINDOWS, groups=[["country"], ["country", "team"]], **definition)
    await play(laurels, board, clock, scores)
    before = await pages(laurels, board)
    lines = await lines_of(laurels, board)
    file = packed(lines)
    assert unpacked(file) == lines
    await laurels.drop(board, allow_drop="all")
    from_lines = await laurels.import_lines(lambda: lines)
    assert await pages(laurels, board) == before
    await laurels.drop(board, allow_drop="all")
    assert await laurels.import_lines(reader(file)) == from_lines
    assert await pages(laurels, board) == before
    assert (await lines_of(laurels, board))[1:] == lines[1:], "and goes out as it came in"


async def test_several_boards_and_empty_ones_share_a_file(laurels: Laurels, new_board: NewBoard):
    boards = [await new_board(score="int64"), await new_board(), await new_board(windows=WINDOWS)]
    await laurels.submit(boards[0], "ada", 2**63 - 1)
    await laurels.submit(boards[2], "ada", 0.5)
    lines = await lines_of(laurels, *boards)
    assert unpacked(packed(lines)) == lines
    for board in boards:
        await laurels.drop(board, allow_drop="all")
    assert (await laurels.import_lines(reader(packed(lines)))).boards == boards
    assert (await laurels.page(boards[0])).entries[0].score == 2**63 - 1


def made(entries: int, metadata: str = "") -> Iterator[bytes]:
    writer = ExportWriter()
    yield writer.line(Manifest(FORMAT, FORMAT_VERSION, ["p/b"], ""))
    yield writer.line(BoardLine("p/b", {"ties": "earliest"}))
    yield writer.line(WindowLine("daily", "2025-10-24", {"country": "BR"}))
    for rank in range(1, entries + 1):
        yield writer.line(
            EntryLine(f"member-{rank}", repr(-rank), rank, 1_761_307_200_000_000 + rank, metadata)
        )
    yield writer.ending()


def test_the_file_can_be_queried():
    table = parquet.read_table(io.BytesIO(packed(made(3, '{"n":1}'))))
    entry = table.filter(arrow.compute.equal(table["line"], "entry")).slice(1, 1).to_pylist()[0]
    assert entry.pop("at").isoformat() == "2025-10-24T12:00:00.000002+00:00"
    assert entry == {
        "line": "entry",
        "board": "p/b",
        "definition": None,
        "period": "daily",
        "slot": "2025-10-24",
        "groups": [("country", "BR")],
        "member": "member-2",
        "score_int64": None,
        "score_double": -2.0,
        "rank": 2,
        "metadata": '{"n":1}',
    }
    about = parquet.read_metadata(io.BytesIO(packed(made(3)))).metadata
    assert json.loads(about[b"laurels.manifest"])["boards"] == ["p/b"]
    assert json.loads(about[b"laurels.end"])["entries"] == 3


@pytest.mark.parametrize(("entries", "metadata"), [(200_000, ""), (60_000, '{"s":"' + "é" * 900 + '"}')])
def test_memory_does_not_grow_with_the_file(entries: int, metadata: str):
    stream = io.BytesIO(packed(made(entries, metadata)))
    assert parquet.read_metadata(stream).num_row_groups >= 4
    stream.seek(0)
    before = arrow.total_allocated_bytes()
    count = most = 0
    for count, _ in enumerate(read(parquet_file.read_lines(stream)), 1):
        if count % 1000 == 0:
            most = max(most, arrow.total_allocated_bytes() - before)
    assert count == entries + 3
    assert 0 < most < parquet_file.BYTES
    stream.seek(0)
    assert parquet.read_table(stream).nbytes > parquet_file.BYTES, "all at once would be more"


async def refused(laurels: Laurels, board: str, file: bytes, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        await laurels.import_lines(reader(file))
    assert await laurels.store.get(*board.split("/")) is None


async def test_a_damaged_file_changes_nothing(laurels: Laurels, new_board: NewBoard):
    board = await new_board()
    for number in range(5):
        await laurels.submit(board, f"m{number}", number)
    lines = await lines_of(laurels, board)
    file = packed(lines)
    await laurels.drop(board, allow_drop="all")
    for length in (0, 3, 8, len(file) // 2, len(file) - 20, len(file) - 1):
        await refused(laurels, board, file[:length], "damaged or ends too early")
    await refused(laurels, board, b"".join(lines), "damaged or ends too early")
    await refused(laurels, board, packed(lines[:-1]), "ends too early")
    await refused(laurels, board, packed(lines[1:]), "not an export of Laurels")
    await refused(laurels, board, packed([*lines[:3], *lines[4:]]), "checksum")
    newer = lines[0].replace(b'"version":1', b'"version":2')
    await refused(laurels, board, packed([newer, *lines[1:]]), "version 2")
    foreign = io.BytesIO()
    parquet.write_table(arrow.table({"member": ["m1"], "score": [5]}), foreign)
    await refused(laurels, board, foreign.getvalue(), "not an export of Laurels")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("member", "n4"),
        ("score_double", 4.5),
        ("rank", 9),
        ("at", 1),
        ("metadata", "{}"),
        ("board", "p/c"),
        ("slot", "2025-10-25"),
        ("groups", [("country", "AR")]),
        ("line", "score"),
        ("member", None),
        ("score_double", None),
    ],
)
def test_a_row_that_somebody_changed_is_found(column: str, value: object):
    file = parquet.ParquetFile(io.BytesIO(packed(made(5))))
    rows = file.read().to_pylist()
    rows[4][column] = value
    changed = io.BytesIO()
    with parquet.ParquetWriter(changed, file.schema_arrow) as writer:
        writer.write_table(arrow.Table.from_pylist(rows, file.schema_arrow))
        writer.add_key_value_metadata(
            {key: text for key, text in file.metadata.metadata.items() if key.startswith(b"laurels")}
        )
    with pytest.raises(InvalidInput, match="damaged"):
        list(read(unpacked(changed.getvalue())))


def test_a_byte_that_changed_is_found_or_changes_nothing():
    lines = list(made(50, '{"n":1}'))
    file = packed(lines)
    found = 0
    for place in range(0, len(file), 7):
        damaged = file[:place] + bytes([file[place] ^ 0x55]) + file[place + 1 :]
        try:
            again = list(read(unpacked(damaged)))
        except InvalidInput:
            found += 1
        else:
            assert again == list(read(lines)), place
    assert found > len(file) / 7 / 3


def test_without_pyarrow_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    file = packed(made(1))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InvalidInput, match="pip install pyarrow"):
        packed(made(1))
    with pytest.raises(InvalidInput, match="pip install pyarrow"):
        unpacked(file)
