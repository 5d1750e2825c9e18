"""Declarations of indexes in a model's `__leaderboards__`, checked where the class is defined.

SQLAlchemy calls us at the end of each mapped class, with any base, so a wrong declaration fails there. A
model that is mapped later, such as a reflected one, is checked then.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast

from sqlalchemy import (
    CHAR,
    Boolean,
    Date,
    DateTime,
    Enum,
    Integer,
    MetaData,
    String,
    Table,
    TypeDecorator,
    Uuid,
    event,
    inspect,
)
from sqlalchemy.exc import NoInspectionAvailable
from sqlalchemy.orm import InstrumentedAttribute, Mapper

from laurels.boards.definition import BoardDefinition, parse_definition
from laurels.boards.keys import BoardRef, Cut
from laurels.boards.names import NAME_PATTERN
from laurels.errors import InvalidInput
from laurels.index.members import Kind, MemberCodec
from laurels.index.positions import OnUpdate, PositionRule
from laurels.moments import SECOND
from laurels.wording import one_of, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Column
    from sqlalchemy.types import TypeEngine

Model = TypeVar("Model")

# The types that PostgreSQL writes as text in one way, under all settings of a session.
GROUP_TYPES: Final = (String, Integer, Boolean, Uuid, Date)

WindowName = Literal["hourly", "daily", "weekly", "monthly"]
# In seconds. A month is 30 days: windows are numbered by floor(unix time / length).
LENGTHS: Final[dict[WindowName, int]] = {
    "hourly": 3600,
    "daily": 86_400,
    "weekly": 604_800,
    "monthly": 2_592_000,
}
LONGEST_SECONDS: Final = 366 * 86_400
MOST_LEVELS: Final = 8
LONGEST_NAME: Final = 64


@dataclass(frozen=True)
class LeaderboardIndex:
    """One leaderboard over the records of a model. Names columns by their attribute or by their own name.

    Records without a score, or without a value in one of the groups, are left out.
    """

    score: str
    """An integer column, up to the whole range of a bigint."""
    _: KW_ONLY
    group_by: Sequence[str] = ()
    """Levels of groups, the coarsest first. Records are ranked overall and in their group at each level."""
    window: WindowName | timedelta = "daily"
    keep: int | None = 7
    """How many windows can be asked for, the current one included; None keeps all."""
    name: str | None = None
    """The name of the index; by default that of the score."""
    at: str | None = None
    """A timestamp column that decides the window; by default the moment of the write does."""
    on_update: OnUpdate = "move"
    """What an update does to an entry in an earlier window: `move` moves it, `keep` leaves it there."""
    order: Literal["desc", "asc"] = "desc"
    """`asc`: the smallest score is best."""

    @property
    def label(self) -> str:
        return self.name or self.score


@dataclass(frozen=True, eq=False)
class DeclaredIndex(Generic[Model]):
    """An index with its model and its columns."""

    model: type[Model]
    index: LeaderboardIndex
    table: Table
    key: tuple[Column[Any], ...]
    score: Column[Any]
    groups: tuple[Column[Any], ...]
    at: Column[Any] | None
    members: MemberCodec

    @property
    def label(self) -> str:
        return self.index.label

    @cached_property
    def name(self) -> str:
        """Its name in the database: `game_scores.score`, after the schema if the table has one."""
        return f"{self.table.fullname}.{self.label}"

    @cached_property
    def seconds(self) -> int:
        return _seconds(self.index.window)

    @cached_property
    def rule(self) -> PositionRule:
        return PositionRule(self.seconds * SECOND, self.index.keep, self.index.on_update)

    @cached_property
    def dimensions(self) -> tuple[str, ...]:
        return tuple(self.index.group_by)

    def ref(self, project: str) -> BoardRef:
        """The board of the index: its name, in characters that board ids may have."""
        plain = re.sub(r"[^A-Za-z0-9._-]", "-", self.name)
        if plain != self.name or len(plain) > LONGEST_NAME:
            plain = f"{plain[: LONGEST_NAME - 9]}.{digest(self.name)[:8]}"
        return BoardRef.parse(f"{project}/{plain}")

    @cached_property
    def definition(self) -> BoardDefinition:
        """The board that holds the index."""
        levels = range(1, len(self.dimensions) + 1)
        return parse_definition(
            {
                "aggregate": "last",
                "order": self.index.order,
                "score": "int64",
                "ties": "member",
                "dense": True,
                "windows": [{"period": "every", "seconds": self.seconds, "keep": self.index.keep}],
                "groups": [self.dimensions[:depth] for depth in levels],
                "archive": {"journal": False},
            }
        )

    def cut(self, groups: tuple[str, ...]) -> Cut:
        return Cut(self.dimensions[: len(groups)], groups)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that its entries depend on. When it changes, the index is rebuilt."""
        columns = (*self.key, self.score, *self.groups, *((self.at,) if self.at is not None else ()))
        parts = (
            *(column.name for column in columns),
            len(self.groups),
            self.at is None,
            *self.dimensions,
            self.seconds,
            self.index.on_update,
            self.index.order,
        )
        return digest(repr(parts))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_known: dict[type[Any], tuple[DeclaredIndex[Any], ...]] = {}


