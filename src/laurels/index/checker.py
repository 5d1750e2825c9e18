"""Checks the declarations of one class, and finds their columns. Errors name class, index, field and fix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import CHAR, Boolean, Date, DateTime, Enum, Integer, String, Table, Uuid

from laurels.boards.names import NAME_PATTERN
from laurels.errors import InvalidInput
from laurels.index.declaration import (
    CALENDAR,
    ROLLING,
    DeclaredIndex,
    LeaderboardIndex,
    WindowSpec,
    name_of,
    plain_type,
)
from laurels.index.members import MemberCodec
from laurels.wording import near, one_of, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Column
    from sqlalchemy.orm import Mapper

    from laurels.index.members import Kind

# The types that PostgreSQL writes as text in one way, under all settings of a session.
GROUP_TYPES: Final = (String, Integer, Boolean, Uuid, Date)
LONGEST_SECONDS: Final = 366 * 86_400
MOST_LEVELS: Final = 8
CHOICES: Final = {
    "aggregate": (None, "best", "last", "sum", "first"),
    "ties": ("member", "shared", "earliest"),
    "on_update": ("move", "keep"),
    "order": ("desc", "asc"),
}
ATTRIBUTE: Final = "__leaderboards__"


def check(model: type[Any], mapper: Mapper[Any]) -> tuple[DeclaredIndex[Any], ...] | None:
    """The indexes that a class declares; None if it does not declare any."""
    inherited = mapper.inherits is not None
    given = vars(model).get(ATTRIBUTE) if inherited else getattr(model, ATTRIBUTE, None)
    if given is not None:
        return tuple(_Checker(model, mapper).check(given))
    for name in vars(model):
        if name.startswith("__leader") or (name.startswith("__") and near(name, [ATTRIBUTE])):
            raise InvalidInput.at(f"{model.__name__}.{name}", f"declares nothing; did you mean {ATTRIBUTE}?")
    return None


class _Checker:
    def __init__(self, model: type[Any], mapper: Mapper[Any]) -> None:
        self._model = model
        self._mapper = mapper
        self._where = ""

    def check(self, given: object) -> Iterator[DeclaredIndex[Any]]:
        self._where = f"{self._model.__name__}.{ATTRIBUTE}"
        if not isinstance(given, list | tuple):
            raise self._wrong("", "must be a list: write `__leaderboards__ = [LeaderboardIndex(…)]`")
        labels: set[str] = set()
        for number, index in enumerate(cast("Iterable[object]", given)):
            self._where = f"{self._model.__name__}.{ATTRIBUTE}[{number}]"
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
        keys = self._codec("", "the primary key's column", key)
        member = None if index.member is None else self._column(table, "member", index.member)
        members = keys if member is None else self._codec("member", "the column", (member,))
        found = DeclaredIndex(self._model, index, table, key, score, groups, at, keys, member, members)
        try:
            _ = found.definition
        except InvalidInput as error:
            raise self._wrong("", error.detail) from error
        return found

    def _check_values(self, index: LeaderboardIndex) -> None:
        self._check_windows(index)
        for field, choices in CHOICES.items():
            if (chosen := getattr(index, field)) not in choices:
                raise self._wrong(field, one_of([each for each in choices if each], chosen))
        if index.member is None and index.aggregate is not None:
            raise self._wrong("aggregate", "needs `member`, the column that says whose records it aggregates")
        if index.on_update == "keep":
            if index.member is not None:
                raise self._wrong(
                    "on_update",
                    "'keep' is for records that are members themselves; with `member`, a record counts in "
                    "the window of its moment alone: leave it out",
                )
            if any(isinstance(each, str) and ROLLING.fullmatch(each) for each in index.all_windows):
                raise self._wrong("on_update", "a rolling window needs 'move': its days are added up again")
        self._check_names(index)

    def _check_windows(self, index: LeaderboardIndex) -> None:
        if index.window is not None and index.windows:
            raise self._wrong("windows", "give either `window` or `windows`")
        given: object = index.windows
        if isinstance(given, str | timedelta):
            raise self._wrong("windows", f"must be a list: write [{given!r}]")
        field = "windows" if index.windows else "window"
        for window in index.all_windows:
            self._check_window(field, window)
        names = [name_of(window) for window in index.all_windows]
        if len(set(names)) != len(names):
            raise self._wrong(field, "must name each window once")
        keep = cast("object", index.keep)
        if isinstance(keep, Mapping):
            kept = cast("Mapping[object, object]", keep)
            for name, count in kept.items():
                if name not in names:
                    raise self._wrong("keep", f"there is no window {name!r}; {suggestion(name, names)}")
                self._check_keep(f"keep[{name!r}]", count)
        else:
            self._check_keep("keep", keep)

    def _check_keep(self, field: str, keep: object) -> None:
        if keep is not None and (not isinstance(keep, int) or isinstance(keep, bool) or keep < 1):
            raise self._wrong(field, f"must be a number of windows from 1 on, or None, not {keep!r}")

    def _check_window(self, field: str, window: WindowSpec) -> None:
        if isinstance(window, timedelta):
            if window % timedelta(seconds=1) or not 1 <= window.total_seconds() <= LONGEST_SECONDS:
                raise self._wrong(field, f"must be whole seconds, up to 366 days, not {window}")
        elif not (isinstance(window, str) and ROLLING.fullmatch(window)):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
            names = [*CALENDAR, "all_time"]
            if window not in names:
                raise self._wrong(
                    field, one_of([*names, "rolling_7d (any number of days)", "a timedelta"], window)
                )

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

    def _codec(self, field: str, what: str, columns: tuple[Column[Any], ...]) -> MemberCodec:
        kinds: tuple[Kind, ...] = tuple(self._kind(field, what, column) for column in columns)
        texts = tuple(getattr(plain_type(column.type), "as_uuid", True) is False for column in columns)
        return MemberCodec(kinds, tuple(column.name for column in columns), texts)

    def _kind(self, field: str, what: str, column: Column[Any]) -> Kind:
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
                    field,
                    f"{what} {column.name!r} is {column.type!r}; an index takes integers, "
                    "text, UUIDs and dates",
                )

    def _wrong(self, field: str, detail: str) -> InvalidInput:
        return InvalidInput.at(f"{self._where}{'.' if field else ''}{field}", detail)
