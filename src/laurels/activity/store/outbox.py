"""The outbox: the events of finalized days, committed with the changes that they describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import delete, func, select, text

from laurels.postgres.engine import take_turn
from laurels.postgres.tables import lb_outbox

if TYPE_CHECKING:
    from datetime import datetime

    from laurels.postgres.engine import Postgres

# Rows get numbers after their transaction has committed, because transactions may commit out of order: a new
# number is always greater than those already sent. The newest row is never deleted: the next number needs it.
_NUMBER: Final = f"""
WITH numbered AS (
    SELECT id, row_number() OVER (ORDER BY created_at, place, id) AS nth
    FROM {lb_outbox.fullname} WHERE number IS NULL
)
UPDATE {lb_outbox.fullname} o SET number = nth + (SELECT coalesce(max(number), 0) FROM {lb_outbox.fullname})
FROM numbered n WHERE o.id = n.id
"""  # noqa: S608  # names of tables


class OutboxEvent(NamedTuple):
    number: int
    event: str
    payload: dict[str, Any]


class OutboxStore:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def number(self) -> int:
        """Numbers the new rows, in the order of their creation; returns how many there were."""
        async with self._postgres.writing(seconds=60) as connection:
            await take_turn(connection, "campus:outbox")
            return (await connection.execute(text(_NUMBER))).rowcount

    async def after(self, number: int, limit: int) -> list[OutboxEvent]:
        """The events with a greater number, in order."""
        found = (
            select(lb_outbox.c.number, lb_outbox.c.event, lb_outbox.c.payload)
            .where(lb_outbox.c.number > number)
            .order_by(lb_outbox.c.number)
            .limit(limit)
        )
        async with self._postgres.reading() as connection:
            return [OutboxEvent(*row) for row in await connection.execute(found)]

    async def newest(self) -> int:
        """The highest number; 0 when the outbox is empty."""
        newest = select(func.coalesce(func.max(lb_outbox.c.number), 0))
        async with self._postgres.reading() as connection:
            return (await connection.execute(newest)).scalar_one()

    async def forget(self, before: datetime) -> int:
        """Deletes the older rows but the newest one; returns how many there were."""
        newest = select(func.max(lb_outbox.c.number)).scalar_subquery()
        old = delete(lb_outbox).where(lb_outbox.c.created_at < before, lb_outbox.c.number < newest)
        async with self._postgres.writing(seconds=60) as connection:
            return (await connection.execute(old)).rowcount
