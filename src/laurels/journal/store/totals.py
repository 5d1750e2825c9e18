"""Checksums of a shard's journal rows, so that a rebuild can tell that it has read all of them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import func, literal, select, text, tuple_

from laurels.postgres.tables import journal

if TYPE_CHECKING:
    from laurels.journal.entry import JournalRow, StreamId
    from laurels.postgres.engine import Postgres

# How long a sum over a whole journal may take.
LONGEST_SECONDS: Final = 3600.0
# More digits than any sum of doubles has.
_EXACT: Final = Context(prec=1200)


@dataclass(slots=True)
class RowTotals:
    """The number of rows, and sums of their values. Different rows hardly ever have the same."""

    rows: int = 0
    at: int = 0
    bytes: int = 0
    score: Decimal = Decimal(0)

    def add(self, row: JournalRow) -> None:
        self.rows += 1
        self.at += row.at
        self.bytes += len(row.member)
        if row.score is not None:
            self.score = _EXACT.add(self.score, Decimal(repr(row.score)))


class RowTotalsStore:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def count(self, board_id: int) -> int:
        """The number of rows of the board."""
        asked = select(func.count()).where(journal.c.board_id == board_id)
        return (await self._one(asked))[0]

    async def tally(self, board_id: int, shard: int, upto: tuple[StreamId, int, int] | None) -> RowTotals:
        """The tally of a shard's rows up to one of them: stream id, shard and index."""
        if upto is None:
            return RowTotals()
        stream_id, of_shard, index = upto
        order = (journal.c.recorded_at, journal.c.seq, journal.c.shard, journal.c.index)
        place = (stream_id.recorded_at, stream_id.seq, of_shard, index)
        sums = (
            func.sum(journal.c.at),
            func.sum(func.octet_length(journal.c.member)),
            func.sum(journal.c.score),
        )
        asked = select(func.count(), *(func.coalesce(each, 0) for each in sums)).where(
            journal.c.board_id == board_id,
            journal.c.shard == shard,
            tuple_(*order) <= tuple_(*map(literal, place)),
        )
        rows, at, size, score = await self._one(asked)
        return RowTotals(rows, int(at), int(size), Decimal(score))

    async def _one(self, asked: Any) -> Any:  # noqa: ANN401  # a select of any columns, and its row
        async with self._postgres.writing(seconds=LONGEST_SECONDS) as connection:
            await connection.execute(text("SET LOCAL statement_timeout = 0"))
            return (await connection.execute(asked)).one()
