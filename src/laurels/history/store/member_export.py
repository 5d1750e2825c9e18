"""What PostgreSQL keeps about one member: rows of the journal, and entries of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import literal, select, text, tuple_

from laurels.boards.ordering import whole
from laurels.moments import datetime_of, moment_of
from laurels.postgres.tables import journal, snapshot_entries, snapshots

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from sqlalchemy import RowMapping, Select

    from laurels.boards.definition import StoredBoard
    from laurels.postgres.engine import Postgres

# How long a search through a board may take.
LONGEST_SECONDS: Final = 60.0
_ORDER: Final = (journal.c.recorded_at, journal.c.seq, journal.c.shard, journal.c.index)


class JournalPlace(NamedTuple):
    """A row of the journal, in the order of an export."""

    board: str
    recorded_at: int
    seq: int
    shard: int
    place: int
    """In its call, from 0."""


class MemberExportStore:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def journal(
        self, board: StoredBoard, member: bytes, after: JournalPlace | None, limit: int
    ) -> list[tuple[JournalPlace, dict[str, Any]]]:
        """The member's rows, oldest first."""
        columns = journal.c
        asked = (
            select(
                *_ORDER,
                *(columns[name] for name in ("kind", "id", "score", "at", "groups", "op", "metadata")),
            )
            .where(columns.board_id == board.id, columns.member == member)
            .order_by(*_ORDER)
            .limit(limit)
        )
        if after is not None:
            place = (datetime_of(after.recorded_at), *after[2:])
            asked = asked.where(tuple_(*_ORDER) > tuple_(*map(literal, place)))
        return [
            (
                JournalPlace(
                    board.board, moment_of(row["recorded_at"]), row["seq"], row["shard"], row["index"]
                ),
                {
                    "board": board.board,
                    "recorded_at": row["recorded_at"],
                    "kind": row["kind"],
                    "id": None if row["id"] is None else bytes(row["id"]).decode(errors="replace"),
                    "score": None if row["score"] is None else _score(board, row["score"]),
                    "at": datetime_of(row["at"]),
                    "groups": row["groups"],
                    "op": row["op"],
                    "metadata": row["metadata"],
                },
            )
            for row in await self._rows(asked)
        ]

    async def snapshots(self, board: StoredBoard, member: bytes) -> list[dict[str, Any]]:
        """The member's entries in snapshots, oldest first."""
        about = ("period", "slot", "cut", "taken_for")
        asked = (
            select(
                *(snapshots.c[name] for name in about),
                *(snapshot_entries.c[name] for name in ("rank", "score", "metadata")),
            )
            .join(snapshot_entries, snapshot_entries.c.snapshot == snapshots.c.id)
            .where(snapshots.c.board_id == board.id, snapshot_entries.c.member == member)
            .order_by(snapshots.c.taken_for, snapshots.c.period, snapshots.c.cut)
        )
        return [
            {
                "board": board.board,
                "period": row["period"],
                "slot": row["slot"],
                "group": row["cut"],
                "taken_for": row["taken_for"],
                "rank": row["rank"],
                "score": _score(board, row["score"]),
                "metadata": row["metadata"],
            }
            for row in await self._rows(asked)
        ]

    async def _rows(self, asked: Select[Any]) -> Sequence[RowMapping]:
        async with self._postgres.writing(seconds=LONGEST_SECONDS) as connection:
            await connection.execute(text(f"SET LOCAL statement_timeout = '{LONGEST_SECONDS:g}s'"))
            return (await connection.execute(asked)).mappings().all()


def _score(board: StoredBoard, score: Decimal) -> float | str:
    """As in JSON: a string on an `int64` board."""
    return str(int(score)) if board.definition.score == "int64" else whole(float(score))
