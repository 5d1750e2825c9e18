"""A campus in a test: writes streams, passes days and reads tables, by a clock that stands still."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import NullPool, create_engine, make_url, text

from laurels.activity import valkey_keys
from laurels.activity.store.people import Campus, User
from laurels.moments import datetime_of, moment_of
from laurels.valkey import hashes
from laurels.valkey.command import pairs

if TYPE_CHECKING:
    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints
    from laurels.engine import Laurels


def user(number: int) -> str:
    return str(UUID(int=number))


def stores_apart(endpoints: Endpoints, name: str, number: int) -> tuple[str, str]:
    """URLs of a numbered database of Valkey and a database of PostgreSQL of this test only."""
    server = create_engine(endpoints.postgres_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        known = text("SELECT 1 FROM pg_database WHERE datname = :name")
        if connection.execute(known, {"name": name}).first() is None:
            connection.execute(text(f"CREATE DATABASE {name}"))
    url = make_url(endpoints.postgres_url).set(database=name)
    return f"{endpoints.valkey_url}?db={number}", url.render_as_string(hide_password=False)


OSLO = Campus(user(9001), "Oslo", "Europe/Oslo")
AUCKLAND = Campus(user(9002), "Auckland", "Pacific/Auckland")
HONOLULU = Campus(user(9003), "Honolulu", "Pacific/Honolulu")
# The next date ends in the first before the last one does in the second.
KIRITIMATI = Campus(user(9004), "Kiritimati", "Pacific/Kiritimati")
PAGO_PAGO = Campus(user(9005), "Pago Pago", "Pacific/Pago_Pago")
CAIRO = Campus(user(9006), "Cairo", "Africa/Cairo")


@dataclass
class Stage:
    laurels: Laurels
    clock: FixedClock
    campus: Campus = OSLO

    async def open(self, *campuses: Campus, users: int = 40) -> None:
        """These campuses, and users 1, 2, 3… of the first."""
        self.campus = campuses[0]
        await self.laurels.activity.store.put_campuses(campuses)
        await self.laurels.activity.store.put_users(
            [User(user(n), self.campus.id, f"user-{n}") for n in range(1, users + 1)]
        )

    def at(self, written: str, campus: Campus | None = None) -> datetime:
        """A time on the campus's own clock, such as `2025-10-24 12:00`."""
        return datetime.fromisoformat(written).replace(tzinfo=ZoneInfo((campus or self.campus).timezone))

    def go_to(self, written: str, campus: Campus | None = None) -> None:
        self.clock.now = moment_of(self.at(written, campus))

    async def tell(self, stream: str, fields: dict[str, str], at: datetime | None = None) -> None:
        moment = at or datetime_of(self.clock.now)
        words = [word for pair in {**fields, "at": moment.isoformat()}.items() for word in pair]
        await self.laurels.valkey.command("XADD", stream, "*", *words)

    async def play(self, a: int, b: int, at: datetime | None = None) -> None:
        """`a` wins against `b`: engagement 5 and 2."""
        ended = {"event": "ended", "a": user(a), "b": user(b), "winner": user(a)}
        await self.tell(valkey_keys.ACTIVITIES, ended, at)

    async def write(self, writer: int, reader: int, at: datetime | None = None) -> None:
        await self.tell(valkey_keys.CHAT, {"event": "msg:new", "from": user(writer), "to": user(reader)}, at)

    async def accept(self, accepting: int, inviting: int) -> None:
        accepted = {"event": "accepted", "from": user(accepting), "to": user(inviting)}
        await self.tell(valkey_keys.INVITES, accepted)

    async def beat(self, *users: int, at: datetime | None = None) -> None:
        for each in users:
            await self.tell(valkey_keys.HEARTBEATS, {"user_id": user(each)}, at)

    async def count(self) -> None:
        """Counts everything written so far and updates the boards."""
        await self.laurels.activity.accrual.run_once()
        while await self.laurels.activity.rescorer.run_once():
            pass

    async def finalize(self) -> str:
        return await self.laurels.activity.finalizer.run_due(_silently)

    async def end_day(self, written: str) -> None:
        """Counts everything, and finalizes the day of this date at 00:06 of the next."""
        await self.laurels.activity.accrual.run_once()
        following = datetime.fromisoformat(written) + timedelta(days=1)
        self.go_to(f"{following:%Y-%m-%d} 00:06")
        await self.finalize()

    async def rows(self, statement: str, **parameters: object) -> list[tuple[Any, ...]]:
        async with self.laurels.postgres.reading() as connection:
            return [tuple(row) for row in await connection.execute(text(statement), parameters)]

    async def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything that finalized days write to PostgreSQL."""
        order = {
            "lb_daily": "ymd, campus_id, user_id",
            "laurels.lb_counters": "ymd, campus_id, user_id",
            "streaks": "user_id",
            "badges": "user_id, kind, earned_ymd",
            "laurels.lb_outbox": "event, payload::text",
        }
        found: dict[str, list[tuple[Any, ...]]] = {}
        for table, by in order.items():
            columns = "event, payload" if table == "laurels.lb_outbox" else "*"
            found[table] = await self.rows(f"SELECT {columns} FROM {table} ORDER BY {by}")  # noqa: S608  # constants
        return found

    async def daily(self, ymd: int) -> list[tuple[str, float, int]]:
        """User, overall and rank of a finalized day, best first."""
        rows = await self.rows(
            "SELECT user_id::text, overall, rank_overall FROM lb_daily "
            "WHERE ymd = :ymd AND campus_id = :campus ORDER BY rank_overall, user_id",
            ymd=ymd,
            campus=self.campus.id,
        )
        return [(user_id, float(overall), rank) for user_id, overall, rank in rows]

    async def streak(self, number: int) -> tuple[int, int, int]:
        """Current, best and last active day, which must be the same in both stores."""
        (row,) = await self.rows(
            "SELECT current, best, last_active_ymd FROM streaks WHERE user_id = :user", user=user(number)
        )
        held = await self.laurels.valkey.run(
            hashes.get_texts(self.laurels.activity.keys.streak(user(number)))
        )
        assert tuple(int(held[name]) for name in ("current", "best", "last_active_ymd")) == row
        return row[0], row[1], row[2]

    async def badges(self, kind: str) -> list[tuple[str, int]]:
        rows = await self.rows(
            "SELECT user_id::text, earned_ymd FROM badges WHERE kind = :kind ORDER BY earned_ymd, user_id",
            kind=kind,
        )
        return [(row[0], row[1]) for row in rows]

    async def board(
        self, scope: str = "overall", period: str = "daily", day: str | None = None
    ) -> dict[str, float]:
        """Scores by user, as any Redis client reads them."""
        shown = (
            day or f"{datetime_of(self.clock.now).astimezone(ZoneInfo(self.campus.timezone)):%Y%m%d}"
        ).replace("-", "")
        key = f"lb:z:{scope}:{period}:{self.campus.id}:{shown}"
        listed = await self.laurels.valkey.command("ZRANGE", key, 0, -1, "WITHSCORES")
        return {member.decode(): float(score) for member, score in pairs(listed)}


async def _silently(_: str) -> None:
    pass
