"""The tables of an index in its records' database: changes that are not applied yet, and records' positions.

Changes of one record are numbered in the order in which they happened, because a transaction that changes the
record waits for the one before it to commit, and takes its number after that. The order between records does
not matter. So visible changes are applied in the order of their numbers, and open transactions delay none.
"""

# ruff: noqa: S608  # names come from declarations, quoted; values are parameters

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from sqlalchemy import text

from laurels.index.positions import (
    NOWHERE,
    Placement,
    Position,
    RecordChange,
    folded,
    read_position,
    write_position,
)
from laurels.index.triggers import is_indexed, key_text, of_row, row_groups, row_moment, row_score, table_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    import psycopg
    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.index.declare import DeclaredIndex
    from laurels.moments import Moment

RECORDS_AT_ONCE: Final = 1000
# How long a connection with the turn may be idle. A round waits for one call of Valkey, 30 seconds at most; a
# rebuild or a comparison waits for many.
ROUND_SECONDS: Final = 60
LONG_SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class CapturedChange:
    """One row of the outbox, and the position of its record when it was read."""

    seq: int
    key: str
    op: Literal["put", "nil", "gone", "clear"]
    moment: Moment
    score: int | None
    groups: tuple[str, ...]
    position: Position

    def change(self) -> RecordChange:
        if self.op == "clear":
            raise AssertionError("TRUNCATE is not a change of one record")
        return RecordChange(self.op, self.moment, self.score, self.groups)


class IndexState(NamedTuple):
    """How far the index is, as its database knows it."""

    calls: int
    """Equal to the cursor in Valkey, unless a round was interrupted."""
    built_as: str


class PositionChange(NamedTuple):
    """The positions of a record before and after a round."""

    before: Position
    after: Position


class Record(NamedTuple):
    """A row of the table."""

    key: str
    row: Placement | None
    """None for a row that is not indexed."""
    position: Position


