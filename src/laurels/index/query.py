"""Reads a leaderboard: `await leaderboard(GameScore).group("asia").window(w).top(10)`.

A ranking is a value: each step returns a new one, and the last call is awaited. Ranks count from 1. By
default they are unique: of equal scores the lower key ranks higher. A recent commit may be missing; call
`await index.caught_up()` to read your own writes. An index that was never built, or that is empty while
changes wait and no process applies them, is an error and never an empty list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypedDict, TypeVar, cast

import msgspec
from sqlalchemy import inspect

from laurels.errors import InvalidInput, NotFound
from laurels.index.declare import declared, declared_as
from laurels.index.results import Placing, Ranked, RankedPage, Window
from laurels.moments import moment_of
from laurels.scores.queries import AMONG_LIMIT
from laurels.wording import one_of, suggestion

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy.ext.asyncio import AsyncSession
    from sqlalchemy.orm import InstrumentedAttribute, Session

    from laurels.boards.board import ZonedWindow
    from laurels.engine import Laurels
    from laurels.index.declare import DeclaredIndex
    from laurels.index.indexes import Indexes
    from laurels.scores.results import Entry, Page, Standing

Model = TypeVar("Model")
End = Literal["top", "bottom"]

PAGE: Final = 1000
MOST_WINDOWS: Final = 1000
MOST_AROUND: Final = 500


class _WindowAndGroup(TypedDict):
    period: str
    slot: str | None
    group: str | None


@dataclass(frozen=True)
class Ranking(Generic[Model]):
    """One leaderboard of a model; by default of all records in the current window."""

    model: type[Model]
    which: str | InstrumentedAttribute[Any] | None = None
    groups: tuple[str, ...] = ()
    named: str | None = None
    asked: Window | datetime | int | str | None = None
    session: AsyncSession | Session | None = None
    opened: Indexes | None = None

    def index(self, which: str | InstrumentedAttribute[Any]) -> Ranking[Model]:
        """Another index of the model, by its name or by the attribute that it ranks."""
        return replace(self, which=which)

    def group(self, *values: object) -> Ranking[Model]:
        """One group, by its value at each level: `group("asia")`, or `group("asia", "tokyo")` within it."""
        return replace(self, groups=tuple(_group_text(value) for value in values))

    def period(self, name: str) -> Ranking[Model]:
        """Another of the declared windows: `period("weekly")`. By default the first."""
        return replace(self, named=name, asked=None)

    def window(self, window: Window | datetime | int | str) -> Ranking[Model]:
        """Another than the current one: an item of `windows()`, the one that contains a moment, or its id:
        `19750`, or `"2025-w43"` of a calendar.
        """
        if isinstance(window, bool) or not isinstance(window, Window | datetime | int | str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
            raise InvalidInput.at("window", f"must be one of windows(), a datetime, or an id, not {window!r}")
        named = window.period if isinstance(window, Window) else self.named
        return replace(self, named=named, asked=window)

    def using(self, session: AsyncSession | Session) -> Ranking[Model]:
        """Loads the records in this session; without one they are detached."""
        return replace(self, session=session)

    @property
    def declared(self) -> DeclaredIndex[Model]:
        return declared_as(self.model, self.which)

    async def top(self, k: int) -> list[Ranked[Model]]:
        """The best k records, best first. Deleted records that are still ranked are left out, and the next
        take their ranks.
        """
        return await self._listed(k, "top")

    async def bottom(self, k: int) -> list[Ranked[Model]]:
        """The last k records, last first."""
        return await self._listed(k, "bottom")

    async def entries(self, k: int, start: End = "top", *, skip: int = 0) -> list[Placing]:
        """The entries without their records: k of them after skipping `skip`. Does not query PostgreSQL."""
        _check_count("k", k)
        _check_count("skip", skip)
        if start not in ("top", "bottom"):
            raise InvalidInput.at("start", one_of(("top", "bottom"), start))
        if k == 0:
            return []
        if skip and start == "bottom":
            return await self._from_bottom(k, skip)
        page = await self._page(min(PAGE, k), start, rank=skip + 1 if skip else None)
        found = self._placings(page.entries)
        while len(found) < k and page.next is not None:
            page = await self._page(min(PAGE, k - len(found)), cursor=page.next)
            found += self._placings(page.entries)
        return found

    async def page(self, limit: int = 100, *, cursor: str | None = None, skip: int = 0) -> RankedPage[Model]:
        """Records from the top: after skipping `skip`, or after a cursor, which holds when others move."""
        _check_count("limit", limit, least=1, most=PAGE)
        _check_count("skip", skip)
        if cursor is not None and skip:
            raise InvalidInput.at("skip", "counts from the top, so it cannot be combined with a cursor")
        page = await self._page(limit, cursor=cursor, rank=skip + 1 if skip else None)
        entries = await self._with_records(self._placings(page.entries))
        return RankedPage(entries, page.total, page.next, page.previous)

    async def between(self, low: int, high: int, limit: int = 100) -> list[Ranked[Model]]:
        """The records with scores from `low` to `high`, best first, up to `limit`."""
        _check_count("limit", limit, least=1, most=PAGE)
        before, upto = await self._opened.before(self, _score(low, "low"), _score(high, "high"))
        if before >= upto:
            await self._check_ready()
            return []
        page = await self._page(min(limit, upto - before), rank=before + 1)
        inside = [each for each in self._placings(page.entries) if low <= each.score <= high]
        return await self._with_records(inside)

    async def rank_of_score(self, score: int) -> int:
        """The rank that this score has or would have: 1 + the number of strictly better entries."""
        before, _ = await self._opened.before(self, _score(score, "score"), score)
        if not before:
            await self._check_ready()
        return before + 1

    async def among(self, keys: Collection[Any]) -> list[Placing]:
        """The entries of these keys or records, best first, each with its rank in the whole ranking."""
        laurels, board = await self._open()
        members = [self._member(key) for key in keys]
        found: list[Placing] = []
        key_of = self.declared.members.key
        for first in range(0, len(members), AMONG_LIMIT):
            chunk = members[first : first + AMONG_LIMIT]
            answer = await laurels.among(board, chunk, **self.where())
            found += [
                Placing(key_of(each.member), int(each.score), each.board_rank) for each in answer.entries
            ]
        if not found:
            await self._check_ready()
        return sorted(found, key=lambda each: each.rank)

    async def rank(self, key: Any) -> int | None:  # noqa: ANN401  # a primary key of any type
        """The rank of a key or a record; None when it has no entry."""
        found = await self.standing(key)
        return None if found is None else found.rank

    async def dense_rank(self, key: Any) -> int | None:  # noqa: ANN401  # as `rank`
        """1 + the number of distinct better scores; None when the record has no entry."""
        if not self.declared.index.dense:
            raise InvalidInput.at("dense_rank", f"declare {self.declared.name} with dense=True")
        found = await self.standing(key)
        return None if found is None or not isinstance(found.dense_rank, int) else found.dense_rank

    async def score(self, key: Any) -> int | None:  # noqa: ANN401  # as `rank`
        found = await self.standing(key)
        return None if found is None else int(found.score)

    async def standing(self, key: Any) -> Standing | None:  # noqa: ANN401  # as `rank`
        """Score, rank, percentile and total of a key or a record; None when it has no entry."""
        laurels, board = await self._open()
        try:
            return await laurels.standing(board, self._member(key), **self.where())
        except NotFound:
            await self._check_window()
            return None

    async def percentile(self, p: float) -> int | None:
        """The score that a share `p` of the entries do not exceed: at 1 the best. None without entries."""
        laurels, board = await self._open()
        try:
            return int((await laurels.percentile(board, p, **self.where())).score)
        except NotFound:
            await self._check_window()
            return None

    async def count(self) -> int:
        return (await self._page(1)).total

    async def around(self, key: Any, above: int = 5, below: int | None = None) -> list[Ranked[Model]]:  # noqa: ANN401  # as `rank`
        """A record and its neighbours, `above` on each side; an empty list when it has no entry."""
        laurels, board = await self._open()
        below = above if below is None else below
        _check_count("above", above, most=MOST_AROUND)
        _check_count("below", below, most=MOST_AROUND)
        try:
            page = await laurels.around(board, self._member(key), above, below, **self.where())
        except NotFound:
            await self._check_window()
            return []
        return await self._with_records(self._placings(page.entries))

    async def windows(self) -> list[Window]:
        """The current window, then the earlier ones with entries that can be asked for, newest first."""
        laurels, board = await self._open()
        asked = self.where()
        if self._zoned().how == "fold":
            await self.count()  # completes the current window
        found = await laurels.windows(board, period=asked["period"], group=asked["group"], limit=MOST_WINDOWS)
        name, is_numbered = self._period()
        return [
            Window(
                int(each.slot) if is_numbered else each.slot,
                each.starts_at,
                each.ends_at,
                each.entries,
                name,
            )
            for number, each in enumerate(found)
            if each.entries or number == 0
        ]

    @property
    def _opened(self) -> Indexes:
        return self.opened or bound_to(self.model)

    async def _open(self) -> tuple[Laurels, str]:
        """The engine and the board."""
        opened = self._opened
        await opened.require_built(self.declared)
        return opened.laurels, opened.board(self.declared)

    def _member(self, key: Any) -> str:  # noqa: ANN401  # a primary key of any type, or a record
        index = self.declared
        if isinstance(key, self.model):
            columns = index.key if index.member is None else (index.member,)
            mapper: Any = inspect(self.model)
            values = tuple(getattr(key, mapper.get_property_by_column(column).key) for column in columns)
            if None in values:
                names = ", ".join(column.name for column in columns)
                raise InvalidInput.at("key", f"this {self.model.__name__} has no {names} yet: flush it first")
            key = values
        elif inspect(cast("type[object]", type(key)), raiseerr=False) is not None:
            named = type(cast("object", key)).__name__
            raise InvalidInput.at("key", f"must be a {self.model.__name__} or its key, not a {named}")
        return index.members.of_key(key)

    def _period(self) -> tuple[str, bool]:
        """The name of the asked window, and whether its slots are numbered."""
        periods = self.declared.periods
        name = next(iter(periods)) if self.named is None else self.named
        name = next((each for each, window in periods.items() if name in (each, window.label)), name)
        if name not in periods:
            why = f"{self.declared.name} has no window {name!r}; {suggestion(name, [*periods])}"
            raise InvalidInput.at("period", why)
        return name, periods[name].period == "every"

    def _zoned(self) -> ZonedWindow:
        label = self.declared.periods[self._period()[0]].label
        return self.declared.rule.board.zoned_window(label)

    def where(self) -> _WindowAndGroup:
        """The window and the group, as the board names them."""
        levels = self.declared.dimensions
        if len(self.groups) > len(levels):
            known = ", ".join(levels) or "none"
            raise InvalidInput.at(
                "group", f"{self.declared.name} has {len(levels)} levels of groups ({known})"
            )
        zoned = self._zoned()
        slot = None if self.asked is None else _slot(zoned, self.asked)
        return {"period": zoned.label, "slot": slot, "group": str(self.declared.cut(self.groups)) or None}

    async def _page(
        self, limit: int, start: End = "top", *, cursor: str | None = None, rank: int | None = None
    ) -> Page:
        laurels, board = await self._open()
        page = await laurels.page(board, limit=limit, start=start, cursor=cursor, rank=rank, **self.where())
        if not page.total:
            await self._check_ready()
        return page

    async def _from_bottom(self, k: int, skip: int) -> list[Placing]:
        total = await self.count()
        first = max(0, total - skip - k)
        found = await self.entries(max(0, total - skip - first), skip=first)
        return found[::-1]

    async def _check_window(self) -> None:
        """Raises the error of a window that cannot be asked for; `NotFound` may also mean a missing entry."""
        if self.asked is not None:
            await self._page(1)
        await self._check_ready()

    async def _check_ready(self) -> None:
        """After an empty answer: raises `IndexNotReady` unless it is complete."""
        await self._opened.require_ready(self.declared)

    def _placings(self, entries: Iterable[Entry]) -> list[Placing]:
        key = self.declared.members.key
        return [Placing(key(entry.member), int(entry.score), entry.rank) for entry in entries]

    async def _listed(self, k: int, start: End) -> list[Ranked[Model]]:
        _check_count("k", k)
        found: list[Ranked[Model]] = []
        read = 0
        while len(found) < k or not read:
            wanted = k - len(found)
            placings = await self.entries(wanted, start, skip=read)
            read += len(placings)
            found += await self._with_records(placings)
            if len(placings) < wanted or k == 0:
                break
        if start == "top" and len(found) < read and self.declared.index.ties != "shared":
            # Records were deleted meanwhile.
            found = [msgspec.structs.replace(each, rank=rank) for rank, each in enumerate(found, 1)]
        return found

    async def _with_records(self, placings: list[Placing]) -> list[Ranked[Model]]:
        records = await self._opened.records(self, [each.key for each in placings])
        return [
            Ranked(record, each.score, each.rank)
            for each in placings
            if (record := records.get(each.key)) is not None
        ]


def leaderboard(model: type[Model], index: str | InstrumentedAttribute[Any] | None = None) -> Ranking[Model]:
    """The ranking of a model in its open `Indexes`, by its only index or the one with this name or score."""
    return Ranking(model, index)


_bound: dict[type[Any], list[Indexes]] = {}


def bind(indexes: Indexes) -> None:
    for model in indexes.models:
        _bound.setdefault(model, []).append(indexes)


def unbind(indexes: Indexes) -> None:
    for model in indexes.models:
        if indexes in _bound.get(model, ()):
            _bound[model].remove(indexes)


def bound_to(model: type[Any]) -> Indexes:
    declared(model)
    if not _bound.get(model):
        raise InvalidInput.at(
            "model",
            f"no Indexes are open for {model.__name__}: `async with Indexes(laurels, engine, "
            f"[{model.__name__}]):` first",
        )
    return _bound[model][-1]


def _check_count(field: str, count: object, *, least: int = 0, most: int | None = None) -> None:
    if type(count) is not int or count < least or (most is not None and count > most):
        upto = "on" if most is None else f"to {most}"
        raise InvalidInput.at(field, f"must be a whole number from {least} {upto}, not {count!r}")


def _score(score: object, field: str) -> int:
    if type(score) is not int:
        raise InvalidInput.at(field, f"must be a whole number, as scores are, not {score!r}")
    return score


def _slot(zoned: ZonedWindow, asked: Window | datetime | int | str) -> str:
    match asked:
        case Window():
            return str(asked.id)
        case datetime():
            if asked.utcoffset() is None:
                raise InvalidInput.at("window", f"{asked} has no UTC offset: give it a timezone")
            return zoned.calendar.at(moment_of(asked)).text
        case _:
            return str(asked)


def _group_text(value: object) -> str:
    """A group's value as PostgreSQL writes it."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case Enum():
            return value.name
        case date():
            return value.isoformat()
        case None:
            raise InvalidInput.at("group", "records without a group are not ranked, so None is not a group")
        case _:
            return str(value)
