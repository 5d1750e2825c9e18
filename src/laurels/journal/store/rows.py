"""The SQL of the journal: its rows in the order in which they were applied, and the cursor of each stream.

A row is identified by its place in Valkey: stream, stream id, index in the call. A drain locks the cursor of
a stream, and moves it in the transaction that stores the rows. So no row is archived twice, and PostgreSQL
releases the locks of a drain that dies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import psycopg
from sqlalchemy import Text, bindparam, cast, delete, func, literal, select, text, tuple_, update
from sqlalchemy.dialects import postgresql

from laurels.errors import LaurelsError
from laurels.journal.entry import JournalRow, StreamId
from laurels.moments import EPOCH, datetime_of
from laurels.postgres.engine import refused, take_turn
from laurels.postgres.tables import boards, journal, journal_cursors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from decimal import Decimal

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.boards.ordering import Score
    from laurels.journal.entry import JournalEntry
    from laurels.moments import Moment
    from laurels.postgres.engine import Postgres

# Months whose partitions are created before they begin.
MONTHS_AHEAD: Final = 2
# Rows that one transaction deletes.
ROWS_AT_ONCE: Final = 10_000
# The size of a piece of COPY. PostgreSQL works on one piece while the next is made.
PIECE_BYTES: Final = 128 * 1024
COPY_SECONDS: Final = 60

_COLUMNS: Final = (
    "board_id", "recorded_at", "seq", "shard", "kind", "call", "now",
    "index", "id", "member", "score", "at", "groups", "op", "metadata",
)  # fmt: skip
_COPY: Final = f"COPY {journal.fullname} ({', '.join(_COLUMNS)}) FROM STDIN"
_NULL: Final = "\\N"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_json = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Stream:
    """The journal of one shard of a board in Valkey."""

    board_id: int
    shard: int
    key: str
    dead_letters: str
    """The key of the stream for entries that cannot be archived."""


class StreamCursor(NamedTuple):
    archived: StreamId
    """Everything up to this entry is archived."""
    attempts: int
    """Failed attempts to archive the next entry."""


class Unstorable(LaurelsError):
    """PostgreSQL refuses the rows, and would refuse them again."""


class JournalStore:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._months: set[tuple[int, int]] = set()

    async def ensure_partitions(self, now: Moment) -> None:
        """Creates the partitions of this month and the next ones."""
        month = _month(datetime_of(now))
        for _ in range(MONTHS_AHEAD + 1):
            await self._ensure_month(month)
            month = _after(month)

    async def ensure_partitions_for(self, moments: Iterable[datetime]) -> None:
        """Creates the partitions that rows of these moments need."""
        for month in {_month(moment) for moment in moments} - self._months:
            await self._ensure_month(month)

    async def _ensure_month(self, month: tuple[int, int]) -> None:
        if month in self._months:
            return
        (year, number), (next_year, next_number) = month, _after(month)
        statement = (
            f"CREATE TABLE IF NOT EXISTS {journal.fullname}_{year:04}_{number:02} "
            f"PARTITION OF {journal.fullname} "
            f"FOR VALUES FROM ('{year:04}-{number:02}-01 00:00:00+00') "
            f"TO ('{next_year:04}-{next_number:02}-01 00:00:00+00')"
        )
        async with self._postgres.writing() as connection:
            await take_turn(connection, "journal partitions")
            await connection.execute(text(statement))
        self._months.add(month)

    async def lease(
        self, connection: AsyncConnection, streams: Collection[Stream]
    ) -> dict[Stream, StreamCursor]:
        """Locks the cursors of these streams until the transaction ends, except those that are locked."""
        by_identity = {(stream.board_id, stream.key): stream for stream in streams}
        if not by_identity:
            return {}
        identity = tuple_(journal_cursors.c.board_id, journal_cursors.c.stream)
        leased = (
            select(journal_cursors)
            .where(identity.in_(list(by_identity)))
            .order_by(journal_cursors.c.board_id, journal_cursors.c.stream)
            .with_for_update(skip_locked=True)
        )
        rows = (await connection.execute(leased)).all()
        # Read under the lock: if its board was dropped, the stream may belong to a new board by now.
        there = select(boards.c.id).where(boards.c.id.in_({row.board_id for row in rows}))
        known = set((await connection.execute(there)).scalars())
        return {
            by_identity[row.board_id, row.stream]: StreamCursor(
                StreamId(row.milliseconds, row.seq), row.attempts
            )
            for row in rows
            if row.board_id in known
        }

    async def wait_for_drains(self, board_id: int) -> None:
        """Returns when no drain has locked the board's streams. No drain locks those of a dropped board."""
        held = select(journal_cursors.c.stream).where(journal_cursors.c.board_id == board_id)
        async with self._postgres.writing() as connection:
            await connection.execute(held.with_for_update())

    async def begin(self, streams: Collection[Stream]) -> None:
        """Creates the cursors that these streams lack."""
        if not streams:
            return
        rows = [{"board_id": stream.board_id, "stream": stream.key} for stream in streams]
        async with self._postgres.writing() as connection:
            await connection.execute(postgresql.insert(journal_cursors).values(rows).on_conflict_do_nothing())

    async def append(
        self, connection: AsyncConnection, entries: Iterable[tuple[Stream, JournalEntry]]
    ) -> int:
        """Stores all rows or none, and returns their number; raises `Unstorable`."""
        rows = 0
        try:
            async with connection.begin_nested():
                driver: Any = (await connection.get_raw_connection()).driver_connection
                async with driver.cursor() as cursor, cursor.copy(_COPY) as copy:
                    for piece, count in _pieces(entries):
                        await copy.write(piece)
                        rows += count
        except (psycopg.DataError, psycopg.IntegrityError, UnicodeEncodeError) as error:
            raise Unstorable(str(error).strip().splitlines()[0]) from error
        except psycopg.Error as error:
            if unavailable := refused(self._postgres.address, error):
                raise unavailable from error
            raise
        return rows

    async def move(
        self, connection: AsyncConnection, cursors: dict[Stream, StreamCursor], calls: dict[Stream, int]
    ) -> None:
        """Sets the cursors of streams that this transaction has locked. `calls`: stored by it."""
        if not cursors:
            return
        moved = (
            update(journal_cursors)
            .where(
                journal_cursors.c.board_id == bindparam("of_board"),
                journal_cursors.c.stream == bindparam("of_stream"),
            )
            .values(
                milliseconds=bindparam("to_milliseconds"),
                seq=bindparam("to_seq"),
                attempts=bindparam("after_attempts"),
                calls=journal_cursors.c.calls + bindparam("more_calls"),
            )
        )
        values = [
            {
                "of_board": stream.board_id,
                "of_stream": stream.key,
                "to_milliseconds": cursor.archived.milliseconds,
                "to_seq": cursor.archived.seq,
                "after_attempts": cursor.attempts,
                "more_calls": calls[stream],
            }
            for stream, cursor in cursors.items()
        ]
        await connection.execute(moved, values)

    async def calls(
        self, connection: AsyncConnection, stream: Stream, ids: Sequence[StreamId]
    ) -> dict[StreamId, str]:
        """The calls of those of these entries that are archived."""
        if not ids:
            return {}
        place = tuple_(journal.c.recorded_at, journal.c.seq)
        known = (
            select(journal.c.recorded_at, journal.c.seq, journal.c.call)
            .distinct()
            .where(
                journal.c.board_id == stream.board_id,
                journal.c.shard == stream.shard,
                place.in_([(each.recorded_at, each.seq) for each in ids]),
            )
        )
        return {_stream_id(row.recorded_at, row.seq): row.call for row in await connection.execute(known)}

    async def archived_calls(self, ids: Collection[int]) -> tuple[int, dict[int, int]]:
        """How many calls of the existing boards are archived: of all, and of each of these."""
        calls = func.coalesce(func.sum(journal_cursors.c.calls), 0)
        there = select(boards.c.id).where(boards.c.id == journal_cursors.c.board_id).exists()
        board_id = journal_cursors.c.board_id
        each = select(board_id, calls).where(board_id.in_(ids)).group_by(board_id)
        async with self._postgres.reading() as connection:
            total = (await connection.execute(select(calls).where(there))).scalar_one()
            return int(total), {row[0]: int(row[1]) for row in await connection.execute(each)}

    async def cursors(self, board_id: int) -> dict[str, StreamId]:
        """The last archived entry of each stream of the board, by key."""
        columns = (journal_cursors.c.stream, journal_cursors.c.milliseconds, journal_cursors.c.seq)
        chosen = select(*columns).where(journal_cursors.c.board_id == board_id)
        async with self._postgres.reading() as connection:
            return {
                row.stream: StreamId(row.milliseconds, row.seq) for row in await connection.execute(chosen)
            }

    async def rows(
        self,
        board_id: int,
        *,
        shard: int | None = None,
        after: tuple[StreamId, int, int] | None = None,
        limit: int = 1000,
    ) -> list[JournalRow]:
        """Rows of the board in the order in which they were applied. `after`: stream id, shard and index."""
        order = (journal.c.recorded_at, journal.c.seq, journal.c.shard, journal.c.index)
        chosen = select(journal).where(journal.c.board_id == board_id).order_by(*order).limit(limit)
        if after is not None:
            stream_id, of_shard, index = after
            place = (stream_id.recorded_at, stream_id.seq, of_shard, index)
            chosen = chosen.where(tuple_(*order) > tuple_(*map(literal, place)))
            chosen = chosen.where(journal.c.recorded_at >= stream_id.recorded_at)  # skips partitions
        if shard is not None:
            chosen = chosen.where(journal.c.shard == shard)
        # As stored: JSON that is parsed and written again may have another text.
        chosen = chosen.with_only_columns(
            *(column for column in journal.c if column.name not in {"groups", "metadata"}),
            cast(journal.c.groups, Text).label("groups"),
            cast(journal.c.metadata, Text).label("metadata"),
        )
        async with self._postgres.reading() as connection:
            return [_row(row) for row in (await connection.execute(chosen)).mappings()]

    async def forget(self, board_id: int) -> int:
        """Deletes the journal of a dropped board in several transactions; returns the number of rows."""
        identity = (
            journal.c.board_id, journal.c.recorded_at, journal.c.seq, journal.c.shard, journal.c.index,
        )  # fmt: skip
        some = select(*identity).where(journal.c.board_id == board_id).limit(ROWS_AT_ONCE)
        deleted = 0
        while True:
            async with self._postgres.writing() as connection:
                held = select(journal_cursors.c.stream).where(journal_cursors.c.board_id == board_id)
                await connection.execute(held.with_for_update())
                count = (
                    await connection.execute(delete(journal).where(tuple_(*identity).in_(some)))
                ).rowcount
                if count < ROWS_AT_ONCE:
                    await connection.execute(
                        delete(journal_cursors).where(journal_cursors.c.board_id == board_id)
                    )
            deleted += count
            if count < ROWS_AT_ONCE:
                return deleted

    async def dropped(self) -> list[int]:
        """The ids of dropped boards that still have cursors."""
        there = select(boards.c.id).where(boards.c.id == journal_cursors.c.board_id)
        gone = select(journal_cursors.c.board_id).distinct().where(~there.exists())
        async with self._postgres.reading() as connection:
            return list((await connection.execute(gone)).scalars())