class Outbox:
    """The tables' rows of one index; each method runs in the caller's transaction."""

    def __init__(self, index: DeclaredIndex[Any]) -> None:
        self._index = index
        self._name = {"index": index.name}

    async def take_turn(self, connection: AsyncConnection, *, idle: int = ROUND_SECONDS) -> None:
        """Takes the lock on applying this index, until the end of the transaction. PostgreSQL ends a
        transaction that is idle for `idle` seconds, which frees the lock.
        """
        await (await _driver(connection)).execute(_TURN, {**self._name, "idle": f"{idle}s"})

    async def state(self, connection: AsyncConnection) -> IndexState:
        asked = text("SELECT calls, built_as FROM laurels_index.indexes WHERE index = :index")
        found = (await connection.execute(asked, self._name)).one_or_none()
        return IndexState(0, "") if found is None else IndexState(*found)

    async def count(self, connection: AsyncConnection) -> int:
        asked = text("SELECT count(*) FROM laurels_index.outbox WHERE index = :index")
        return (await connection.execute(asked, self._name)).scalar_one()

    async def begin_round(
        self, connection: AsyncConnection, limit: int
    ) -> tuple[IndexState, list[CapturedChange]]:
        """Takes the turn and reads the pending changes; one statement, unless it has to wait for the turn.

        It may see changes that were applied just before the turn. Valkey then refuses the call, because the
        cursor has moved.
        """
        driver = await _driver(connection)
        given = {**self._name, "limit": limit, "idle": f"{ROUND_SECONDS}s"}
        found = await (await driver.execute(_BEGUN, given)).fetchall()
        if found[0][0]:
            return _pending([row[1:] for row in found])
        await self.take_turn(connection)
        return await self.pending(connection, limit)

    async def pending(
        self, connection: AsyncConnection, limit: int
    ) -> tuple[IndexState, list[CapturedChange]]:
        """How far the index is, and the next changes, oldest first."""
        driver = await _driver(connection)
        return _pending(await (await driver.execute(_PENDING, {**self._name, "limit": limit})).fetchall())

    async def numbered(self, connection: AsyncConnection, seqs: Sequence[int]) -> list[CapturedChange]:
        """The changes with these numbers, if they are still there."""
        asked = f"{_CAPTURED} WHERE o.index = %(index)s AND o.seq = ANY(%(seqs)s::bigint[]) ORDER BY o.seq"
        driver = await _driver(connection)
        found = await driver.execute(asked, {**self._name, "seqs": list(seqs)})
        return [_captured(row) for row in await found.fetchall()]

    async def pending_keys(self, connection: AsyncConnection) -> list[str]:
        """The keys of records with changes that are not applied yet."""
        asked = text("SELECT DISTINCT key FROM laurels_index.outbox WHERE index = :index AND key IS NOT NULL")
        return list((await connection.execute(asked, self._name)).scalars())

    def moved(self, rows: Iterable[CapturedChange], now: Moment) -> dict[str, PositionChange]:
        """The positions that these changes give their records, by key."""
        of_key: defaultdict[str, list[CapturedChange]] = defaultdict(list)
        for row in rows:
            of_key[row.key].append(row)
        return {
            key: PositionChange(
                own[0].position,
                folded(self._index.rule, own[0].position, (row.change() for row in own), now),
            )
            for key, own in of_key.items()
        }

    async def consume(
        self,
        connection: AsyncConnection,
        rows: Sequence[CapturedChange],
        moved: dict[str, PositionChange],
        reached: IndexState | None = None,
    ) -> None:
        """Deletes changes, and stores the positions of their records and how far the index is."""
        positions = {key: each.after for key, each in moved.items()}
        given = {**self._name, **_places(positions), "seqs": [row.seq for row in rows]}
        if reached:
            given |= {"calls": reached.calls, "built_as": reached.built_as}
        await (await _driver(connection)).execute(_APPLIED if reached else _CONSUMED, given)

    async def place(self, connection: AsyncConnection, positions: dict[str, Position]) -> None:
        """Stores the positions of these records."""
        await (await _driver(connection)).execute(_CONSUMED, {**self._name, **_places(positions), "seqs": []})

    async def reached(self, connection: AsyncConnection, calls: int, built_as: str) -> None:
        """Stores how far the index is."""
        await (await _driver(connection)).execute(
            _REACH, {**self._name, "calls": calls, "built_as": built_as}
        )

    async def fold_all(self, connection: AsyncConnection, now: Moment) -> None:
        """Consumes all visible changes without applying them, for a rebuild."""
        while rows := (await self.pending(connection, RECORDS_AT_ONCE))[1]:
            cleared = next((number for number, row in enumerate(rows) if row.op == "clear"), None)
            if cleared is not None:
                rows = rows[: cleared + 1]
                await self._forget(connection)
                await self.consume(connection, rows, {})
                continue
            await self.consume(connection, rows, self.moved(rows, now))

    async def records(self, connection: AsyncConnection, now: Moment) -> AsyncIterator[list[Record]]:
        """Every row of the table, in chunks. A row without a captured moment gets `now`."""
        result = await connection.stream(text(self._selected()), {**self._name, "now": now})
        async for rows in result.partitions(RECORDS_AT_ONCE):
            yield [_record(row) for row in rows]

    async def of_keys(self, connection: AsyncConnection, keys: Sequence[Any], now: Moment) -> list[Record]:
        """The rows with these keys."""
        columns = self._index.key
        values = [key if len(columns) > 1 else (key,) for key in keys]
        listed = ", ".join(
            f"unnest(CAST(:key{number} AS {column.type.compile(connection.dialect)}[]))"
            for number, column in enumerate(columns)
        )
        names = ", ".join(of_row("t", column) for column in columns)
        asked = text(f"{self._selected()} WHERE ({names}) IN (SELECT {listed})")
        given = {f"key{number}": [value[number] for value in values] for number in range(len(columns))}
        found = await connection.execute(asked, {**self._name, "now": now, **given})
        return [_record(row) for row in found]

    async def forget_absent(self, connection: AsyncConnection) -> None:
        """Deletes the positions of records that are not in the table."""
        absent = text(
            "DELETE FROM laurels_index.positions p WHERE p.index = :index AND NOT EXISTS "
            f"(SELECT FROM {table_name(self._index)} t WHERE {key_text(self._index, 't')} = p.key)"
        )
        await connection.execute(absent, self._name)

    async def _forget(self, connection: AsyncConnection) -> None:
        await connection.execute(text("DELETE FROM laurels_index.positions WHERE index = :index"), self._name)

    def _selected(self) -> str:
        index = self._index
        key = key_text(index, "t")
        # Without a timestamp column, the moment is that of the last captured change.
        moment = row_moment(index, "t") or "NULL::bigint"
        return (
            f"SELECT {key} AS key, coalesce({is_indexed(index, 't')}, false) AS is_indexed, "
            f"{row_score(index, 't')} AS score, {row_groups(index, 't')} AS groups, "
            f"{moment} AS moment, p.position, CAST(:now AS bigint) AS now "
            f"FROM {table_name(index)} t "
            f"LEFT JOIN laurels_index.positions p ON p.index = :index AND p.key = {key}"
        )


