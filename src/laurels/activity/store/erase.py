"""Renames an erased user in the tables of campuses, and deletes what is known about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import func, literal, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TEXT

from laurels.activity.store.days import LONGEST_SECONDS, BadgeRow, badge_id
from laurels.postgres.engine import take_turn
from laurels.postgres.tables import badges, lb_counters, lb_daily, lb_outbox, streaks

if TYPE_CHECKING:
    from laurels.postgres.engine import Postgres

# The table of users as Laurels makes it, for invented people. Another one is the application's, which erases
# from it by itself.
_OWN_COLUMNS: Final = frozenset({"id", "campus_id", "handle", "avatar_url", "created_at"})
_COLUMNS: Final = text("""
    SELECT attname::text FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE attrelid = to_regclass('users') AND attnum > 0 AND NOT attisdropped
        AND pg_has_role(relowner, 'USAGE')
""")
_DELETE: Final = text("DELETE FROM users WHERE id = CAST(:user AS uuid)")


class ActivityEraseStore:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def rename(self, user: str, named: str) -> int:
        """Renames the user in all rows; returns how many. No day is finalized meanwhile."""
        async with self._postgres.writing(seconds=LONGEST_SECONDS) as connection:
            await connection.execute(text("SET LOCAL statement_timeout = 0"))
            await take_turn(connection, "campus:finalize")
            changed = 0
            for table in (lb_daily, lb_counters, streaks):
                renamed = update(table).where(table.c.user_id == user).values(user_id=named)
                changed += (await connection.execute(renamed)).rowcount
            columns = (badges.c.id, *(badges.c[name] for name in BadgeRow._fields))
            earned = await connection.execute(select(*columns).where(badges.c.user_id == user))
            for id_, *row in earned.all():
                badge = BadgeRow(*row)._replace(user_id=named)
                values = {"id": badge_id(badge), "user_id": named}
                await connection.execute(update(badges).where(badges.c.id == id_).values(values))
                changed += 1
            payload = lb_outbox.c.payload
            renamed = func.jsonb_set(
                payload, literal(["user_id"], ARRAY(TEXT)), func.to_jsonb(literal(named, TEXT)), type_=JSONB
            )
            told = update(lb_outbox).where(payload["user_id"].astext == user).values(payload=renamed)
            changed += (await connection.execute(told)).rowcount
            if frozenset((await connection.execute(_COLUMNS)).scalars()) == _OWN_COLUMNS:
                changed += (await connection.execute(_DELETE, {"user": user})).rowcount
            return changed