def declared(model: type[Model]) -> tuple[DeclaredIndex[Model], ...]:
    """The indexes of a model, in order of declaration; raises `InvalidInput` when it has none."""
    found = _known.get(model)
    if not found:
        named = getattr(model, "__name__", repr(model))
        raise InvalidInput.at(
            "model", f"{named} declares no leaderboard; give it `__leaderboards__ = [LeaderboardIndex(…)]`"
        )
    return found


def declared_as(model: type[Model], which: str | InstrumentedAttribute[Any] | None) -> DeclaredIndex[Model]:
    """The index of a model with this name or score; None for its only one."""
    found = declared(model)
    if which is None:
        if len(found) == 1:
            return found[0]
        names = ", ".join(each.label for each in found)
        raise InvalidInput.at("index", f"{model.__name__} has several: name one of {names}")
    wanted = which if isinstance(which, str) else which.key
    for each in found:
        if each.label == wanted or (not isinstance(which, str) and each.index.score in {wanted, which.name}):
            return each
    names = [each.label for each in found]
    raise InvalidInput.at("index", f"{model.__name__} has no index {wanted!r}; {suggestion(wanted, names)}")


def models_of(*sources: object) -> list[type[Any]]:
    """The models with indexes among models, declarative bases, their metadata, and lists of these."""
    found: dict[type[Any], None] = {}
    for source in sources:
        if isinstance(source, type) and hasattr(source, "__mapper__"):
            declared(source)
            found[source] = None
            continue
        metadata = source if isinstance(source, MetaData) else getattr(source, "metadata", None)
        if isinstance(metadata, MetaData):
            found |= dict.fromkeys(
                model for model, own in _known.items() if own and own[0].table.metadata is metadata
            )
        elif isinstance(source, type):
            declared(source)
        else:
            found |= dict.fromkeys(models_of(*cast("Iterable[object]", source)))
    return list(found)


def _is_count(keep: object) -> bool:
    return keep is None or (isinstance(keep, int) and not isinstance(keep, bool) and keep >= 1)


def _seconds(window: WindowName | timedelta) -> int:
    return int(window.total_seconds()) if isinstance(window, timedelta) else LENGTHS[window]


