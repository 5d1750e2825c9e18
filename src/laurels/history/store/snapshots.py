"""Snapshots in PostgreSQL: windows as they were, entry by entry.

Entries are copied in any order and ranked here by the copied scores, so that the ranks are consistent even if
the window changed during the copy. All of it is one transaction: a snapshot is complete, or stays as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID, uuid5

from sqlalchemy import and_, delete, func, or_, select, text, tuple_
from sqlalchemy.dialects.postgresql import distinct_on, insert

from laurels.boards.drop_counts import SnapshotCount
from laurels.postgres import tables
from laurels.postgres.engine import take_turn
from laurels.postgres.tables import snapshot_entries, snapshots

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime
    from decimal import Decimal

    from sqlalchemy import ColumnElement, RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.postgres.engine import Postgres

# The namespace of the ids that are made from an identity; any constant would do.
_NAMESPACE: Final = UUID("6d0a7d0e-6f3c-5c5e-9a0f-1c1a5d4b7e21")
# How long one snapshot may take, in seconds; a million entries take a small part of it.
LONGEST_SECONDS: Final = 3600.0
# How many entries of dropped boards are deleted at once.
ENTRIES_A_SWEEP: Final = 10_000

_STAGING = """
CREATE TEMPORARY TABLE IF NOT EXISTS snapshot_staging (
    member bytea NOT NULL, score numeric NOT NULL, moment bigint, metadata text,
    arrived bigint GENERATED ALWAYS AS IDENTITY
) ON COMMIT DELETE ROWS
"""


@dataclass(frozen=True)
class RankOrder:
    """How entries are ranked, by the rules of `boards/ordering.py`."""

    descending: bool
    ties: str

    @property
    def by(self) -> str:
        """The SQL order of the list, best first."""
        score = "score DESC" if self.descending else "score"
        if self.ties == "earliest":
            return f"{score}, moment, member"
        falling = self.ties == "shared" and self.descending
        return f"{score}, member{' DESC' if falling else ''}"

    @property
    def shares(self) -> str:
        """The SQL order by which entries with equal values share a rank."""
        return self.by if self.ties != "shared" else self.score

    @property
    def score(self) -> str:
        return "score DESC" if self.descending else "score"


@dataclass(frozen=True)
class SnapshotIdentity:
    """What identifies a snapshot: the window, the group and the moment."""

    board_id: int
    period: str
    slot: str
    cut: str
    taken_for: datetime

    @property
    def id(self) -> UUID:
        parts = (self.board_id, self.period, self.slot, self.taken_for.isoformat(), self.cut)
        return uuid5(_NAMESPACE, "|".join(map(str, parts)))


@dataclass(frozen=True)
class StoredSnapshot:
    id: UUID
    period: str
    slot: str
    cut: str
    taken_for: datetime
    taken_at: datetime
    starts_at: datetime | None
    ends_at: datetime | None
    top: int | None
    total: int
    entries: int

    @property
    def is_whole(self) -> bool:
        """Whether it has every entry of the window."""
        return self.entries == self.total


class SnapshotRow(NamedTuple):
    """An entry to copy."""

    member: bytes
    score: int | float
    moment: int | None
    metadata: str


@dataclass(frozen=True)
class SnapshotEntry:
    """A ranked entry. Ordinals and ranks count from 1."""

    ordinal: int
    rank: int
    dense_rank: int
    member: bytes
    score: Decimal
    moment: int | None
    metadata: dict[str, Any] | None


@dataclass(frozen=True)
class SnapshotFrame:
    """The facts of a snapshot besides its entries."""

    taken_at: datetime
    starts_at: datetime | None
    ends_at: datetime | None
    top: int | None


class SnapshotStore:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def put(
        self,
        identity: SnapshotIdentity,
        frame: SnapshotFrame,
        order: RankOrder,
        rows: AsyncIterator[Sequence[SnapshotRow]],
        total: int | None = None,
    ) -> StoredSnapshot:
        """Stores a snapshot of these rows, or replaces it. If a member comes twice, the last
        row counts. `total`: the number of entries in the window, if the rows are only the best of them.
        """
        async with self._postgres.writing(seconds=LONGEST_SECONDS) as connection:
            await take_turn(connection, f"snapshot:{identity.id}")
            await connection.execute(text("SET LOCAL statement_timeout = 0"))
            await connection.execute(text(_STAGING))
            await _copy(connection, rows)
            await connection.execute(
                delete(snapshot_entries).where(snapshot_entries.c.snapshot == identity.id)
            )
            ranked = await connection.execute(text(_rank(order)), {"snapshot": identity.id, "top": frame.top})
            kept = ranked.rowcount
            distinct = await connection.execute(text("SELECT count(DISTINCT member) FROM snapshot_staging"))
            values = {
                **vars(identity),
                **vars(frame),
                "total": distinct.scalar_one() if total is None else max(total, kept),
                "entries": kept,
            }
            stored = insert(snapshots).values(id=identity.id, **values)
            made = await connection.execute(
                stored.on_conflict_do_update(index_elements=[snapshots.c.id], set_=values).returning(
                    *_COLUMNS
                )
            )
            return _snapshot(made.mappings().one())

    async def taken(self, board_id: int, period: str) -> dict[tuple[str, str, datetime], datetime]:
        """When each snapshot of a window was taken, by slot, cut and the moment it is for."""
        asked = select(snapshots.c.slot, snapshots.c.cut, snapshots.c.taken_for, snapshots.c.taken_at).where(
            snapshots.c.board_id == board_id, snapshots.c.period == period
        )
        async with self._postgres.reading() as connection:
            found = await connection.execute(asked)
            return {(row.slot, row.cut, row.taken_for): row.taken_at for row in found}

    async def get(self, board_id: int, snapshot: UUID) -> StoredSnapshot | None:
        return await self._one(snapshots.c.board_id == board_id, snapshots.c.id == snapshot)

    async def of_window(self, board_id: int, period: str, slot: str, cut: str) -> StoredSnapshot | None:
        """The last snapshot of a window."""
        return await self._one(
            snapshots.c.board_id == board_id,
            snapshots.c.period == period,
            snapshots.c.slot == slot,
            snapshots.c.cut == cut,
        )

    async def listed(
        self,
        board_id: int,
        limit: int,
        *,
        period: str | None = None,
        cut: str | None = None,
        behind: tuple[datetime, UUID] | None = None,
    ) -> list[StoredSnapshot]:
        """Snapshots, newest first. `behind`: the last one of the previous page."""
        asked = select(*_COLUMNS).where(snapshots.c.board_id == board_id)
        if period is not None:
            asked = asked.where(snapshots.c.period == period)
        if cut is not None:
            asked = asked.where(snapshots.c.cut == cut)
        if behind is not None:
            asked = asked.where(tuple_(snapshots.c.taken_for, snapshots.c.id) < behind)
        asked = asked.order_by(snapshots.c.taken_for.desc(), snapshots.c.id.desc()).limit(limit)
        async with self._postgres.reading() as connection:
            return [_snapshot(row) for row in (await connection.execute(asked)).mappings()]

    async def of_slots(
        self, board_id: int, period: str, cut: str, slots: Sequence[str]
    ) -> dict[str, StoredSnapshot]:
        """The last snapshot of each of these windows, by slot."""
        newest = (
            select(*_COLUMNS)
            .ext(distinct_on(snapshots.c.slot))
            .where(
                snapshots.c.board_id == board_id,
                snapshots.c.period == period,
                snapshots.c.cut == cut,
                snapshots.c.slot.in_(slots),
            )
            .order_by(snapshots.c.slot, snapshots.c.taken_for.desc())
        )
        async with self._postgres.reading() as connection:
            found = (await connection.execute(newest)).mappings()
            return {row["slot"]: _snapshot(row) for row in found}

    async def counts(self, board_id: int) -> list[SnapshotCount]:
        """The number of snapshots of each window, whole and by each list of group dimensions."""
        # Values have their `=` and `,` escaped, so only the names remain: region,city.
        dimensions = func.regexp_replace(snapshots.c.cut, "=[^,]*", "", "g")
        asked = (
            select(snapshots.c.period, dimensions.label("dimensions"), func.count().label("number"))
            .where(snapshots.c.board_id == board_id)
            .group_by(snapshots.c.period, text("dimensions"))
            .order_by(snapshots.c.period, text("dimensions"))
        )
        async with self._postgres.reading() as connection:
            return [
                SnapshotCount(
                    row.period, tuple(row.dimensions.split(",") if row.dimensions else ()), row.number
                )
                for row in await connection.execute(asked)
            ]

    async def begins(self, board_id: int, period: str, cut: str) -> datetime | None:
        """The end of the oldest window that has a snapshot."""
        oldest = select(func.min(snapshots.c.ends_at)).where(
            snapshots.c.board_id == board_id, snapshots.c.period == period, snapshots.c.cut == cut
        )
        async with self._postgres.reading() as connection:
            return (await connection.execute(oldest)).scalar_one()

    async def page(self, snapshot: UUID, first: int, limit: int) -> list[SnapshotEntry]:
        """Entries from an ordinal on."""
        asked = (
            select(*_RANKED)
            .where(snapshot_entries.c.snapshot == snapshot, snapshot_entries.c.ordinal >= first)
            .order_by(snapshot_entries.c.ordinal)
            .limit(limit)
        )
        async with self._postgres.reading() as connection:
            return [_ranked(row) for row in (await connection.execute(asked)).mappings()]

    async def standings(
        self, ids: Sequence[UUID], members: Sequence[bytes]
    ) -> dict[tuple[UUID, bytes], SnapshotEntry]:
        """Where these members stand in these snapshots; without members that a snapshot does not have."""
        asked = select(snapshot_entries.c.snapshot, *_RANKED).where(
            snapshot_entries.c.snapshot.in_(ids), snapshot_entries.c.member.in_(members)
        )
        async with self._postgres.reading() as connection:
            found = (await connection.execute(asked)).mappings()
            return {(row["snapshot"], row["member"]): _ranked(row) for row in found}

    async def before(
        self,
        snapshot: UUID,
        order: RankOrder,
        score: Decimal,
        moment: int | None,
        member: bytes,
    ) -> int:
        """How many entries are listed before such an entry, whether or not it exists."""
        columns = snapshot_entries.c
        better = columns.score > score if order.descending else columns.score < score
        if order.ties == "earliest":
            earlier = or_(columns.moment < moment, and_(columns.moment == moment, columns.member < member))
        elif order.ties == "shared" and order.descending:
            earlier = columns.member > member
        else:
            earlier = columns.member < member
        asked = select(func.count()).where(
            columns.snapshot == snapshot, or_(better, and_(columns.score == score, earlier))
        )
        async with self._postgres.reading() as connection:
            return (await connection.execute(asked)).scalar_one()

    async def sweep(self) -> int:
        """Deletes some snapshots of dropped boards. Returns how many entries and snapshots it deleted."""
        lost = select(snapshots.c.id).where(
            ~select(tables.boards.c.id).where(tables.boards.c.id == snapshots.c.board_id).exists()
        )
        async with self._postgres.writing() as connection:
            found = (await connection.execute(lost.limit(1))).scalar_one_or_none()
            if found is None:
                return 0
            some = (
                select(snapshot_entries.c.ordinal)
                .where(snapshot_entries.c.snapshot == found)
                .limit(ENTRIES_A_SWEEP)
            )
            entries = await connection.execute(
                delete(snapshot_entries).where(
                    snapshot_entries.c.snapshot == found, snapshot_entries.c.ordinal.in_(some)
                )
            )
            if entries.rowcount < ENTRIES_A_SWEEP:
                await connection.execute(delete(snapshots).where(snapshots.c.id == found))
            return entries.rowcount + 1

    async def _one(self, *conditions: ColumnElement[bool]) -> StoredSnapshot | None:
        asked = select(*_COLUMNS).where(*conditions).order_by(snapshots.c.taken_for.desc()).limit(1)
        async with self._postgres.reading() as connection:
            row = (await connection.execute(asked)).mappings().one_or_none()
            return None if row is None else _snapshot(row)


_COLUMNS: Final = tuple(snapshots.c[name] for name in StoredSnapshot.__dataclass_fields__)
_RANKED: Final = tuple(snapshot_entries.c[name] for name in SnapshotEntry.__dataclass_fields__)


async def _copy(connection: AsyncConnection, rows: AsyncIterator[Sequence[SnapshotRow]]) -> None:
    raw = await connection.get_raw_connection()
    driver: Any = raw.driver_connection
    into = "COPY snapshot_staging (member, score, moment, metadata) FROM STDIN"
    async with driver.cursor() as cursor, cursor.copy(into) as copy:
        async for some in rows:
            for row in some:
                await copy.write_row((row.member, repr(row.score), row.moment, row.metadata or None))


def _rank(order: RankOrder) -> str:
    """The SQL that ranks the copied entries into the snapshot."""
    return f"""
        INSERT INTO {snapshot_entries.fullname}
            (snapshot, ordinal, rank, dense_rank, member, score, moment, metadata)
        SELECT :snapshot, ordinal, rank, dense_rank, member, score, moment, metadata::json
        FROM (
            SELECT *,
                row_number() OVER (ORDER BY {order.by}) AS ordinal,
                rank() OVER (ORDER BY {order.shares}) AS rank,
                dense_rank() OVER (ORDER BY {order.score}) AS dense_rank
            FROM (
                SELECT DISTINCT ON (member) member, score, moment, metadata
                FROM snapshot_staging ORDER BY member, arrived DESC
            ) AS one_each
        ) AS ranked
        WHERE CAST(:top AS bigint) IS NULL OR ordinal <= :top
    """  # noqa: S608  # made only of constants above


def _snapshot(row: RowMapping) -> StoredSnapshot:
    return StoredSnapshot(**{name: row[name] for name in StoredSnapshot.__dataclass_fields__})


def _ranked(row: RowMapping) -> SnapshotEntry:
    return SnapshotEntry(**{name: row[name] for name in SnapshotEntry.__dataclass_fields__})
