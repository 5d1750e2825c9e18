"""Reads a table, a view or a query of the application, whatever its columns are besides the needed ones.

Values are compared in the type of their column, so that its index is used, and are returned as text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import exc, text

from laurels.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.postgres.engine import Postgres

Row: TypeAlias = "tuple[str | None, ...]"
Kind: TypeAlias = Literal["uuid", "bigint", "text", "other"]

_NAME: Final = re.compile(r'\s*(?:"[^"]+"|[^\W\d][\w$]*)(?:\s*\.\s*(?:"[^"]+"|[^\W\d][\w$]*))?\s*')
_QUERY: Final = re.compile(r"\s*(?:select|with|values|table)\s.*", re.IGNORECASE | re.DOTALL)
_INTEGER: Final = re.compile(r"-?\d{1,18}")

# PostgreSQL's numbers of types: int8, int2, int4, text, varchar, uuid.
_KINDS: Final[dict[int, Kind]] = {
    20: "bigint", 21: "bigint", 23: "bigint", 25: "text", 1043: "text", 2950: "uuid",
}  # fmt: skip

_COLUMNS: Final = text(
    "SELECT attname, atttypid, has_column_privilege(attrelid, attnum, 'SELECT') AS is_readable "
    "FROM pg_attribute WHERE attrelid = to_regclass(:table) AND attnum > 0 AND NOT attisdropped "
    "ORDER BY attnum"
)


@dataclass(frozen=True)
class ApplicationColumns:
    """The needed and wanted columns that there are."""

    types: dict[str, int]

    def kind(self, name: str) -> Kind:
        return _KINDS.get(self.types[name], "other")

    def listed(self, names: Iterable[str]) -> str:
        return ", ".join(f"CAST({name} AS text)" if name in self.types else "NULL" for name in names)


class TableNeeds(NamedTuple):
    setting: str
    """What names another table than the default one, or a query."""
    default: str
    needed: tuple[str, ...]
    wanted: tuple[str, ...]
    """Columns that may be absent."""


class ApplicationTable:
    """Where the application keeps its users or its campuses.

    A table that a setting names has to be there. The one that is used by default may be absent or lack
    columns; then it counts as empty.
    """

    def __init__(self, postgres: Postgres, given: str | None, kind: TableNeeds) -> None:
        self.setting = kind.setting
        self.is_given = given is not None
        self._postgres = postgres
        self._read = (given or kind.default).strip().rstrip(";").strip()
        self._needed = kind.needed
        self._names = (*kind.needed, *kind.wanted)
        self._known: ApplicationColumns | None = None

    async def problem(self) -> str | None:
        """What keeps it from being read; None also for a default table that does not exist."""
        try:
            async with self._postgres.reading() as connection:
                await self._columns(connection)
        except Unavailable as error:
            return error.detail
        return None

    async def rows(self, ids: Iterable[str] | None = None) -> list[Row]:
        """The rows with these ids, or all: the needed columns first, then the wanted ones. What is not there
        is None.
        """
        given = None if ids is None else list(ids)
        if given == []:
            return []
        try:
            return await self._rows(given)
        except exc.ProgrammingError:  # the table was changed since its columns were read
            self._known = None
            try:
                return await self._rows(given)
            except exc.ProgrammingError as error:
                raise Unavailable(f"{self.setting}: {reason_of(error)}") from error

    async def _rows(self, ids: list[str] | None) -> list[Row]:
        async with self._postgres.reading() as connection:
            if self._known is None:
                try:
                    self._known = await self._columns(connection)
                except Unavailable:
                    if self.is_given:
                        raise
            if self._known is None:
                return []
            columns = self._known.listed(self._names)
            asked = f"SELECT {columns} FROM {self._from()} WHERE id IS NOT NULL"  # noqa: S608  # a setting
            values: dict[str, Any] = {}
            if ids is not None:
                condition, found = among(self._known.kind("id"), ids)
                asked, values = f"{asked} AND {condition}", {"ids": found}
            return [tuple(row) for row in await connection.execute(text(asked), values)]

    async def _columns(self, connection: AsyncConnection) -> ApplicationColumns | None:
        """Raises `Unavailable`, which says what is wrong."""
        if _NAME.fullmatch(self._read):
            return await self._columns_of_table(connection)
        if not _QUERY.fullmatch(self._read):
            raise Unavailable(f"{self.setting}: {self._read!r} is neither the name of a table nor a query")
        try:
            asked = text(f"SELECT * FROM {self._from()} LIMIT 0")  # noqa: S608  # the operator's own query
            result = await connection.execute(asked)
        except (exc.ProgrammingError, exc.DataError) as error:
            raise Unavailable(f"{self.setting}: the query fails: {reason_of(error)}") from error
        cursor: Any = result.cursor
        return self._checked({column[0]: column[1] for column in cursor.description}, "the query")

    async def _columns_of_table(self, connection: AsyncConnection) -> ApplicationColumns | None:
        found = (await connection.execute(_COLUMNS, {"table": self._read})).all()
        if not found:
            if self.is_given:
                raise Unavailable(f"{self.setting}: there is no table {self._read}")
            return None
        hidden = [row.attname for row in found if row.attname in self._needed and not row.is_readable]
        if hidden:
            raise Unavailable(
                f"{self.setting}: Laurels' role may not read {', '.join(hidden)} of {self._read}; "
                f"run: GRANT SELECT ON {self._read} TO the role"
            )
        return self._checked({row.attname: row.atttypid for row in found if row.is_readable}, self._read)

    def _checked(self, types: dict[str, int], where: str) -> ApplicationColumns:
        lacking = [name for name in self._needed if name not in types]
        if lacking:
            raise Unavailable(
                f"{self.setting}: {where} has {', '.join(types)}, but lacks {', '.join(lacking)}; "
                f"a query may rename a column to {lacking[0]}"
            )
        return ApplicationColumns({name: types[name] for name in self._names if name in types})

    def _from(self) -> str:
        named = self._read if _NAME.fullmatch(self._read) else f"({self._read}\n) AS source"
        return named.replace(":", r"\:")


def among(kind: Kind, ids: Iterable[str]) -> tuple[str, list[str]]:
    """The condition that a row has one of these ids, and the ids that such a column can have."""
    if kind == "uuid":
        return "id = ANY(CAST(:ids AS uuid[]))", [id_ for id_ in ids if is_uuid(id_)]
    if kind == "bigint":
        return "id = ANY(CAST(:ids AS bigint[]))", [id_ for id_ in ids if _INTEGER.fullmatch(id_)]
    spelled = sorted({spelling for id_ in ids for spelling in _spellings(id_)})
    column = "id" if kind == "text" else "CAST(id AS text)"
    return f"{column} = ANY(CAST(:ids AS text[]))", spelled


def canonical(id_: str) -> str:
    """A UUID with hyphens in lower case; any other id as it is."""
    try:
        return str(UUID(id_))
    except ValueError:
        return id_


def is_uuid(id_: str) -> bool:
    """Whether it is a UUID with hyphens in lower case."""
    try:
        return str(UUID(id_)) == id_
    except ValueError:
        return False


def _spellings(id_: str) -> set[str]:
    """How a column of text may have a UUID."""
    if not is_uuid(id_):
        return {id_}
    bare = id_.replace("-", "")
    return {id_, bare, id_.upper(), bare.upper()}


def reason_of(error: exc.DBAPIError) -> str:
    return (str(error.orig).strip().splitlines() or [type(error).__name__])[0]
