"""A Django model as SQLAlchemy's table and class, which `laurels.index` works on.

Columns are named by their Django field. The twin of a historical model serves a migration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import FieldDoesNotExist
from django.db.backends.utils import split_identifier
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Uuid,
)
from sqlalchemy.types import UserDefinedType

from laurels.index.declare import declared
from laurels.index.description import mapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import Field, Model
    from sqlalchemy.types import TypeEngine

    from laurels.index import LeaderboardIndex
    from laurels.index.declare import DeclaredIndex

_TYPES: Final[dict[str, type[TypeEngine[Any]]]] = {
    "AutoField": Integer,
    "BigAutoField": BigInteger,
    "BigIntegerField": BigInteger,
    "BooleanField": Boolean,
    "CharField": String,
    "DateField": Date,
    "IntegerField": Integer,
    "PositiveBigIntegerField": BigInteger,
    "PositiveIntegerField": Integer,
    "PositiveSmallIntegerField": SmallInteger,
    "SlugField": String,
    "SmallAutoField": SmallInteger,
    "SmallIntegerField": SmallInteger,
    "TextField": String,
    "UUIDField": Uuid,
}


class OtherType(UserDefinedType[Any]):
    """The type of a field that no index can use; errors show the field's class."""

    cache_ok = True

    def __init__(self, field: Field[Any, Any]) -> None:
        self._shown = type(field).__name__

    def __repr__(self) -> str:
        return f"a {self._shown}"


def twin_of(model: type[Model], indexes: Iterable[LeaderboardIndex]) -> type[Any]:
    """A class of SQLAlchemy on the model's table that declares these indexes.

    Raises `InvalidInput` for a wrong declaration.
    """
    meta = model._meta
    keys = _keys(model)
    columns = [
        Column(field.column, _type(field), key=field.name, primary_key=field in keys)
        for field in (*keys, *(field for field in meta.local_concrete_fields if field not in keys))
    ]
    schema, name = split_identifier(meta.db_table)
    table = Table(name, MetaData(schema=schema or None), *columns)
    return mapped(table, indexes, model.__name__)


def declared_of(model: type[Model], index: LeaderboardIndex, name: str) -> DeclaredIndex[Any]:
    """One index of a model, for a migration. `name`: that of the index in the database."""
    (found,) = declared(twin_of(model, [index]))
    vars(found)["name"] = name  # a migration that renames the table may run before or after this
    return found


def field_name(model: type[Model], name: str) -> str:
    """The field with this name or attribute: `player` for `player_id`."""
    try:
        return model._meta.get_field(name).name
    except FieldDoesNotExist:
        return name


def _keys(model: type[Model]) -> list[Field[Any, Any]]:
    return list(getattr(model._meta, "pk_fields", [model._meta.pk]))


def _type(field: Field[Any, Any]) -> TypeEngine[Any]:
    target: Any = field
    while target.remote_field is not None:
        target = target.target_field
    kind = target.get_internal_type()
    if kind == "DateTimeField":
        return DateTime(timezone=True)
    return _TYPES[kind]() if kind in _TYPES else OtherType(target)
