"""`laurels export` and `laurels import`: boards to and from files, and sorted sets from other servers."""

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer
import zstandard

from laurels.cli.options import DataDir, Json
from laurels.cli.output import grouped
from laurels.cli.session import CommandSession
from laurels.errors import InvalidInput
from laurels.history import parquet_file

if TYPE_CHECKING:
    from collections.abc import Generator

    from laurels.engine import Laurels
    from laurels.history.export import ImportCounts

File = Annotated[
    str, typer.Argument(metavar="FILE", help="NDJSON; .gz and .zst compress it; .parquet is Parquet.")
]


def export(  # noqa: PLR0913  # each is an option of the command
    file: File,
    *,
    board: Annotated[str | None, typer.Option(metavar="PROJECT/BOARD", help="One board.")] = None,
    project: Annotated[str | None, typer.Option(metavar="PROJECT", help="All boards of a project.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All boards.")] = False,
    window: Annotated[
        str | None, typer.Option(metavar="PERIOD:SLOT", help="Only one window: daily:2025-10-24.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Export boards to a file: one board, a project, or all."""
    if (board is not None) + (project is not None) + every != 1:
        raise InvalidInput("choose one of --board PROJECT/BOARD, --project PROJECT and --all")
    chosen = None
    if window is not None:
        period, _, slot = window.partition(":")
        chosen = period, slot
    session = CommandSession(data_dir, as_json=json)

    async def work(laurels: "Laurels") -> int:
        boards = [board] if board else await _boards(laurels, project)
        count = 0
        with session.output.counting("Exporting") as progress, _written(file) as stream:
            async for line in laurels.export(boards, chosen, progress):
                stream.write(line)
                count += line.startswith(b'{"line":"entry"')
        return count

    entries = session.run(work)
    session.show({"file": file, "entries": entries}, f"{grouped(entries)} entries in {file}")


def import_(  # noqa: PLR0913  # each is an option of the command
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="A file from `laurels export`.", show_default=False),
    ] = None,
    *,
    into: Annotated[
        str | None, typer.Option(metavar="PROJECT/BOARD", help="Import into this board instead.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the file and change nothing.")] = False,
    from_zset: Annotated[
        str | None, typer.Option(metavar="KEY", help="Import a sorted set of another server, not a file.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="With --from-zset: the other server, redis://…")
    ] = None,
    board: Annotated[
        str | None, typer.Option(metavar="PROJECT/BOARD", help="With --from-zset: the board to fill.")
    ] = None,
    period: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --from-zset: the window to fill.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Import boards from a file, or a sorted set from another server."""
    if (file is None) == (from_zset is None):
        raise InvalidInput("name a file, or a sorted set with --from-zset")
    if from_zset is not None and (url is None or board is None):
        raise InvalidInput("--from-zset needs --url for its server and --board for its members")
    session = CommandSession(data_dir, as_json=json)

    async def work(laurels: "Laurels") -> "ImportCounts":
        if from_zset is not None:
            with session.output.working(f"Importing {from_zset}"):
                return await laurels.import_zset(board or "", url or "", from_zset, period=period)
        with session.output.counting("Importing") as progress:
            return await laurels.import_lines(lambda: _lines(file or ""), into, progress, dry_run=dry_run)

    found = session.run(work)
    passed = f"; skipped {grouped(found.passed)} of windows that are over" if found.passed else ""
    session.show(
        found,
        f"{'would import' if dry_run else 'imported'} {grouped(found.entries)} entries of "
        f"{grouped(found.windows)} windows into {', '.join(found.boards)}{passed}",
    )


async def _boards(laurels: "Laurels", project: str | None) -> list[str]:
    projects = await laurels.store.projects() if project is None else [project]
    return [
        f"{stored.project}/{stored.board}" for name in projects for stored in await laurels.store.boards(name)
    ]


@contextmanager
def _written(file: str) -> "Generator[BinaryIO | parquet_file.ParquetLines]":
    """Opens a file for writing that appears under its name only when it is complete."""
    part = Path(f"{file}.part")
    try:
        with part.open("wb") as raw:
            with _packed(file, raw) as stream:
                yield stream
            raw.flush()
            os.fsync(raw.fileno())
        part.replace(file)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _packed(file: str, raw: BinaryIO) -> "Generator[BinaryIO | parquet_file.ParquetLines]":
    if file.endswith(".gz"):
        with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
            yield cast("BinaryIO", packed)
    elif file.endswith((".zst", ".zstd")):
        with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as packed:
            yield cast("BinaryIO", packed)
    elif file.endswith(parquet_file.ENDING):
        with parquet_file.writing(raw) as lines:
            yield lines
    else:
        yield raw


def _lines(file: str) -> Iterator[bytes]:
    try:
        with Path(file).open("rb") as raw:
            if file.endswith(".gz"):
                yield from gzip.GzipFile(fileobj=raw)
            elif file.endswith((".zst", ".zstd")):
                yield from io.BufferedReader(
                    cast(
                        "io.RawIOBase",
                        zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True),
                    )
                )
            elif file.endswith(parquet_file.ENDING):
                yield from parquet_file.read_lines(raw)
            else:
                yield from raw
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
        raise InvalidInput(f"{file} is damaged or ends too early: {error}") from error
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from error