class _Checker:
    """Checks the declarations of one class, and finds their columns."""

    def __init__(self, model: type[Any], mapper: Mapper[Any]) -> None:
        self._model = model
        self._mapper = mapper
        self._where = ""

    def check(self, given: object) -> Iterator[DeclaredIndex[Any]]:
        self._where = f"{self._model.__name__}.__leaderboards__"
        if not isinstance(given, list | tuple):
            raise self._wrong("", "must be a list: write `__leaderboards__ = [LeaderboardIndex(…)]`")
        labels: set[str] = set()
        for number, index in enumerate(cast("Iterable[object]", given)):
            self._where = f"{self._model.__name__}.__leaderboards__[{number}]"
            if not isinstance(index, LeaderboardIndex):
                raise self._wrong("", f"must be a LeaderboardIndex(…), not {index!r}")
            self._where += f" ({index.label})"
            if index.label in labels:
                raise self._wrong(
                    "name", f"two indexes have the name {index.label!r}; give one another `name`"
                )
            labels.add(index.label)
            yield self._resolve(index)

    def _resolve(self, index: LeaderboardIndex) -> DeclaredIndex[Any]:
        mapped = self._mapper.local_table
        if not isinstance(mapped, Table):
            raise self._wrong("", "needs a model that is mapped to a table")
        table = cast("Table", mapped)
        self._check_values(index)
        score = self._column(table, "score", index.score)
        if not isinstance(plain_type(score.type), Integer):
            raise self._wrong(
                "score",
                f"the column {score.name!r} is {score.type!r}; scores are 64-bit integers: use BigInteger, "
                "and count in the smallest unit (cents, milliseconds)",
            )
        groups = tuple(self._column(table, "group_by", name) for name in index.group_by)
        for column in groups:
            if not isinstance(plain_type(column.type), GROUP_TYPES):
                raise self._wrong(
                    "group_by",
                    f"the column {column.name!r} is {column.type!r}; groups are text, enums, integers, "
                    "booleans, UUIDs or dates",
                )
        at = None if index.at is None else self._column(table, "at", index.at)
        if at is not None and not isinstance(plain_type(at.type), DateTime):
            raise self._wrong("at", f"the column {at.name!r} is {at.type!r}; use DateTime(timezone=True)")
        key = tuple(table.primary_key.columns)
        kinds: tuple[Kind, ...] = tuple(self._kind(column) for column in key)
        texts = tuple(getattr(plain_type(column.type), "as_uuid", True) is False for column in key)
        members = MemberCodec(kinds, tuple(column.name for column in key), texts)
        found = DeclaredIndex(self._model, index, table, key, score, groups, at, members)
        try:
            _ = found.definition
        except InvalidInput as error:
            raise self._wrong("", error.detail) from error
        return found

    def _check_values(self, index: LeaderboardIndex) -> None:
        window: object = index.window
        if isinstance(window, timedelta):
            if window % timedelta(seconds=1) or not 1 <= window.total_seconds() <= LONGEST_SECONDS:
                raise self._wrong("window", f"must be whole seconds, up to 366 days, not {window}")
        elif window not in LENGTHS:
            raise self._wrong("window", one_of([*LENGTHS, "a timedelta"], window))
        if not _is_count(index.keep):
            raise self._wrong("keep", f"must be a number of windows from 1 on, or None, not {index.keep!r}")
        for field, choices in (("on_update", ("move", "keep")), ("order", ("desc", "asc"))):
            if (chosen := getattr(index, field)) not in choices:
                raise self._wrong(field, one_of(choices, chosen))
        self._check_names(index)

    def _check_names(self, index: LeaderboardIndex) -> None:
        if isinstance(index.group_by, str):
            raise self._wrong("group_by", f"must be a list: write [{index.group_by!r}]")
        if len(set(index.group_by)) != len(index.group_by) or len(index.group_by) > MOST_LEVELS:
            raise self._wrong("group_by", f"must have at most {MOST_LEVELS} columns, each once")
        for field, name in (("name", index.label), *(("group_by", name) for name in index.group_by)):
            if not re.fullmatch(NAME_PATTERN, name):
                raise self._wrong(field, f"{name!r} is not 1 to 64 of A-Z a-z 0-9 - _ .")

    def _column(self, table: Table, field: str, name: str) -> Column[Any]:
        named = self._mapper.columns.get(name)
        column = named if named is not None else table.columns.get(name)
        if column is None:
            known = [attribute.key for attribute in self._mapper.column_attrs]
            why = f"{self._model.__name__} has no column {name!r}; {suggestion(name, known)}"
            raise self._wrong(field, why)
        if column.table is not table:
            raise self._wrong(
                field, f"{name!r} is a column of {column.table}; declare the index on the model of that table"
            )
        return column

    def _kind(self, column: Column[Any]) -> Kind:
        kind = plain_type(column.type)
        match kind:
            case Integer():
                return "integer"
            case Uuid():
                return "uuid"
            case Date():
                return "date"
            case String() if not isinstance(kind, Enum | CHAR):
                return "text"
            case _:
                raise self._wrong(
                    "",
                    f"the primary key's column {column.name!r} is {column.type!r}; an index takes integers, "
                    "text, UUIDs and dates",
                )

    def _wrong(self, field: str, detail: str) -> InvalidInput:
        return InvalidInput.at(f"{self._where}{'.' if field else ''}{field}", detail)


def plain_type(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    """The database's type, without the decorators of SQLAlchemy around it."""
    while isinstance(kind, TypeDecorator):
        kind = kind.impl_instance
    return kind


def _check(mapper: Mapper[Any], model: type[Any]) -> None:
    inherited = mapper.inherits is not None
    given = vars(model).get("__leaderboards__") if inherited else getattr(model, "__leaderboards__", None)
    if given is not None:
        _known[model] = tuple(_Checker(model, mapper).check(given))


event.listen(Mapper, "after_mapper_constructed", _check)


def mapper_of(model: type[Model]) -> Mapper[Model]:
    try:
        return cast("Mapper[Model]", inspect(model))
    except NoInspectionAvailable as error:
        raise InvalidInput.at("model", f"{model!r} is not a mapped class") from error
