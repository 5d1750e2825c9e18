"""The sources of `fuse`: an index or a list of your own; `similar` has vectors.

A source ranks all records, or only the candidates that the previous stage listed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, SupportsFloat, TypeAlias, cast

from sqlalchemy import inspect

from laurels.errors import InvalidInput
from laurels.index.fusion import SourceItem, shown
from laurels.index.query import Ranking

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy import Column, ColumnElement
    from sqlalchemy.orm import InstrumentedAttribute, Mapper

    from laurels.index.fusion import Key, Score
    from laurels.index.indexes import Indexes
    from laurels.index.results import Window

End: TypeAlias = Literal["top", "bottom"]

MOST_LISTED: Final = 10_000


class Source(Protocol):
    @property
    def model(self) -> type[Any] | None:
        """The model of its keys, if it names one."""
        ...

    async def listed(
        self, index: Indexes, mapper: Mapper[Any], among: Collection[Key] | None
    ) -> Iterable[SourceItem]:
        """Its list, best first; only of the candidates `among`, unless they are None."""
        ...


@dataclass(frozen=True)
class Standings:
    """The first `k` entries of an index from one end: a source of `fuse`."""

    ranking: Ranking[Any]
    end: End
    k: int

    @property
    def model(self) -> type[Any]:
        return self.ranking.model

    async def listed(
        self,
        index: Indexes,
        mapper: Mapper[Any],  # noqa: ARG002  # the index knows its keys
        among: Collection[Key] | None,
    ) -> list[SourceItem]:
        ranking = replace(self.ranking, opened=index)
        if among is None:
            found = await ranking.entries(self.k, self.end)
        else:
            ranked = await ranking.among(among)
            found = (ranked if self.end == "top" else ranked[::-1])[: self.k]
        return [SourceItem(whole(each.key), each.score) for each in found]


class Leaderboard:
    """An index as a source: `Leaderboard(Streamer.viewers).top(100)`, or `Leaderboard(Streamer, "viewers")`.

    By default of all records in the current window.
    """

    def __init__(self, of: InstrumentedAttribute[Any] | type[Any], name: str | None = None) -> None:
        if isinstance(of, type):
            self._ranking = Ranking[Any](of, name)
        else:
            self._ranking = Ranking[Any](attribute_of(of, "column", "Streamer.viewers").model, name or of)
        _ = self._ranking.declared  # raises `InvalidInput` without an index

    def group(self, *values: object) -> Leaderboard:
        """One group, by its value at each level."""
        return self._with(self._ranking.group(*values))

    def window(self, window: Window | int) -> Leaderboard:
        """Another window than the current one."""
        return self._with(self._ranking.window(window))

    def top(self, k: int) -> Standings:
        """The best k, best first."""
        return Standings(self._ranking, "top", checked_count(k))

    def bottom(self, k: int) -> Standings:
        """The last k, last first: the last counts most."""
        return Standings(self._ranking, "bottom", checked_count(k))

    def _with(self, ranking: Ranking[Any]) -> Leaderboard:
        made = object.__new__(Leaderboard)
        made._ranking = ranking
        return made


class RankedList:
    """A list of your own, best first: primary keys, or pairs of a primary key and its score.

    A primary key of several columns is a tuple. `of` names the model if no other source does.
    """

    def __init__(self, items: Iterable[Any], of: type[Any] | None = None) -> None:
        self._items = list(items)
        self._of = of

    @property
    def model(self) -> type[Any] | None:
        return self._of

    async def listed(
        self,
        index: Indexes,  # noqa: ARG002  # the list is there already
        mapper: Mapper[Any],
        among: Collection[Key] | None,
    ) -> list[SourceItem]:
        listed = [_read(number, item, mapper) for number, item in enumerate(self._items)]
        return listed if among is None else [each for each in listed if each.key in among]


class Attribute(NamedTuple):
    """A column of a model."""

    name: str
    """Its name in errors: `Streamer.embedding`."""
    mapper: Mapper[Any]
    column: Column[Any]

    @property
    def model(self) -> type[Any]:
        return self.mapper.class_


def attribute_of(given: object, field: str, such_as: str) -> Attribute:
    """Raises `InvalidInput` for anything but a column of a model."""
    mapped: Any = inspect(given, raiseerr=False)
    columns = getattr(getattr(mapped, "property", None), "columns", None)
    if not columns or not getattr(mapped.parent, "is_mapper", False):
        raise InvalidInput.at(field, f"must be a column of a model, such as {such_as}; not {given!r}")
    return Attribute(f"{mapped.parent.class_.__name__}.{mapped.key}", mapped.parent, columns[0])


def checked_count(k: int) -> int:
    if type(k) is not int or not 1 <= k <= MOST_LISTED:
        raise InvalidInput.at("k", f"must be a whole number from 1 to {MOST_LISTED:,}, not {k!r}")
    return k


def whole(key: object) -> Key:
    """A primary key as a tuple, also if it has one column."""
    return cast("Key", key) if isinstance(key, tuple) else (key,)


def _read(number: int, item: object, mapper: Mapper[Any]) -> SourceItem:
    """A pair is a key and its score if keys have one column, or if it begins with a tuple."""
    values = whole(item)
    if len(values) == 2 and (len(mapper.primary_key) == 1 or isinstance(values[0], tuple)):
        key, score = values
        return SourceItem(_key(number, key, mapper), _score(number, score))
    return SourceItem(_key(number, item, mapper), None)


def _key(number: int, given: object, mapper: Mapper[Any]) -> Key:
    key, columns, model = whole(given), mapper.primary_key, mapper.class_.__name__
    if len(key) != len(columns):
        names = ", ".join(str(column.key) for column in columns)
        raise InvalidInput.at(
            f"items[{number}]", f"{given!r} is not a primary key of {model}: it needs ({names})"
        )
    for column, value in zip(columns, key, strict=True):
        kind = _python_type(column)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InvalidInput.at(
                f"items[{number}]",
                f"{shown(key)} is not a primary key of {model}: {column.key} must be of {kind.__name__}",
            )
    return key


def _python_type(column: ColumnElement[Any]) -> type[Any]:
    try:
        return column.type.python_type
    except NotImplementedError:  # a type that the user has defined
        return object


def _score(number: int, given: object) -> Score:
    if isinstance(given, int) and not isinstance(given, bool) and abs(given) < 2**64:
        return given
    if isinstance(given, SupportsFloat) and not isinstance(given, bool):
        with suppress(OverflowError):
            return float(given)
    raise InvalidInput.at(f"items[{number}].score", f"must be a number, not {given!r}")
