"""The tables of an index in its records' database: changes to apply, and what is stored of records.

Changes of one record are numbered in the order in which they happened, because a transaction that changes the
record waits for the one before it to commit, and takes its number after that. The order between records does
not matter. So visible changes are applied in the order of their numbers, and open transactions delay none.

What is stored of a record depends on the declaration: nothing, where its places follow from its row; the
moment of its last write (`moments`), where no column has it; all its placements (`positions`), where updates
keep them.
"""

# ruff: noqa: S608  # names come from declarations, quoted; values are parameters

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec
from sqlalchemy import text

from laurels.index.positions import (
    NOWHERE,
    Placement,
    Position,
    RecordChange,
    RecordMove,
    read_position,
    write_position,
)
from laurels.index.triggers import number_of
from laurels.moments import Moment  # noqa: TC001  # msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import timedelta

    import psycopg
    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.index.declare import DeclaredIndex

RECORDS_AT_ONCE: Final = 1000
# How long a connection with the turn may be idle. A round waits for one call of Valkey, 30 seconds at most; a
# rebuild or a comparison waits for many.
ROUND_SECONDS: Final = 60
LONG_SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class CapturedChange:
    """One row of the outbox, and what was stored of its record when it was read."""

    seq: int
    key: str
    op: Literal["put", "nil", "gone", "clear"]
    moment: Moment
    score: int | None
    groups: tuple[str, ...]
    member: str
    old: Placement | None
    """The former row; its moment is 0 where no column has it."""
    stored: Position
    """All placements where updates keep them; else one with the moment of the last write, or none."""

    def change(self) -> RecordChange:
        if self.op == "clear":
            raise AssertionError("TRUNCATE is not a change of one record")
        return RecordChange(self.op, self.moment, self.score, self.groups, self.member)


class IndexState(NamedTuple):
    """How far the index is, as its database knows it."""

    calls: int
    """Equal to the cursor in Valkey, unless a round was interrupted."""
    built_as: str
    is_building: bool = False
    """Whether a build was begun and not finished."""


class Build(msgspec.Struct, array_like=True):
    """How far a build is."""

    token: str
    """Of its temporary keys."""
    built_as: str
    version: int
    """Of the board."""
    begun: Moment
    after: list[str] | None = None
    """The place of the last record that is done."""
    writing: list[tuple[str, Position]] = []
    """The records that Valkey may have or not, with their positions."""
    steps: int = 0
    """Calls that Valkey has."""
    records: int = 0
    entries: int = 0


class Unapplied(NamedTuple):
    """The committed changes that are not applied yet."""

    changes: int
    lag: timedelta
    """How long the oldest of them has waited."""