def _row(row: RowMapping) -> JournalRow:
    return JournalRow(
        index=row["index"],
        given_id="" if row["id"] is None else bytes(row["id"]).decode(),
        member=bytes(row["member"]),
        score=number(row["score"]),
        at=row["at"],
        groups=None if row["groups"] is None else msgspec.json.decode(row["groups"], type=dict[str, str]),
        op=row["op"] or "",
        metadata=row["metadata"] or "",
        kind=row["kind"],
        call=row["call"],
        now=row["now"],
        stream_id=_stream_id(row["recorded_at"], row["seq"]),
        shard=row["shard"],
    )


def number(score: Decimal | None) -> Score | None:
    """A score as it was written: with a fraction as a float, without as an int."""
    if score is None:
        return None
    return int(score) if score.as_tuple().exponent == 0 else float(score)


def _stream_id(recorded_at: datetime, seq: int) -> StreamId:
    return StreamId((recorded_at - EPOCH) // timedelta(milliseconds=1), seq)


def _month(moment: datetime) -> tuple[int, int]:
    in_utc = moment.astimezone(UTC)
    return in_utc.year, in_utc.month


def _after(month: tuple[int, int]) -> tuple[int, int]:
    year, number = month
    return (year, number + 1) if number < 12 else (year + 1, 1)


def _pieces(entries: Iterable[tuple[Stream, JournalEntry]]) -> Iterator[tuple[bytes, int]]:
    lines: list[str] = []
    size = 0
    for stream, entry in entries:
        recorded_at, seq = entry.stream_id.recorded_at, entry.stream_id.seq
        before = (
            f"{stream.board_id}\t{recorded_at.isoformat()}\t{seq}\t{stream.shard}\t"
            f"{_text(entry.kind)}\t{_text(entry.call)}\t{entry.now}\t"
        )
        for row in entry.rows:
            line = (
                f"{before}{row.index}\t{_bytes(row.given_id.encode()) if row.given_id else _NULL}\t"
                f"{_bytes(row.member)}\t{_NULL if row.score is None else repr(row.score)}\t{row.at}\t"
                f"{_NULL if row.groups is None else _text(_json.encode(row.groups).decode())}\t"
                f"{_text(row.op) if row.op else _NULL}\t"
                f"{_text(row.metadata) if row.metadata else _NULL}\n"
            )
            lines.append(line)
            size += len(line)
        if size >= PIECE_BYTES:
            yield "".join(lines).encode(), len(lines)
            lines, size = [], 0
    if lines:
        yield "".join(lines).encode(), len(lines)


def _text(given: str) -> str:
    return given.translate(_ESCAPES) if re.search(r"[\\\t\n\r]", given) else given


def _bytes(given: bytes) -> str:
    return f"\\\\x{given.hex()}"
