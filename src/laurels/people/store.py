"""People and places in PostgreSQL.

A list with a prefix finds it at the beginning of the id or of the name, by an index for each. It is sorted by
the text that was found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from sqlalchemy import Text, and_, any_, func, literal, or_, select, tuple_, union_all
from sqlalchemy.dialects.postgresql import ARRAY, insert

from laurels.people.records import Person, Place, Record, search_key
from laurels.postgres.tables import people, places

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from sqlalchemy import ColumnElement, Select, Table

    from laurels.postgres.engine import Postgres

ROWS_AT_ONCE: Final = 2000
LONGEST_SECONDS: Final = 60.0
# Greater than every character that a text may have: the end of the texts that begin with a prefix.
_END: Final = "\U0010ffff"
_TABLES: Final[dict[Any, Table]] = {Person: people, Place: places}


class ListPlace(NamedTuple):
    """Where a list goes on: after the record that was found by this text."""

    text: str
    id: str


class RecordStore(Generic[Record]):
    """The people, or the places, of all projects."""

    def __init__(self, postgres: Postgres, kind: type[Record]) -> None:
        self._postgres = postgres
        self._record: Callable[..., Record] = kind
        self._table = _TABLES[kind]
        self._fields: tuple[str, ...] = kind.__struct_fields__
        self._columns = [self._table.c[name] for name in self._fields]

    async def put(self, project: str, records: Iterable[Record]) -> None:
        """Creates or replaces them. Of several with the same id, the last one counts."""
        by_id = {record.id: record for record in records}
        ordered = [by_id[id_] for id_ in sorted(by_id)]  # always in the same order, against deadlocks
        for first in range(0, len(ordered), ROWS_AT_ONCE):
            async with self._postgres.writing(seconds=LONGEST_SECONDS) as connection:
                await connection.execute(self._upsert(project, ordered[first : first + ROWS_AT_ONCE]))

    def _upsert(self, project: str, records: Sequence[Record]) -> Any:  # noqa: ANN401  # a statement
        columns = {name: [getattr(record, name) for record in records] for name in self._fields}
        columns["id_key"] = [search_key(record.id) for record in records]
        columns["name_key"] = [record.name and search_key(record.name) for record in records]
        arrays = (literal(values, ARRAY(Text)) for values in columns.values())
        given = func.unnest(*arrays).table_valued(*columns, name="given").render_derived()
        rows = select(literal(project), *(given.c[name] for name in columns))
        stored = insert(self._table).from_select(["project", *columns], rows)
        changes = {name: stored.excluded[name] for name in columns if name != "id"}
        return stored.on_conflict_do_update(
            index_elements=["project", "id"],
            set_={**changes, "updated_at": func.now()},
            where=or_(*(self._table.c[name].is_distinct_from(value) for name, value in changes.items())),
        )

    async def get(self, project: str, id_: str) -> Record | None:
        return (await self.get_many(project, [id_])).get(id_)

    async def get_many(self, project: str, ids: Collection[str]) -> dict[str, Record]:
        """Those of these that exist."""
        found = select(*self._columns).where(
            self._table.c.project == project, self._table.c.id == any_(literal([*ids], ARRAY(Text)))
        )
        async with self._postgres.reading() as connection:
            return {row.id: self._record(*row) for row in await connection.execute(found)}

    async def page(
        self, project: str, prefix: str, after: ListPlace | None, limit: int
    ) -> list[tuple[ListPlace, Record]]:
        """The records whose id or name begins with the prefix, sorted by that text."""
        table = self._table.c
        if not prefix:
            found = self._branch(table.id, project, after).limit(limit)
        else:
            by_id = self._branch(table.id_key, project, after, _begins(table.id_key, prefix))
            by_name = self._branch(
                table.name_key,
                project,
                after,
                and_(_begins(table.name_key, prefix), ~_begins(table.id_key, prefix)),
            )
            both = union_all(
                select(by_id.limit(limit).subquery()), select(by_name.limit(limit).subquery())
            ).subquery()
            found = select(both).order_by(both.c.found, both.c.id).limit(limit)
        async with self._postgres.reading() as connection:
            rows = await connection.execute(found)
            return [(ListPlace(row.found, row.id), self._record(*row[1:])) for row in rows]

    def _branch(
        self,
        key: ColumnElement[str],
        project: str,
        after: ListPlace | None,
        *conditions: ColumnElement[bool],
    ) -> Select[Any]:
        id_ = self._table.c.id
        behind = () if after is None else (tuple_(key, id_) > tuple_(*map(literal, after)),)
        return (
            select(key.label("found"), *self._columns)
            .where(self._table.c.project == project, *conditions, *behind)
            .order_by(key, id_)
        )

    async def remove(self, project: str, id_: str) -> bool:
        """Whether it existed."""
        gone = self._table.delete().where(self._table.c.project == project, self._table.c.id == id_)
        async with self._postgres.writing() as connection:
            return (await connection.execute(gone)).rowcount > 0


def _begins(key: ColumnElement[str], prefix: str) -> ColumnElement[bool]:
    """As a range, which the index answers however the statement is planned."""
    return and_(key >= prefix, key < prefix + _END)
