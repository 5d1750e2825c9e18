"""The rows of an index's table, as the index sees them, and which of a member's makes its entry."""

# ruff: noqa: S608  # names come from declarations, quoted; values are parameters

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.dialects import postgresql

from laurels.index.outbox import RECORDS_AT_ONCE, run, stored_of, stored_position
from laurels.index.positions import Placement
from laurels.index.triggers import (
    column_text,
    is_indexed,
    key_text,
    number_of,
    of_row,
    row_groups,
    row_member,
    row_moment,
    row_score,
    table_name,
)
from laurels.moments import datetime_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from sqlalchemy import Column, Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.boards.board import Target, WindowAddress
    from laurels.index.declare import DeclaredIndex
    from laurels.index.positions import Position
    from laurels.moments import Moment

# Within these, every moment lies.
FIRST: Final = -(2**63)
LAST: Final = 2**63 - 1
_dialect = postgresql.dialect()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportNoOverloadImplementation]


class Record(NamedTuple):
    """A row of the table."""

    key: str
    row: Placement | None
    """None for a row that is not indexed."""
    position: Position
    place: list[str]
    """In the order in which a build reads: the member, where it is ranked, and the key."""


class Want(NamedTuple):
    """A member's entry in a window or group."""

    member: str
    address: WindowAddress


class MemberEntry(NamedTuple):
    score: int
    moment: Moment
    key: str
    """Of the record that makes the entry; of the last record where it is a sum."""


