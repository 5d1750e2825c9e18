"""Reads a leaderboard: `await leaderboard(GameScore).group("asia").window(w).top(10)`.

A ranking is a value: each step returns a new one, and the last call is awaited. Ranks count from 1 and are
unique: of equal scores the lower key ranks higher. Dense ranks are shared (1-2-2-3). A recent commit may be
missing; call `await index.caught_up()` to read your own writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypedDict, TypeVar

import msgspec

from laurels.errors import InvalidInput, NotFound
from laurels.index.declare import declared, declared_as
from laurels.scores.queries import AMONG_LIMIT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy.ext.asyncio import AsyncSession
    from sqlalchemy.orm import InstrumentedAttribute

    from laurels.engine import Laurels
    from laurels.index.declare import DeclaredIndex
    from laurels.index.indexes import Indexes
    from laurels.scores.results import Entry, Page, Standing

Model = TypeVar("Model")

PAGE: Final = 1000
MOST_WINDOWS: Final = 1000


class Ranked(msgspec.Struct, Generic[Model], frozen=True):
    """A record with its score and its rank."""

    item: Model
    score: int
    rank: int


class Placing(msgspec.Struct, frozen=True, gc=False):
    """An entry without its record. `key` is a value, or a tuple for several columns."""

    key: Any
    score: int
    rank: int


@dataclass(frozen=True)
class Window:
    """A window that can be asked for: from `starts_at` up to `ends_at`."""

    id: int
    """floor(unix time / length)"""
    starts_at: datetime
    ends_at: datetime
    entries: int


class _WindowAndGroup(TypedDict):
    slot: str | None
    group: str | None


@dataclass(frozen=True)
class Ranking(Generic[Model]):
    """One leaderboard of a model; by default of all records in the current window."""

    model: type[Model]
    which: str | InstrumentedAttribute[Any] | None = None
    groups: tuple[str, ...] = ()
    slot: str | None = None
    session: AsyncSession | None = None
    opened: Indexes | None = None

    def index(self, which: str | InstrumentedAttribute[Any]) -> Ranking[Model]:
        """Another index of the model, by its name or by the attribute that it ranks."""
        return replace(self, which=which)

    def group(self, *values: object) -> Ranking[Model]:
        """One group, by its value at each level: `group("asia")`, or `group("asia", "tokyo")` within it."""
        return replace(self, groups=tuple(_group_text(value) for value in values))

    def window(self, window: Window | int) -> Ranking[Model]:
        """Another window than the current one: an item of `windows()`, or its number."""
        return replace(self, slot=str(window.id if isinstance(window, Window) else window))

    def using(self, session: AsyncSession) -> Ranking[Model]:
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

    async def entries(
        self, k: int, start: Literal["top", "bottom"] = "top", *, skip: int = 0
    ) -> list[Placing]:
        """The entries without their records: k of them after skipping `skip`. Does not query PostgreSQL."""
        _check_count(k)
        found: list[Placing] = []
        if k == 0:
            return found
        cursor: str | None = None
        left = skip
        while len(found) < k:
            limit = min(PAGE, left + k - len(found))
            page = await self._page(limit, start, cursor)
            found += self._placings(page.entries[left:])
            left = max(0, left - len(page.entries))
            cursor = page.next
            if cursor is None:
                break
        return found

    async def among(self, keys: Collection[Any]) -> list[Placing]:
        """The entries of these keys, best first, each with its rank in the whole ranking."""
        laurels, board = self._open()
        codec = self.declared.members
        members = [codec.of_key(key) for key in keys]
        found: list[Placing] = []
        for first in range(0, len(members), AMONG_LIMIT):
            chunk = members[first : first + AMONG_LIMIT]
            answer = await laurels.among(board, chunk, **self._window())
            found += [
                Placing(codec.key(each.member), int(each.score), each.board_rank) for each in answer.entries
            ]
        return sorted(found, key=lambda each: each.rank)

    async def rank(self, key: Any) -> int | None:  # noqa: ANN401  # a primary key of any type
        """The rank of a record; None when it has no entry."""
        found = await self.standing(key)
        return None if found is None else found.rank

    async def dense_rank(self, key: Any) -> int | None:  # noqa: ANN401  # as `rank`
        """1 + the number of distinct better scores; None when the record has no entry."""
        found = await self.standing(key)
        return None if found is None or not isinstance(found.dense_rank, int) else found.dense_rank

    async def score(self, key: Any) -> int | None:  # noqa: ANN401  # as `rank`
        found = await self.standing(key)
        return None if found is None else int(found.score)

    async def standing(self, key: Any) -> Standing | None:  # noqa: ANN401  # as `rank`
        """Score, rank, dense rank, percentile and total of a record; None when it has no entry."""
        laurels, board = self._open()
        member = self.declared.members.of_key(key)
        try:
            return await laurels.standing(board, member, **self._window())
        except NotFound:
            await self._check_window()
            return None

    async def percentile(self, p: float) -> int | None:
        """The score that a share `p` of the entries do not exceed: at 1 the best. None without entries."""
        laurels, board = self._open()
        try:
            return int((await laurels.percentile(board, p, **self._window())).score)
        except NotFound:
            await self._check_window()
            return None

    async def count(self) -> int:
        return (await self._page(1)).total

    async def around(self, key: Any, above: int = 5, below: int = 5) -> list[Ranked[Model]]:  # noqa: ANN401  # as `rank`
        """A record and its neighbours; an empty list when it has no entry."""
        laurels, board = self._open()
        member = self.declared.members.of_key(key)
        try:
            page = await laurels.around(board, member, above, below, **self._window())
        except NotFound:
            await self._check_window()
            return []
        return await self._with_records(self._placings(page.entries))

    async def windows(self) -> list[Window]:
        """The current window, then the earlier ones with entries that can be asked for, newest first."""
        laurels, board = self._open()
        found = await laurels.windows(board, group=self._window()["group"], limit=MOST_WINDOWS)
        return [
            Window(int(each.slot), each.starts_at, each.ends_at, each.entries)
            for number, each in enumerate(found)
            if each.starts_at and each.ends_at and (each.entries or number == 0)
        ]

    def _open(self) -> tuple[Laurels, str]:
        """The engine and the board."""
        opened = self.opened or bound_to(self.model)
        return opened.laurels, opened.board(self.declared)

    def _window(self) -> _WindowAndGroup:
        levels = self.declared.dimensions
        if len(self.groups) > len(levels):
            known = ", ".join(levels) or "none"
            raise InvalidInput.at(
                "group", f"{self.declared.name} has {len(levels)} levels of groups ({known})"
            )
        return {"slot": self.slot, "group": str(self.declared.cut(self.groups)) or None}

    async def _page(
        self, limit: int, start: Literal["top", "bottom"] = "top", cursor: str | None = None
    ) -> Page:
        laurels, board = self._open()
        return await laurels.page(board, limit=limit, start=start, cursor=cursor, **self._window())

    async def _check_window(self) -> None:
        """Raises the error of a window that cannot be asked for; `NotFound` may also mean a missing entry."""
        if self.slot is not None:
            await self._page(1)

    def _placings(self, entries: Iterable[Entry]) -> list[Placing]:
        key = self.declared.members.key
        return [Placing(key(entry.member), int(entry.score), entry.rank) for entry in entries]

    async def _listed(self, k: int, start: Literal["top", "bottom"]) -> list[Ranked[Model]]:
        found: list[Ranked[Model]] = []
        read = 0
        while len(found) < k or not read:
            wanted = k - len(found)
            placings = await self.entries(wanted, start, skip=read)
            read += len(placings)
            found += await self._with_records(placings)
            if len(placings) < wanted or k == 0:
                break
        if start == "top" and len(found) < read:  # records were deleted meanwhile
            found = [msgspec.structs.replace(each, rank=rank) for rank, each in enumerate(found, 1)]
        return found

    async def _with_records(self, placings: list[Placing]) -> list[Ranked[Model]]:
        opened = self.opened or bound_to(self.model)
        records = await opened.fetch(self.model, [each.key for each in placings], self.session)
        return [
            Ranked(record, each.score, each.rank)
            for each in placings
            if (record := records.get(each.key)) is not None
        ]


def leaderboard(model: type[Model], index: str | InstrumentedAttribute[Any] | None = None) -> Ranking[Model]:
    """The ranking of a model in its open `Indexes`, by its only index or the one with this name or score."""
    return Ranking(model, index)


_opened: dict[type[Any], list[Indexes]] = {}


def bind(indexes: Indexes) -> None:
    for model in indexes.models:
        _opened.setdefault(model, []).append(indexes)


def unbind(indexes: Indexes) -> None:
    for model in indexes.models:
        if indexes in _opened.get(model, ()):
            _opened[model].remove(indexes)


def bound_to(model: type[Any]) -> Indexes:
    declared(model)
    if not _opened.get(model):
        raise InvalidInput.at(
            "model",
            f"no Indexes are open for {model.__name__}: `async with Indexes(laurels, engine, "
            f"[{model.__name__}]):` first",
        )
    return _opened[model][-1]


def _check_count(k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int) or k < 0:  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        raise InvalidInput.at("k", f"must be a whole number from 0 on, not {k!r}")


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