class Outbox:
    """The tables' rows of one index; each method runs in the caller's transaction."""

    def __init__(self, index: DeclaredIndex[Any]) -> None:
        self._index = index
        self._name = {"index": index.name}
        self._keeps = index.index.on_update == "keep"
        self._captured = f"{_CAPTURED}, {stored_of(index, '%(index)s', 'o.key')} FROM laurels_index.outbox o"
        # Returns at least one row, for the state.
        changes = (
            "LEFT JOIN laurels_index.indexes i ON i.index = %(index)s "
            f"LEFT JOIN LATERAL ({self._captured} WHERE o.index = %(index)s "
            "ORDER BY o.seq LIMIT %(limit)s) c ON true ORDER BY c.seq"
        )
        self._pending = f"SELECT {_STATE}, c.* FROM (SELECT) AS here {changes}"
        self._begun = f"{_BEGIN} SELECT turn.is_taken, {_STATE}, c.* FROM turn {changes}"

    async def take_turn(self, connection: AsyncConnection, *, idle: int = ROUND_SECONDS) -> None:
        """Takes the lock on applying this index, until the end of the transaction. PostgreSQL ends a
        transaction that is idle for `idle` seconds, which frees the lock.
        """
        await run(connection, _TURN, {**self._name, "idle": f"{idle}s"})

    async def state(self, connection: AsyncConnection) -> IndexState:
        asked = text(f"SELECT {_STATE} FROM laurels_index.indexes i WHERE index = :index")
        found = (await connection.execute(asked, self._name)).one_or_none()
        return IndexState(0, "") if found is None else IndexState(*found)

    async def backlog(self, connection: AsyncConnection) -> Unapplied:
        asked = text(
            "SELECT count(*), coalesce(clock_timestamp() - min(written), interval '0') "
            "FROM laurels_index.outbox WHERE index = :index"
        )
        return Unapplied(*(await connection.execute(asked, self._name)).one())

    async def begin_round(
        self, connection: AsyncConnection, limit: int
    ) -> tuple[IndexState, list[CapturedChange]]:
        """Takes the turn and reads the pending changes; one statement, unless it has to wait for the turn.

        It may see changes that were applied just before the turn. Valkey then refuses the call, because the
        cursor has moved.
        """
        given = {**self._name, "limit": limit, "idle": f"{ROUND_SECONDS}s"}
        found = await (await run(connection, self._begun, given)).fetchall()
        if found[0][0]:
            return self._read([row[1:] for row in found])
        await self.take_turn(connection)
        return await self.pending(connection, limit)

    async def pending(
        self, connection: AsyncConnection, limit: int
    ) -> tuple[IndexState, list[CapturedChange]]:
        """How far the index is, and the next changes, oldest first."""
        found = await run(connection, self._pending, {**self._name, "limit": limit})
        return self._read(await found.fetchall())

    async def numbered(self, connection: AsyncConnection, seqs: Sequence[int]) -> list[CapturedChange]:
        """The changes with these numbers, if they are still there."""
        asked = (
            f"{self._captured} WHERE o.index = %(index)s AND o.seq = ANY(%(seqs)s::bigint[]) ORDER BY o.seq"
        )
        found = await run(connection, asked, {**self._name, "seqs": list(seqs)})
        return [self._change(row) for row in await found.fetchall()]

    async def of_keys(self, connection: AsyncConnection, keys: Sequence[str]) -> list[CapturedChange]:
        """The pending changes of these records."""
        asked = f"{self._captured} WHERE o.index = %(index)s AND o.key = ANY(%(keys)s::text[]) ORDER BY o.seq"
        found = await run(connection, asked, {**self._name, "keys": list(keys)})
        return [self._change(row) for row in await found.fetchall()]

    async def build(self, connection: AsyncConnection) -> Build | None:
        """The build that was begun and not finished."""
        asked = text("SELECT building FROM laurels_index.indexes WHERE index = :index")
        stored = (await connection.execute(asked, self._name)).scalar_one_or_none()
        return msgspec.msgpack.decode(stored, type=Build) if stored else None

    async def save_build(self, connection: AsyncConnection, build: Build | None) -> None:
        put = text(
            "INSERT INTO laurels_index.indexes (index, building) VALUES (:index, :building) "
            "ON CONFLICT (index) DO UPDATE SET building = excluded.building"
        )
        stored = None if build is None else msgspec.msgpack.encode(build)
        await connection.execute(put, {**self._name, "building": stored})

    async def pending_records(self, connection: AsyncConnection) -> list[tuple[str, str, str]]:
        """Key, member and former member of changes that are not applied yet."""
        asked = text(
            "SELECT DISTINCT key, coalesce(member, ''), coalesce(old_member, '') FROM laurels_index.outbox "
            "WHERE index = :index AND key IS NOT NULL"
        )
        return [tuple(row) for row in await connection.execute(asked, self._name)]

    def moved(self, rows: Iterable[CapturedChange], now: Moment) -> dict[str, RecordMove]:
        """What these changes do to their records, by key."""
        of_key: defaultdict[str, list[CapturedChange]] = defaultdict(list)
        for row in rows:
            of_key[row.key].append(row)
        return {key: self._move(own, now) for key, own in of_key.items()}

    def _move(self, rows: list[CapturedChange], now: Moment) -> RecordMove:
        rule, position = self._index.rule, rows[0].stored
        before: list[Position] = []
        for row in rows:
            if self._keeps:
                before.append(position)
            elif row.old is None:
                before.append(NOWHERE)
            elif self._index.is_computed:
                before.append((row.old,))
            else:  # only the moment was stored
                before.append(tuple(row.old._replace(moment=each.moment) for each in position))
            position = rule.after(position, row.change(), now)
        return RecordMove(tuple(before), position)

    async def consume(
        self,
        connection: AsyncConnection,
        rows: Sequence[CapturedChange],
        moved: Mapping[str, RecordMove],
        reached: IndexState | None = None,
    ) -> None:
        """Deletes changes, and stores the positions of their records and how far the index is."""
        positions = {} if self._index.is_computed else {key: each.after for key, each in moved.items()}
        given = {**self._name, "seqs": [row.seq for row in rows]}
        parts = [_FORGET_CHANGES]
        if reached:
            parts.append(_REACH)
            given |= reached._asdict()
        if positions:
            parts += self._storing(positions, given)
        await run(connection, _all_of(parts), given)

    async def store(self, connection: AsyncConnection, positions: Mapping[str, Position]) -> None:
        """Stores the positions of these records."""
        given: dict[str, Any] = {**self._name}
        parts = self._storing(positions, given)
        await run(connection, _all_of(parts), given)

    def _storing(self, positions: Mapping[str, Position], given: dict[str, Any]) -> list[str]:
        """The parts of a statement that stores positions; their values go into `given`."""
        placed = {key: position for key, position in positions.items() if position}
        given["keys"] = list(placed)
        given["nowhere"] = [key for key in positions if key not in placed]
        if self._keeps:
            given["values"] = [write_position(position) for position in placed.values()]
        else:
            given["values"] = [position[-1].moment for position in placed.values()]
        table, column = ("positions", "position") if self._keeps else ("moments", "moment")
        kind = "bytea" if self._keeps else "bigint"
        put = (
            f"INSERT INTO laurels_index.{table} AS known (index, key, {column}) "
            f"SELECT {number_of('%(index)s')}, key, value "
            f"FROM unnest(%(keys)s::text[], %(values)s::{kind}[]) AS placed (key, value) "
            f"ON CONFLICT (index, key) DO UPDATE SET {column} = excluded.{column}"
        )
        of_nowhere = f"index = {number_of('%(index)s')} AND key = ANY(%(nowhere)s::text[])"
        return [f"DELETE FROM laurels_index.{table} WHERE {of_nowhere}", put] if given["nowhere"] else [put]

    async def reached(self, connection: AsyncConnection, calls: int, built_as: str) -> None:
        """Stores how far the index is."""
        state = IndexState(calls, built_as)
        await run(connection, _REACH, {**self._name, **state._asdict()})

    async def fold_all(self, connection: AsyncConnection, now: Moment) -> None:
        """Consumes all visible changes without applying them, for a rebuild."""
        while rows := (await self.pending(connection, RECORDS_AT_ONCE))[1]:
            cleared = next((number for number, row in enumerate(rows) if row.op == "clear"), None)
            if cleared is not None:
                rows = rows[: cleared + 1]
                for table in ("moments", "positions"):
                    forgotten = text(f"DELETE FROM laurels_index.{table} WHERE index = {number_of(':index')}")
                    await connection.execute(forgotten, self._name)
                await self.consume(connection, rows, {})
                continue
            await self.consume(connection, rows, self.moved(rows, now))

    def _read(self, found: list[tuple[Any, ...]]) -> tuple[IndexState, list[CapturedChange]]:
        calls, built_as, is_building, first, *_ = found[0]
        state = IndexState(0, "") if calls is None else IndexState(calls, built_as, is_building)
        return state, [] if first is None else [self._change(row[3:]) for row in found]

    def _change(self, row: tuple[Any, ...]) -> CapturedChange:
        seq, key, op, moment, score, groups, member, old_score, old_groups, old_member, old_moment, stored = (
            row
        )
        old = None
        if old_score is not None:
            old = Placement(old_moment or 0, old_score, tuple(old_groups), old_member or "")
        return CapturedChange(
            seq,
            key,
            op,
            moment,
            score,
            tuple(groups or ()),
            member or "",
            old,
            stored_position(self._index, stored),
        )