class RecordRows:
    """The rows of one index; each method runs in the caller's transaction."""

    def __init__(self, index: DeclaredIndex[Any]) -> None:
        self._index = index
        self._table = table_name(index)
        self._key = key_text(index, "t")
        self._moment = row_moment(index, "t") or ("0::bigint" if index.is_computed else None)

    async def all(self, connection: AsyncConnection, now: Moment) -> AsyncIterator[list[Record]]:
        """Every row of the table, in chunks; those of one member together. A row without a known moment gets
        `now`.
        """
        order = "" if self._index.member is None else f" ORDER BY {of_row('t', self._index.member)}"
        result = await connection.stream(text(f"{self._selected}{order}"), self._given(now))
        async for rows in result.partitions(RECORDS_AT_ONCE):
            yield [self._record(row) for row in rows]

    async def after(
        self, connection: AsyncConnection, place: Sequence[str] | None, now: Moment, limit: int
    ) -> list[Record]:
        """The next rows in the order of a build."""
        names = ", ".join(of_row("t", column) for column in self._order)
        given = {**self._given(now), "limit": limit}
        where = [] if self._index.member is None else [f"{of_row('t', self._index.member)} IS NOT NULL"]
        if place is not None:
            values = [f"CAST(:place{number} AS {_type(column)})" for number, column in enumerate(self._order)]
            where.append(f"({names}) > ({', '.join(values)})")
            given |= {f"place{number}": value for number, value in enumerate(place)}
        filtered = f"WHERE {' AND '.join(where)} " if where else ""
        found = await connection.execute(
            text(f"{self._selected} {filtered}ORDER BY {names} LIMIT :limit"), given
        )
        return [self._record(row) for row in found]

    @property
    def _order(self) -> tuple[Column[Any], ...]:
        member = self._index.member
        return self._index.key if member is None else (member, *self._index.key)

    async def of_keys(self, connection: AsyncConnection, keys: Sequence[Any], now: Moment) -> list[Record]:
        """The rows with these keys."""
        columns = self._index.key
        values = [key if len(columns) > 1 else (key,) for key in keys]
        return await self._of(connection, columns, values, now)

    async def of_members(
        self, connection: AsyncConnection, members: Sequence[Any], now: Moment
    ) -> list[Record]:
        """The rows of these members."""
        if self._index.member is None:
            return await self.of_keys(connection, members, now)
        return await self._of(connection, (self._index.member,), [(member,) for member in members], now)

    async def _of(
        self,
        connection: AsyncConnection,
        columns: Sequence[Column[Any]],
        values: Sequence[tuple[Any, ...]],
        now: Moment,
    ) -> list[Record]:
        listed = ", ".join(
            f"unnest(CAST(:value{number} AS {_type(column)}[]))" for number, column in enumerate(columns)
        )
        names = ", ".join(of_row("t", column) for column in columns)
        asked = text(f"{self._selected} WHERE ({names}) IN (SELECT {listed})")
        given = {f"value{number}": [value[number] for value in values] for number in range(len(columns))}
        found = await connection.execute(asked, {**self._given(now), **given})
        return [self._record(row) for row in found]

    async def forget_absent(self, connection: AsyncConnection) -> None:
        """Deletes what is stored of records that are not in the table, unless a change of them is pending."""
        for table in ("moments", "positions"):
            absent = text(
                f"DELETE FROM laurels_index.{table} p WHERE p.index = {number_of(':index')} AND NOT EXISTS "
                f"(SELECT FROM {self._table} t WHERE {self._key} = p.key) AND p.key NOT IN "
                "(SELECT key FROM laurels_index.outbox WHERE index = :index AND key IS NOT NULL)"
            )
            await connection.execute(absent, {"index": self._index.name})

    async def entries(
        self, connection: AsyncConnection, wants: Mapping[Want, Target]
    ) -> dict[Want, MemberEntry]:
        """The entries of members, as their rows make them now. Members without one are left out."""
        by_depth: defaultdict[int, list[Want]] = defaultdict(list)
        for want in wants:
            by_depth[len(want.address.cut.values)].append(want)
        found: dict[Want, MemberEntry] = {}
        for depth, own in by_depth.items():
            result = await run(connection, self._entries_sql(depth), self._bounds(own, wants, depth))
            for number, score, moment, key in await result.fetchall():
                if FIRST <= score <= LAST:  # a sum beyond has no entry
                    found[own[number - 1]] = MemberEntry(int(score), moment, key)
        return found

    def _bounds(self, own: Sequence[Want], wants: Mapping[Want, Target], depth: int) -> dict[str, Any]:
        given: dict[str, Any] = {"index": self._index.name, "members": [want.member for want in own]}
        slots = [wants[want].slot for want in own]
        if self._index.at is None:
            given["starts"] = [FIRST if slot.starts is None else slot.starts for slot in slots]
            given["ends"] = [LAST if slot.ends is None else slot.ends for slot in slots]
        else:
            given["starts"] = [_timestamp(slot.starts, "-infinity") for slot in slots]
            given["ends"] = [_timestamp(slot.ends, "infinity") for slot in slots]
        for level in range(depth):
            given[f"group{level}"] = [want.address.cut.values[level] for want in own]
        return given

    def _entries_sql(self, depth: int) -> str:
        """For each want its number, score, moment and key: the aggregate of the member's rows."""
        index, member = self._index, self._index.member
        if member is None:
            raise AssertionError("where each record is ranked, it makes its entry alone")
        groups = [f"w.group{level}" for level in range(depth)]
        bound = "bigint" if index.at is None else _type(index.at)
        arrays = [
            f"%(members)s::text[]::{_type(member)}[]",
            f"%(starts)s::text[]::{bound}[]" if index.at is not None else "%(starts)s::bigint[]",
            f"%(ends)s::text[]::{bound}[]" if index.at is not None else "%(ends)s::bigint[]",
            *(f"%(group{level})s::text[]" for level in range(depth)),
        ]
        columns = ", ".join(
            ["member", "starts", "ends", *(f"group{level}" for level in range(depth)), "number"]
        )
        source, moment = f"{self._table} t", self._moment
        if moment is None:
            own = number_of("%(index)s")
            source += f" JOIN laurels_index.moments m ON m.index = {own} AND m.key = {self._key}"
            moment = "m.moment"
        compared = moment if index.at is None else of_row("t", index.at)
        where = [f"{of_row('t', member)} = w.member", is_indexed(index, "t")]
        if not index.is_computed or index.at is not None:
            where.append(f"{compared} >= w.starts AND {compared} < w.ends")
        if depth:
            of_groups = row_groups(index, "t")
            where.append(f"({of_groups})[:{depth}] = ARRAY[{', '.join(groups)}]")
        key_order = [
            of_row("t", column) + (' COLLATE "C"' if kind == "text" else "")
            for column, kind in zip(index.key, index.keys.kinds, strict=True)
        ]
        score = of_row("t", index.score)
        worst_first = "ASC" if index.index.order == "asc" else "DESC"
        later = [f"{compared} DESC", *(f"{each} DESC" for each in key_order)]
        order = {
            "best": [f"{score} {worst_first}", compared, *key_order],
            "first": [compared, *key_order],
            "last": later,
            "sum": later,
        }[index.aggregate]
        rows = f"FROM {source} WHERE {' AND '.join(where)}"
        if index.aggregate == "sum":
            first = f"(array_agg({self._key} ORDER BY {', '.join(order)}))[1]"
            picked = f"SELECT sum({score}) AS score, max({moment}) AS moment, {first} AS key {rows}"
        else:
            picked = (
                f"SELECT {score}::bigint AS score, {moment} AS moment, {self._key} AS key {rows} "
                f"ORDER BY {', '.join(order)} LIMIT 1"
            )
        return (
            f"SELECT w.number, r.score, r.moment, r.key FROM unnest({', '.join(arrays)}) "
            f"WITH ORDINALITY AS w ({columns}) CROSS JOIN LATERAL ({picked}) r WHERE r.score IS NOT NULL"
        )

    @property
    def _selected(self) -> str:
        index = self._index
        # Without a timestamp column, the moment is that of the last captured change.
        return (
            f"SELECT {self._key} AS key, coalesce({is_indexed(index, 't')}, false) AS is_indexed, "
            f"{row_score(index, 't')} AS score, {row_groups(index, 't')} AS groups, "
            f"{row_member(index, 't')} AS member, {self._moment or 'NULL::bigint'} AS moment, "
            f"{stored_of(index, ':index', self._key)}, CAST(:now AS bigint) AS now, "
            f"ARRAY[{', '.join(column_text('t', column) for column in self._order)}]::text[] AS place "
            f"FROM {self._table} t"
        )

    def _given(self, now: Moment) -> dict[str, Any]:
        return {"index": self._index.name, "now": now}

    def _record(self, row: Row[Any]) -> Record:
        position = stored_position(self._index, row.stored)
        placed = None
        if row.is_indexed:
            moment = row.moment
            if moment is None:
                moment = position[-1].moment if position else row.now
            placed = Placement(moment, row.score, tuple(row.groups), row.member or "")
        return Record(row.key, placed, position, row.place)


def _type(column: Column[Any]) -> str:
    return column.type.compile(_dialect)


def _timestamp(moment: Moment | None, unbounded: str) -> str:
    return unbounded if moment is None else datetime_of(moment).isoformat()