async def _driver(connection: AsyncConnection) -> psycopg.AsyncConnection[tuple[Any, ...]]:
    """The connection of psycopg: for one change, SQLAlchemy would take longer than PostgreSQL."""
    return cast("Any", (await connection.get_raw_connection()).driver_connection)


_LOCK: Final = "hashtextextended('laurels_index:' || %(index)s, 0)"
_IDLE: Final = "set_config('idle_in_transaction_session_timeout', %(idle)s, true)"
_TURN: Final = f"SELECT {_IDLE}, pg_advisory_xact_lock({_LOCK})"

# A subquery for each position, because a plan made while the tables are small must suit large ones.
_CAPTURED: Final = (
    "SELECT o.seq, o.key, o.op, o.moment, o.score, o.groups, "
    "(SELECT position FROM laurels_index.positions p WHERE p.index = o.index AND p.key = o.key) AS position "
    "FROM laurels_index.outbox o"
)


# Returns at least one row, for the state.
_STATE_AND_CHANGES: Final = (
    "LEFT JOIN laurels_index.indexes i ON i.index = %(index)s "
    f"LEFT JOIN LATERAL ({_CAPTURED} WHERE o.index = %(index)s ORDER BY o.seq LIMIT %(limit)s) c ON true "
    "ORDER BY c.seq"
)
_PENDING: Final = f"SELECT i.calls, i.built_as, c.* FROM (SELECT) AS here {_STATE_AND_CHANGES}"
_BEGUN: Final = (
    f"WITH turn AS MATERIALIZED (SELECT {_IDLE}, pg_try_advisory_xact_lock({_LOCK}) AS is_taken) "
    f"SELECT turn.is_taken, i.calls, i.built_as, c.* FROM turn {_STATE_AND_CHANGES}"
)

_CONSUME: Final = (
    "gone AS (DELETE FROM laurels_index.outbox "
    "WHERE index = %(index)s AND seq = ANY(%(seqs)s::bigint[])), "
    "nowhere AS (DELETE FROM laurels_index.positions "
    "WHERE index = %(index)s AND key = ANY(%(nowhere)s::text[])) "
    "INSERT INTO laurels_index.positions (index, key, position) "
    "SELECT %(index)s, key, position "
    "FROM unnest(%(keys)s::text[], %(positions)s::bytea[]) AS placed (key, position) "
    "ON CONFLICT (index, key) DO UPDATE SET position = excluded.position"
)

_REACH: Final = (
    "INSERT INTO laurels_index.indexes (index, calls, built_as) VALUES (%(index)s, %(calls)s, %(built_as)s) "
    "ON CONFLICT (index) DO UPDATE SET calls = excluded.calls, built_as = excluded.built_as"
)
_CONSUMED: Final = f"WITH {_CONSUME}"
_APPLIED: Final = f"WITH reached AS ({_REACH}), {_CONSUME}"


def _pending(found: list[tuple[Any, ...]]) -> tuple[IndexState, list[CapturedChange]]:
    calls, built_as, first, *_ = found[0]
    state = IndexState(0, "") if calls is None else IndexState(calls, built_as)
    return state, [] if first is None else [_captured(row[2:]) for row in found]


def _places(positions: dict[str, Position]) -> dict[str, list[Any]]:
    placed = {key: write_position(position) for key, position in positions.items() if position}
    return {
        "keys": list(placed),
        "positions": list(placed.values()),
        "nowhere": [key for key in positions if key not in placed],
    }


def _captured(row: tuple[Any, ...]) -> CapturedChange:
    seq, key, op, moment, score, groups, position = row
    return CapturedChange(seq, key, op, moment, score, tuple(groups or ()), read_position(position))


def _record(row: Row[Any]) -> Record:
    position = NOWHERE if row.position is None else read_position(bytes(row.position))
    placed = None
    if row.is_indexed:
        moment = row.moment
        if moment is None:
            moment = position[-1].moment if position else row.now
        placed = Placement(moment, row.score, tuple(row.groups))
    return Record(row.key, placed, position)
