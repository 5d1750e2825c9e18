"""What the triggers of an index read, as plain data: for migrations, which must not import models.

A description is stored beside its triggers, so that a migration can put back what was installed before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

import msgspec
from sqlalchemy import BigInteger, Boolean, Column, Date, DateTime, Integer, MetaData, Table, Text, Uuid
from sqlalchemy.orm import registry

from laurels.index.declaration import plain_type
from laurels.index.declare import LeaderboardIndex, declared
from laurels.index.positions import OnUpdate  # noqa: TC001  # msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.types import TypeEngine

    from laurels.index.declare import DeclaredIndex

ColumnKind: TypeAlias = Literal["integer", "text", "uuid", "date", "boolean"]

_TYPES: Final[dict[ColumnKind, type[TypeEngine[Any]]]] = {
    "integer": BigInteger,
    "text": Text,
    "uuid": Uuid,
    "date": Date,
    "boolean": Boolean,
}


class Description(msgspec.Struct, frozen=True, omit_defaults=True):
    """The captured columns of one index, by their names in the database."""

    table: str
    score: str
    key: dict[str, ColumnKind]
    group_by: dict[str, ColumnKind] = {}
    member: dict[str, ColumnKind] = {}
    """The column that says who is ranked, if records are not."""
    at: str | None = None
    name: str | None = None
    """The label of the index; by default its score."""
    schema: str | None = None
    on_update: OnUpdate = "move"
    best_of_all_time: bool = False
    """Whether an index on the table finds a member's best record."""
    notify: bool = True
    """Whether a commit wakes the process that maintains the index."""

    @classmethod
    def of(cls, index: DeclaredIndex[Any], *, notify: bool = True) -> Self:
        return cls(
            table=str(index.table.name),
            score=str(index.score.name),
            key=_kinds(index.key),
            group_by=_kinds(index.groups),
            member=_kinds(() if index.member is None else (index.member,)),
            at=None if index.at is None else str(index.at.name),
            name=None if index.label == index.score.name else index.label,
            schema=None if index.table.schema is None else str(index.table.schema),
            on_update=index.index.on_update,
            best_of_all_time=is_best_of_all_time(index),
            notify=notify,
        )

    @classmethod
    def read(cls, text: str) -> Self:
        return msgspec.json.decode(text, type=cls)

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()

    @property
    def index_name(self) -> str:
        """The name of the index in the database: `game_scores.score`."""
        return ".".join(filter(None, (self.schema, self.table, self.name or self.score)))

    def fields(self) -> dict[str, Any]:
        """Everything but what has its default."""
        return msgspec.to_builtins(self)

    def declared(self) -> DeclaredIndex[Any]:
        """An index whose triggers are the described ones, on a model of its own."""
        types: dict[str, Any] = {name: _TYPES[kind] for name, kind in self._kinds().items()}
        types.setdefault(self.score, BigInteger)
        if self.at is not None:
            types[self.at] = DateTime(timezone=True)
        # A column may have any name; declarations name attributes, which may not.
        attributes = {name: f"column_{number}" for number, name in enumerate(types)}
        columns = [
            Column(name, kind, key=attributes[name], primary_key=name in self.key)
            for name, kind in types.items()
        ]
        table = Table(self.table, MetaData(schema=self.schema), *columns)
        index = LeaderboardIndex(
            attributes[self.score],
            group_by=[attributes[name] for name in self.group_by],
            member=next((attributes[name] for name in self.member), None),
            at=self.at and attributes[self.at],
            on_update=self.on_update,
            windows=["all_time"] if self.best_of_all_time else [],
            name=self.name or self.score,
        )
        return declared(mapped(table, [index]))[0]

    def _kinds(self) -> dict[str, ColumnKind]:
        return self.key | self.group_by | self.member


def is_best_of_all_time(index: DeclaredIndex[Any]) -> bool:
    return index.member is not None and index.aggregate == "best" and "all_time" in index.index.all_windows


def mapped(table: Table, indexes: Iterable[LeaderboardIndex], name: str | None = None) -> type[Any]:
    """A class on this table that declares these indexes."""
    model = type(name or table.name, (), {"__leaderboards__": list(indexes)})
    registry().map_imperatively(model, table)
    return model


def _kinds(columns: Iterable[Column[Any]]) -> dict[str, ColumnKind]:
    return {str(column.name): _kind(column) for column in columns}


def _kind(column: Column[Any]) -> ColumnKind:
    match plain_type(column.type):
        case Integer():
            return "integer"
        case Uuid():
            return "uuid"
        case Date():
            return "date"
        case Boolean():
            return "boolean"
        case _:
            return "text"
