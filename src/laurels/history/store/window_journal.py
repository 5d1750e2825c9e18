"""The journal of a window's time, member by member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import and_, case, func, or_, select, text

from laurels.journal.entry import JournalRow
from laurels.journal.store.rows import number
from laurels.postgres.tables import journal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence

    from laurels.moments import Moment
    from laurels.postgres.engine import Postgres

# How long reading one window may take, in seconds, and how many rows are fetched at a time.
LONGEST_SECONDS: Final = 60.0
ROWS_AT_ONCE: Final = 5000


class WindowSpan(NamedTuple):
    """What concerns a window: its time, until when removals affect it, and where entries were placed."""

    starts: Moment
    ends: Moment
    until: Moment | None
    placed_in: Collection[str] = ()
    placed_under: str | None = None
    """The prefix of the names of further windows."""


class WindowJournal:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def of_members(
        self, board_id: int, span: WindowSpan, members: Sequence[bytes] | None = None
    ) -> AsyncIterator[list[JournalRow]]:
        """The rows of each member in the window, in order, as one list for each member."""
        columns = journal.c
        is_match = columns.kind == "match"  # its `op` is not an aggregate; without a score there is no entry
        is_score = or_(columns.kind == "submit", and_(is_match, columns.score.is_not(None)))
        within = and_(is_score, columns.at >= span.starts, columns.at < span.ends)
        removed = and_(columns.kind.in_(("remove", "erase")), columns.at >= span.starts)
        if span.until is not None:
            removed = and_(removed, columns.at < span.until)
        # By its name, not by `at`: an imported entry may have any time.
        where = columns.op.in_(span.placed_in)
        if span.placed_under is not None:
            where = or_(where, columns.op.startswith(span.placed_under, autoescape=True))
        placed = and_(columns.kind == "place", where)
        op = case((is_match, None), else_=columns.op)
        asked = (
            select(columns.kind, columns.member, columns.score, columns.at, columns.now, op, columns.groups)
            .where(columns.board_id == board_id, or_(within, removed, placed))
            .order_by(columns.member, columns.recorded_at, columns.seq, columns.index)
        )
        if members is not None:
            asked = asked.where(columns.member.in_(members))
        asked = asked.execution_options(yield_per=ROWS_AT_ONCE)
        async with self._postgres.writing(seconds=LONGEST_SECONDS) as connection:
            await connection.execute(text(f"SET LOCAL statement_timeout = '{LONGEST_SECONDS:g}s'"))
            together: list[JournalRow] = []
            rows: Any = await connection.stream(asked)
            async for kind, member, score, at, now, op, groups in rows:
                if together and together[0].member != member:
                    yield together
                    together = []
                row = JournalRow(0, "", member, number(score), at, groups, op or "", kind=kind, now=now)
                together.append(row)
            if together:
                yield together

    async def begins(self, board_id: int) -> Moment | None:
        """The time of the board's first submission in the journal."""
        of_board = journal.c.board_id == board_id
        is_score = journal.c.kind.notin_(("place", "metadata"))
        asked = select(func.min(journal.c.at)).where(of_board, is_score)
        async with self._postgres.reading() as connection:
            return (await connection.execute(asked)).scalar_one()

    async def placed(self, board_id: int) -> list[str]:
        """The windows of the board where an import placed entries."""
        of_board = and_(journal.c.board_id == board_id, journal.c.kind == "place")
        async with self._postgres.reading() as connection:
            named = await connection.execute(select(journal.c.op).distinct().where(of_board))
            return [each for each in named.scalars() if each is not None]