def stored_of(index: DeclaredIndex[Any], name: str, key: str) -> str:
    """What is stored of a record, in SQL, by expressions for the index's name and the record's key.

    A subquery for each, because a plan made while the tables are small must suit large ones.
    """
    if index.is_computed:
        return "NULL AS stored"
    table, column = ("positions", "position") if index.index.on_update == "keep" else ("moments", "moment")
    return (
        f"(SELECT {column} FROM laurels_index.{table} p "
        f"WHERE p.index = {number_of(name)} AND p.key = {key}) AS stored"
    )


def stored_position(index: DeclaredIndex[Any], stored: Any) -> Position:  # noqa: ANN401  # bytes, a moment, or nothing
    if stored is None:
        return NOWHERE
    if index.index.on_update == "keep":
        return read_position(bytes(stored))
    return (Placement(stored, 0, ()),)


async def run(
    connection: AsyncConnection, statement: str, given: Mapping[str, Any]
) -> psycopg.AsyncCursor[tuple[Any, ...]]:
    """Runs a statement by psycopg alone: for one change, SQLAlchemy would take longer than PostgreSQL."""
    driver: Any = (await connection.get_raw_connection()).driver_connection
    return await driver.execute(statement, given)


def _all_of(parts: list[str]) -> str:
    """One statement of several."""
    *others, last = parts
    named = [f"part_{number} AS ({part})" for number, part in enumerate(others)]
    return f"WITH {', '.join(named)} {last}" if named else last


_LOCK: Final = "hashtextextended('laurels_index:' || %(index)s, 0)"
_IDLE: Final = "set_config('idle_in_transaction_session_timeout', %(idle)s, true)"
_TURN: Final = f"SELECT {_IDLE}, pg_advisory_xact_lock({_LOCK})"
_BEGIN: Final = f"WITH turn AS MATERIALIZED (SELECT {_IDLE}, pg_try_advisory_xact_lock({_LOCK}) AS is_taken)"
_STATE: Final = "i.calls, i.built_as, i.building IS NOT NULL"
_CAPTURED: Final = (
    "SELECT o.seq, o.key, o.op, o.moment, o.score, o.groups, o.member, "
    "o.old_score, o.old_groups, o.old_member, o.old_moment"
)
_FORGET_CHANGES: Final = (
    "DELETE FROM laurels_index.outbox WHERE index = %(index)s AND seq = ANY(%(seqs)s::bigint[])"
)
_REACH: Final = (
    "INSERT INTO laurels_index.indexes (index, calls, built_as) VALUES (%(index)s, %(calls)s, %(built_as)s) "
    "ON CONFLICT (index) DO UPDATE SET calls = excluded.calls, built_as = excluded.built_as"
)
